package output_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/output"
)

var update = flag.Bool("update", false, "rewrite the golden files")

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
			if tc.one {
				err = output.One(&got, o, tc.items[0], view)
			} else {
				err = output.List(&got, o, tc.items, view)
			}
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", strings.ReplaceAll(tc.name, " ", "_")+".txt")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, format, fields, want string }{
		{"no such format", "xml", "", "there are table, wide, json, yaml and name"},
		{"fields of another format", "yaml", "name", "exclude each other"},
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
	if diff := cmp.Diff("VALUE\na\uFFFD[31mred\uFFFD line\n船\n", out.String()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}
