package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestTamper changes what was approved before it is executed: each time the
// runner refuses, names what differs, and does nothing.
func TestTamper(t *testing.T) {
	t.Parallel()
	s := startFrom(t, privateExecutables(t))
	in := s.probe("acme")
	db := s.database()

	tests := []struct {
		name   string
		field  string // that is named
		tamper func(in *install, c ctlapi.Change) (restore func())
	}{
		{"the plan's bytes", "plan_bytes_digest", func(in *install, c ctlapi.Change) func() {
			return flip(in.t, in.blob(in.plannedAs(db, c)))
		}},
		{"the plan's bytes are gone", "plan_bytes_digest", func(in *install, c ctlapi.Change) func() {
			file := in.blob(in.plannedAs(db, c))
			move(in.t, file, file+".away")
			return func() { move(in.t, file+".away", file) }
		}},
		{"the engine", "engine_digest", func(in *install, _ ctlapi.Change) func() {
			return extend(in.t, filepath.Join(in.bin, "berth-engine"))
		}},
		{"the key of the one who gives the order", "signature", func(in *install, _ ctlapi.Change) func() {
			return in.trustAnother()
		}},
		{"the artifact that the job names", "spec_digest", func(in *install, c ctlapi.Change) func() {
			return in.swap(db, "'{artifact,digest}'", in.otherArtifact(db, c))
		}},
		{"the plan that the job names", "spec_digest", func(in *install, _ ctlapi.Change) func() {
			return in.swap(db, "'{pinned}'", "sha256:"+sha256Hex("another plan"))
		}},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := in.in(t)
			value := fmt.Sprintf("tampered %d", i)
			in.touchSource(i)
			in.change(value)
			w := in.deploy(false, "one")
			c := in.proposed(w.ID, "component/one")
			restore := sync.OnceFunc(tt.tamper(in, c))
			t.Cleanup(restore) // the next story begins with everything as it was
			in.decide(c, "approve")
			refused := in.refused(w.ID, "component/one")
			if !slices.ContainsFunc(refused.Differs, func(d ctlapi.Difference) bool { return d.Field == tt.field }) || !strings.Contains(*refused.Error, tt.field) {
				t.Errorf("%s is not named: %v (%v)", tt.field, *refused.Error, refused.Differs)
			}
			if effects := in.effects(); slices.Contains(effects, "begin one "+value) {
				t.Errorf("a refused change had an effect: %v", effects)
			}
			restore()

			// As it was, so it is what was approved: nobody is asked again.
			in.retry(w.ID, "component/one")
			if got := in.finished(w.ID, time.Minute); got.State != "succeeded" {
				t.Fatalf("after the retry: %s", in.explain(got))
			}
			again := in.changeOf(w.ID, "component/one")
			if again.ID == refused.ID || again.State != "applied" || len(again.Decisions) != 1 || again.Decisions[0].Rule != "kept" {
				t.Errorf("the retry is %s of %s with the decisions %+v, want a new change, kept and applied", again.State, again.ID, again.Decisions)
			}
			if !slices.Contains(in.effects(), "end one "+value) {
				t.Errorf("the retry had no effect: %v", in.effects())
			}
		})
	}

	t.Run("an artifact changed after the approval is refused, and mended by the next plan", func(t *testing.T) {
		in := in.in(t)
		in.change("artifact changed")
		w := in.deploy(false, "one")
		c := in.proposed(w.ID, "component/one")
		layer := in.layer(c)
		whole, err := os.ReadFile(layer)
		if err != nil {
			t.Fatal(err)
		}
		restore := flip(t, layer)
		t.Cleanup(restore)
		in.decide(c, "approve")
		refused := in.refused(w.ID, "component/one")
		if !slices.ContainsFunc(refused.Differs, func(d ctlapi.Difference) bool { return d.Field == "artifact_digest" && d.Want == c.Artifact.Digest }) {
			t.Errorf("the artifact is not named: %v (%v)", *refused.Error, refused.Differs)
		}
		if effects := in.effects(); slices.Contains(effects, "begin one artifact changed") {
			t.Errorf("a refused change had an effect: %v", effects)
		}
		in.retry(w.ID, "component/one")
		if got := in.finished(w.ID, time.Minute); got.State != "succeeded" {
			t.Fatalf("after the retry: %s", in.explain(got))
		}
		if now, err := os.ReadFile(layer); err != nil || !bytes.Equal(now, whole) {
			t.Errorf("the artifact is still damaged (%v)", err)
		}
	})

	t.Run("one field edited voids the approval and is named", func(t *testing.T) {
		in := in.in(t)
		in.change("engine edited")
		w := in.deploy(false, "one")
		c := in.proposed(w.ID, "component/one")
		restore := extend(t, filepath.Join(in.bin, "berth-engine"))
		defer restore()
		in.decide(c, "approve")
		in.refused(w.ID, "component/one")
		in.voided(w.ID, "component/one", []string{"engine_digest"})
	})

	t.Run("an input edited voids the approval and is named", func(t *testing.T) {
		in := in.in(t)
		// three is given what one puts out.
		edit(t, filepath.Join(in.app, "components", "three.toml"), `"after {{`, `"behind {{`)
		in.sync("probe", in.app)
		w := in.deploy(false, "three")
		c := in.proposed(w.ID, "component/three")
		restore := flip(t, in.blob(in.plannedAs(db, c)))
		in.decide(c, "approve")
		in.refused(w.ID, "component/three")
		restore()
		in.change("moved on")
		if got := in.finished(in.deploy(true, "one").ID, time.Minute); got.State != "succeeded" {
			t.Fatalf("the other workflow: %s", in.explain(got))
		}
		in.voided(w.ID, "component/three", []string{"inputs_digest", "plan_digest"})
	})
}

