package agent_test

import (
	"os"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/power"
)

// A runner looks for drift by its own schedule, also when the customer's switch lets it
// only read: it names who edited what, shows no secret of the plan, counts the customer's
// own rules, and lets a change of the component go first.
func TestDriftBySchedule(t *testing.T) {
	t.Parallel()
	c := newComponent(t, jobspec.KindKubernetesManifest)
	c.objects = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {value: VALUE, password: \"{{ .nuon.inputs.inputs.secret }}\"}\n"
	u := c.begin(t)
	deploy := func() (live string) {
		t.Helper()
		u.planned(u.givePlanWithSecret())
		u.succeeded(u.giveApply(nil))
		return u.change.id
	}
	live := deploy()

	var version int64
	look := func(change string) (at time.Time) {
		t.Helper()
		version++
		at = time.Now().UTC().Truncate(time.Second)
		spec := jobspec.Spec{}
		c.shape(&spec)
		c.publishSurvey(version, jobspec.Scheduled{
			Probe: &jobspec.Probe{Resource: c.resource, Kind: spec.Kind, Work: spec.Work}, Cron: "0 0 1 1 *", TimeoutSeconds: 60,
			Drift: &jobspec.DriftLook{Change: change, At: []time.Time{at}},
		})
		return at
	}
	found := func(at time.Time) jobspec.Run {
		t.Helper()
		run := c.endOfRun(jobspec.RunKey("drift/web", at))
		if run.State == "succeeded" && run.Drift == nil || run.State != "succeeded" && run.Drift != nil {
			t.Fatalf("run = %+v", run)
		}
		return run
	}
	next := func() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1100 * time.Millisecond))) } // ticks are in seconds

	if run := found(look(live)); run.Drift == nil || run.Drift.Class != "" || run.Drift.Looked != 1 || run.Drift.Change != live {
		t.Fatalf("nobody touched it: %+v", run)
	}
	maps := c.cluster.Client.CoreV1().ConfigMaps(c.namespace)
	edit := func(patch string) {
		t.Helper()
		if _, err := maps.Patch(t.Context(), "settings", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
			t.Fatal(err)
		}
	}
	next() // in the second in which it was made, nobody could tell who made it
	edit(`{"data":{"value":"by hand","password":"other"}}`)
	if err := power.Set(c.dir, power.State{Mode: power.ReadOnly}); err != nil {
		t.Fatal(err)
	}
	next()
	run := found(look(live))
	if run.Drift == nil || run.Drift.Class != "human_edit" || len(run.Drift.Objects) != 1 {
		t.Fatalf("an edit: %+v", run)
	}
	seen := map[string]jobspec.DriftDifference{}
	for _, d := range run.Drift.Objects[0].Differences {
		seen[d.Path] = d
	}
	if d := seen["data.value"]; d.Manager != "kubectl-edit" || d.Time == nil || d.Have != `"by hand"` {
		t.Errorf("the edit is %+v", d)
	}
	if d, shown := seen["data.password"]; !shown || strings.Contains(d.Want, secretOfDrift) {
		t.Errorf("the secret is %+v", d)
	}
	if err := power.Set(c.dir, power.State{Mode: power.Run}); err != nil {
		t.Fatal(err)
	}

	rule := "[[accept]]\nkind = \"ConfigMap\"\nname = \"settings\"\npath = \"data\"\nreason = \"a test\"\nby = \"ops@shop.test\"\nuntil = 2100-01-01T00:00:00Z\n"
	if err := os.WriteFile(c.dir.DriftRules(), []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	next()
	run = found(look(live))
	if run.Drift == nil || run.Drift.Class != "" || run.Drift.Counts[jobspec.DriftAccepted] != 2 {
		t.Fatalf("accepted: %+v", run)
	}
	if a := run.Drift.Objects[0].Differences[0].Accepted; a == nil || a.By != "ops@shop.test" {
		t.Errorf("the rule is %+v", a)
	}
	if err := os.WriteFile(c.dir.DriftRules(), []byte(rule+"until_ever = true\n"), 0o600); err != nil { // a file that is wrong accepts nothing
		t.Fatal(err)
	}

	// What another resource's change pinned is none of this component's business, and
	// nothing is known of a change that this machine never planned.
	next()
	if run := found(look("chg_01jd2x7q9zr8w3v5k6m4n0tgha")); run.State != "failed" {
		t.Errorf("a change that was not planned here: %+v", run)
	}

	// While a change goes on, nobody looks.
	next()
	u.change = &change{runner: u.runner, id: id.New(id.Change), resource: c.resource, artifact: u.artifact, shape: c.shape}
	u.planned(u.givePlanWithSecret())
	h, release := u.hold(beforeWrite)
	apply := u.giveApply(nil)
	u.reaches(h)
	at := look(live)
	time.Sleep(3 * time.Second)
	c.plane.mu.Lock()
	early := len(c.plane.runs[jobspec.RunKey("drift/web", at)])
	c.plane.mu.Unlock()
	if early != 0 {
		t.Error("it looked while a change went on")
	}
	release()
	u.succeeded(apply)
	next()
	if run := found(look(u.change.id)); run.Drift == nil || run.Drift.Class != "" {
		t.Errorf("after the change: %+v", run)
	}
}

// secretOfDrift is what the manifest reads of the state.
const secretOfDrift = "correct-horse-battery"

func (u *upgrade) givePlanWithSecret() (job string) {
	spec := u.spec(jobspec.OperationPlan)
	spec.State = u.sealed(map[string]any{"secret": secretOfDrift})
	return u.plane.give(spec)
}

// publishSurvey signs settings with one look for drift, by the real clock.
func (c *component) publishSurvey(version int64, look jobspec.Scheduled) {
	c.t.Helper()
	now := time.Now().UTC()
	env, err := capsule.Sign(c.dispatch.key, c.dispatch.id, capsule.SettingsType, jobspec.Settings{
		Version: version, OrgID: c.plane.orgID, InstallID: c.plane.installID, IssuedAt: now, ExpiresAt: now.Add(time.Hour),
		Schedule: []jobspec.Scheduled{}, Surveys: []jobspec.Scheduled{look},
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.plane.change(func() { c.plane.settings = &runnerapi.SettingsVersion{Version: version, Envelope: env} })
}

// endOfRun waits for the end of a run.
func (c *component) endOfRun(key string) (end jobspec.Run) {
	c.t.Helper()
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
