package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/power"
)

func TestEnrolsAndWorks(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	job := r.plane.give(script("print hello", "whoami", "env", "read "+filepath.Join(r.dir.Path(), "identity")))
	result := r.plane.result(t, job)
	if result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	lines := r.plane.log(t, r.plane.streamOf(job))
	for _, want := range []string{"hello", fmt.Sprintf("readable %v", !r.isolated())} {
		if !slices.Contains(lines, want) {
			t.Errorf("log has no %q:\n%s", want, strings.Join(lines, "\n"))
		}
	}
	if r.uid > 0 && !slices.ContainsFunc(lines, hasOwnUser) {
		t.Errorf("engine is not isolated:\n%s", strings.Join(lines, "\n"))
	}
	allowed := []string{"PATH", "HOME", "TMPDIR", "BERTH_INSTALL_DIR", "TRACEPARENT", "GOGC", "GORACE"}
	for _, line := range lines {
		name, isEnv := strings.CutPrefix(line, "env ")
		if isEnv && !slices.Contains(allowed, name) && !strings.HasSuffix(strings.ToUpper(name), "_PROXY") && !strings.HasPrefix(name, "SSL_CERT") {
			t.Errorf("engine sees %s", name)
		}
	}
	if _, err := os.Stat(r.dir.Enrolment()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the enrolment secret is still there: %v", err)
	}
	r.gone(job)
}

// The engine's last words are its error: the agent does not write it again.
func TestTheLogSaysOnceWhyAJobFailed(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	job := r.plane.give(script("fail no room"))
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, "no room") {
		t.Fatalf("result = %+v", result)
	}
	lines := r.plane.log(t, r.plane.streamOf(job))
	if log := strings.Join(lines, "\n"); strings.Count(log, "no room") != 1 || !slices.Contains(lines, "failed") {
		t.Errorf("log:\n%s", log)
	}
}

// hasOwnUser tells whether an engine says that it has a user of the range, in a
// process namespace of its own.
func hasOwnUser(line string) bool {
	var uid, pid int
	n, _ := fmt.Sscanf(line, "uid %d pid %d", &uid, &pid)
	return n == 2 && pid == 1 && uid > 70000 && uid < 74096
}

