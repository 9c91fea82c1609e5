package bulk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Most is how many installs one operation is for.
const Most = 500

// turnTimeout is for Most installs at some 20 ms each, with room for a slow
// database; what is left after it is done by the next attempt.
const turnTimeout = 5 * time.Minute

// Deploy is the request for one install.
type Deploy struct {
	Request

	InstallID string
	Actor     string
}

// Wish is a request for several installs.
type Wish struct {
	Request

	Actor      string
	InstallIDs []string // in the order in which they are worked on
}

// Office makes bulk operations and works on them.
type Office struct {
	Store *database.Store
	Keys  *keys.Ring
	// Start starts the workflow in the transaction and answers its id, empty for an
	// operation that needs none and is done. What it refuses (a kind of package fault) is the outcome of that install.
	Start func(ctx context.Context, tx *database.Tx, d Deploy) (workflowID string, err error)
	// InsertAt adds a job to a transaction.
	InsertAt func(ctx context.Context, tx *store.Tx, args river.JobArgs, due time.Time) error
}

// Tried is what a preview found for one install: a nil Refused would start.
type Tried struct {
	InstallID string
	Refused   *fault.Problem
}

var errTried = errors.New("only tried")

// Preview tries each install and changes nothing. An error that is no refusal
// ends it.
func (o *Office) Preview(ctx context.Context, orgID string, w Wish) ([]Tried, error) {
	out := make([]Tried, 0, len(w.InstallIDs))
	for _, install := range w.InstallIDs {
		err := o.Store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) error {
			if _, err := o.Start(ctx, tx, Deploy{w.Request, install, w.Actor}); err != nil {
				return err
			}
			return errTried
		})
		tried := Tried{InstallID: install}
		if !errors.Is(err, errTried) {
			if !refuses(err) {
				return nil, fmt.Errorf("try install %s: %w", install, err)
			}
			problem := fault.From(err)
			tried.Refused = &problem
		}
		out = append(out, tried)
	}
	return out, nil
}

// Create makes an operation with a pending item for each install, and wakes its worker, all in the caller's transaction.
func (o *Office) Create(ctx context.Context, tx *database.Tx, w Wish) (ctldb.BulkOperation, error) {
	raw, err := json.Marshal(w.Request)
	if err != nil {
		return ctldb.BulkOperation{}, err
	}
	row, err := tx.InsertBulk(ctx, ctldb.InsertBulkParams{ID: id.New("blk"), Operation: w.Name(), Request: raw, Version: Version(w.Request, w.InstallIDs), CreatedBy: w.Actor})
	if err != nil {
		return row, fmt.Errorf("insert bulk operation: %w", err)
	}
	if err := tx.InsertBulkItems(ctx, ctldb.InsertBulkItemsParams{BulkID: row.ID, InstallIds: w.InstallIDs}); err != nil {
		return row, fmt.Errorf("insert items of bulk operation: %w", err)
	}
	return row, o.InsertAt(ctx, tx.Tx, Wake{OrgID: row.OrgID, BulkID: row.ID}, time.Now())
}

// Wake has the pending items of an operation worked on.
type Wake struct {
	OrgID  string `json:"org_id"`
	BulkID string `json:"bulk_id"`
}

// Kind is stored with every job; it must not change.
func (Wake) Kind() string { return "bulk_advance" }

// Worker works on operations.
type Worker struct {
	river.WorkerDefaults[Wake]
	Office *Office
}

// Timeout implements river.Worker.
func (w *Worker) Timeout(*river.Job[Wake]) time.Duration { return turnTimeout }

// Work implements river.Worker.
func (w *Worker) Work(ctx context.Context, job *river.Job[Wake]) error {
	return w.Office.Advance(ctx, job.Args.OrgID, job.Args.BulkID)
}

// Advance starts what is pending, each install in a transaction of its own: it is
// started and its item says so, or neither. It may run twice, also at the same
// time. An install whose workflow cannot be started for a reason that is no
// refusal, such as a database that is away, keeps its item pending; the others go
// on, and the error has the job done again.
func (o *Office) Advance(ctx context.Context, orgID, bulkID string) error {
	var request Request
	var operation ctldb.BulkOperation
	err := o.Store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) (err error) {
		if operation, err = tx.GetBulk(ctx, bulkID); err != nil {
			return err
		}
		return json.Unmarshal(operation.Request, &request)
	})
	if err != nil {
		return fmt.Errorf("read bulk operation %s: %w", bulkID, err)
	}
	var failed []error
	for after := int32(0); ; {
		var item ctldb.BulkItem
		err := o.Store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) (err error) {
			if item, err = tx.NextBulkItem(ctx, ctldb.NextBulkItemParams{BulkID: bulkID, After: after}); err != nil {
				return err
			}
			return o.start(ctx, tx, item, Deploy{request, item.InstallID, operation.CreatedBy})
		})
		switch {
		case err == nil:
		case item.InstallID == "" && errors.Is(err, fault.ErrNotFound): // nothing is pending, or others have it
			return errors.Join(append(failed, o.finish(ctx, orgID, bulkID))...)
		case item.InstallID == "":
			return errors.Join(append(failed, err)...)
		case refuses(err):
			if err := o.refuse(ctx, orgID, item, fault.From(err)); err != nil {
				failed = append(failed, err)
			}
		default:
			failed = append(failed, fmt.Errorf("start in install %s: %w", item.InstallID, err))
		}
		if err := ctx.Err(); err != nil {
			return errors.Join(append(failed, err)...)
		}
		after = item.Idx
	}
}

func (o *Office) start(ctx context.Context, tx *database.Tx, item ctldb.BulkItem, d Deploy) error {
	workflow, err := o.Start(ctx, tx, d)
	if err != nil {
		return err
	}
	if workflow == "" {
		if err := tx.DoBulkItem(ctx, ctldb.DoBulkItemParams{BulkID: item.BulkID, InstallID: item.InstallID}); err != nil {
			return fmt.Errorf("store outcome: %w", err)
		}
		return o.Keys.Audit(ctx, tx, d.Actor, strings.TrimSuffix(string(d.Name())+" install "+item.InstallID+" as part of "+item.BulkID+": "+d.Reason, ": "))
	}
	if err := tx.StartBulkItem(ctx, ctldb.StartBulkItemParams{BulkID: item.BulkID, InstallID: item.InstallID, WorkflowID: &workflow}); err != nil {
		return fmt.Errorf("store outcome: %w", err)
	}
	return o.Keys.Audit(ctx, tx, d.Actor, "start workflow "+workflow+" (deploy) on install "+item.InstallID+" as part of "+item.BulkID)
}

// refuse stores why the workflow of an item did not start.
func (o *Office) refuse(ctx context.Context, orgID string, item ctldb.BulkItem, p fault.Problem) error {
	return o.Store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) error {
		return tx.RefuseBulkItem(ctx, ctldb.RefuseBulkItemParams{
			BulkID: item.BulkID, InstallID: item.InstallID, Code: &p.Code, Detail: optional.Of(cmp.Or(p.Detail, p.Title)), Remedy: optional.Of(p.Remedy),
		})
	})
}

// refuses tells whether an error is the engine's answer to the request; all
// others may be gone at the next attempt.
func refuses(err error) bool {
	return slices.Contains([]error{fault.ErrConflict, fault.ErrInvalid, fault.ErrNotFound, fault.ErrForbidden}, fault.KindOf(err))
}

func (o *Office) finish(ctx context.Context, orgID, bulkID string) error {
	return o.Store.Tx(ctx, orgID, func(ctx context.Context, tx *database.Tx) error { return tx.FinishBulk(ctx, bulkID) })
}
