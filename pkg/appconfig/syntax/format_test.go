package syntax_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"

	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/appconfig/syntax"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"only empty lines", "\n\n  \n", ""},
		{"equal signs stand below each other", "a=1\nlonger   = 'x'\n\nb =2", "a      = 1\nlonger = 'x'\n\nb = 2\n"},
		{"a comment ends a block", "a = 1\n# about\nlonger = 2\n", "a = 1\n# about\nlonger = 2\n"},
		{"one empty line before a table, none after", "a = 1\n[t]\n\n\nb = 2\n[[u]]\nc = 3\n", "a = 1\n\n[t]\nb = 2\n\n[[u]]\nc = 3\n"},
		{"comments stay with the header below them", "# kind\n\na = 1\n# about t\n# more\n[t] # end\n# inside\nb = 1\n", "# kind\n\na = 1\n\n# about t\n# more\n[t] # end\n# inside\nb = 1\n"},
		{"a comment above an empty line stays above it", "a = 1\n# about a\n\n\n[t]\n", "a = 1\n# about a\n\n[t]\n"},
		{"two tables without keys", "[a]\n# about b\n[b]\n", "[a]\n\n# about b\n[b]\n"},
		{"spaces and line ends", "\t a . \"b c\" = 1  \t# c \r\n [ t . 'x]' ] \r\n", "a.\"b c\" = 1 # c\n\n[t.'x]']\n"},
		{"byte order mark", "\xef\xbb\xbfa=1", "a = 1\n"},
		{"a list of several lines", "a = [ # first\n\n1, # \"one\n\n\n   [2,\n3],\n\n]# end\nlong = 1\n",
			"a = [ # first\n\n  1, # \"one\n\n  [2,\n    3],\n] # end\nlong = 1\n"},
		{"a string of several lines stays", "script = \"\"\"\n  # x = [ \\\"\"\" \n\n\n\t\"\"\"\"\"\nb='''\r\n a=1 ''''\n",
			"script = \"\"\"\n  # x = [ \\\"\"\" \n\n\n\t\"\"\"\"\"\nb = '''\r\n a=1 ''''\n"},
		{"dates, numbers, inline tables", "a = 1979-05-27 07:32:00Z\nbb = {x=1, 'y z' = [nan]}\n", "a  = 1979-05-27 07:32:00Z\nbb = {x=1, 'y z' = [nan]}\n"},
		{"width is counted in letters", "\"é\" = 1\n\"xx\" = 2\n", "\"é\"  = 1\n\"xx\" = 2\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, problem := syntax.Format("x.toml", []byte(tc.in))
			if problem != nil {
				t.Fatal(problem)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, problem := syntax.Format("x.toml", got); problem != nil || string(again) != string(got) {
				t.Errorf("formatted again it is\n%s%v", again, problem)
			}
		})
	}
}

func TestFormatRefusesWhatIsNotTOML(t *testing.T) {
	t.Parallel()
	got, problem := syntax.Format("components/x.toml", []byte("a = 1\nb = \n"))
	if got != nil || problem == nil || problem.Code != place.CodeSyntax || problem.Line != 2 || problem.File != "components/x.toml" {
		t.Errorf("got %q, %+v", got, problem)
	}
}

// TestExamplesAreFormatted holds that the examples have the form that they
// teach, and that formatting keeps what they mean.
func TestExamplesAreFormatted(t *testing.T) {
	t.Parallel()
	checked := 0
	for name, data := range exampleFiles(t) {
		got, problem := syntax.Format(name, data)
		if problem != nil {
			t.Error(problem)
			continue
		}
		if diff := cmp.Diff(string(data), string(got)); diff != "" {
			t.Errorf("%s is not formatted (-is +should be):\n%s", name, diff)
		}
		checked++
	}
	if checked < 30 {
		t.Errorf("only %d files were looked at", checked)
	}
}

// FuzzFormat holds that formatting keeps what a file means, and that doing it
// again changes nothing.
func FuzzFormat(f *testing.F) {
	for _, data := range exampleFiles(f) {
		f.Add(string(data))
	}
	f.Add("a = [ # x\n\n1,\n [2,\n\n]]# y\n[ a . 'b]' ]\n\"\\\"\" = \"\"\"\\\"\"\"\"\"\"\nx='''''x'''''\n")
	f.Add("a = 1\r\n\r\n# c\r\n[[t]]\r\nb = \"\"\"\r\n  \\\r\n x\"\"\" # d\r\n")
	f.Fuzz(func(t *testing.T, in string) {
		out, problem := syntax.Format("x.toml", []byte(in))
		var before, after map[string]any
		if err := toml.Unmarshal([]byte(in), &before); (err == nil) && problem != nil && problem.Code != place.CodeLimit {
			t.Fatalf("a valid file is refused: %v", problem)
		}
		if problem != nil {
			return
		}
		if err := toml.Unmarshal(out, &after); err != nil {
			t.Fatalf("the result is not TOML: %v\n%s", err, out)
		}
		again, problem := syntax.Format("x.toml", out)
		if problem != nil || string(again) != string(out) {
			t.Fatalf("not the same twice:\n%q\n%q\n%v", out, again, problem)
		}
	})
}

// exampleFiles are the TOML files of the examples.
func exampleFiles(t testing.TB) map[string][]byte {
	t.Helper()
	root := os.DirFS("../../../examples")
	files := map[string][]byte{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".toml" {
			return err
		}
		files[name], err = fs.ReadFile(root, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
