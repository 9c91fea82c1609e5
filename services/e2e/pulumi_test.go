package e2e_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestPulumi deploys an app whose sandbox and one component are programs of Pulumi,
// run by the real command. The module next to them reads their outputs. Engine and
// agent are killed in the middle of an apply, and the secret that all of them know is
// nowhere outside of the customer's own files.
func TestPulumi(t *testing.T) {
	t.Parallel()
	tools := pulumiTools(t)
	s := start(t, "BERTH_PULUMI="+filepath.Join(tools, "pulumi"))
	app := folder(t, filepath.Join("testdata", "pulumi"))
	for _, source := range []string{"base", "files"} {
		program := "#!/bin/sh\nexec '" + filepath.Join(tools, "program") + "'\n"
		if err := os.WriteFile(filepath.Join(app, "src", source, "program"), []byte(program), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	in := &install{system: s, name: "acme", app: app}
	s.sync("pulumi", app)
	var made ctlapi.Install
	s.post("/installs", map[string]any{
		"name": "acme", "app": "pulumi", "customer": "acme", "create_customer": true, "stack": "local",
		"inputs": ctlapi.InputValues{"token": canary}, "provision": true, "approve_all": true,
	}, &made)
	in.id = made.ID
	if w := in.finished(*made.WorkflowID, 2*time.Minute); w.State != "succeeded" {
		t.Fatalf("provision: %s", in.explain(w))
	}
	var stack ctlapi.Stack
	s.get("/installs/acme/stack", &stack)
	in.runner = stack.Runner.ID
	in.files = filepath.Join(s.dir, "runners", in.runner, "install")
	deployed := func(w ctlapi.Workflow) {
		t.Helper()
		if w = in.finished(w.ID, time.Minute); w.State != "succeeded" {
			t.Fatalf("deploy: %s", in.explain(w))
		}
	}

	t.Run("its outputs reach other components", func(t *testing.T) {
		deployed(in.deploy(true))
		if in.says("base") != "the ground" || in.says("a") != "one" {
			t.Errorf("files: %q, %q", in.says("base"), in.says("a"))
		}
		if out := in.output("note"); out["text"] != "ahoy acme" || out["hash"] != sha256Hex(canary) {
			t.Errorf("outputs of the module: %v", out)
		}
		if out := in.output("files"); out["secret"] != "(sealed)" || out["greeting"] != "ahoy acme" {
			t.Errorf("outputs of the program: %v", out)
		}
	})

	t.Run("nothing new changes nothing", func(t *testing.T) {
		w := in.finished(in.deploy(false).ID, time.Minute)
		for _, component := range []string{"component/files", "component/note"} {
			if c := step(w, component).Change; c == nil || c.State != "no_change" {
				t.Errorf("%s: %s", component, in.explain(w))
			}
		}
	})

	t.Run("an input changes one field, and what somebody did by hand shows", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(in.files, "a"), []byte("graffiti"), 0o600); err != nil {
			t.Fatal(err)
		}
		in.shows(t, "files", `"graffiti"`, `"one"`)
		if err := in.call(http.MethodPut, "/installs/acme/inputs", map[string]any{"values": map[string]string{"text": "two"}}, nil); err != nil {
			t.Fatal(err)
		}
		w := in.deploy(false, "files")
		change := in.proposed(w.ID, "component/files")
		if in.says("a") != "graffiti" {
			t.Errorf("the plan changed the file to %q", in.says("a"))
		}
		in.decide(change, "approve")
		deployed(w)
		if in.says("a") != "two" {
			t.Errorf("the file says %q", in.says("a"))
		}
	})

	for i, part := range []string{"engine", "agent"} {
		t.Run("goes on after the "+part+" was killed in the apply", func(t *testing.T) {
			in.survives(t, part, "held"+fmt.Sprint(i))
		})
	}

	t.Run("the secret is sealed", func(t *testing.T) {
		places := map[string]*search{}
		searchDatabase(t, s.database(), placeOf(places, "database"))
		in.searchFiles(t, func(string) *search { return placeOf(places, "files") })
		for name, p := range places {
			for _, where := range p.found[canary] {
				t.Errorf("the secret is in the %s: %s", name, where)
			}
			if p.pieces == 0 {
				t.Errorf("nothing was searched in the %s", name)
			}
		}
	})

	t.Run("a deprovision removes what it made", func(t *testing.T) {
		s.must("installs", "deprovision", "acme", "--confirm", "acme", "--watch", "--auto-approve")
		for _, name := range []string{"a", "base", "held0", "held1"} {
			if _, err := os.Stat(filepath.Join(in.files, name)); err == nil {
				t.Errorf("%s is still there", name)
			}
		}
	})
}

