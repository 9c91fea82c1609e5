package job

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/recovery"
	"github.com/berth-dev/berth/runner/agent/turns"
)

// turn is what the job changes, and whether next to nothing else.
func (j *job) turn() turns.Turn { return turns.Turn{What: j.what(), Alone: j.tick != nil} }

// takeTurn waits until the job may change something: a scheduled run goes alone. What
// waited too long did not start.
func (j *job) takeTurn(ctx, life context.Context) error {
	name := j.attempt.Name()
	busy, changed := j.deps.Turns.Take(name, j.turn())
	if busy != "" {
		j.remark("waiting for " + busy)
		if j.tick != nil {
			go j.announce(life, jobspec.Run{State: "queued", Error: "waiting for " + busy + ", which changes the install"})
		}
	}
	until := j.untilTurn(ctx)
	timer := time.NewTimer(until.Sub(j.deps.Now()))
	defer timer.Stop()
	for busy != "" {
		tooLong := refuse(jobspec.OutcomeNotStarted, "", "waited until %s: %s was still changing the install", until.UTC().Format(time.RFC3339), busy)
		select {
		case <-changed:
			busy, changed = j.deps.Turns.Take(name, j.turn())
		case <-timer.C:
			return tooLong
		case <-ctx.Done():
			if j.why() == "" && life.Err() == nil {
				return tooLong
			}
			return context.Cause(ctx)
		}
	}
	if j.tick != nil {
		go j.announce(life, jobspec.Run{State: "running"})
	}
	return nil
}

// untilTurn is how long the job may wait for its turn.
func (j *job) untilTurn(ctx context.Context) time.Time {
	until, _ := ctx.Deadline()
	if j.tick != nil && j.tick.Until.Before(until) {
		until = j.tick.Until
	}
	return until
}

// startsWithin is how long the job may take to get to its engine: its own timeout, and
// for a scheduled run the wait for its turn.
func (j *job) startsWithin() time.Duration {
	if j.tick == nil || j.tick.Until.IsZero() {
		return j.spec.Timeout()
	}
	return j.spec.Timeout() + max(0, j.tick.Until.Sub(j.deps.Now()))
}

// commitTick records that a scheduled run begins which may change something. What it
// may do was decided when its script was accepted: the script is the effect.
func (j *job) commitTick(ctx context.Context) error {
	done, err := j.agreeToTick(ctx)
	if err != nil {
		return err
	}
	defer done()
	err = j.advance(recovery.Ordered, func(a *jobdir.Attempt) { a.Effect = j.tick.Script })
	if err != nil {
		return err
	}
	actor, detail := j.cause()
	head, err := j.deps.Chain.Append(ctx, chain.Record{
		Actor: actor, Kind: chain.Intent, What: j.what(), Job: j.spec.JobID, Effect: j.attempt.Effect, Detail: detail, Consent: j.consent,
	})
	if err != nil {
		return fmt.Errorf("chain: %w", err) // no record, no effect
	}
	return j.advance(recovery.Ordered, func(a *jobdir.Attempt) { a.Intent = head.Seq })
}

// cause is what made the runner start the run.
func (j *job) cause() (actor, detail string) {
	r := j.tick.Remedy
	switch {
	case r == nil:
		return "schedule", "tick of " + j.tick.At.UTC().Format(time.RFC3339)
	case r.Reverts:
		return "remediation", fmt.Sprintf("%s: reverts %d attempts about %s", r.Remediation, r.Attempt, r.Check)
	}
	return "remediation", fmt.Sprintf("%s: attempt %d of %d about %s", r.Remediation, r.Attempt, r.Of, r.Check)
}

// missedNow turns the refusal of a scheduled run that changes something into a missed
// tick: nothing was done, and nobody is to decide on it.
func (j *job) missedNow(r jobspec.Result) jobspec.Result {
	if j.tick != nil && j.mutates() && r.Outcome == jobspec.OutcomeRefused {
		r.Outcome = jobspec.OutcomeNotStarted
	}
	return r
}
