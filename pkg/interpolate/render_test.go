package interpolate_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/interpolate"
)

var update = flag.Bool("update", false, "rewrite golden files")

// exampleState is a small install, gone through JSON as stored trees have.
func exampleState(t *testing.T) interpolate.State {
	t.Helper()
	return interpolate.NewState(exampleTree(t))
}

func exampleParts() interpolate.Parts {
	return interpolate.Parts{
		Install: interpolate.Install{ID: "ins_1", Name: "ada"},
		Org:     interpolate.Named{ID: "org_1", Name: "acme"},
		Inputs:  map[string]any{"domain": "example.com", "empty": "", "nothing": nil},
		Sandbox: interpolate.Sandbox{Populated: true, Outputs: map[string]any{"cluster": map[string]any{"name": "prod"}}},
		Stack:   interpolate.Stack{Populated: true, Outputs: map[string]any{"install_dir": "/data"}},
		Components: map[string]interpolate.Component{
			"api": {Populated: true, VarName: "backend", Outputs: map[string]any{
				"url": "http://api", "port": 1000000, "ratio": 0.5, "html": `<a href="x">&</a>`, "zones": []any{"b", "a"},
			}},
			"my-db": {Populated: true, Outputs: map[string]any{"host": "db"}},
		},
		Actions: map[string]interpolate.Action{"smoke": {Populated: true, Steps: map[string]map[string]any{"one": {"ok": "yes"}}}},
		Secrets: map[string]interpolate.Secret{"token": {Length: 63, Exists: true}},
		Domain:  interpolate.Domain{Public: "ada.example.com"},
	}
}

func TestRender(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 13, 0, 0, 0, time.FixedZone("CET", 3600))
	tests := []struct {
		name, src, want string
	}{
		{"plain text stays", "no template", "no template"},
		{"foreign braces stay", "{{ request.object.metadata.name }}", "{{ request.object.metadata.name }}"},
		{"root without a dot stays", "{{nuon.install.id}}", "{{nuon.install.id}}"},
		{"mention outside of braces is no template", "see docs.nuon.co", "see docs.nuon.co"},
		{"path", "{{ .nuon.inputs.inputs.domain }}", "example.com"},
		{"berth is the same tree", "{{ .berth.id }}", "ins_1"},
		{"legacy install", "{{ .nuon.install.id }}/{{ .nuon.install.name }}/{{ .nuon.install.inputs.domain }}", "ins_1/ada/example.com"},
		{"legacy sandbox", "{{ .nuon.install.sandbox.outputs.cluster.name }}", "prod"},
		{"legacy domain", "{{ .nuon.install.public_domain }}", "ada.example.com"},
		{"var_name", "{{ .nuon.components.backend.outputs.url }}", "http://api"},
		{"index with a dash", `{{ (index .nuon.components "my-db").outputs.host }}`, "db"},
		{"large whole numbers", "{{ .nuon.components.api.outputs.port }}", "1000000"},
		{"fractions", "{{ .nuon.components.api.outputs.ratio }}", "0.5"},
		{"nothing is escaped", "{{ .nuon.components.api.outputs.html }}", `<a href="x">&</a>`},
		{"empty string is a value", "[{{ .nuon.inputs.inputs.empty }}]", "[]"},
		{"keys are sorted", `{{ keys .nuon.components.api.outputs | join "," }}`, "html,port,ratio,url,zones"},
		{"values follow sorted keys", `{{ values (dict "b" 2 "a" 1 "x" .nuon.id) | join "," }}`, "1,2,ins_1"},
		{"lists", `{{ join "," .nuon.components.api.outputs.zones }}`, "b,a"},
		{"range and with", `{{ with .nuon.components.api }}{{ range .outputs.zones }}<{{ . }}>{{ end }}{{ end }}`, "<b><a>"},
		{"default for empty", `{{ default "x" .nuon.inputs.inputs.empty }}`, "x"},
		{"dig", `{{ dig "components" "gone" "outputs" "none" .nuon }}`, "none"},
		{"ternary", `{{ ternary "y" "n" (eq .nuon.id "ins_1") }}`, "y"},
		{"json", `{{ toJson .nuon.sandbox.outputs }}`, `{"cluster":{"name":"prod"}}`},
		{"action steps", `{{ .nuon.actions.workflows.smoke.outputs.steps.one.ok }}`, "yes"},
		{"secret metadata", `{{ .nuon.secrets.token.length }}`, "63"},
		{"now is frozen and UTC", `{{ now | date "2006-01-02 15:04 MST" }}{{/* .nuon */}}`, "2026-03-01 12:00 UTC"},
		{"set changes a copy", `{{ $_ := set .nuon.inputs.inputs "domain" "changed" }}{{ .nuon.inputs.inputs.domain }}`, "changed"},
		{"times have methods", `{{ now.Year }} {{ (now).Format "15:04" }} {{ now.UTC.Month }}{{/* .nuon */}}`, "2026 12:00 March"},
		{"zone UTC", `{{ dateInZone "15:04" now "UTC" }}{{ htmlDateInZone now "UTC" }}{{/* .nuon */}}`, "12:002026-03-01"},
		{"versions have methods", `{{ (semver "1.2.3").Minor }}{{/* .nuon */}}`, "2"},
		{"recursion that ends", `{{ define "down" }}{{ . }}{{ if gt . 0 }}{{ template "down" (sub . 1 | int) }}{{ end }}{{ end }}{{ template "down" 3 }}{{/* .nuon */}}`, "3210"},
		{"block", `{{ block "b" .nuon.org }}{{ .name }}{{ end }}`, "acme"},
		{"root after a variable", `{{ $r := . }}{{ $r.nuon.id }}`, "ins_1"},
		{"conditions do not read what they skip", `{{ if and (hasKey .nuon.components "gone") .nuon.components.gone.populated }}y{{ else }}n{{ end }}`, "n"},
		{"quoted braces", "{{ `{{ request.object }}` }} {{ .nuon.id }}", "{{ request.object }} ins_1"},
		{"Kyverno next to ours", "{{ request.object.spec.containers[?name=='a'].image | [0] }} {{ .nuon.id }} {{element.name}} {{- to_upper('{{ element.x }}') }} {{ serviceAccountName }} {{@}}",
			"{{ request.object.spec.containers[?name=='a'].image | [0] }} ins_1 {{element.name}} {{- to_upper('{{ element.x }}') }} {{ serviceAccountName }} {{@}}"},
		{"ours inside Kyverno's", "{{ divide('{{ .nuon.components.api.outputs.port }}', `2`) }}", "{{ divide('1000000', `2`) }}"},
		{"GitHub's next to ours", "${{ github.ref }}-{{ .nuon.id }}", "${{ github.ref }}-ins_1"},
		{"dotless next to ours", "{{nuon.install.id}} {{ .nuon.id }}", "{{nuon.install.id}} ins_1"},
		{"mention outside of braces, foreign braces", "{{ pod }} https://docs.nuon.co", "{{ pod }} https://docs.nuon.co"},
		{"named template", `{{ define "n" }}<{{ .name }}>{{ end }}{{ template "n" .nuon }}`, "<ada>"},
	}
	state := exampleState(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := interpolate.Render(tt.src, state, interpolate.Options{Now: noon})
			if err != nil {
				t.Fatalf("render %q: %v", tt.src, err)
			}
			if got != tt.want {
				t.Errorf("render %q: got %q, want %q", tt.src, got, tt.want)
			}
		})
	}
	again, err := interpolate.Render("{{ .nuon.inputs.inputs.domain }}", state, interpolate.Options{})
	if err != nil || again != "example.com" {
		t.Errorf("a template changed the state: %q, %v", again, err)
	}
}

