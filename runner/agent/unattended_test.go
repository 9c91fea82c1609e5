package agent_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/power"
)

// unattended is an action that may change something and runs by itself each minute.
func unattended(lines ...string) jobspec.Script {
	return checkOf(func(s *jobspec.Script) { s.Action.ReadOnly, s.HealthCheck, s.Unattended = false, false, true }, lines...)
}

// ofSchedules are the intents and outcomes of scheduled runs among records.
func ofSchedules(t *testing.T, lines []runnerapi.ChainRecord) (told []string) {
	t.Helper()
	for _, line := range lines {
		record, err := chain.ParseRecord(line.Body)
		if err != nil {
			t.Fatal(err)
		}
		if record.Kind != chain.Event && strings.HasPrefix(record.What, "scheduled run") {
			told = append(told, string(record.Kind)+" of "+record.Actor+": "+record.What+": "+record.Result)
		}
	}
	return told
}

func (r *runner) scheduledRecords() []string {
	r.t.Helper()
	r.plane.mu.Lock()
	defer r.plane.mu.Unlock()
	return ofSchedules(r.t, r.plane.chain)
}

// tells waits until the copy of the chain says this of scheduled runs, and no more.
func (r *runner) tells(want ...string) {
	r.t.Helper()
	r.plane.until(r.t, "records of scheduled runs", func() bool { return len(ofSchedules(r.t, r.plane.chain)) >= len(want) })
	if diff := cmp.Diff(want, r.scheduledRecords()); diff != "" {
		r.t.Errorf("records of scheduled runs (-want +got):\n%s", diff)
	}
}

const (
	begins    = "intent of schedule: scheduled run of action check: "
	succeeded = "outcome of runner: scheduled run of action check: succeeded"
)

func TestUnattendedRun(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	s := unattended("append "+r.file("effects"), "print done")
	r.accept(s)
	r.publish(1, scheduledAs(s))
	r.clock = minute("10:00:54")
	stop := r.start()
	if run := r.ran("10:01:00"); run.State != "succeeded" {
		t.Fatalf("run = %+v", run)
	}
	digest, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if intent := r.recorded("tick of 2026-11-20T10:01:00Z"); intent.Effect != digest {
		t.Errorf("intent = %+v, want it to name the script %s", intent, digest)
	}
	r.tells(begins, succeeded)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// A tick that was run is not caught up.
	r.clock = minute("10:01:20")
	r.start()
	r.plane.until(t, "the second session", func() bool { return len(r.plane.sessions) == 2 })
	if got := r.count(); got != 1 {
		t.Errorf("the action ran %d times, want 1", got)
	}
}

func TestUnattendedRunsInAnOutage(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	s := unattended("append "+r.file("effects"), "touch "+r.file("begun"))
	r.accept(s)
	r.publish(1, scheduledAs(s))
	r.runsInAnOutage()
	r.tells(begins, succeeded)
	if got := r.count(); got != 1 {
		t.Errorf("the action ran %d times, want 1", got)
	}
}

// What the agent was down for is run late, once, while that still makes sense.
func TestMissedTickIsCaughtUp(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	s := unattended("append " + r.file("effects"))
	r.accept(s)
	r.publish(1, scheduledAs(s))
	r.clock = minute("10:00:10")
	stop := r.start()
	r.appears(r.dir.Schedule())
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.clock = minute("10:03:05")
	r.start()
	if run := r.ran("10:03:00"); run.State != "succeeded" {
		t.Errorf("run = %+v", run)
	}
	for _, clock := range []string{"10:01:00", "10:02:00"} {
		if run := r.ran(clock); run.State != "missed" || run.Error != "the runner was not running" {
			t.Errorf("run of %s = %+v, want it missed", clock, run)
		}
	}
	if got := r.count(); got != 1 {
		t.Errorf("the action ran %d times, want 1", got)
	}
}

