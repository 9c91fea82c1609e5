package agent_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/power"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// accept makes scripts accepted ones, next to those that are: through a release
// where an agent runs, else in its file.
func (r *runner) accept(list ...jobspec.Script) {
	r.t.Helper()
	set, err := scripts.Open(r.dir.Scripts())
	if err != nil {
		r.t.Fatal(err)
	}
	release := jobspec.Release{ID: id.New(id.Release), Number: 1, Scripts: list}
	for _, a := range set.List() {
		release.Scripts = append(release.Scripts, a.Script)
	}
	if !r.begun {
		_, version := set.Position()
		if err := set.Replace(scripts.Acceptance{From: version, Release: release, JobID: id.New(id.Job), Now: time.Now()}); err != nil {
			r.t.Fatal(err)
		}
		return
	}
	change := id.New(id.Change)
	plan := r.review(change, release)
	if plan.Summary.NoChange {
		return
	}
	if result := r.plane.result(r.t, r.acceptance(change, release, plan, func(*jobspec.Spec) {})); result.Outcome != jobspec.OutcomeSucceeded {
		r.t.Fatalf("the release is not accepted: %+v", result)
	}
}

// review has a release compared with what was accepted.
func (r *runner) review(change string, release jobspec.Release, edit ...func(*jobspec.Spec)) runnerapi.Plan {
	r.t.Helper()
	spec := jobspec.Spec{Kind: jobspec.KindRelease, Operation: jobspec.OperationPlan, ChangeID: change, Release: &release}
	for _, e := range edit {
		e(&spec)
	}
	job := r.plane.give(spec)
	if result := r.plane.result(r.t, job); result.Outcome != jobspec.OutcomeSucceeded {
		r.t.Fatalf("plan of the acceptance: %+v", result)
	}
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	return r.plane.plans[job]
}

// acceptance gives out the signed order to accept a release that was reviewed,
// after a last edit by the test.
func (r *runner) acceptance(change string, release jobspec.Release, plan runnerapi.Plan, edit func(*jobspec.Spec)) (job string) {
	r.t.Helper()
	spec := jobspec.Spec{
		JobID: id.New(id.Job), Kind: jobspec.KindRelease, Operation: jobspec.OperationApply, ChangeID: change, Release: &release, Pinned: plan.Pinned,
	}
	edit(&spec)
	return r.plane.give(spec, func(g *given) {
		fence := int64(0)
		g.Fence = &fence
		g.Order.EffectDigest, g.Order.PlanBytesDigest = plan.EffectDigest, plan.PlanBytesDigest
		g.Order.Nonce, g.Order.Starts = capsule.NewNonce(), capsule.StartsOfMutation
	})
}

// recorded waits until the chain has a record with this text in one line.
func (r *runner) recorded(text string) chain.Record {
	r.t.Helper()
	var found chain.Record
	r.plane.until(r.t, "a record of "+text, func() bool {
		return slices.ContainsFunc(r.plane.chain, func(line runnerapi.ChainRecord) bool {
			record, err := chain.ParseRecord(line.Body)
			found = record
			return err == nil && strings.Contains(record.What+": "+record.Result+": "+record.Detail, text)
		})
	})
	return found
}

// times counts the records with this text.
func (r *runner) times(text string) int {
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	n := 0
	for _, line := range r.plane.chain {
		if strings.Contains(string(line.Body), text) {
			n++
		}
	}
	return n
}

// checkOf is a script as an app has it.
func checkOf(edit func(*jobspec.Script), lines ...string) jobspec.Script {
	s := jobspec.Script{Action: *script(lines...).Action, Cron: "* * * * *", TimeoutSeconds: 30, HealthCheck: true}
	edit(&s)
	return s
}

func asWritten(*jobspec.Script) {}

// scheduledAs is how settings carry a script.
func scheduledAs(s jobspec.Script) jobspec.Scheduled {
	return jobspec.Scheduled{Action: s.Action, Inputs: s.Inputs, Role: s.Role, Cron: s.Cron, TimeoutSeconds: s.TimeoutSeconds, HealthCheck: s.HealthCheck, Unattended: s.Unattended}
}

