package syntax_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/appconfig/syntax"
)

// The most frequent mistake in TOML says what to write.
func TestTextsWithoutQuotes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, file, remedy string }{
		{"a word", "# c\nname = note\n", `a text stands in quotes: name = "note"`},
		{"with a comment", "name = my-app # mine\r\n", `a text stands in quotes: name = "my-app"`},
		{"a path in a dotted key", "berth.local_source = ./src/a", `a text stands in quotes: berth.local_source = "./src/a"`},
		{"like true", "enabled = tru", `a text stands in quotes: enabled = "tru"`},
		{"a template", "x = {{ .nuon.name }}", ""},
		{"another mistake", "x = \n", ""},
		{"an open text", "x = \"a\n", ""},
	} {
		_, d := syntax.Parse("a.toml", []byte(tt.file))
		if d == nil || d.Remedy != tt.remedy {
			t.Errorf("%s: %v, want the remedy %q", tt.name, d, tt.remedy)
		}
	}
	if _, d := syntax.Parse("a.toml", []byte("on = true\nx = nan\n")); d != nil {
		t.Errorf("a good file: %v", d)
	}
}
