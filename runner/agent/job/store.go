package job

import (
	"context"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

// sayAgain is how often a write that does not work is logged.
const sayAgain = time.Minute

// stored does a write without which the attempt may not go on, until it works or
// life ends. Meanwhile the lease is renewed and the resource stays locked: when
// the disk has room again, the attempt ends as if nothing had happened. Reports
// take of the reserve, so this waits only when that is used up too.
func (j *job) stored(life context.Context, what string, do func() error) error {
	var said time.Time
	for try := 0; ; try++ {
		err := j.deps.Disk.Insist(do)
		switch {
		case err == nil:
			if try > 0 {
				j.log.InfoContext(life, "the attempt continues: its write succeeded", "write", what, "tries", try+1)
			}
			return nil
		case life.Err() != nil:
			return errDetached
		case time.Since(said) > sayAgain:
			said = time.Now()
			j.log.ErrorContext(life, "the attempt waits for a write to work", "write", what, "err", err)
		}
		if pause.For(life, control.Backoff(try)) != nil {
			return errDetached
		}
	}
}

// roomFor refuses to begin on a disk that is too full. Nothing was done, so the
// job is given out again once there is room. A scheduled run, which needs next to
// nothing, is only refused by a disk that takes nothing at all.
func (j *job) roomFor() error {
	room := j.deps.Disk.Look()
	if !room.Low() || j.attempt.Tick != nil && !room.Full() {
		return nil
	}
	return refuse(jobspec.OutcomeNotStarted, "", "%s", room.Problem())
}

// noRoom is the result of an attempt that a full disk kept from beginning; ok is
// false when err has another cause. Before the order was used up, nothing
// happened that could not happen again. After it, the same order would be
// refused, and a new plan brings a new one.
func (j *job) noRoom(err error) (_ jobspec.Result, ok bool) {
	if !disk.Full(err) {
		return jobspec.Result{}, false
	}
	r := jobspec.Result{Outcome: jobspec.OutcomeNotStarted, Error: j.deps.Disk.Failed(err).Error()}
	if j.attempt.Phase != recovery.Claimed {
		r.Outcome, r.Remedy = jobspec.OutcomeFailed, "nothing was done; when the disk has room again, retry the step"
	}
	return r, true
}

// withFullDisk adds to the error of an attempt that the disk is full: the engine,
// and what it runs, use the same one, and seldom say whose it is.
func (j *job) withFullDisk(r jobspec.Result) jobspec.Result {
	room := j.deps.Disk.Look()
	if r.Outcome == jobspec.OutcomeSucceeded || !room.Full() || strings.Contains(r.Error, "disk full") {
		return r
	}
	r.Error = strings.TrimPrefix(jobspec.CutText(r.Error, maxError/2)+"; "+room.Problem(), "; ")
	return r
}

// storedEvent records an event of the attempt, as far as there is a chain.
func (j *job) storedEvent(ctx context.Context, what, detail string) {
	if j.deps.Chain == nil {
		return
	}
	_, err := j.deps.Chain.Append(ctx, chain.Record{
		Actor: "runner", Kind: chain.Event, What: what, Job: j.id, Detail: detail,
	})
	if err != nil {
		j.log.ErrorContext(ctx, "chain cannot be written", "err", err)
	}
}