// Somebody who holds the dispatch key publishes a script that nobody accepted.
func TestAttackSettingsWithAScriptThatWasNeverAccepted(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	good := checkOf(asWritten, "append "+r.file("effects"))
	r.accept(good)
	evil := scheduledAs(good)
	evil.Action = *script("append "+r.file("effects"), "touch "+r.file("evil")).Action
	r.publish(1, evil)
	r.clock = minute("10:00:54")
	r.start()
	run := r.ran("10:01:00")
	if run.State != "missed" || !strings.Contains(run.Error, "not accepted") || !strings.Contains(run.Error, "berth deploy") {
		t.Errorf("run = %+v, want it missed because it is not accepted", run)
	}
	if r.count() != 0 {
		t.Error("the script ran")
	}
	digest, err := evil.Script().Digest()
	if err != nil {
		t.Fatal(err)
	}
	r.recorded("refused: the schedule carries script " + digest)
}

// Under pause only health checks run by themselves. What is one follows from what
// was accepted, whatever settings say.
func TestAttackPauseIsNotTalkedAway(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		accepted func(*jobspec.Script)
		settings func(*jobspec.Scheduled)
		want     string
	}{
		{"settings call it a health check", func(s *jobspec.Script) { s.HealthCheck = false }, func(s *jobspec.Scheduled) { s.HealthCheck = true }, "not accepted"},
		{"settings call it read-only", func(s *jobspec.Script) { s.HealthCheck, s.Action.ReadOnly = false, false },
			func(s *jobspec.Scheduled) { s.HealthCheck, s.Action.ReadOnly = true, true }, "not accepted"},
		{"settings say the truth", func(s *jobspec.Script) { s.HealthCheck = false }, func(*jobspec.Scheduled) {}, "the customer's switch is at pause"},
		{"a script that may mutate is never run by a schedule", func(s *jobspec.Script) { s.Action.ReadOnly = false }, func(*jobspec.Scheduled) {}, "not accepted to run by itself"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			s := checkOf(tc.accepted, "append "+r.file("effects"))
			r.accept(s)
			carried := scheduledAs(s)
			tc.settings(&carried)
			r.publish(1, carried)
			r.turn(power.Pause)
			r.clock = minute("10:00:54")
			r.start()
			if run := r.ran("10:01:00"); run.State != "missed" || !strings.Contains(run.Error, tc.want) {
				t.Errorf("run = %+v, want it missed: %s", run, tc.want)
			}
			if r.count() != 0 {
				t.Error("the script ran")
			}
		})
	}
}

// An order to run a check once carries another script than the accepted one.
func TestAttackOrderWithAnotherScript(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		edit  func(*jobspec.Spec)
		field string
	}{
		{"one more blank", func(s *jobspec.Spec) { s.Action.Steps[0].InlineContents += " " }, "script"},
		{"one more variable", func(s *jobspec.Spec) { s.Action.Steps[0].EnvVars = map[string]string{"PATH": "/tmp"} }, "script"},
		{"one more step", func(s *jobspec.Spec) {
			s.Action.Steps = append(s.Action.Steps, jobspec.ActionStep{Name: "two", InlineContents: "print"})
		}, "script"},
		{"another timeout", func(s *jobspec.Spec) { s.TimeoutSeconds = 3600 }, "script"},
		{"a value that it does not take", func(s *jobspec.Spec) { s.Action.Inputs = map[string]string{"BASH_ENV": "/tmp/x"} }, "action.inputs"},
		{"a script that may mutate, called read-only", func(s *jobspec.Spec) { s.Action.Name = "clean" }, "script"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			r.plane.accept = nil
			check := checkOf(asWritten, "append "+r.file("effects"))
			clean := checkOf(func(s *jobspec.Script) { s.Action.Name, s.Action.ReadOnly, s.HealthCheck = "clean", false, false }, "append "+r.file("effects"))
			r.accept(check, clean)
			r.start()
			spec := script("append " + r.file("effects"))
			spec.TimeoutSeconds = 30
			tc.edit(&spec)
			result := r.plane.result(t, r.plane.give(spec))
			if result.Outcome != jobspec.OutcomeRefused || len(result.Differs) != 1 || result.Differs[0].Field != tc.field {
				t.Errorf("result = %+v, want it refused because of %s", result, tc.field)
			}
			if r.count() != 0 {
				t.Error("the script ran")
			}
			if tc.field == "script" {
				r.recorded("was not run: refused: order ")
			}
		})
	}
}

