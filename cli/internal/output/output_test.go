package output_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/visible"
)

type ship struct {
	Name  string            `json:"name"`
	State string            `json:"state"`
	Tons  int64             `json:"tons,omitempty"`
	Home  map[string]string `json:"home,omitempty"`
}

var ships = []ship{
	{Name: "anna", State: "healthy", Tons: 90071992547409931, Home: map[string]string{"port": "Gdańsk"}},
	{Name: "a-much-longer-name", State: "failed"},
	{Name: "multi\nline\tname", State: ""},
}

var view = output.View[ship]{
	Name: func(s ship) string { return s.Name },
	None: "no ships",
	Columns: []output.Column[ship]{
		{Head: "NAME", Cell: func(s ship) string { return s.Name }},
		{Head: "HOME", Wide: true, Cell: func(s ship) string { return s.Home["port"] }},
		{Head: "STATE", Cell: func(s ship) string { return s.State }},
	},
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, format, fields string
		color, one           bool
		items                []ship
	}{
		{name: "table", format: "table", items: ships},
		{name: "table in color", format: "table", items: ships, color: true},
		{name: "wide", format: "wide", items: ships},
		{name: "json", format: "json", items: ships},
		{name: "yaml", format: "yaml", items: ships},
		{name: "names", format: "name", items: ships[:2]},
		{name: "fields", format: "table", fields: "name, home.port", items: ships},
		{name: "one", format: "table", items: ships, one: true},
		{name: "one as json", format: "json", items: ships, one: true},
		{name: "none", format: "table"},
		{name: "none as json", format: "json"},
		{name: "none as fields", format: "table", fields: "name"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o, err := output.Parse(tc.format, tc.fields)
			if err != nil {
				t.Fatal(err)
			}
			o.Color = tc.color
			var got bytes.Buffer
			w := visible.NewWriter(&got) // lets the program's own colours pass
			if tc.one {
				err = output.One(w, o, tc.items[0], view)
			} else {
				err = output.List(w, o, tc.items, view)
			}
			if err != nil {
				t.Fatal(err)
			}
			goldentest.File(t, filepath.Join("testdata", strings.ReplaceAll(tc.name, " ", "_")+".txt"), got.String())
		})
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, format, fields, want string }{
		{"no such format", "xml", "", "choose table, wide, json, yaml, csv or name"},
		{"fields of another format", "yaml", "name", "cannot be used together"},
		{"no such field", "table", "nam", `no field "nam"; there are: home, name, state, tons`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o, err := output.Parse(tc.format, tc.fields)
			if err == nil {
				err = output.List(&bytes.Buffer{}, o, ships, view)
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error with %q", err, tc.want)
			}
		})
	}
}

func TestValuesDoNotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	view := output.View[string]{Columns: []output.Column[string]{{Head: "VALUE", Cell: func(s string) string { return s }}}}
	if err := output.List(&out, output.Options{Format: output.Table}, []string{"a\x1b[31mred\a\nline", "船"}, view); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("VALUE\na⟨U+001B⟩[31mred⟨U+0007⟩ line\n船\n", out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

// What programs get means the same as before, and can be shown all the same.
func TestProgramsGetHiddenCharactersEscaped(t *testing.T) {
	t.Parallel()
	text := "a\x1b\x7f\u0085\u009b\u202e\u2028\ufeff\U000e0041 line\nnext: 'x' \"y\" \\x01\ttab"
	for _, v := range []any{text, map[string]any{text: []any{text, "plain", text + text}}, "\\u202e only looks like it", "two\nlines\n"} {
		for _, format := range []output.Format{output.JSON, output.YAML} {
			var out strings.Builder
			if err := output.Program(&out, output.Options{Format: format}, v); err != nil {
				t.Fatal(err)
			}
			if i := strings.IndexFunc(out.String(), visible.Hidden); i >= 0 {
				t.Errorf("%s: hidden at %d of %q", format, i, out.String())
			}
			var back any
			read := json.Unmarshal
			if format == output.YAML {
				read = func(data []byte, v any) error { return yaml.Unmarshal(data, v) }
			}
			if err := read([]byte(out.String()), &back); err != nil {
				t.Fatalf("%s: %v in %s", format, err, out.String())
			}
			if diff := cmp.Diff(v, back); diff != "" {
				t.Errorf("%s: %s\n(-want +got):\n%s", format, out.String(), diff)
			}
		}
	}
}
