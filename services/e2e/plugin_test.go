package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/pkg/plugin/container/imagetest"
)

// TestPlugin deploys a component whose type is a plugin's: the customer's side is
// asked before the first byte of it runs, it does what was approved, and a plugin
// that was not signed by the accepted key does not run at all.
func TestPlugin(t *testing.T) {
	t.Parallel()
	s := start(t)
	app := folder(t, filepath.Join("..", "..", "examples", "greeting"))
	s.must("sync", app, "--wait")
	s.must("installs", "create", "acme", "--app", "greeting", "--customer", "acme", "--stack", "local", "--watch", "--auto-approve")
	in := &install{system: s, name: "acme", app: app}
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	in.runner = stack.Runner.ID
	data := filepath.Join(s.dir, "runners", in.runner)
	file := filepath.Join(data, "install", "hall", "greeting.txt")
	says := func() string {
		raw, err := os.ReadFile(file)
		if err != nil {
			return err.Error()
		}
		return string(raw)
	}
	if got := says(); got != "Ahoy from acme" {
		t.Fatalf("the greeting is %q", got)
	}
	if got := strings.Join(in.acceptedScripts(data), "\n"); !strings.Contains(got, "plugin greeting of component greeting") {
		t.Errorf("accepted at provision:\n%s", got)
	}
	component := filepath.Join(app, "components", "greeting.toml")
	script := filepath.Join(app, "plugins", "greeting", "greeting.sh")

	t.Run("nothing new changes nothing", func(t *testing.T) {
		if w := in.finished(in.deploy(false).ID, time.Minute); w.State != "succeeded" || step(w, "component/greeting").Change.State != "no_change" {
			t.Errorf("deploy: %s", in.explain(w))
		}
	})

	t.Run("another config is one update, which has to be approved", func(t *testing.T) {
		edit(t, component, "from {{", "to {{")
		s.must("sync", app, "--wait")
		w := in.deploy(false)
		change := in.proposed(w.ID, "component/greeting")
		raw, err := json.Marshal(change.Plan)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), "Ahoy to acme") || strings.Contains(string(raw), "a token for trying") || says() != "Ahoy from acme" {
			t.Errorf("planned, with %q on disk: %s", says(), raw)
		}
		in.decide(change, "approve")
		if w := in.finished(w.ID, time.Minute); w.State != "succeeded" || says() != "Ahoy to acme" {
			t.Errorf("the greeting is %q: %s", says(), in.explain(w))
		}
	})

	t.Run("a plugin that was changed after it was signed does not run", func(t *testing.T) {
		edit(t, script, "set -u", "set -u; echo stolen > \"$BERTH_INSTALL_DIR/stolen\"")
		s.must("sync", app, "--wait")
		w := in.finished(in.deploy(true).ID, time.Minute)
		if explained := in.explain(w); w.State != "failed" || !strings.Contains(explained, "greeting.sh is sha256:") {
			t.Errorf("deploy: %s", explained)
		}
		if _, err := os.Stat(filepath.Join(data, "install", "stolen")); err == nil {
			t.Error("it ran")
		}
	})

	t.Run("another key asks again, and nothing runs before the answer", func(t *testing.T) {
		edit(t, script, "apply() {\n", `apply() {
  [ ! -e "$BERTH_INSTALL_DIR/hang" ] || {
    echo "half of a greeting" > "$BERTH_STATE_DIR/half"; touch "$BERTH_INSTALL_DIR/begun"; sleep 300
  }
`)
		signer := resign(t, filepath.Dir(script))
		edit(t, component, "signer      = \"VdRIj9GdgUSDOigCGwdzn6osrrnmadROj89Lurap2aY=\"", "signer = \""+signer+"\"")
		s.must("sync", app, "--wait")
		w := in.deploy(false)
		release := in.proposed(w.ID, "release")
		raw, err := json.Marshal(release.Plan)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"plugin greeting of component greeting", signer, "reads and writes the install's directory"} {
			if !strings.Contains(string(raw), want) {
				t.Errorf("the change does not show %q:\n%s", want, raw)
			}
		}
		if _, err := os.Stat(filepath.Join(data, "install", "stolen")); err == nil {
			t.Error("it ran before it was accepted")
		}
		in.decide(release, "approve")
		if w := in.finished(w.ID, time.Minute); w.State != "succeeded" {
			t.Errorf("deploy: %s", in.explain(w))
		}
		if _, err := os.Stat(filepath.Join(data, "install", "stolen")); err != nil {
			t.Error("the accepted version did not run")
		}
	})

	t.Run("what it knew when it was killed is kept, sealed", func(t *testing.T) {
		put(t, filepath.Join(data, "install", "hang"), "")
		edit(t, component, "to {{", "again to {{")
		s.must("sync", app, "--wait")
		w := in.deploy(true)
		s.eventually(time.Minute, "the apply has begun", func() error {
			_, err := os.Stat(filepath.Join(data, "install", "begun"))
			return err
		})
		if err := os.Remove(filepath.Join(data, "install", "hang")); err != nil {
			t.Fatal(err)
		}
		s.signal(s.oneProcess("berth-engine run"), syscall.SIGKILL)
		got := in.finished(w.ID, time.Minute)
		if got.State == "failed" {
			in.post("/steps/"+step(got, "component/greeting").ID+"/retry", nil, nil)
			got = in.finished(w.ID, time.Minute)
		}
		if got.State != "succeeded" || says() != "Ahoy again to acme" {
			t.Errorf("the greeting is %q: %s", says(), in.explain(got))
		}
		show := func(args ...string) string {
			out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), append([]string{"--data", data, "state"}, args...)...).CombinedOutput()
			if err != nil {
				t.Errorf("berth-runner state %v: %v", args, err)
			}
			return string(out)
		}
		if list := show("show", "greeting"); !strings.Contains(list, "file.half") || !strings.Contains(list, "file.place") {
			t.Errorf("the state has not both files:\n%s", list)
		}
		if history := show("history", "greeting"); strings.Count(history, "\n") < 3 {
			t.Errorf("the states of this install:\n%s", history)
		}
		// What is in it is in clear in the plugin's own job alone, whose folder goes when
		// its result is known.
		in.eventually(20*time.Second, "the jobs' folders are gone", func() error {
			if left, err := filepath.Glob(filepath.Join(data, "jobs", "*", "engine")); err != nil || len(left) > 0 {
				return fmt.Errorf("there are %v (%w)", left, err)
			}
			return nil
		})
		err := filepath.WalkDir(data, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return nil //nolint:nilerr // a file that is gone again
			}
			raw, err := os.ReadFile(path)
			if err == nil && (bytes.Contains(raw, []byte("half of a greeting\n")) || bytes.Contains(raw, []byte("aGFsZiBvZiBhIGdyZWV0aW5nCg"))) {
				t.Errorf("%s has the state in clear", path)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})

	t.Run("it may come from a registry of its author", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "greeting")
		if err := os.CopyFS(dir, os.DirFS(filepath.Dir(script))); err != nil {
			t.Fatal(err)
		}
		edit(t, filepath.Join(dir, "greeting.sh"), "set -u", "set -u; echo yes > \"$BERTH_INSTALL_DIR/of-a-registry\"")
		signer := resign(t, dir)
		layout, err := oci.Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindSource, Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		author := &imagetest.Registry{}
		author.Move("1", layout.Dir(), packed.Digest)
		server := httptest.NewServer(author)
		defer server.Close()
		edit(t, component, "local_source = \"plugins/greeting\"", "oci_source = \"oci://"+strings.TrimPrefix(server.URL, "http://")+"/"+imagetest.Repository+":1\"")
		signedBy(t, component, signer)
		s.must("sync", app, "--wait")
		server.Close() // customers need it no more
		if w := in.finished(in.deploy(true).ID, time.Minute); w.State != "succeeded" {
			t.Errorf("deploy: %s", in.explain(w))
		}
		if _, err := os.Stat(filepath.Join(data, "install", "of-a-registry")); err != nil {
			t.Error("the plugin of the registry did not run")
		}
	})

	t.Run("a deprovision removes what it made", func(t *testing.T) {
		s.must("installs", "deprovision", "acme", "--confirm", "acme", "--watch", "--auto-approve")
		if _, err := os.Stat(file); err == nil {
			t.Error("the greeting is still there")
		}
	})
}

// signedBy has a component name another key.
func signedBy(t *testing.T, component, signer string) {
	t.Helper()
	raw, err := os.ReadFile(component)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, component, regexp.MustCompile(`signer *= *".*"`).FindString(string(raw)), `signer = "`+signer+`"`)
}

// resign signs a plugin with a new key and returns that.
func resign(t *testing.T, dir string) (signer string) {
	t.Helper()
	pub, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := plugin.Sign(key, os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(envelope)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, plugin.SignatureFile), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return capsule.EncodePublicKey(pub)
}