// What people accepted is what the apply accepts: the release of the order is
// compared with the one that was shown.
func TestAttackAcceptanceOfAnotherRelease(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	shown := jobspec.Release{ID: id.New(id.Release), Number: 2, Scripts: []jobspec.Script{checkOf(asWritten, "print good")}}
	for _, tc := range []struct {
		name  string
		edit  func(*jobspec.Spec)
		field string
	}{
		{"another text", func(s *jobspec.Spec) {
			other := *s.Release
			other.Scripts = []jobspec.Script{checkOf(asWritten, "print evil")}
			s.Release = &other
		}, "artifact_digest"},
		{"another release", func(s *jobspec.Spec) {
			other := *s.Release
			other.ID = id.New(id.Release)
			s.Release = &other
		}, "component"},
		{"another plan", func(s *jobspec.Spec) { s.Pinned = "sha256:" + strings.Repeat("0", 64) }, "pinned"},
	} {
		change := id.New(id.Change)
		plan := r.review(change, shown)
		result := r.plane.result(t, r.acceptance(change, shown, plan, tc.edit))
		if result.Outcome != jobspec.OutcomeRefused || !slices.ContainsFunc(result.Differs, func(d jobspec.Difference) bool { return d.Field == tc.field }) {
			t.Errorf("%s: result = %+v, want it refused because of %s", tc.name, result, tc.field)
		}
	}
	if raw, err := os.ReadFile(r.dir.Scripts()); !os.IsNotExist(err) {
		t.Errorf("something was accepted: %s %v", raw, err)
	}
}

func TestAcceptance(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	one := jobspec.Release{ID: id.New(id.Release), Number: 1, Scripts: []jobspec.Script{checkOf(asWritten, "print one")}}
	change := id.New(id.Change)
	plan := r.review(change, one)
	if plan.Summary.NoChange || plan.Summary.Create != 1 || plan.Effect.ChangeKind != "accept" || plan.Effect.Component != one.ID || plan.Effect.Lineage == "" {
		t.Fatalf("plan = %+v", plan)
	}
	manifest, err := one.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if want, err := manifest.Digest(); err != nil || plan.Effect.ArtifactDigest != want {
		t.Errorf("the effect names the manifest %s, want %s (%v)", plan.Effect.ArtifactDigest, want, err)
	}
	// A second one, planned on the same set.
	late := id.New(id.Change)
	latePlan := r.review(late, one)

	job := r.acceptance(change, one, plan, func(*jobspec.Spec) {})
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	r.recorded("accept")
	if result := r.plane.result(t, r.acceptance(late, one, latePlan, func(*jobspec.Spec) {})); result.Outcome != jobspec.OutcomeStale {
		t.Errorf("an acceptance whose set moved: %+v, want it stale", result)
	}
	if again := r.review(id.New(id.Change), one); !again.Summary.NoChange {
		t.Errorf("the same release again = %+v, want nothing new", again.Summary)
	}

	// One byte is a change, and only that is shown.
	two := jobspec.Release{ID: id.New(id.Release), Number: 2, Scripts: []jobspec.Script{checkOf(asWritten, "print onE")}}
	plan = r.review(id.New(id.Change), two)
	if plan.Summary.Update != 1 || plan.Summary.Create+plan.Summary.Delete != 0 {
		t.Errorf("summary = %+v", plan.Summary)
	}
	raw, err := json.Marshal(plan.Summary)
	if err != nil || !strings.Contains(string(raw), `- print one  (no line feed at the end)\n+ print onE`) {
		t.Errorf("the summary does not show the line: %s %v", raw, err)
	}

	// A deprovisioned install accepts nothing any more.
	change = id.New(id.Change)
	none := jobspec.Release{ID: one.ID, Number: 1}
	destroy := func(s *jobspec.Spec) { s.Destroy = true }
	plan = r.review(change, none, destroy)
	if plan.Summary.NoChange || plan.Summary.Delete != 1 || plan.Effect.ChangeKind != "forget" {
		t.Errorf("plan = %+v", plan)
	}
	if result := r.plane.result(t, r.acceptance(change, none, plan, destroy)); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
	set, err := scripts.Open(r.dir.Scripts())
	if err != nil || len(set.List()) != 0 {
		t.Errorf("still accepted: %v %v", set.List(), err)
	}
}

