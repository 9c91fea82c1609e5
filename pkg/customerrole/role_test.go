package customerrole_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/customerrole"
)

func TestFind(t *testing.T) {
	t.Parallel()
	const repair, own = "{{ .nuon.id }}-repair", "{{ .nuon.inputs.inputs.env }}-repair"
	list := []customerrole.Role{
		{Written: repair, Name: "ins1-repair", Known: true}, {Written: own, Name: "prod-repair", Known: true},
		{Written: "audit", Name: "audit", Known: true}, {Written: "{{ .x }}", Name: "{{ .x }}"},
		{Written: "{{ .a }}-twin", Name: "twin", Known: true}, {Written: "{{ .b }}-twin", Name: "twin", Known: true},
	}
	for _, tc := range []struct{ name, written, want string }{
		{"as it is declared", repair, repair},
		{"with other spaces and an older path", "{{.berth.install.id}}-repair", repair},
		{"as it is called here", "prod-repair", own},
		{"plain", "audit", "audit"},
		{"a part of a name is another name", "repair", ""},
		{"another one", "gone", ""},
		{"of two that are called alike, neither", "twin", ""},
		{"of an unknown name, only as it is written", "{{ .x }}", "{{ .x }}"},
		{"nothing", "", ""},
	} {
		got, ok := customerrole.Find(list, tc.written)
		if got.Written != tc.want || ok != (tc.want != "") {
			t.Errorf("%s: %q, %v, want %q", tc.name, got.Written, ok, tc.want)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	render := func(text string) (string, error) {
		if strings.Contains(text, ".sandbox.") {
			return "", errors.New("not there yet")
		}
		return strings.NewReplacer("{{ .nuon.id }}", "ins1", "{{ .long }}", strings.Repeat("x", 300), "{{ .lines }}", "a\nb").Replace(text), nil
	}
	for written, want := range map[string]string{
		"audit":                                "audit",
		"{{ .nuon.id }}-repair":                "ins1-repair",
		"{{ .nuon.id }}-{{ .nuon.sandbox.x }}": "ins1-{{ .nuon.sandbox.x }}",
		"{{ .long }}":                          "{{ .long }}",
		"{{ .lines }}":                         "{{ .lines }}",
	} {
		name, known := customerrole.Named(written, render)
		if name != want || known != !strings.Contains(want, "{{") {
			t.Errorf("%s: %q, known %v, want %q", written, name, known, want)
		}
	}
}
