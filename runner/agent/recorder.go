package agent

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/heads"
	"github.com/berth-dev/berth/runner/agent/jobdir"
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
	disk   *disk.Guard
	stand  *stand
	second *heads.Copy // of the head
	held   *held
	log    *slog.Logger
	grown  chan struct{} // has one element when there is something to copy
}

func newRecorder(w *chain.Writer, d *disk.Guard, s *stand, log *slog.Logger) *recorder {
	return &recorder{Writer: w, disk: d, stand: s, log: log, grown: make(chan struct{}, 1)}
}

// Append stores a record and lets it be copied. On a full disk all but intents
// take of the reserve: what was done is recorded, and nothing new is begun.
// While the customer has to decide about the chain, only outcomes go into it:
// anything else would make a second history longer. Events wait on disk. While
// mutations are stopped for another reason, there is only no new intent.
func (r *recorder) Append(ctx context.Context, record chain.Record) (head chain.Head, err error) {
	stopped := r.stand.text()
	problem, _ := r.stand.chainProblem()
	switch {
	case problem != nil && record.Kind == chain.Event:
		return head, r.disk.Insist(func() error { return r.held.add(record) })
	case problem != nil && record.Kind != chain.Outcome, stopped != "" && record.Kind == chain.Intent:
		return head, errors.New(stopped)
	}
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
		if problem == nil && r.second != nil {
			if err := r.second.Keep(head); err != nil { // the chain may be ahead of it
				r.log.WarnContext(ctx, "second copy of the head is behind", "err", err)
			}
		}
		select {
		case r.grown <- struct{}{}:
		default:
		}
	}
	return head, err
}

// adopt goes on with records of a copy, and with what the customer decided as the
// first record after them.
func (r *recorder) adopt(after int64, lines []chain.Line, decision chain.Record) error {
	return r.disk.Insist(func() error { return r.Writer.Adopt(after, lines, decision) })
}

// ship copies records for as long as a session lasts.
func (r *recorder) ship(ctx context.Context, api *control.Client, log *slog.Logger, forked func(chain.Head) (known bool)) error {
	if err := r.stand.chainIsGood(ctx); err != nil {
		return err
	}
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
				return pause.For(ctx, aheadPause) // then the same ones again
			}
			copied = head
			if control.Is(err, "chain_gap") {
				return nil
			}
			return err
		})
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if control.Is(err, "chain_fork") && !forked(chain.Head{Seq: copied.Seq, Hash: copied.Hash}) {
		return r.ship(ctx, api, log, forked) // once the customer has decided
	}
	// The two histories differ, or the copy is refused for ever. The jobs
	// continue: the file here is the truth, and somebody has to look.
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

// noteRefusal records that the control plane brought what this runner does not
// believe: as often as it likes, so only so many in an hour are listed.
func (a *agent) noteRefusal(ctx context.Context, what, detail string) {
	if a.runs == nil {
		return
	}
	err := a.runs.Refusal(ctx, chain.Record{Actor: "runner", Kind: chain.Event, What: what, Result: "refused", Detail: detail})
	if err != nil {
		a.cfg.Log.ErrorContext(ctx, "chain cannot be written", "err", err)
	}
}

// closeIntents answers intents of which no trace is left on this machine: how
// they ended cannot be known any more. It waits until the chain was compared with
// the copy: after an older backup these intents may have their outcomes there.
func (a *agent) closeIntents(ctx context.Context) {
	if a.chain == nil {
		return
	}
	if problem, _ := a.stand.chainProblem(); problem != nil {
		return
	}
	var held []string
	for _, attempt := range a.jobs.Held() {
		held = append(held, attempt.JobID)
	}
	for _, intent := range a.chain.OpenIntents() {
		if slices.Contains(held, intent.Job) || a.runsByItself(intent.Job) {
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

// runsByItself says whether a scheduled run is still worked on, or has to be: its
// directory is there until all was said of it.
func (a *agent) runsByItself(run string) bool {
	if !id.Valid(id.ActionRun, run) {
		return false
	}
	attempt := jobdir.Attempt{Assignment: runnerapi.Assignment{JobID: run, Attempt: 1}}
	_, err := os.Stat(filepath.Join(a.dir.Jobs(), attempt.Name()))
	return !errors.Is(err, fs.ErrNotExist)
}