// The customer's switch holds what may change something, and nothing is caught up
// that it held.
func TestSwitchHoldsUnattendedRuns(t *testing.T) {
	t.Parallel()
	for _, mode := range []power.Mode{power.Pause, power.ReadOnly, power.StopNow} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			s := unattended("append " + r.file("effects"))
			r.accept(s)
			r.publish(1, scheduledAs(s))
			r.turn(mode)
			r.clock = minute("10:00:54")
			r.start()
			if run := r.ran("10:01:00"); run.State != "missed" || run.Error != "the customer's switch is at "+string(mode) {
				t.Errorf("run = %+v, want it missed", run)
			}
			r.turn(power.Run)
			r.plane.until(t, "a session that sees the switch", func() bool { return len(r.plane.sessions) > 0 })
			if r.count() != 0 || len(r.scheduledRecords()) != 0 {
				t.Errorf("the script ran %d times, records %q", r.count(), r.scheduledRecords())
			}
		})
	}
}

// Somebody who holds the dispatch key has the runner change something by a schedule.
func TestAttackUnattendedWithoutAcceptance(t *testing.T) {
	t.Parallel()
	byDecision := func(s *jobspec.Script) { s.Unattended = false }
	manual := func(s *jobspec.Script) { s.Unattended, s.Cron = false, "" }
	for _, tc := range []struct {
		name     string
		accepted func(*jobspec.Script)
		settings func(*jobspec.Scheduled)
		want     string
	}{
		{"settings say that it runs by itself", byDecision, func(*jobspec.Scheduled) {}, "not accepted yet"},
		{"settings carry it as it was accepted: for decisions", byDecision, func(s *jobspec.Scheduled) { s.Unattended = false }, "not accepted to run by itself"},
		{"settings give a manual script a schedule", manual, func(*jobspec.Scheduled) {}, "not accepted yet"},
		{"settings give a manual script a schedule that its digest does not name", manual, func(s *jobspec.Scheduled) { s.Unattended = false }, "not accepted yet"},
		{"settings change the schedule", func(s *jobspec.Script) { s.Cron = "0 3 * * *" }, func(*jobspec.Scheduled) {}, "not accepted yet"},
		{"settings change the text", func(*jobspec.Script) {}, func(s *jobspec.Scheduled) {
			s.Action.Steps = slices.Clone(s.Action.Steps)
			s.Action.Steps[0].InlineContents += "\nprint more"
		}, "not accepted yet"},
		{"settings bring an input", func(*jobspec.Script) {}, func(s *jobspec.Scheduled) { s.Action.Inputs = map[string]string{"BASH_ENV": "/tmp/x"} }, "not accepted to take it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			lines := []string{"append " + r.file("effects")}
			s := unattended(lines...)
			tc.accepted(&s)
			r.accept(s)
			carried := scheduledAs(unattended(lines...))
			tc.settings(&carried)
			r.publish(1, carried)
			r.clock = minute("10:00:54")
			r.start()
			if run := r.ran("10:01:00"); run.State != "missed" || !strings.Contains(run.Error, tc.want) {
				t.Errorf("run = %+v, want it missed: %s", run, tc.want)
			}
			if r.count() != 0 || len(r.scheduledRecords()) != 0 {
				t.Errorf("the script ran %d times, records %q", r.count(), r.scheduledRecords())
			}
		})
	}
}

// No order can ask for a run without plan and decision.
func TestAttackOrderForATick(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.plane.accept = nil
	s := unattended("append " + r.file("effects"))
	r.accept(s)
	r.start()
	spec := jobspec.Spec{Kind: jobspec.KindAction, Operation: jobspec.OperationTick, TimeoutSeconds: 30, Action: &s.Action}
	result := r.plane.result(t, r.plane.give(spec))
	if result.Outcome != jobspec.OutcomeRefused || !slices.ContainsFunc(result.Differs, func(d jobspec.Difference) bool { return d.Field == "operation" }) {
		t.Errorf("result = %+v, want its operation refused", result)
	}
	if r.count() != 0 {
		t.Error("the script ran")
	}
	if rule, _ := order.RuleOf(jobspec.KindAction, jobspec.OperationTick); !rule.Own || rule.Starts != 0 {
		t.Errorf("rule = %+v", rule)
	}
}