func TestRenderActionInputs(t *testing.T) {
	t.Parallel()
	state := exampleState(t).WithActionInputs(map[string]string{"version": "1.2"})
	got, err := interpolate.Render("{{ .action.inputs.version }} of {{ .nuon.id }}", state, interpolate.Options{})
	if err != nil || got != "1.2 of ins_1" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestRenderErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, src, want, missing string
	}{
		{"missing key names the whole path", "a\n{{ .nuon.components.api.outputs.missing_output_with_long_name }}",
			`line 2: .nuon.components.api.outputs.missing_output_with_long_name: there is no "missing_output_with_long_name"`,
			".nuon.components.api.outputs.missing_output_with_long_name"},
		{"missing in the middle", "{{ .nuon.components.gone.outputs.url }}",
			`line 1: .nuon.components.gone.outputs.url: there is no "gone"`, ".nuon.components.gone.outputs.url"},
		{"missing by index", `{{ index .nuon.components "gone" }}`, `line 1: there is no "gone" in .nuon.components; there is api, backend, my-db`, ".nuon.components.gone"},
		{"missing below a variable", `{{ $c := .nuon.components.api }}{{ $c.outputs.gone }}`,
			`line 1: $c.outputs.gone: there is no "gone" in .nuon.components.api.outputs; there is html, port, ratio, url, zones`,
			".nuon.components.api.outputs.gone"},
		{"the nearest key", `{{ .nuon.components.ap.outputs.url }}`,
			`line 1: .nuon.components.ap.outputs.url: there is no "ap"; the nearest is "api"`, ".nuon.components.ap.outputs.url"},
		{"the nearest key by index", `{{ index .nuon.components "my_db" "outputs" }}`,
			`line 1: there is no "my_db" in .nuon.components; the nearest is "my-db"`, ".nuon.components.my_db"},
		{"missing below with", `{{ with .nuon.components.api.outputs }}{{ .prot }}{{ end }}`,
			`line 1: .prot: there is no "prot" in .nuon.components.api.outputs; the nearest is "port"`, ".nuon.components.api.outputs.prot"},
		{"missing in the legacy alias", `{{ .nuon.install.inputs.domian }}`,
			`line 1: .nuon.install.inputs.domian: there is no "domian" in .nuon.inputs.inputs; the nearest is "domain"`, ".nuon.inputs.inputs.domian"},
		{"a root that is not there", `{{ .Values.x }}{{ .nuon.id }}`, `line 1: .Values.x: there is no "Values"`, ".Values.x"},
		{"missing inside a condition", `{{ if .nuon.inputs.inputs.gone }}x{{ end }}`,
			`line 1: .nuon.inputs.inputs.gone: there is no "gone"`, ".nuon.inputs.inputs.gone"},
		{"a function's error does not repeat the value", `{{ mustToDate "2006" .nuon.inputs.inputs.domain }}`,
			"line 1: mustToDate cannot work with this value", ""},
		{"an author's own error", `{{ if .nuon.id }}{{ fail "set a domain" }}{{ end }}`, "set a domain", ""},
		{"index into a string", `{{ index .nuon.id "x" }}`, "cannot use string to look into a list", ""},
		{"null is not printed", "{{ .nuon.inputs.inputs.nothing }}", "line 1: the value is null", ""},
		{"path through null", "{{ .nuon.inputs.inputs.nothing.more }}",
			"line 1: .nuon.inputs.inputs.nothing.more: a part of this path is null", ".nuon.inputs.inputs.nothing.more"},
		{"unknown function", "{{ foo .nuon }}", `line 1: function "foo" not defined`, ""},
		{"misspelt function", "{{ tojson .nuon }}", `line 1: function "tojson" not defined; the nearest is "toJson"`, ""},
		{"another language's word", "{{ pod }}{{ .nuon.id }}", "if pod belongs to another template language, write {{ `{{ pod }}` }}", ""},
		{"another language's variable", "{{ $labels.pod }}{{ .nuon.id }}", "if $labels belongs to another template language", ""},
		{"no environment", `{{ env "HOME" }}{{ .nuon }}`, `line 1: function "env" not defined in templates: it reads the environment`, ""},
		{"not ours to call", `{{ _field . "x" "nuon" }}{{ .nuon.id }}`, `function "_field" not defined`, ""},
		{"another time zone", `{{ dateInZone "15:04" 0 "Europe/Vienna" }}{{ .nuon.id }}`, "times are in UTC", ""},
		{"the zone of the machine", `{{ (toDate "2006" "2026").Local.Hour }}{{ .nuon.id }}`, `cannot look up "Local"`, ""},
		{"no clock", `{{ now }}{{ .nuon.id }}`, "there is no current time here", ""},
		{"syntax", "{{ if .nuon.id }}", "unexpected EOF", ""},
		{"endless recursion", `{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" .nuon }}`, "templates call each other deeper than 100", ""},
		{"deep nesting", strings.Repeat("{{ if .nuon }}", 200) + strings.Repeat("{{ end }}", 200), "nest deeper", ""},
		{"output", `{{ range until 1000 }}{{ repeat 2000 "x" }}{{ end }}{{ .nuon }}`, "larger than 1048576 bytes", ""},
		{"counting", `{{ range until 1000000000 }}{{ end }}{{ .nuon }}`, "until counts further", ""},
		{"repeat", `{{ repeat 2000000000 .nuon.id }}`, "repeat makes a value larger", ""},
		{"indent", `{{ indent 2000000000 .nuon.id }}`, "indent makes a value larger", ""},
		{"printf width", `{{ printf "%99999d" 1 }}{{ .nuon }}`, "widths above 999", ""},
		{"doubling text", `{{ $x := repeat 1000 .nuon.id }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}`, "larger than 8 MiB", ""},
		{"doubling lists", `{{ $x := list .nuon.id }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}`, "larger than 8 MiB", ""},
		{"replace amplifies", `{{ $x := repeat 100000 "a" }}{{ replace "a" $x $x }}{{ .nuon }}`, "replace makes a value larger", ""},
		{"a dict in itself", `{{ $d := dict "a" .nuon.id }}{{ $_ := set $d "self" $d }}{{ $d }}`, "set makes a value larger", ""},
	}
	state := exampleState(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := interpolate.Render(tt.src, state, interpolate.Options{})
			if err == nil {
				t.Fatalf("render: got %q, want an error with %q", got, tt.want)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("render: got error %q, want %q", err, tt.want)
			}
			e, ok := errors.AsType[*interpolate.Error](err)
			if !ok || e.Missing != tt.missing {
				t.Errorf("missing path: got %+v, want %q", e, tt.missing)
			}
		})
	}
}