// refused waits until a workflow failed because the runner refused a change.
func (in *install) refused(workflowID, stepName string) ctlapi.Change {
	in.t.Helper()
	w := in.finished(workflowID, time.Minute)
	c := in.changeOf(workflowID, stepName)
	if w.State != "failed" || c.State != "refused" || c.Error == nil {
		in.t.Fatalf("the runner did not refuse: %s", in.explain(w))
	}
	return c
}

// voided retries a step whose approval must not count any more because of the
// fields, and then approves what is proposed instead.
func (in *install) voided(workflowID, stepName string, want []string) {
	in.t.Helper()
	in.retry(workflowID, stepName)
	c := in.proposed(workflowID, stepName)
	var named []string
	for _, d := range c.Differs {
		named = append(named, d.Field)
	}
	slices.Sort(named)
	if !slices.Equal(named, want) {
		in.t.Errorf("named are %v, want %v", named, want)
	}
	if len(c.Decisions) != 0 {
		in.t.Errorf("it was decided already: %+v", c.Decisions)
	}
	in.decide(c, "approve")
	if got := in.finished(workflowID, time.Minute); got.State != "succeeded" {
		in.t.Errorf("after the approval: %s", in.explain(got))
	}
}

func (in *install) retry(workflowID, stepName string) {
	in.t.Helper()
	in.post("/steps/"+step(in.workflow(workflowID), stepName).ID+"/retry", nil, nil)
}

// changeOf is the newest change of a step.
func (in *install) changeOf(workflowID, stepName string) ctlapi.Change {
	in.t.Helper()
	s := step(in.workflow(workflowID), stepName)
	if s.Change == nil {
		in.t.Fatalf("step %s has no change", stepName)
	}
	var c ctlapi.Change
	in.get("/changes/"+s.Change.ID, &c)
	return c
}