// The chain tells of scheduled runs: the first of a script, each other verdict,
// and the rest when the agent ends.
func TestChainTellsOfScheduledRuns(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	s := checkOf(asWritten, "append "+r.file("effects"))
	r.accept(s)
	r.publish(1, scheduledAs(s))
	digest, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	r.clock = minute("10:00:54")
	stop := r.start()
	if run := r.ran("10:01:00"); run.State != "succeeded" {
		t.Fatalf("run = %+v", run)
	}
	r.recorded("first run of script check: ok: script " + digest + ", run of 2026-11-20T10:01:00Z")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.clock = minute("10:01:54")
	stop = r.start()
	r.recorded("runs of scripts: 1 ok, 0 failed: 1 runs since")
	if run := r.ran("10:02:00"); run.State != "succeeded" {
		t.Fatalf("run = %+v", run)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := r.times("first run of script"); got != 1 {
		t.Errorf("%d first runs are in the chain, want 1", got)
	}
}

// An agent that is killed while it accepts a release leaves the old set or the
// new one, and the next agent says which.
func TestKilledWhileItAccepts(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{false, true} {
		r := newRunner(t, runnerapi.RunnerKindInstall)
		stop := r.start()
		release := jobspec.Release{ID: id.New(id.Release), Number: 1, Scripts: []jobspec.Script{checkOf(asWritten, "print one")}}
		change := id.New(id.Change)
		r.review(change, release)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		job := id.New(id.Job)
		if done {
			set, err := scripts.Open(r.dir.Scripts())
			if err != nil {
				t.Fatal(err)
			}
			if err := set.Replace(scripts.Acceptance{Release: release, JobID: job, Now: time.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		r.leaveAttempt(job, change, release)
		r.start()
		result := r.plane.result(t, job)
		want := map[bool]jobspec.Outcome{false: jobspec.OutcomeStale, true: jobspec.OutcomeSucceeded}[done]
		if diff := cmp.Diff(want, result.Outcome); diff != "" {
			t.Errorf("done %v: outcome (-want +got):\n%s", done, diff)
		}
	}
}

// leaveAttempt is what a killed agent leaves of an acceptance that had begun.
func (r *runner) leaveAttempt(jobID, change string, release jobspec.Release) {
	r.t.Helper()
	spec := jobspec.Spec{
		Version: jobspec.Version, JobID: jobID, OrgID: r.plane.orgID, InstallID: r.plane.installID, Kind: jobspec.KindRelease,
		Operation: jobspec.OperationApply, ChangeID: change, Release: &release, Pinned: "sha256:x", TimeoutSeconds: 60,
	}
	text, err := json.Marshal(spec)
	if err != nil {
		r.t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]any{
		"spec_text":  text,
		"assignment": runnerapi.Assignment{JobID: jobID, Attempt: 1, Operation: "apply", StreamID: id.New(id.Stream), LogToken: "blt_of_a_dead_attempt"},
		"phase":      "starting", "started_at": time.Now(), "deadline": time.Now().Add(time.Minute),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	dir := r.dir.Jobs() + "/" + jobID + ".1"
	for _, path := range []string{dir, dir + "/engine", dir + "/engine/out"} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := os.WriteFile(dir+"/attempt.json", raw, 0o600); err != nil {
		r.t.Fatal(err)
	}
}