func TestRenderEndsInTime(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		`{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}{{ .nuon }}`,
		`{{ range 9000000000 }}{{ end }}{{ .nuon }}`,
	} {
		_, err := interpolate.Render(src, exampleState(t), interpolate.Options{Timeout: 20 * time.Millisecond})
		if err == nil || !strings.Contains(err.Error(), "takes longer than 20ms") {
			t.Errorf("render %q: got %v, want it to be out of time", src, err)
		}
	}
}

func TestIsTemplate(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"{{ .nuon.id }}":                 true,
		"{{.berth.id}}":                  true,
		"{{ $.nuon.id }}":                true,
		"{{ .action.inputs.x }}":         true,
		"{{ element.name }}":             false,
		"{{nuon.id}}":                    false,
		".nuon.id":                       false,
		"https://x.nuon.co {{ user }}":   false,
		"{{ .nuonsense }}":               false,
		`{{ index .nuon.inputs "a" }}`:   true,
		"{{ request.action.inputs_of }}": false,
		"{{ request.nuon.x }}":           false,
		"{{ pod }} docs.nuon.co":         false,
		"{{ $r := . }}{{ $r.nuon.id }}":  true,
		`{{ (index . "x").nuon }}`:       true,
		"{{ .nuon.id":                    true,
	}
	for src, want := range tests {
		if got := interpolate.IsTemplate(src); got != want {
			t.Errorf("IsTemplate(%q): got %v, want %v", src, got, want)
		}
	}
}