// privateExecutables are executables that a test may change. Engines run as
// another user and must be able to pass through.
func privateExecutables(t *testing.T) string {
	t.Helper()
	from := executables(t)
	dir, err := os.MkdirTemp("", "berth-e2e-bin-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(from, "berth*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no executables in %s (%v)", from, err)
	}
	for _, file := range files {
		to := filepath.Join(dir, filepath.Base(file))
		// berth looks for the others next to itself, past links.
		if name := filepath.Base(file); name != "berth" && name != "berth-engine" {
			if file, err = filepath.Abs(file); err == nil {
				err = os.Symlink(file, to)
			}
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// flip changes one bit in the middle of a file.
func flip(t *testing.T, file string) (restore func()) {
	t.Helper()
	return rewrite(t, file, func(data []byte) []byte {
		data = bytes.Clone(data)
		data[len(data)/2] ^= 1
		return data
	})
}

// extend adds a byte to an executable, which works as before.
func extend(t *testing.T, file string) (restore func()) {
	t.Helper()
	return rewrite(t, file, func(data []byte) []byte { return append(bytes.Clone(data), 0) })
}

// rewrite replaces a file by a rename: it may be running.
func rewrite(t *testing.T, file string, change func([]byte) []byte) (restore func()) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	put := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(file+".new", data, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
		move(t, file+".new", file)
	}
	put(change(before))
	return func() { put(before) }
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// plannedAs is the digest of what the plan of a change pinned.
func (in *install) plannedAs(db *pgxpool.Pool, c ctlapi.Change) string {
	in.t.Helper()
	return column(in.t, db, `select plan_bytes_digest from berth.changes where id = $1`, c.ID)[0]
}

// blob is a file of the install's own registry.
func (in *install) blob(digest string) string {
	return filepath.Join(in.runnerDir(), "artifacts", "blobs", "sha256", strings.TrimPrefix(digest, "sha256:"))
}

// layer is the file with the contents of a change's artifact.
func (in *install) layer(c ctlapi.Change) string {
	in.t.Helper()
	raw, err := os.ReadFile(in.blob(c.Artifact.Digest))
	if err != nil {
		in.t.Fatal(err)
	}
	var manifest struct {
		Layers []struct {
			Digest string `json:"digest"`
		} `json:"layers"`
	}
	if err := json.Unmarshal(raw, &manifest); err != nil || len(manifest.Layers) != 1 {
		in.t.Fatalf("manifest %s: %v", raw, err)
	}
	return in.blob(manifest.Layers[0].Digest)
}

// trustAnother lets the runner believe another dispatch key than that of the
// control plane, which is what a stranger's order looks like from here.
func (in *install) trustAnother() (restore func()) {
	in.t.Helper()
	public, _, err := capsule.GenerateKey()
	if err != nil {
		in.t.Fatal(err)
	}
	put := rewrite(in.t, filepath.Join(in.runnerDir(), "trust.json"), func(data []byte) []byte {
		var trust map[string]any
		if err := json.Unmarshal(data, &trust); err != nil {
			in.t.Fatal(err)
		}
		trust["dispatch_keys"] = []map[string]string{{"key_id": capsule.KeyID(public), "public_key": capsule.EncodePublicKey(public)}}
		data, err := json.Marshal(trust)
		if err != nil {
			in.t.Fatal(err)
		}
		return data
	})
	in.restartAgent()
	return func() {
		put()
		in.restartAgent()
	}
}

// restartAgent waits until the new one has a session.
func (in *install) restartAgent() {
	in.t.Helper()
	before := in.epoch()
	in.signal(in.pid("runner "+in.name), syscall.SIGTERM)
	in.eventually(time.Minute, "the agent is back", func() error {
		if in.epoch() == before {
			return errors.New("no new session")
		}
		return nil
	})
}

func (in *install) epoch() int64 {
	in.t.Helper()
	var r ctlapi.Runner
	in.get("/runners/"+in.runner, &r)
	return r.Epoch
}

// touchSource gives the components another artifact without another meaning.
func (in *install) touchSource(n int) {
	in.t.Helper()
	file := filepath.Join(in.app, "src", "work", "main.tf")
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, append(data, fmt.Sprintf("# %d\n", n)...), 0o644)
	}
	if err != nil {
		in.t.Fatal(err)
	}
}

// otherArtifact is a good artifact of the same component, but not the approved.
func (in *install) otherArtifact(db *pgxpool.Pool, c ctlapi.Change) string {
	in.t.Helper()
	all := column(in.t, db, `select artifact_digest from berth.changes where resource_id = $1 and state = 'applied' order by created_at`, c.Resource.ID)
	if len(all) == 0 || all[0] == c.Artifact.Digest {
		in.t.Fatalf("there is no other artifact than %s: %v", c.Artifact.Digest, all)
	}
	return all[0]
}

// swap is a control plane that was taken over: it changes what is asked for in
// each apply, after people have approved.
func (in *install) swap(db *pgxpool.Pool, path, value string) (restore func()) {
	in.t.Helper()
	exec := func(statement string) {
		in.t.Helper()
		if _, err := db.Exec(in.t.Context(), statement); err != nil {
			in.t.Fatal(err)
		}
	}
	exec(`create function berth.taken_over() returns trigger language plpgsql as $$
		begin new.spec = jsonb_set(new.spec::jsonb, ` + path + `, to_jsonb('` + value + `'::text))::json; return new; end $$`)
	exec(`create trigger taken_over before insert on berth.runner_jobs for each row when (new.operation = 'apply') execute function berth.taken_over()`)
	return func() { exec(`drop function berth.taken_over cascade`) }
}
