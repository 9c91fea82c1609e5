package agent

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/disk"
)

const (
	// chainBatch is how many records are copied in one call.
	chainBatch = 200

	// datedInFuture refuses records whose time has not come yet; aheadPause is the
	// time until they are offered again.
	datedInFuture = "dated_in_future"
	aheadPause    = 5 * time.Minute
)

// recorder is the install's chain. The file is the truth; the control plane
// gets a copy when it can.
type recorder struct {
	*chain.Writer
	disk  *disk.Guard
	grown chan struct{} // has one element when there is something to copy
}

func newRecorder(w *chain.Writer, d *disk.Guard) *recorder {
	return &recorder{Writer: w, disk: d, grown: make(chan struct{}, 1)}
}

// Append stores a record and lets it be copied. On a full disk all but intents
// take of the reserve: what was done is recorded, and nothing new is begun.
func (r *recorder) Append(ctx context.Context, record chain.Record) (head chain.Head, err error) {
	store := func() (err error) {
		head, err = r.Writer.Append(ctx, record)
		return err
	}
	if record.Kind == chain.Intent {
		err = r.disk.Failed(store())
	} else {
		err = r.disk.Insist(store)
	}
	if err == nil {
		select {
		case r.grown <- struct{}{}:
		default:
		}
	}
	return head, err
}

// ship copies records for as long as a session lasts.
func (r *recorder) ship(ctx context.Context, api *control.Client, log *slog.Logger) error {
	var copied runnerapi.ChainHead
	err := control.Retry(ctx, log, "get chain head", func(ctx context.Context) (err error) {
		copied, err = api.ChainHead(ctx)
		return err
	})
	for err == nil {
		lines, readErr := r.ReadFrom(copied.Seq+1, chainBatch)
		if readErr != nil {
			return readErr
		}
		if len(lines) == 0 {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-r.grown:
			}
			continue
		}
		records := make([]runnerapi.ChainRecord, len(lines))
		for i, line := range lines {
			records[i] = runnerapi.ChainRecord{Seq: line.Seq, Body: line.Raw}
		}
		err = control.Retry(ctx, log, "copy chain", func(ctx context.Context) error {
			head, err := api.AppendChain(ctx, records)
			if control.Is(err, datedInFuture) {
				// The records stay as they are; the time they name will come, unless
				// somebody sets the clock right only after it was years ahead.
				log.ErrorContext(ctx, "chain is not copied: records are dated in the future, set the clock of this machine", "err", err)
				return control.Sleep(ctx, aheadPause) // then the same ones again
			}
			if err == nil || control.Is(err, "chain_gap") {
				copied = head
				return nil
			}
			return err
		})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// The two histories differ, or the copy is refused for good. The jobs go on:
	// the file here is the truth, and somebody has to look.
	log.ErrorContext(ctx, "chain is not copied any more: it must be compared by hand", "err", err)
	<-ctx.Done()
	return context.Cause(ctx)
}

// note records an event of the runner itself.
func (a *agent) note(ctx context.Context, what, detail string) {
	if a.chain == nil {
		return
	}
	if _, err := a.chain.Append(ctx, chain.Record{Actor: "runner", Kind: chain.Event, What: what, Detail: detail}); err != nil {
		a.cfg.Log.ErrorContext(ctx, "chain cannot be written", "err", err)
	}
}

// closeIntents answers intents of which no trace is left on this machine: how
// they ended cannot be known any more.
func (a *agent) closeIntents(ctx context.Context) {
	if a.chain == nil {
		return
	}
	var held []string
	for _, attempt := range a.jobs.Held() {
		held = append(held, attempt.JobID)
	}
	for _, intent := range a.chain.OpenIntents() {
		if slices.Contains(held, intent.Job) {
			continue
		}
		_, err := a.chain.Append(ctx, chain.Record{
			Actor: "runner", Kind: chain.Outcome, What: intent.What, Intent: intent.Seq, Job: intent.Job,
			Effect: intent.Effect, Capsule: intent.Capsule, Result: "uncertain", Detail: "nothing is left of this attempt",
		})
		if err != nil {
			a.cfg.Log.ErrorContext(ctx, "chain cannot be written", "err", err)
		}
	}
}
