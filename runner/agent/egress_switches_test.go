package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/egress"
)

// switches a class of bytes off, or on again.
func (r *runner) switches(class string, off bool) {
	r.t.Helper()
	if _, err := egress.Set(r.dir.EgressOff(), egress.Switched{Class: class, By: "ada", At: time.Now(), Reason: "audit"}, off); err != nil {
		r.t.Fatal(err)
	}
}

// Lines that are in the spool when log bodies are switched off do not leave once the
// control plane is back; what the agent says does, and the customer has the lines.
func TestLinesInTheSpoolStay(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	job := r.plane.give(script("print first-line", "touch "+r.file("begun"), "wait "+r.file("gate"), "print in-the-spool", "touch "+r.file("printed"), "wait "+r.file("end")))
	r.appears(r.file("begun"))
	stream := r.plane.streamOf(job)
	r.plane.until(t, "the first line", func() bool {
		s := r.plane.streams[stream]
		return s != nil && strings.Contains(strings.Join(s.lines, "\n"), "first-line")
	})
	r.plane.change(func() { r.plane.logsAway = true })
	r.touch("gate")
	r.appears(r.file("printed"))
	for deadline := time.Now().Add(30 * time.Second); !r.spooled(job, "in-the-spool"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the line is not in the spool")
		}
	}
	r.switches(egress.LogBodies, true)
	r.plane.change(func() { r.plane.logsAway = false })
	r.touch("end")
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("result = %+v", result)
	}
	log := strings.Join(r.plane.log(t, stream), "\n")
	if !strings.Contains(log, "first-line") || strings.Contains(log, "in-the-spool") || !strings.Contains(log, "lines that had not left yet are withheld") {
		t.Errorf("log:\n%s", log)
	}
	kept, err := filepath.Glob(filepath.Join(r.dir.Egress(), "withheld", job+".*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("withheld files: %v, %v", kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || !strings.Contains(string(text), "in-the-spool\n") {
		t.Errorf("withheld: %q, %v", text, err)
	}
}

// spooled says whether the spool of a job has a text.
func (r *runner) spooled(job, text string) bool {
	r.t.Helper()
	files, err := filepath.Glob(filepath.Join(r.dir.Spool(job+".1"), "*"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && strings.Contains(string(raw), text) {
			return true
		}
	}
	return false
}

// Without plan details the vendor gets counts and the effect digest, and approves by
// these; the customer's side has all of the plan.
func TestPlanDetailsAreSwitchedOff(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"before the plan": false, "when the plan waits to be handed in": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			c := changeWithoutPlan(t, r, here, func(*jobspec.Spec) {})
			if later {
				r.plane.change(func() { r.plane.plansAway = true })
			} else {
				r.switches(egress.PlanDetails, true)
			}
			spec := c.spec(jobspec.OperationPlan)
			spec.State = c.sealed(map[string]any{"secret": "correct-horse-battery"})
			job := r.plane.give(spec)
			if later {
				r.plane.until(t, "a plan that is not taken", func() bool { return r.plane.served["plan"] > 0 })
				r.switches(egress.PlanDetails, true)
				r.plane.change(func() { r.plane.plansAway = false })
			}
			if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
				t.Fatalf("result = %+v", result)
			}
			r.plane.mu.Lock()
			c.plan = r.plane.plans[job]
			r.plane.mu.Unlock()
			s := c.plan.Summary
			if s.Create != 1 || s.NotShownBytes == 0 || strings.Contains(s.Text, "redacted") || !strings.Contains(s.Text, "not shown") || s.Footprint != nil || c.plan.EffectDigest == "" {
				t.Errorf("the vendor sees %+v", s)
			}
			var whole jobspec.PlanSummary
			if found, err := datadir.ReadJSON(r.dir.PlanSummary(c.id), &whole); err != nil || !found || !strings.Contains(whole.Text, "+ (redacted)") {
				t.Errorf("the customer has %+v, %v", whole, err)
			}
			if result := r.plane.result(t, c.order(asItIs)); result.Outcome != jobspec.OutcomeSucceeded || len(c.effects()) != 1 {
				t.Errorf("the apply: %+v, effects %v", result, c.effects())
			}
		})
	}
}

// Without metrics a result carries its outcome and outputs, no numbers, and says so; on
// again, the next one has them.
func TestMetricsAreSwitchedOff(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	run := func() jobspec.Result {
		t.Helper()
		return r.plane.result(t, r.plane.give(script("measure orders 42", "output look fine")))
	}
	if got := run(); len(got.Metrics) != 1 || got.Metrics[0].Value != 42 {
		t.Fatalf("before the switch: %+v", got)
	}
	r.switches(egress.Metrics, true)
	if got := run(); len(got.Metrics) != 0 || got.MetricsError != "the customer has switched off metrics" || got.Outcome != jobspec.OutcomeSucceeded || len(got.Steps) != 1 {
		t.Errorf("while they are off: %+v", got)
	}
	r.switches(egress.Metrics, false)
	if got := run(); len(got.Metrics) != 1 || got.MetricsError != "" {
		t.Errorf("on again: %+v", got)
	}
}

// Without check outputs a scheduled run carries its verdict and its time, and neither what
// it wrote nor why it failed.
func TestCheckOutputsAreSwitchedOff(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		t.Run(map[bool]string{false: "on", true: "off"}[off], func(t *testing.T) {
			t.Parallel()
			r := newRunner(t, runnerapi.RunnerKindInstall)
			r.schedule(1, true, "append "+r.file("effects"), "measure orders 42", "output look all-is-well", "fail for-a-reason")
			if off {
				r.switches(egress.CheckOutputs, true)
			}
			r.clock = minute("10:00:54")
			r.start()
			run := r.ran("10:01:00")
			if run.State != "failed" || r.count() != 1 || len(run.Metrics) != 1 {
				t.Errorf("run = %+v", run)
			}
			outputs, why := len(run.Outputs) > 0, strings.Contains(run.Error, "for-a-reason")
			if outputs == off || why == off || off && run.Error != "the customer has switched off check outputs" {
				t.Errorf("outputs %v, error %q", run.Outputs, run.Error)
			}
		})
	}
}

// Without progress the lease is renewed and says nothing of what the engine does.
func TestProgressIsSwitchedOff(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
	job := r.plane.give(script(
		`sh echo '{"what":"a.b","doing":"creating","since":"'$(date -u +%FT%TZ)'","done":1,"total":3}' > out/progress.json`, "touch "+r.file("begun"), "wait "+r.file("end")))
	r.appears(r.file("begun"))
	r.plane.until(t, "progress", func() bool { return len(r.plane.told[job]) > 0 })
	r.switches(egress.Progress, true)
	var told, renewals int
	r.plane.until(t, "the renewal after the switch", func() bool { // one may be under way
		if renewals == 0 {
			renewals = r.plane.renewals
		}
		told = len(r.plane.told[job])
		return r.plane.renewals > renewals
	})
	last := 0
	r.plane.until(t, "two more renewals", func() bool {
		if last == 0 {
			last, told = r.plane.renewals, len(r.plane.told[job])
		}
		return r.plane.renewals >= last+2
	})
	r.plane.mu.Lock()
	if got := len(r.plane.told[job]); got != told {
		t.Errorf("progress was told %d times after the switch", got-told)
	}
	r.plane.mu.Unlock()
	r.touch("end")
	if result := r.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("result = %+v", result)
	}
}
