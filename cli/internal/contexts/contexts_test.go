package contexts_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/contexts"
)

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, err := contexts.Load(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"local", "prod"} {
		token, err := file.StoreToken(name, "brt_"+name+"\n")
		if err != nil {
			t.Fatal(err)
		}
		file.Contexts[name] = contexts.Context{URL: "http://" + name + ".test", TokenFile: token, Org: map[string]string{"prod": "initech"}[name]}
	}
	file.Contexts["broken"] = contexts.Context{URL: "http://broken.test", TokenFile: filepath.Join(dir, "gone")}
	file.Current = "local"
	empty := &contexts.File{}

	for _, tc := range []struct {
		name   string
		file   *contexts.File
		choice string
		env    map[string]string
		want   contexts.Target
		err    string
	}{
		{name: "the current context", want: contexts.Target{Name: "local", URL: "http://local.test", Token: "brt_local"}},
		{name: "BERTH_CONTEXT", env: map[string]string{"BERTH_CONTEXT": "prod"}, want: contexts.Target{Name: "prod", URL: "http://prod.test", Token: "brt_prod", Org: "initech"}},
		{name: "the flag is stronger", choice: "prod", env: map[string]string{"BERTH_CONTEXT": "local"}, want: contexts.Target{Name: "prod", URL: "http://prod.test", Token: "brt_prod", Org: "initech"}},
		{name: "variables override parts of a context", choice: "prod", env: map[string]string{"BERTH_TOKEN": "brt_other", "BERTH_ORG": "hooli"}, want: contexts.Target{Name: "prod", URL: "http://prod.test", Token: "brt_other", Org: "hooli"}},
		{name: "variables alone", file: empty, env: map[string]string{"BERTH_URL": "https://x.test", "BERTH_TOKEN": "brt_x"}, want: contexts.Target{URL: "https://x.test", Token: "brt_x"}},
		{name: "a URL alone never gets the token of a context", env: map[string]string{"BERTH_URL": "https://x.test"}, err: "no token"},
		{name: "nothing", file: empty, err: "no control plane is configured"},
		{name: "unknown context", choice: "prd", err: `no context "prd"`},
		{name: "not a URL", env: map[string]string{"BERTH_URL": "localhost:8700", "BERTH_TOKEN": "x"}, err: "is not the URL of a Berth"},
		{name: "token file is gone", choice: "broken", err: "cannot read the context's token"},
		{name: "token that is none", env: map[string]string{"BERTH_URL": "https://x.test", "BERTH_TOKEN": "brt_a\nb"}, err: "the token contains invalid characters"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := tc.file
			if f == nil {
				f = file
			}
			got, err := contexts.Resolve(f, tc.choice, func(name string) string { return tc.env[name] })
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want an error with %q", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("target (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFileHoldsNoTokenAndIsPrivate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "config.json")
	file, err := contexts.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	token, err := file.StoreToken("prod", "brt_secret")
	if err != nil {
		t.Fatal(err)
	}
	file.Contexts["prod"] = contexts.Context{URL: "https://x.test", TokenFile: token}
	if err := errors.Join(file.Use("prod"), file.Save()); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), "brt_secret") {
		t.Errorf("the file holds the token, or %v", err)
	}
	for _, f := range []string{path, token} {
		info, err := os.Stat(f)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", f, info.Mode(), err)
		}
	}
	again, err := contexts.Load(path)
	if err != nil || again.Current != "prod" {
		t.Fatalf("loaded: %+v, %v", again, err)
	}
	if err := again.Remove("prod"); err != nil || again.Current != "" || len(again.Names()) != 0 {
		t.Errorf("after the removal: %+v, %v", again, err)
	}
}
