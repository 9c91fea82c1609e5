package sweep

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/alerts"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/jobs"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Engine says what is overdue in a workflow and does it: workflow.Engine.
type Engine interface {
	// Overdue says what should have been done to a workflow already; "" for nothing.
	Overdue(ctx context.Context, workflowID string) (flow.Do, error)
	Advance(ctx context.Context, workflowID string) error
}

// does are what there can be to do to a workflow.
var does = []flow.Do{
	flow.DoStartWorkflow, flow.DoFinishWorkflow, flow.DoStartStep, flow.DoWaitStep, flow.DoSucceedStep, flow.DoFailStep, flow.DoCancelStep, flow.DoPlan,
	flow.DoRunCheck, flow.DoPropose, flow.DoNoChange, flow.DoPlanned, flow.DoApprove, flow.DoExecute, flow.DoSettleChange, flow.DoCancelJob, flow.DoSkipStep,
	flow.DoPutOff, flow.DoLookAgain,
}

// Workflows are moved by the engine: expired changes and every other deadline too.
func Workflows(st *database.Store, engine Engine) Kind {
	k := Kind{What: "workflow"}
	for _, do := range does {
		k.Does = append(k.Does, string(do))
	}
	k.Find = find(st, (*ctldb.Queries).StuckWorkflows, func(id string) Item { return Item{ID: id} })
	k.Move = func(ctx context.Context, item Item) (string, error) {
		do, err := engine.Overdue(ctx, item.ID)
		if err != nil || do == "" {
			return "", err
		}
		return string(do), engine.Advance(ctx, item.ID)
	}
	return k
}

// Office works on bulk operations: bulk.Office.
type Office interface {
	Advance(ctx context.Context, orgID, bulkID string) error
}

// Bulks are operations of which something is pending, and whose job has been given up.
func Bulks(st *database.Store, office Office) Kind {
	k := Kind{What: "bulk", Does: []string{"advance"}}
	k.Find = find(st, (*ctldb.Queries).UnfinishedBulks, func(r ctldb.UnfinishedBulksRow) Item { return Item{Org: r.OrgID, ID: r.ID} })
	k.Move = func(ctx context.Context, item Item) (string, error) {
		awaited, err := expected(ctx, st, item.Org, jobs.Wakeup{Kind: "bulk_advance", Args: map[string]string{"bulk_id": item.ID}})
		if err != nil || awaited {
			return "", err
		}
		// Its job may have done the rest since the operation was found.
		var open bool
		err = st.Tx(ctx, item.Org, func(ctx context.Context, tx *database.Tx) error {
			row, err := tx.GetBulk(ctx, item.ID)
			open = row.FinishedAt == nil
			return err
		})
		if err != nil || !open {
			return "", err
		}
		return "advance", office.Advance(ctx, item.Org, item.ID)
	}
	return k
}

// Tender looks after installs: tend.Tender.
type Tender interface {
	Advance(ctx context.Context, installID string) error
}

// late is how much later than due settings are signed by a wake-up that is there.
const late = 10 * time.Minute

// Installs are those whose runner would soon have no valid settings: nobody has signed
// them again when half their time was over.
func Installs(st *database.Store, tender Tender) Kind {
	k := Kind{What: "install", Does: []string{"sign_settings"}}
	unsigned := func(q *ctldb.Queries, ctx context.Context) ([]ctldb.InstallsUnsignedRow, error) {
		return q.InstallsUnsigned(ctx, (jobspec.SettingsLifetime/2 - late).Seconds())
	}
	k.Find = find(st, unsigned, func(r ctldb.InstallsUnsignedRow) Item { return Item{Org: r.OrgID, ID: r.ID} })
	k.Move = func(ctx context.Context, item Item) (string, error) {
		of := map[string]string{"install_id": item.ID}
		awaited, err := expected(ctx, st, item.Org, jobs.Wakeup{Kind: "install_advance", Args: of}, jobs.Wakeup{Kind: "install_due", Args: of})
		if err != nil || awaited {
			return "", err
		}
		before, err := signed(ctx, st, item)
		if err != nil {
			return "", err
		}
		if err := tender.Advance(ctx, item.ID); err != nil {
			return "", fmt.Errorf("tend install %s: %w", item.ID, err)
		}
		after, err := signed(ctx, st, item)
		if err != nil || after == before {
			return "", err // there is nobody to sign for
		}
		return "sign_settings", nil
	}
	return k
}

// Alerts are installs that nobody looked at when one of their alerts was due, or of which
// nothing is heard and no alert says so.
func Alerts(st *database.Store, tender Tender) Kind {
	k := Kind{What: "alert", Does: []string{"look"}}
	overdue := func(q *ctldb.Queries, ctx context.Context) ([]ctldb.AlertsOverdueRow, error) {
		return q.AlertsOverdue(ctx, ctldb.AlertsOverdueParams{LateSeconds: late.Seconds(), SilentSeconds: alerts.RulesOf(model.AlertRunnerSilent).OpenAfter.Seconds()})
	}
	k.Find = find(st, overdue, func(r ctldb.AlertsOverdueRow) Item { return Item{Org: r.OrgID, ID: r.ID} })
	k.Move = func(ctx context.Context, item Item) (string, error) {
		of := map[string]string{"install_id": item.ID}
		awaited, err := expected(ctx, st, item.Org, jobs.Wakeup{Kind: "install_advance", Args: of}, jobs.Wakeup{Kind: "install_due", Args: of})
		if err != nil || awaited {
			return "", err
		}
		if err := tender.Advance(ctx, item.ID); err != nil {
			return "", fmt.Errorf("tend install %s: %w", item.ID, err)
		}
		left, err := k.Find(ctx)
		if err != nil || slices.Contains(left, item) {
			return "", err // there was nothing to do about it
		}
		return "look", nil
	}
	return k
}

// find reads rows of all orgs as items.
func find[R any](st *database.Store, read func(*ctldb.Queries, context.Context) ([]R, error), item func(R) Item) func(context.Context) ([]Item, error) {
	return func(ctx context.Context) ([]Item, error) {
		var items []Item
		err := st.System(ctx, func(ctx context.Context, tx *database.Tx) error {
			rows, err := read(tx.Queries, ctx)
			items = make([]Item, len(rows)) // again: a transaction may be tried twice
			for i, r := range rows {
				items[i] = item(r)
			}
			return err
		})
		return items, err
	}
}

// signed is the newest version of an install's settings.
func signed(ctx context.Context, st *database.Store, item Item) (version int64, err error) {
	err = st.Tx(ctx, item.Org, func(ctx context.Context, tx *database.Tx) error {
		last, err := tx.LatestSettings(ctx, item.ID)
		version = last.Version
		return err
	})
	return version, err
}

// expected tells whether a wake-up is in the queue that will look at something.
func expected(ctx context.Context, st *database.Store, org string, of ...jobs.Wakeup) (due bool, err error) {
	err = st.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) (err error) {
		due, err = jobs.Due(ctx, tx.Tx, store.RiverCtl, of...)
		return err
	})
	return due, err
}