func TestTreeHasNoUnpopulatedOutputs(t *testing.T) {
	t.Parallel()
	got := interpolate.NewTree(interpolate.Parts{Install: interpolate.Install{ID: "ins_1"}})
	want := []string{
		"actions", "app", "cloud_account", "components", "domain", "id", "inputs", "install_stack", "name", "org", "runner",
		"sandbox", "secrets",
	}
	var keys []string
	for k := range got {
		keys = append(keys, k)
	}
	less := func(a, b string) bool { return a < b }
	if diff := cmp.Diff(want, keys, sortStrings(less)); diff != "" {
		t.Errorf("keys of an empty tree (-want +got):\n%s", diff)
	}
	_, err := interpolate.Render("{{ .nuon.sandbox.outputs.vpc }}", interpolate.NewState(got), interpolate.Options{})
	if err == nil {
		t.Error("an output of a sandbox that is not there rendered")
	}
}

// TestRenderMixedValuesFile holds what becomes of a file in which one part is
// ours and the others belong to Kyverno and GitHub.
func TestRenderMixedValuesFile(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/mixed-values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := interpolate.Render(string(src), exampleState(t), interpolate.Options{File: "mixed-values.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	golden := "testdata/mixed-values.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("mixed-values.yaml rendered (-want +got):\n%s", diff)
	}
}

func TestErrorPlaces(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, src, want string }{
		{"missing key", "a: 1\nb: {{ .nuon.sandbox.outputs.clustr.name }}",
			`values.yaml:2:7: .nuon.sandbox.outputs.clustr.name: there is no "clustr"; the nearest is "cluster"`},
		{"behind a foreign action", "{{ request.x }} {{ .nuon.nam }}",
			`values.yaml:1:20: .nuon.nam: there is no "nam"; the nearest is "name"`},
		{"in a named template", "{{ define \"x\" }}\n{{ .idd }}{{ end }}\n{{ template \"x\" .nuon.org }}",
			`values.yaml:2:4: .idd: there is no "idd" in .nuon.org; the nearest is "id"`},
		{"in a list", `{{ range list .nuon.org }}{{ .idd }}{{ end }}`,
			`values.yaml:1:30: .idd: there is no "idd" in .nuon.org; the nearest is "id"`},
		{"null in the middle", "{{ .nuon.inputs.inputs.nothing.a.b }}",
			`values.yaml:1:4: .nuon.inputs.inputs.nothing.a.b: a part of this path is null`},
		{"through a text", "{{ .nuon.id.x }}", `values.yaml:1:4: .nuon.id.x: cannot look up "x" in a value of type string`},
		{"does not parse", "x\n{{ if .nuon.id }", `values.yaml:2: unexpected "}" in operand`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := interpolate.Render(tt.src, exampleState(t), interpolate.Options{File: "values.yaml"})
			if err == nil || err.Error() != tt.want {
				t.Errorf("render %q: got %q, error\n%v, want\n%s", tt.src, got, err, tt.want)
			}
		})
	}
}
