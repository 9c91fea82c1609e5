package workflow_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/sweep"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/metrictest"
)

// Something is overdue when its rows ask for a move and no wake-up for it is in the queue:
// not while one is there, whatever its state, and not once it is moved.
func TestTheSweepMovesWhatLostItsWakeUp(t *testing.T) {
	t.Parallel()
	metrictest.Start()
	r := newRig(t)
	r.arrive()
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	sweeper := sweep.New(slog.New(slog.DiscardHandler), sweep.Workflows(r.ctl, r.engine))
	round := func(when string, want int) {
		t.Helper()
		if got, err := sweeper.Round(t.Context()); err != nil || got != want {
			t.Errorf("%s, the sweep moved %d (%v), want %d", when, got, err, want)
		}
	}
	queue := func(state string, at time.Duration) {
		t.Helper()
		r.exec(`delete from river_ctl.river_job`)
		r.exec(`insert into river_ctl.river_job (kind, max_attempts, args, state, scheduled_at, attempted_at, finalized_at)
			values ('workflow_advance', 100, jsonb_build_object('workflow_id', $1::text), $2::river_ctl.river_job_state, now() + $3::interval, now(),
				case when $2 in ('completed', 'discarded', 'cancelled') then now() end)`, w, state, at.String())
	}
	queue("completed", 0)
	round("while a plan is at the runner", 0)
	job, _ := r.openJob(w, "sandbox")
	r.exec(`update runner_jobs set state = 'failed', error = 'boom', result = '{"outcome":"failed"}' where id = $1`, job)
	for _, state := range []string{"available", "running", "retryable"} {
		queue(state, 0)
		round("while a wake-up is "+state, 0)
	}
	queue("scheduled", -time.Second)
	round("while a wake-up is about to be taken", 0)
	if got := r.steps(w)["sandbox"]; got != "running preparing" {
		t.Fatalf("the sandbox is %q, want not moved", got)
	}
	queue("scheduled", time.Hour) // that of a deadline helps nobody now
	round("once the wake-up is lost", 1)
	if got := metrictest.Value(t, "sweep.moved", attribute.String("what", "workflow"), attribute.String("do", string(flow.DoSettleChange))); got < 1 {
		t.Errorf("the metric counts %v, want at least this one", got)
	}
	if got := r.steps(w)["sandbox"]; got == "running preparing" {
		t.Error("the sweep left the sandbox where it was")
	}
	queue("completed", 0)
	round("after that", 0)
}

// woken records for when wake-ups are asked.
type woken struct{ at *[]time.Time }

func (w woken) WakeWorkflowAt(_ context.Context, _ *database.Tx, _ string, at time.Time) error {
	*w.at = append(*w.at, at)
	return nil
}

// What a row says about its next retry and its deadline happens then: there is a wake-up for
// each, the retry is moved on when it comes, and at the deadline the plan is made again.
func TestALockIsLookedAtAgainWhenItsRowSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	now := time.Now().UTC().Truncate(time.Microsecond)
	var wakeups []time.Time
	r.engine.Now, r.engine.Waker = func() time.Time { return now }, woken{&wakeups}
	first := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}, ApproveAll: true})
	second := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}, ApproveAll: true})
	r.planned(first, "component/greeting", "a")
	r.planned(second, "component/greeting", "b")
	says := func(column string) time.Time {
		t.Helper()
		var at time.Time
		if err := r.admin.QueryRow(t.Context(), `select `+column+` from steps where workflow_id = $1 and name = 'component/greeting' and state = 'waiting'`, second).Scan(&at); err != nil {
			t.Fatalf("%s: %v", column, err)
		}
		return at.UTC()
	}
	scheduled := func(at time.Time) {
		t.Helper()
		for _, w := range wakeups {
			if w.Equal(at) {
				return
			}
		}
		t.Errorf("nothing is woken at %s, only at %v", at, wakeups)
	}
	retry, deadline := says("wait_retry_at"), says("wait_deadline")
	if !retry.After(now) || !deadline.After(retry) {
		t.Fatalf("now %s, retry %s, deadline %s", now, retry, deadline)
	}
	scheduled(retry)
	scheduled(deadline)
	now, wakeups = retry, nil
	events := r.value(`select count(*)::text from workflow_events where workflow_id = $1`, second)
	r.advance(second)
	if next := says("wait_retry_at"); !next.After(retry) {
		t.Errorf("after the retry the next is at %s, want later than %s", next, retry)
	} else {
		scheduled(next)
	}
	if again := r.value(`select count(*)::text from workflow_events where workflow_id = $1`, second); again != events {
		t.Errorf("a look that found nothing made events: %s, were %s", again, events)
	}
	if len(wakeups) != 1 || !says("wait_deadline").Equal(deadline) {
		t.Errorf("the retry woke %v and left the deadline at %s, want one wake-up and %s", wakeups, says("wait_deadline"), deadline)
	}
	before := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, second)
	now = deadline
	r.advance(second)
	if got := r.value(`select state || ': ' || error from changes where id = $1`, before); got[:6] != "stale:" {
		t.Errorf("at the deadline the change is %q, want stale", got)
	}
	if got := r.steps(second)["component/greeting"]; got != "running preparing" {
		t.Errorf("at the deadline the step is %q, want planned again", got)
	}
	r.applied(first, "component/greeting", jobspec.OutcomeSucceeded, nil)
	r.planned(second, "component/greeting", "b")
	if got := r.steps(second)["component/greeting"]; got != "running executing" {
		t.Errorf("with the lock free the step is %q, want executing", got)
	}
}
