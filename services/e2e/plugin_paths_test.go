package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// uses has a plugin read one path of the machine and write to another when it applies.
const uses = `
if [ "$BERTH_OPERATION" = apply ]; then
  grep -q "of the customer" %[1]s/conf || end failed 1 "conf is not there"
  { echo x > %[1]s/conf; } 2> /dev/null && end failed 1 "conf is not closed"
  cp in/pinned/text "%[1]s/data/$BERTH_COMPONENT_NAME" || end failed 1 "data is not open"
fi
"$BERTH_OPERATION"`

// TestPluginPaths deploys with a plugin, as an executable and as an image, that reads one
// path of the runner's machine and writes to another. What it writes belongs to who owns
// the path; one more right is shown to the customer; and a symlink to the runner's data
// in the place of the path, or nothing there, is refused before the plugin runs.
func TestPluginPaths(t *testing.T) {
	t.Parallel()
	s := start(t)
	machine, err := os.MkdirTemp("", "berth-plugin-paths-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(machine) })
	const owner = 85211
	ready := os.Chmod(machine, 0o755)
	if ready == nil {
		ready = os.Mkdir(filepath.Join(machine, "data"), 0o700)
	}
	if ready == nil && os.Geteuid() == 0 {
		ready = os.Chown(filepath.Join(machine, "data"), owner, owner)
	}
	if ready != nil {
		t.Fatal(ready)
	}
	conf := filepath.Join(machine, "conf")
	put(t, conf, "of the customer")
	if err := os.Chmod(conf, 0o644); err != nil {
		t.Fatal(err)
	}

	app := folder(t, filepath.Join("..", "..", "examples", "greeting"))
	component := filepath.Join(app, "components", "greeting.toml")
	dir := filepath.Join(app, "plugins", "greeting")
	edit(t, filepath.Join(dir, "greeting.sh"), "\n\"$BERTH_OPERATION\"", fmt.Sprintf(uses, machine))
	edit(t, filepath.Join(dir, "plugin.json"), `"permissions": {`, fmt.Sprintf(`"permissions": { "paths": ["%[1]s/conf:ro", "%[1]s/data"],`, machine))
	signedBy(t, component, resign(t, dir))
	edit(t, component, "network     = false", fmt.Sprintf(`paths       = ["%[1]s/conf:ro", "%[1]s/data:ro"]`, machine))
	if out, errOut, code := s.run("apps", "validate", app); code == 0 || !strings.Contains(out+errOut, "asks for path "+machine+"/data") {
		t.Errorf("to read is not to write: %d\n%s%s", code, out, errOut)
	}
	edit(t, component, "/data:ro", "/data")
	raw, err := os.ReadFile(component)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"greeting"}
	if os.Geteuid() == 0 { // elsewhere plugins that are images are refused
		imaged(t, app, string(raw))
		names = append(names, "imaged")
	}
	s.must("sync", app, "--wait")
	s.must("installs", "create", "acme", "--app", "greeting", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")
	in := &install{system: s, name: "acme", app: app}
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	data := filepath.Join(s.dir, "runners", stack.Runner.ID)
	for _, name := range names {
		info, err := os.Stat(filepath.Join(machine, "data", name))
		if err != nil {
			t.Error(err)
			continue
		}
		if stat, _ := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && stat.Uid != owner {
			t.Errorf("%s belongs to user %d, want %d", name, stat.Uid, owner)
		}
	}

	t.Run("one right more is shown", func(t *testing.T) {
		edit(t, component, "/conf:ro", "/conf")
		s.must("sync", app, "--wait")
		w := in.deploy(false)
		change := in.proposed(w.ID, "release")
		raw, err := json.Marshal(change.Plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`{"after":"yes","before":"no","path":"permission path ` + machine + `/conf"}`, `{"after":"yes","path":"permission path ` + machine + `/data"}`,
			"may read and write the runner's machine at " + machine + "/conf",
		} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("the change does not show %q:\n%s", want, raw)
			}
		}
		in.decide(change, "deny")
		in.finished(w.ID, time.Minute)
		edit(t, component, "/conf\"", "/conf:ro\"")
		s.must("sync", app, "--wait")
	})

	refused := func(t *testing.T, want string) {
		t.Helper()
		w := in.finished(in.deploy(true).ID, time.Minute)
		if explained := in.explain(w); w.State != "failed" || !strings.Contains(explained, want) {
			t.Errorf("want %q: %s", want, explained)
		}
	}
	if os.Geteuid() == 0 {
		t.Run("not for a plugin's eyes", func(t *testing.T) {
			if err := os.Chmod(conf, 0o600); err != nil {
				t.Fatal(err)
			}
			refused(t, "a plugin reads as any other user")
			if err := os.Chmod(conf, 0o644); err != nil {
				t.Fatal(err)
			}
		})
		t.Run("root's own", func(t *testing.T) {
			if err := os.Chown(filepath.Join(machine, "data"), 0, 0); err != nil {
				t.Fatal(err)
			}
			refused(t, "no plugin writes files of root's")
		})
	}
	if err := os.Rename(filepath.Join(machine, "data"), filepath.Join(machine, "aside")); err != nil {
		t.Fatal(err)
	}
	t.Run("nothing there", func(t *testing.T) { refused(t, "is not there on the runner's machine") })
	t.Run("a symlink to the runner's data", func(t *testing.T) {
		if err := os.Symlink(data, filepath.Join(machine, "data")); err != nil {
			t.Fatal(err)
		}
		refused(t, "a symlink leads from it")
	})
	t.Run("the runner's data", func(t *testing.T) {
		for _, path := range []string{data, filepath.Join(data, "secrets"), s.dir} {
			edit(t, component, `"`+machine+`/data"`, `"`+path+`"`)
			edit(t, filepath.Join(dir, "plugin.json"), `"`+machine+`/data"`, `"`+path+`"`)
			signedBy(t, component, resign(t, dir))
			s.must("sync", app, "--wait")
			refused(t, "is the runner's own")
			edit(t, component, `"`+path+`"`, `"`+machine+`/data"`)
			edit(t, filepath.Join(dir, "plugin.json"), `"`+path+`"`, `"`+machine+`/data"`)
		}
	})
}
