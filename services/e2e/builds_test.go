package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestFailedBuilds syncs apps whose sources have mistakes that no check of the
// folder sees: each build says in one line which file of the app to correct.
func TestFailedBuilds(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, tc := range []struct {
		name  string
		app   string
		files map[string]string
		want  []string
	}{
		{
			"a chart that does not parse", "charts", map[string]string{
				"components/web.toml":      "name       = \"web\"\ntype       = \"helm_chart\"\nchart_name = \"web\"\n\n[berth]\nlocal_source = \"src/web\"\n",
				"src/web/Chart.yaml":       "apiVersion: v2\nname: web\nversion: 1.0.0\n",
				"src/web/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Values.name }\n",
			}, []string{
				"build of web failed: src/web/templates/a.yaml:3: ",
				"; correct line 3 of src/web/templates/a.yaml; `helm lint` there says more",
			},
		},
		{
			"a repository that nobody serves", "remotes", map[string]string{
				"components/away.toml": "name = \"away\"\ntype = \"terraform_module\"\nterraform_version = \">= 1.5.0, < 2.0.0\"\n\n" +
					"[public_repo]\nrepo = \"https://127.0.0.1:1/acme/away.git\"\ndirectory = \"infra\"\nbranch = \"main\"\n",
			}, []string{
				"build of away failed: repository https://127.0.0.1:1/acme/away.git cannot be reached: 127.0.0.1:1 refuses the connection",
				"; correct repo in components/away.toml, or sync with a copy of the repository: berth sync --source-map https://127.0.0.1:1/acme/away.git=FOLDER",
			},
		},
	} {
		app := folder(t, "testdata/probe")
		for name, text := range tc.files {
			path := filepath.Join(app, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		out, said, code := s.run("sync", app, "--app", tc.app, "--wait")
		if took := time.Since(began); code == 0 || took > time.Minute {
			t.Errorf("%s: exit %d after %s\n%s", tc.name, code, took, out)
		}
		for _, want := range tc.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: no %q in:\n%s", tc.name, want, said)
			}
		}
	}
}
