package inputs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/cli/internal/inputs"
)

func TestValues(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		file string // - for stdin
		want map[string]string
		err  string
	}{
		"nothing":             {},
		"pairs":               {args: []string{"--set", "a=1", "--set", "b=x=y", "--set", "a=2"}, want: map[string]string{"a": "2", "b": "x=y"}},
		"a name alone":        {args: []string{"--set", "token"}, want: map[string]string{"token": "typed for token"}},
		"no name":             {args: []string{"--set", "=x"}, err: "is not NAME=VALUE"},
		"a secret":            {args: []string{"--set", "a=1", "--set", "token=hunter2"}, err: "--set token without a value"},
		"a secret in a file":  {file: "token=hunter2\n", want: map[string]string{"token": "hunter2"}},
		"lines":               {file: "# of acme\n\na = 1\nb=x=y\r\nempty=\n", want: map[string]string{"a": "1", "b": "x=y", "empty": ""}},
		"a line that is none": {file: "a=1\nhunter2\n", err: ":2: not name=value"},
		"JSON": {file: `{"a": "1", "n": 1.50, "b": true, "list": [1, "x"], "o": {"k": null}}`,
			want: map[string]string{"a": "1", "n": "1.50", "b": "true", "list": `[1,"x"]`, "o": `{"k":null}`}},
		"null":          {file: `{"a": null}`, err: "a is null"},
		"half JSON":     {file: `{"a": "hunter2`, err: "is not a JSON object"},
		"arguments win": {args: []string{"--set", "a=2"}, file: "a=1\nb=1\n", want: map[string]string{"a": "2", "b": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, stdin := range []bool{false, true} {
				args := tt.args
				if tt.file != "" {
					path := "-"
					if !stdin {
						path = filepath.Join(t.TempDir(), "inputs")
						if err := os.WriteFile(path, []byte(tt.file), 0o600); err != nil {
							t.Fatal(err)
						}
					}
					args = append([]string{"--input-file", path}, args...)
				}
				var f inputs.Flags
				set := pflag.NewFlagSet("", pflag.ContinueOnError)
				f.Add(set, "set", "")
				if err := set.Parse(args); err != nil {
					t.Fatal(err)
				}
				got, err := f.Values(strings.NewReader(tt.file),
					func(name string) (string, error) { return "typed for " + name, nil },
					func() (map[string]bool, error) { return map[string]bool{"token": true}, nil })
				if tt.err != "" {
					if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "hunter2") {
						t.Errorf("got %v, want %q", err, tt.err)
					}
					continue
				}
				if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
					t.Errorf("%v (-want +got):\n%s", err, diff)
				}
			}
		})
	}
}

func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	var f inputs.Flags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(set, "input", "i")
	if err := set.Parse([]string{"-i", "token"}); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Values(strings.NewReader(""), nil, nil); err == nil || !strings.Contains(err.Error(), "use --input-file") {
		t.Errorf("got %v, %v", got, err)
	}
}
