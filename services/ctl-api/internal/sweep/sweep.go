// Package sweep moves what should have moved already. Everything in ctl-api waits as a
// row, and a wake-up in the queue makes somebody look at it; a wake-up that was lost (a queue
// restored from a backup, a row changed by hand, a bug) would leave the row where it is for
// ever. The sweep looks for such rows, and counts what it had to move: zero in a system
// that works.
//
// What can be stuck is a Kind. A query over all orgs finds candidates cheaply; what is
// done about one is decided under its lock, since its wake-up may come in between.
// Deliveries of webhooks have a sweep of their own, in package webhooks.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/telemetry"
)

var swept = telemetry.InstrumentsOf("services/ctl-api").Counter("sweep.moved", "{object}", "what the sweep moved because a wake-up was lost, by what it is and what was to do")

// Lost is what the log says about each that was moved; tests look for it.
const Lost = "a wake-up was lost"

// atOnce are the states in which a round keeps another from being queued.
var atOnce = []rivertype.JobState{
	rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
}

// longest bounds one round.
const longest = 10 * time.Minute

// Due is the periodic job.
type Due struct{}

// Kind is stored with every job; it must not change.
func (Due) Kind() string { return "sweep" }

// InsertOpts makes one round at a time; a round that fails is not repeated, the next one
// does the same.
func (Due) InsertOpts() river.InsertOpts {
	return river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: atOnce}}
}

// Kind is something that can be stuck.
type Kind struct {
	// What is its name in the metric and the log: "workflow".
	What string
	// Does are the things that there can be to do.
	Does []string
	// Find lists those that may be stuck, of all orgs.
	Find func(ctx context.Context) ([]Item, error)
	// Move looks whether one is stuck and moves it; it says what it did, "" for nothing.
	Move func(ctx context.Context, item Item) (did string, err error)
}

// Item is one of a kind.
type Item struct{ Org, ID string }

// Every is the periodic job of a queue.
func Every(interval time.Duration) *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(interval), func() (river.JobArgs, *river.InsertOpts) { return Due{}, nil }, nil)
}

// Worker is the sweep.
type Worker struct {
	river.WorkerDefaults[Due]
	kinds []Kind
	log   *slog.Logger
}

// New makes the sweep of some kinds. Their series begin at 0, so that the first that
// is counted is seen as an increase.
func New(log *slog.Logger, kinds ...Kind) *Worker {
	for _, k := range kinds {
		for _, do := range k.Does {
			swept.Add(context.Background(), 0, moved(k, do))
		}
	}
	return &Worker{kinds: kinds, log: log}
}

func moved(k Kind, did string) metric.AddOption {
	return metric.WithAttributes(attribute.String("what", k.What), attribute.String("do", did))
}

// Timeout of one round.
func (w *Worker) Timeout(*river.Job[Due]) time.Duration { return longest }

// Work makes one round over all orgs.
func (w *Worker) Work(ctx context.Context, _ *river.Job[Due]) error {
	_, err := w.Round(ctx)
	return err
}

// Round moves what nobody else would. It returns how many there were. One that cannot
// be looked at does not keep the others from it.
func (w *Worker) Round(ctx context.Context) (count int, err error) {
	var failed []error
	for _, k := range w.kinds {
		items, err := k.Find(ctx)
		if err != nil {
			failed = append(failed, fmt.Errorf("find what is stuck of kind %s: %w", k.What, err))
		}
		for _, item := range items {
			did, err := k.Move(ctx, item)
			if did != "" {
				count++
				swept.Add(ctx, 1, moved(k, did))
				w.log.WarnContext(ctx, Lost, k.What+"_id", item.ID, "do", did)
			}
			if err != nil {
				failed = append(failed, err)
			}
			if ctx.Err() != nil {
				return count, errors.Join(failed...)
			}
		}
	}
	return count, errors.Join(failed...)
}
