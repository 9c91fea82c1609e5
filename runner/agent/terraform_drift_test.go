package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/states"
	"github.com/berth-dev/berth/runner/engine/terraform/terraformtest"
)

// applied brings a planned change about, and returns the mark of its state.
func (c *change) applied() jobspec.StateMark {
	c.t.Helper()
	if result := c.plane.result(c.t, c.order(asItIs)); result.Outcome != jobspec.OutcomeSucceeded {
		c.t.Fatalf("apply: %+v", result)
	}
	return c.live()
}

// live is the state that the control plane has.
func (c *change) live() jobspec.StateMark {
	c.plane.mu.Lock()
	defer c.plane.mu.Unlock()
	return jobspec.StateMark{Lineage: c.plane.state.Lineage, Serial: c.plane.state.Serial, Digest: c.plane.state.Digest}
}

// survey signs settings with one look at the module of a change.
func (c *change) survey(version int64, drift jobspec.DriftLook) {
	c.t.Helper()
	now := time.Now().UTC()
	env, err := capsule.Sign(c.dispatch.key, c.dispatch.id, capsule.SettingsType, jobspec.Settings{
		Version: version, OrgID: c.plane.orgID, InstallID: c.plane.installID, IssuedAt: now, ExpiresAt: now.Add(time.Hour), Schedule: []jobspec.Scheduled{},
		Surveys: []jobspec.Scheduled{{
			Probe: &jobspec.Probe{Resource: c.resource, Kind: jobspec.KindTerraformModule, Work: jobspec.Work{TerraformModule: &jobspec.TerraformModule{}}},
			Cron:  "0 0 1 1 *", TimeoutSeconds: 60, Drift: &drift,
		}},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.plane.change(func() { c.plane.settings = &runnerapi.SettingsVersion{Version: version, Envelope: env} })
}

// looked waits for the end of a look.
func (c *change) looked(at time.Time) (end jobspec.Run) {
	c.t.Helper()
	key := jobspec.RunKey(jobspec.DriftName(c.resource), at)
	c.plane.until(c.t, "the end of "+key, func() bool {
		for _, run := range c.plane.runs[key] {
			if run.State != "running" && run.State != "queued" {
				end = run
				return true
			}
		}
		return false
	})
	return end
}

// turn is the next second, once the one of now is over: ticks are in seconds.
func turn() time.Time {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1100 * time.Millisecond)))
	return time.Now().UTC().Truncate(time.Second)
}