// pulumiTools are those of dev/scripts/pulumi.sh.
func pulumiTools(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("BERTH_PULUMI_TOOLS")
	if dir == "" {
		var err error
		if dir, err = filepath.Abs("../../.bin/tools/pulumi"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "key")); err != nil {
		t.Skip("pulumi: there is none to test with: dev/scripts/pulumi.sh build")
	}
	return dir
}

// says is what a file of the install holds.
func (in *install) says(name string) string {
	raw, err := os.ReadFile(filepath.Join(in.files, name))
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// shows deploys a component, sees that its plan has a field with these values, and
// denies it.
func (in *install) shows(t *testing.T, component, before, after string) {
	t.Helper()
	w := in.deploy(false, component)
	change := in.proposed(w.ID, "component/"+component)
	raw, err := json.Marshal(change.Plan)
	if err != nil {
		t.Fatal(err)
	}
	var plan struct {
		Objects []struct {
			Fields []struct{ Before, After string }
		}
	}
	if err := json.Unmarshal(raw, &plan); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, o := range plan.Objects {
		for _, f := range o.Fields {
			found = found || f.Before == before && f.After == after
		}
	}
	if !found {
		t.Errorf("the plan does not show %s -> %s:\n%s", before, after, raw)
	}
	if strings.Contains(string(raw), canary) {
		t.Error("the plan shows the secret")
	}
	in.decide(change, "deny")
	in.finished(w.ID, time.Minute)
}

// survives adds a file whose creation waits, and kills a part while it does.
func (in *install) survives(t *testing.T, part, name string) {
	t.Helper()
	// A FIFO, which Pulumi's provider waits at.
	fifo := filepath.Join(in.files, "hold-"+name)
	if err := syscall.Mkfifo(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(fifo, 0o666); err != nil {
		t.Fatal(err)
	}
	const dir = "{{ .nuon.install_stack.outputs.install_dir }}/"
	edit(t, filepath.Join(in.app, "components", "files.toml"), `files       = '{`,
		fmt.Sprintf(`files       = '{"%s": {"path": "%s%[1]s", "text": "kept", "hold": "%[2]shold-%[1]s"}, `, name, dir))
	in.sync("pulumi", in.app)
	w := in.deploy(true, "files")
	// While we have it open, its reader waits.
	var held *os.File
	in.eventually(time.Minute, name+" is being created", func() (err error) {
		held, err = os.OpenFile(fifo, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err
	})
	if part == "engine" {
		in.signal(in.oneProcess("berth-engine run"), syscall.SIGKILL)
		in.eventually(goOnTimeout, "the program ends with its engine", func() error {
			if left := in.processes("pulumi-resource-lab"); len(left) > 0 {
				return fmt.Errorf("left: %v", left)
			}
			return nil
		})
	} else {
		in.signal(in.pid("runner acme"), syscall.SIGKILL)
		in.back(part)
	}
	// From here on nothing waits at it any more.
	free := filepath.Join(t.TempDir(), "free")
	if err := errors.Join(os.WriteFile(free, nil, 0o644), os.Rename(free, fifo), held.Close()); err != nil {
		t.Fatal(err)
	}
	got := in.settled(w.ID)
	if got.State == "failed" {
		t.Logf("the step offers a retry: %s", in.explain(got))
		in.post("/steps/"+step(got, "component/files").ID+"/retry", nil, nil)
		got = in.finished(w.ID, time.Minute)
	}
	if got.State != "succeeded" || in.says(name) != "kept" {
		t.Fatalf("the file says %q: %s", in.says(name), in.explain(got))
	}
	uncertain := slices.ContainsFunc(in.changes("uncertain"), func(c ctlapi.Change) bool { return c.WorkflowID == w.ID })
	if part == "engine" && !uncertain {
		t.Errorf("the killed engine's change is not shown as uncertain: %s", in.explain(got))
	}
}