// gone waits until nothing is left of a job on disk.
func (r *runner) gone(job string) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for _, pattern := range []string{r.dir.Jobs() + "/" + job + ".*", r.dir.Spool(job + ".*")} {
		for {
			left, err := filepath.Glob(pattern)
			if err != nil {
				r.t.Fatal(err)
			}
			if len(left) == 0 {
				break
			}
			if time.Now().After(deadline) {
				r.t.Fatalf("still there: %v", left)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func TestOneAgentPerDataDirectory(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	r.plane.until(t, "a session", func() bool { return len(r.plane.sessions) == 1 })
	err := agent.Run(t.Context(), agent.Config{Data: r.dir.Path(), Engine: r.binary, Executable: r.binary})
	if !errors.Is(err, datadir.ErrBusy) {
		t.Errorf("second agent: %v, want ErrBusy", err)
	}
}

func TestLostClaimGivesTheSameJob(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.plane.dropped = 2
	job := r.plane.give(script("print once"))
	r.start()
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	ids := map[string]int{}
	for _, c := range r.plane.asked {
		ids[c.ClaimID]++
	}
	if got := ids[r.plane.asked[0].ClaimID]; got != 3 {
		t.Errorf("the first claim was sent %d times, want 3", got)
	}
}

func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	const secret = "correct-horse-battery"
	r.start()
	r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
	spec := script("secret", "print "+secret+" again", "fail because of "+secret)
	spec.State = r.sealed(map[string]any{"secret": secret, "open": "to all"})
	job := r.plane.give(spec)
	result := r.plane.result(t, job)
	if result.Outcome != jobspec.OutcomeFailed || strings.Contains(result.Error, secret) {
		t.Errorf("result = %+v, want it failed and redacted", result)
	}
	lines := strings.Join(r.plane.log(t, r.plane.streamOf(job)), "\n")
	if strings.Contains(lines, secret) {
		t.Errorf("the secret is in the log:\n%s", lines)
	}
	if !strings.Contains(lines, "the secret is (redacted)") {
		t.Errorf("the engine did not get the secret in clear:\n%s", lines)
	}
}

// sealed is the tree of an install with these inputs, of which "secret" is sealed
// to the runner, and with the outputs of the component that makes a cluster, sealed
// too, where there are some.
func (r *runner) sealed(inputs map[string]any) json.RawMessage {
	r.t.Helper()
	r.plane.mu.Lock()
	recipient := r.plane.enrolled[0].SealRecipient
	r.plane.mu.Unlock()
	tree := map[string]any{"inputs": map[string]any{"populated": true, "inputs": inputs}}
	if r.outputs != nil {
		tree["components"] = map[string]any{maker: map[string]any{"install_component_id": "res_" + maker, "outputs": r.outputs}}
	}
	at := interpolate.SealedLeaves(r.plane.orgID, r.plane.installID, tree)
	sealed, err := seal.SealLeaves([]string{recipient}, tree, func(path []string) (seal.Purpose, bool) {
		purpose, ok := at(path)
		return purpose, ok && (path[2] == "secret" || path[1] == maker)
	})
	if err != nil {
		r.t.Fatal(err)
	}
	raw, err := json.Marshal(sealed)
	if err != nil {
		r.t.Fatal(err)
	}
	return raw
}

// The agent is killed in the middle of a job. The engine goes on, the next
// agent adopts it, and the log is whole and redacted on both sides of the crash.
func TestKilledAgentIsSucceeded(t *testing.T) {
	t.Parallel()
	needsOwnNamespace(t)
	r := newRunner(t, runnerapi.RunnerKindInstall)
	const secret = "correct-horse-battery"
	first := r.startProcess()
	r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
	spec := script("secret", "touch "+r.file("begun"), "wait "+r.file("go"), "secret", "print end")
	spec.State = r.sealed(map[string]any{"secret": secret})
	job := r.plane.give(spec)
	r.appears(r.file("begun"))
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait()

	r.startProcess()
	r.plane.until(t, "the next session", func() bool { return len(r.plane.sessions) == 2 })
	r.plane.mu.Lock()
	running := r.plane.sessions[1].Running
	r.plane.mu.Unlock()
	if diff := cmp.Diff([]runnerapi.Attempt{{JobID: job, Attempt: 1}}, running); diff != "" {
		t.Errorf("running attempts of the second session (-want +got):\n%s", diff)
	}
	r.touch("go")
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
	var output []string
	for _, line := range r.plane.log(t, r.plane.streamOf(job)) {
		if strings.Contains(line, "secret") || line == "end" {
			output = append(output, line)
		}
	}
	want := []string{"the secret is (redacted)", "the secret is (redacted)", "end"}
	if diff := cmp.Diff(want, output); diff != "" {
		t.Errorf("output of the engine (-want +got):\n%s", diff)
	}
	r.gone(job)
}

// The engine ends while no agent looks.
func TestResultOfAnEngineThatEndedAlone(t *testing.T) {
	t.Parallel()
	needsOwnNamespace(t)
	r := newRunner(t, runnerapi.RunnerKindInstall)
	first := r.startProcess()
	job := r.plane.give(script("wait "+r.file("go"), "print alone", "touch "+r.file("ended")))
	r.plane.until(t, "the claim", func() bool { return len(r.plane.claims) > 0 })
	r.hasPhase(job, `"phase": "started"`)
	_ = first.Process.Signal(syscall.SIGKILL)
	_ = first.Wait()
	r.touch("go")
	r.appears(r.file("ended"))
	r.startProcess()
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
	if lines := r.plane.log(t, r.plane.streamOf(job)); !slices.Contains(lines, "alone") {
		t.Errorf("log:\n%s", strings.Join(lines, "\n"))
	}
}

// hasPhase waits until the attempt is on disk with the given text.
func (r *runner) hasPhase(job, text string) {
	r.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		raw, _ := os.ReadFile(filepath.Join(r.dir.Jobs(), job+".1", "attempt.json"))
		if strings.Contains(string(raw), text) {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("attempt never had %s:\n%s", text, raw)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestOutageDelaysReportsOnly(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	job := r.plane.give(script("touch "+r.dir.Install()+"/begun", "wait "+r.dir.Install()+"/go", "print through the outage"))
	r.appears(r.file("begun"))
	r.plane.change(func() { r.plane.away = true })
	r.plane.CloseClientConnections()
	r.touch("go")
	r.hasPhase(job, `"phase": "ended"`)
	r.plane.change(func() { r.plane.away = false })
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
	if lines := r.plane.log(t, r.plane.streamOf(job)); !slices.Contains(lines, "through the outage") {
		t.Errorf("log:\n%s", strings.Join(lines, "\n"))
	}
}

func TestCancelStopsAtASafePoint(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	job := r.plane.give(script("touch "+r.file("begun"), "wait "+r.file("never")))
	r.appears(r.file("begun"))
	r.plane.change(func() { r.plane.answers[job] = runnerapi.LeaseAnswerCancel })
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeCancelled {
		t.Errorf("result = %+v, want it cancelled", result)
	}
}

func TestEngineThatIgnoresTheStopIsEnded(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	job := r.plane.give(script("touch "+r.file("begun"), "hang"))
	r.appears(r.file("begun"))
	r.plane.change(func() { r.plane.answers[job] = runnerapi.LeaseAnswerCancel })
	result := r.plane.result(t, job)
	if result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, "cancel") {
		t.Errorf("result = %+v, want it failed because of the cancel", result)
	}
}

func TestLostLeaseReportsNothing(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	job := r.plane.give(script("touch "+r.file("begun"), "wait "+r.file("never")))
	r.appears(r.file("begun"))
	r.plane.change(func() { r.plane.answers[job] = runnerapi.LeaseAnswerLost })
	r.gone(job)
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	if len(r.plane.results[job]) > 0 {
		t.Errorf("reported: %+v", r.plane.results[job])
	}
}

// The agent reports what an engine does right now when it renews the lease, redacted like
// its log, as long as it says so.
func TestProgressIsToldWithTheLease(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	const secret = "correct-horse-battery"
	r.start()
	r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
	spec := script(
		`sh echo '{"what":"a.b[\"'`+secret+`'\"]","doing":"creating","since":"'$(date -u +%FT%TZ)'","done":1,"total":3}' > out/progress.json`,
		"wait "+r.file("seen"), "sh rm out/progress.json", "wait "+r.file("end"))
	spec.State = r.sealed(map[string]any{"secret": secret})
	job := r.plane.give(spec)
	r.plane.until(t, "its progress", func() bool { return len(r.plane.told[job]) > 0 })
	r.plane.mu.Lock()
	got := r.plane.told[job][0]
	r.plane.mu.Unlock()
	want := runnerapi.JobProgress{JobID: job, Attempt: 1, What: `a.b["(redacted)"]`, Doing: "creating", Seconds: got.Seconds, Done: 1, Total: 3}
	if diff := cmp.Diff(want, got); diff != "" || got.Seconds > 60 {
		t.Errorf("%d s (-want +got):\n%s", got.Seconds, diff)
	}
	r.touch("seen")
	last := 0
	r.plane.until(t, "a renewal that has nothing to tell", func() bool {
		nothing := r.plane.renewals > 1 && len(r.plane.told[job]) == last
		last = len(r.plane.told[job])
		return nothing
	})
	r.touch("end")
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
}

// A control plane that does not know of progress yet still renews the lease.
func TestProgressThatIsNotTaken(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.plane.older = true
	r.start()
	job := r.plane.give(script(`sh echo '{"what":"a.b"}' > out/progress.json`, "wait "+r.file("end")))
	r.plane.until(t, "renewals", func() bool { return r.plane.renewals > 1 })
	r.touch("end")
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
}

func TestSwitch(t *testing.T) {
	t.Parallel()
	t.Run("pause takes no work until it is set back", func(t *testing.T) {
		t.Parallel()
		r := newRunner(t, runnerapi.RunnerKindInstall)
		r.turn(power.Pause)
		job := r.plane.give(script("print hello"))
		r.start()
		r.plane.until(t, "a claim without slots", func() bool {
			return len(r.plane.asked) > 0 && r.plane.asked[0].Slots == 0 && r.plane.asked[0].Switch == runnerapi.SwitchPause
		})
		r.turn(power.Run)
		if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
			t.Errorf("result = %+v", result)
		}
	})
	t.Run("stop now stops what runs", func(t *testing.T) {
		t.Parallel()
		r := newRunner(t, runnerapi.RunnerKindInstall)
		r.start()
		job := r.plane.give(script("touch "+r.file("begun"), "wait "+r.file("never")))
		r.appears(r.file("begun"))
		r.turn(power.StopNow)
		if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeNotStarted {
			t.Errorf("result = %+v, want it given back", result)
		}
	})
	t.Run("sever sends nothing, and tells everything afterwards", func(t *testing.T) {
		t.Parallel()
		r := newRunner(t, runnerapi.RunnerKindInstall)
		r.start()
		job := r.plane.give(script("touch "+r.file("begun"), "wait "+r.file("never")))
		r.appears(r.file("begun"))
		r.turn(power.Sever)
		r.hasPhase(job, `"phase": "ended"`)
		r.plane.mu.Lock()
		before := r.plane.requests
		quiet, changed := time.After(1500*time.Millisecond), r.plane.changed // longer than a renewal
		r.plane.mu.Unlock()
		select {
		case <-changed:
			t.Error("something was sent")
		case <-quiet:
		}
		r.plane.mu.Lock()
		after := r.plane.requests
		r.plane.mu.Unlock()
		if after != before {
			t.Errorf("%d requests were sent", after-before)
		}
		r.turn(power.Run)
		if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeNotStarted {
			t.Errorf("result = %+v, want it given back", result)
		}
	})
}

func (r *runner) turn(mode power.Mode) {
	r.t.Helper()
	if err := power.Set(r.dir, power.State{Mode: mode, Reason: "test", At: time.Now()}); err != nil {
		r.t.Fatal(err)
	}
}

// An engine that shares the agent's user, without a namespace of its own, cannot
// be left alone: it is asked to stop when the agent dies, and the next agent
// tells how it ended.
func TestWithoutRoot(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.yield()
	shared := processConfig{UIDs: "off"}
	first := r.process(shared, r.user())
	r.run(first)
	job := r.plane.give(script("touch "+r.file("begun"), "print before", "wait "+r.file("never")))
	r.appears(r.file("begun"))
	r.hasPhase(job, `"phase": "started"`)
	_ = first.Process.Signal(syscall.SIGKILL)
	_ = first.Wait()
	r.run(r.process(shared, r.user()))
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeNotStarted {
		t.Errorf("result = %+v, want it given back", result)
	}
	if lines := r.plane.log(t, r.plane.streamOf(job)); !slices.Contains(lines, "stopping at a safe point") {
		t.Errorf("log:\n%s", strings.Join(lines, "\n"))
	}
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	if got := r.plane.sessions[0].Trust; got != runnerapi.TrustDevelopment {
		t.Errorf("trust = %s, want development", got)
	}
}

// Names that a hostile control plane makes up become no paths.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	outside := r.dir.Path() + "/../outside"
	spec := script("print hello")
	spec.JobID = "job_/../../../outside"
	r.plane.give(spec)
	spec = script("print hello")
	spec.Operation, spec.ChangeID = jobspec.OperationPlan, "../../outside"
	job := r.plane.give(spec)
	result := r.plane.result(t, job)
	if result.Outcome != jobspec.OutcomeRefused || len(result.Differs) != 1 || result.Differs[0].Field != "change_id" {
		t.Errorf("result = %+v, want the change's id refused", result)
	}
	if left, _ := filepath.Glob(outside + "*"); len(left) > 0 {
		t.Errorf("written outside of the data directory: %v", left)
	}
}