// A runner looks by its own schedule at what a module made, with the state that it keeps
// itself: also while the control plane is away. It names what was changed outside, shows no
// secret, and says why it cannot look where what is live is not on this machine.
func TestDriftOfModuleBySchedule(t *testing.T) {
	t.Parallel()
	path, _ := terraformHere(t)
	r, mirror := newTerraformRunner(t, map[string]any{"terraform": path})
	config := terraformtest.Mirror(t, mirror)
	module := t.TempDir()
	motd := r.file("motd")
	text := terraformtest.Required + fmt.Sprintf("variable \"password\" { sensitive = true }\nresource \"world_file\" \"motd\" {\n  path = %q\n  text = \"as deployed\"\n  secret = var.password\n}\n", motd)
	if err := os.WriteFile(filepath.Join(module, "main.tf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	layout, err := oci.Open(r.dir.Artifacts())
	if err != nil {
		t.Fatal(err)
	}
	packed, err := oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: module})
	if err != nil {
		t.Fatal(err)
	}
	start := func(r *runner) {
		r.yield()
		cmd := r.process(processConfig{}, r.user())
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+config)
		r.run(cmd)
	}
	chosen := jobspec.DigestKey("a key that the control plane chose")
	c := newChangeOn(t, r, start, func(s *jobspec.Spec) {
		s.Resource.Kind, s.Resource.Name = jobspec.ResourceSandbox, "sandbox"
		s.DigestKey = chosen
		s.Artifact = &jobspec.Artifact{Repository: s.Artifact.Repository, Digest: packed.Digest.String()}
		s.TerraformModule = &jobspec.TerraformModule{Vars: map[string]any{"password": "{{ .nuon.inputs.inputs.secret }}"}}
	})
	i := slices.IndexFunc(c.plan.Summary.Objects[0].Fields, func(f jobspec.FieldChange) bool { return f.Path == "secret" })
	shown := c.plan.Summary.Objects[0].Fields[i].After
	if digest, hidden := jobspec.IsSensitive(shown); !hidden || digest == "" || shown == chosen.Show([]byte(`"correct-horse-battery"`), "world_file.motd", "secret") {
		t.Errorf("the plan shows the secret as %q: it has a digest, and nobody else the key", shown)
	}
	mark := c.applied()
	var version int64
	look := func(drift jobspec.DriftLook) time.Time {
		t.Helper()
		version++
		drift.At = []time.Time{turn()}
		c.survey(version, drift)
		return drift.At[0]
	}

	run := c.looked(look(jobspec.DriftLook{Change: c.id, State: &mark}))
	if run.State != "succeeded" || run.Drift == nil || run.Drift.Class != "" || run.Drift.Looked != 1 {
		t.Fatalf("nobody touched it: %+v", run)
	}
	if !strings.HasPrefix(run.Action, "drift/sandbox/") {
		t.Errorf("it is reported as %q", run.Action)
	}

	// Somebody edits the file; the control plane knows of the look to come, and goes away.
	edited, err := json.Marshal(map[string]any{"text": "by hand", "secret": "battery-of-somebody"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(motd, edited, 0o644); err != nil {
		t.Fatal(err)
	}
	const outage = 20 * time.Second // long for a look on a busy machine with the race detector
	seen := r.plane.followed.Load()
	at := time.Now().UTC().Truncate(time.Second).Add(8 * time.Second)
	version++
	c.survey(version, jobspec.DriftLook{Change: c.id, State: &mark, At: []time.Time{at}})
	r.plane.until(t, "the settings with the next look", func() bool { return r.plane.followed.Load() > seen })
	r.plane.change(func() { r.plane.away = true })
	time.Sleep(time.Until(at.Add(outage)))
	r.plane.change(func() { r.plane.away = false })
	run = c.looked(at)
	want := []jobspec.DriftObject{{Address: "world_file.motd", Drifted: true, Differences: []jobspec.DriftDifference{
		{Path: "secret", What: "changed", Want: "(sensitive)", Have: "(sensitive)", Class: "real", Why: "it was changed outside of Terraform"},
		{Path: "text", What: "changed", Want: `"as deployed"`, Have: `"by hand"`, Class: "real", Why: "it was changed outside of Terraform"},
	}}}
	if run.Drift == nil {
		t.Fatalf("an edit: %+v", run)
	}
	if diff := cmp.Diff(want, run.Drift.Objects); diff != "" || run.Drift.Class != "real" {
		t.Errorf("an edit, %s (-want +got):\n%s", run.Drift.Class, diff)
	}
	if run.FinishedAt.After(at.Add(outage)) {
		t.Errorf("the look of %s ended at %s: it waited for the control plane", at, run.FinishedAt)
	}

	// What is live is not on this machine.
	other := mark
	other.Digest = "sha256:other"
	if run := c.looked(look(jobspec.DriftLook{Change: c.id, State: &other})); run.State != "failed" || !strings.Contains(run.Error, "after the next plan") {
		t.Errorf("another state: %+v", run)
	}
	if run := c.looked(look(jobspec.DriftLook{Change: id.New(id.Change), State: &mark})); run.State != "failed" || !strings.Contains(run.Error, "after the next deploy") {
		t.Errorf("a change of another machine: %+v", run)
	}
	if now := c.live(); now != mark {
		t.Errorf("the state was %+v and is %+v", mark, now)
	}
}

// An engine that looks for drift runs the vendor's code. It gets the state to read, and
// neither writes nor locks it: not by the backend, and not by leaving a state that "could
// not be saved".
func TestAttackLookWritesNoState(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, f form) {
		c := newChange(t, f.begin)
		mark := c.applied()
		kept := func() []states.Kept {
			all, err := (states.Store{Dir: c.dir.States()}).History(c.resource.ID)
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		before := kept()
		c.plane.mu.Lock()
		writes, locks, reads := c.plane.served["PUT /states/{resource}"], c.plane.served["POST /states/{resource}/lock"], c.plane.served["GET /states/{resource}"]
		state := *c.plane.state
		c.plane.mu.Unlock()

		at := turn()
		c.survey(1, jobspec.DriftLook{Change: c.id, State: &mark, At: []time.Time{at}})
		run := c.looked(at)
		if run.State != "succeeded" || run.Drift == nil || run.Drift.Looked != 1 {
			t.Fatalf("the look: %+v", run)
		}
		c.plane.mu.Lock()
		defer c.plane.mu.Unlock()
		if got := [3]int{c.plane.served["PUT /states/{resource}"], c.plane.served["POST /states/{resource}/lock"], c.plane.served["GET /states/{resource}"]}; got != [3]int{writes, locks, reads} {
			t.Errorf("the look asked the control plane for states: %v, before %v", got, [3]int{writes, locks, reads})
		}
		if !bytes.Equal(c.plane.state.Body, state.Body) || c.plane.state.Serial != state.Serial || c.plane.lock != nil {
			t.Error("the look changed the state, or left a lock")
		}
		if diff := cmp.Diff(before, kept()); diff != "" {
			t.Errorf("the look changed what is kept here (-before +after):\n%s", diff)
		}
	})
}

// drift attacks the state in every way that an engine has, and tells that it could read.
func (e testEngine) drift() error {
	state, err := e.backend(http.MethodGet, os.Getenv("TF_HTTP_ADDRESS"), nil)
	if err != nil {
		return err
	}
	forged := bytes.Replace(state, []byte(`"serial":8`), []byte(`"serial":99`), 1)
	if bytes.Equal(forged, state) {
		return fmt.Errorf("the state is not the live one: %d bytes", len(state))
	}
	lock := []byte(`{"ID":"lock-1","Operation":"OperationTypeApply"}`)
	if _, err := e.backend(http.MethodPost, os.Getenv("TF_HTTP_LOCK_ADDRESS"), lock); err != nil {
		return err // answered, and of no effect
	}
	if _, err := e.backend(http.MethodPost, os.Getenv("TF_HTTP_ADDRESS")+"?ID=lock-1", forged); err == nil {
		return fmt.Errorf("the backend of a look took a state")
	}
	for _, name := range []string{"out/errored.tfstate", "work/module/errored.tfstate"} {
		path := filepath.Join(e.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, forged, 0o600); err != nil {
			return err
		}
	}
	e.result.Drift = &jobspec.Drift{Change: e.spec.Drift.Change, Looked: 1}
	return nil
}
