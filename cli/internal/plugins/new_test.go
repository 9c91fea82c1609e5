package plugins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/conformance"
	"github.com/berth-dev/berth/pkg/plugin"
)

// A new plugin passes every rule of the contract and its own tests as it is, and asks for
// neither the network nor the install's directory.
func TestNew(t *testing.T) {
	t.Parallel()
	for language, tests := range map[string][]string{
		"sh": nil, "python": {"python3", "-m", "unittest"}, "go": {"go", "test", "."},
	} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "record")
			out, err := run(t, "new", dir, "--language", language)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(out, "README.md") {
				t.Errorf("it says\n%s", out)
			}
			m, err := plugin.ReadManifest(os.DirFS(dir))
			if err != nil {
				t.Fatal(err)
			}
			if m.Type != "record" || m.Permissions.String() != "state" {
				t.Errorf("type %s, permissions %s", m.Type, m.Permissions)
			}
			subject, err := conformance.Plugin(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, must := range conformance.Musts() {
				v := subject.Try(t.Context(), must)
				if v.Status == conformance.Broken || v.Status != conformance.Kept && (language != "go" || must.ID != "missing-tool") {
					t.Errorf("%s: %s %s", must.ID, v.Status, v.Why)
				}
			}
			if tests != nil {
				cmd := exec.CommandContext(t.Context(), tests[0], tests[1:]...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %v\n%s", tests, err, out)
				}
			}
			if _, err := run(t, "new", dir, "--language", language); err == nil || !strings.Contains(err.Error(), "already exist") {
				t.Errorf("it wrote over a plugin: %v", err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for want, args := range map[string][]string{
		"is none of go, python, sh":  {"new", filepath.Join(dir, "x"), "--language", "cobol"},
		"becomes the component type": {"new", filepath.Join(dir, "My Plugin")},
	} {
		if _, err := run(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
	if list, _ := os.ReadDir(dir); len(list) != 0 {
		t.Errorf("it left %v", list)
	}
}
