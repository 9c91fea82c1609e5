package workflow_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/recipient"
	"github.com/berth-dev/berth/services/ctl-api/internal/settings"
	"github.com/berth-dev/berth/services/ctl-api/internal/tend"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

// request makes a workflow and leaves it to the test to advance it.
func (r *rig) request(req workflow.Request) (workflowID string) {
	r.t.Helper()
	req.InstallID, req.Actor = r.install, "ada"
	r.tx(func(ctx context.Context, tx *database.Tx) (err error) {
		workflowID, err = workflow.Start(ctx, tx, req)
		return err
	})
	return workflowID
}

// traced is a context whose statements are recorded, and what Postgres answered
// with "deadlock detected" of them so far.
func (r *rig) traced() (context.Context, func() []string) {
	recorder := spans()
	ctx, root := otel.Tracer("test").Start(r.t.Context(), r.t.Name())
	r.t.Cleanup(func() { root.End() })
	return ctx, func() (hit []string) {
		for _, span := range recorder.Ended() {
			if span.SpanContext().TraceID() == oteltrace.SpanContextFromContext(ctx).TraceID() && strings.Contains(span.Status().Description, "deadlock detected") {
				hit = append(hit, span.Name())
			}
		}
		return hit
	}
}

// untilOneWaits returns once a transaction waits for another one's lock.
func (r *rig) untilOneWaits(ctx context.Context) error {
	const waiting = `select count(*) > 0 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		var there bool
		if err := r.admin.QueryRow(ctx, waiting).Scan(&there); err != nil || there {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// A plan that is the first to seal to a new machine writes the recipient and the
// install's row; a look at the install holds that row and writes the recipient.
// The second one to come waits for the first.
func TestPlanLocksTheInstallFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	w := r.request(workflow.Request{Kind: flow.KindDeploy})
	ctx, deadlocks := r.traced()

	attempts := 0
	var advanced sync.WaitGroup
	var advanceErr error
	err := r.ctl.Tx(ctx, r.org, func(ctx context.Context, tx *database.Tx) error {
		attempts++
		if _, err := tx.LockInstallRow(ctx, r.install); err != nil {
			return err
		}
		if attempts == 1 {
			advanced.Go(func() { advanceErr = r.engine.Advance(ctx, w) })
			if err := r.untilOneWaits(ctx); err != nil {
				return err
			}
		}
		runner, err := tx.InstallRunner(ctx, r.install)
		if err != nil {
			return err
		}
		_, err = recipient.Of(ctx, tx, runner)
		return err
	})
	advanced.Wait()
	if err != nil || advanceErr != nil {
		t.Fatalf("look: %v; advance: %v", err, advanceErr)
	}
	if hit := deadlocks(); attempts != 1 || len(hit) > 0 {
		t.Errorf("Postgres ended a transaction of a deadlock: %d attempts of the look, %v", attempts, hit)
	}
	if got := r.steps(w)["release"]; got != "running preparing" {
		t.Errorf("the first plan is %q, want running preparing", got)
	}
}

// Engines and looks at the install, many at once, and again and again as if for
// a new machine.
func TestPlansAndLooksDoNotDeadlock(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	r.exec(`update installs set state = 'live', release_id = $2 where id = $1`, r.install, r.release)
	tender := &tend.Tender{Store: r.ctl, Waker: noLater{}, Publisher: &settings.Publisher{Keys: r.engine.Keys}, Log: slog.New(slog.DiscardHandler)}
	ctx, deadlocks := r.traced()
	for range 4 {
		var all sync.WaitGroup
		for range 6 {
			w := r.request(workflow.Request{Kind: flow.KindDeploy, PlanOnly: true})
			all.Go(func() {
				if err := r.engine.Advance(ctx, w); err != nil {
					t.Errorf("advance: %v", err)
				}
			})
			all.Go(func() {
				for range 3 {
					if _, err := r.admin.Exec(ctx, `delete from install_recipients where install_id = $1`, r.install); err != nil {
						t.Errorf("arrange: %v", err)
					}
					if err := tender.Advance(ctx, r.install); err != nil {
						t.Errorf("look: %v", err)
					}
				}
			})
		}
		all.Wait()
	}
	if hit := deadlocks(); len(hit) > 0 {
		t.Errorf("Postgres ended %d transactions of deadlocks: %v", len(hit), hit)
	}
}
