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

func TestRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		file string // - for stdin
		want inputs.Values
		err  string
	}{
		"pairs": {args: []string{"--set", "a=1", "--set", "b=x=y", "--set", "a=2"},
			want: inputs.Values{All: map[string]string{"a": "2", "b": "x=y"}, Typed: []string{"a", "b", "a"}}},
		"a name alone": {args: []string{"--set", "token"}, want: inputs.Values{All: map[string]string{}, Asked: []string{"token"}}},
		"no name":      {args: []string{"--set", "=x"}, err: "is not NAME=VALUE"},
		"lines": {file: "# of acme\n\na = 1\nb=x=y\r\nempty=\n",
			want: inputs.Values{All: map[string]string{"a": "1", "b": "x=y", "empty": ""}}},
		"a line that is none": {file: "a=1\nhunter2\n", err: ":2: not name=value"},
		"JSON": {file: `{"a": "1", "n": 1.50, "b": true, "list": [1, "x"], "o": {"k": null}}`,
			want: inputs.Values{All: map[string]string{"a": "1", "n": "1.50", "b": "true", "list": `[1,"x"]`, "o": `{"k":null}`}}},
		"null":      {file: `{"a": null}`, err: "a is null"},
		"half JSON": {file: `{"a": "hunter2`, err: "is not a JSON object"},
		"arguments win": {args: []string{"--set", "a=2"}, file: "a=1\nb=1\n",
			want: inputs.Values{All: map[string]string{"a": "2", "b": "1"}, Typed: []string{"a"}}},
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
				got, err := f.Read(strings.NewReader(tt.file))
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

func TestAttackSecretsAmongTheArguments(t *testing.T) {
	t.Parallel()
	var f inputs.Flags
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.Add(set, "input", "i")
	if err := set.Parse([]string{"-i", "token=hunter2", "-i", "region=eu"}); err != nil {
		t.Fatal(err)
	}
	values, err := f.Read(strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	err = values.Refuse(func(name string) bool { return name == "token" }, f.Flag())
	if err == nil || !strings.Contains(err.Error(), "--input token without a value") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
	if err := values.Refuse(func(string) bool { return false }, f.Flag()); err != nil {
		t.Errorf("nothing is a secret: %v", err)
	}
}