// An agent that is killed in the middle of a run leaves the run to the next one; a
// tick that comes meanwhile is told as overlapping.
func TestUnattendedRunSurvivesTheAgent(t *testing.T) {
	t.Parallel()
	needsOwnNamespace(t)
	r := newRunner(t, runnerapi.RunnerKindInstall)
	s := unattended("append "+r.file("effects"), "touch "+r.file("begun"), "wait "+r.file("go"), "print done")
	s.TimeoutSeconds = 600 // the second agent's clock is a minute ahead
	r.accept(s)
	r.publish(1, scheduledAs(s))
	r.clock = minute("10:00:54")
	agent := r.startProcess()
	r.appears(r.file("begun"))
	_ = agent.Process.Signal(syscall.SIGKILL)
	_ = agent.Wait()

	r.clock = minute("10:01:54")
	r.startProcess()
	if run := r.ran("10:02:00"); run.State != "missed" || !strings.HasPrefix(run.Error, "overlapping") {
		t.Errorf("run of 10:02 = %+v, want it missed", run)
	}
	r.touch("go")
	if run := r.ran("10:01:00"); run.State != "succeeded" {
		t.Errorf("run = %+v", run)
	}
	if got := r.count(); got != 1 {
		t.Errorf("the action ran %d times, want 1", got)
	}
	r.tells(begins, succeeded)
}

// With the engine gone too, the run has ended, and nobody knows how: it is not run
// again, and its intent is answered.
func TestUnattendedRunOfAKilledMachine(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	s := unattended("append "+r.file("effects"), "touch "+r.file("begun"), "wait "+r.file("never"))
	r.accept(s)
	r.yield()
	r.publish(1, scheduledAs(s))
	r.clock = minute("10:00:54")
	config := processConfig{UIDs: "off"} // its engines end with it
	agent := r.process(config, r.user())
	r.run(agent)
	r.appears(r.file("begun"))
	_ = agent.Process.Signal(syscall.SIGKILL)
	_ = agent.Wait()

	r.clock = minute("10:01:05")
	r.run(r.process(config, r.user()))
	run := r.ran("10:01:00")
	if run.State != "failed" || !strings.HasPrefix(run.Error, "the runner's process, pod or machine ended") {
		t.Errorf("run = %+v", run)
	}
	r.tells(begins, "outcome of runner: scheduled run of action check: uncertain")
	if got := r.count(); got != 1 {
		t.Errorf("the action ran %d times, want 1", got)
	}
}

// A scheduled run and an apply of the same install go one after the other.
func TestUnattendedRunWaitsForAnApply(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	s := unattended("touch "+r.file("ran"), "wait "+r.file("go"))
	r.accept(s)
	tick := time.Now().UTC().Truncate(time.Minute).Add(time.Minute) // orders are signed in real time
	r.clock = tick.Add(-20 * time.Second)
	c := newChangeOn(t, r, here, func(*jobspec.Spec) {})
	c.script = []string{"touch " + c.file("applying") + "\nwait " + c.file("applied")}
	first := c.order(asItIs)
	c.appears(c.file("applying"))
	r.publishOn(tick.Add(-time.Hour), 1, scheduledAs(s))

	key := jobspec.RunKey("check", tick)
	r.plane.until(t, "a run that waits", func() bool {
		return slices.ContainsFunc(r.plane.runs[key], func(run jobspec.Run) bool {
			return run.State == "queued" && run.Error == "waiting for apply api, which changes the install"
		})
	})
	if exists(r.file("ran")) {
		t.Fatal("the scheduled run went on next to an apply")
	}
	c.touch("applied")
	if result := c.plane.result(t, first); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("apply = %+v", result)
	}
	r.appears(r.file("ran"))
	second := c.another()
	r.plane.until(t, "the log of an apply that waits", func() bool {
		for _, stream := range r.plane.streams {
			if slices.ContainsFunc(stream.lines, func(line string) bool {
				return strings.Contains(line, "waiting for scheduled run of action check")
			}) {
				return true
			}
		}
		return false
	})
	if got := len(c.effects()); got != 1 {
		t.Errorf("%d applies had an effect next to the scheduled run", got)
	}
	r.touch("go")
	r.plane.until(t, "the end of the run", func() bool {
		return slices.ContainsFunc(r.plane.runs[key], func(run jobspec.Run) bool { return run.State == "succeeded" })
	})
	if result := c.plane.result(t, second); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("second apply = %+v", result)
	}
}
