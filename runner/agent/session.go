package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/ending"
)

// errReopen: the session is over, for no fault of ours.
var errReopen = errors.New("session is over")

// sessions keeps one session open after the other. work ends when no new jobs
// are wanted, life when nothing is.
func (a *agent) sessions(work, life context.Context) error {
	failures, overtaken := 0, 0
	for {
		var lasted time.Duration
		session, err := a.openSession(life)
		if err == nil {
			opened := time.Now()
			err = a.serve(work, life, session)
			lasted = time.Since(opened)
			a.link.close()
			a.writeStatus(func(s *Status) { s.Connected, s.Error = false, errorText(err) })
		}
		switch {
		case life.Err() != nil:
			return context.Cause(life)
		case errors.Is(err, ErrRevoked), errors.Is(err, ErrSuperseded):
			return err
		}
		var wait time.Duration
		if errors.Is(err, errOvertaken) {
			a.overtaken(life)
			wait = afterOvertaken(overtaken)
			overtaken++
		} else {
			wait, failures = reopen(failures, lasted)
		}
		if failures > 1 {
			a.cfg.Log.WarnContext(life, "session ended soon, the next one waits", "err", err, "lasted", lasted, "wait", wait, "in_a_row", failures)
		}
		if err := pause.For(life, wait); err != nil {
			return err
		}
	}
}

// openSession opens a session, however long that takes.
func (a *agent) openSession(life context.Context) (runnerapi.Session, error) {
	var session runnerapi.Session
	brought, err := a.bringRecovery()
	if err != nil {
		return session, err
	}
	var over error
	err = control.Retry(life, a.cfg.Log, "open session", func(ctx context.Context) (err error) {
		state, _ := a.power.Now()
		reason, since := switchNote(state)
		session, err = a.askSession(ctx, runnerapi.SessionRequest{
			RunnerID: a.runner.RunnerID, Version: a.cfg.Version, Slots: a.cfg.Slots, Trust: a.trustLevel(),
			Switch: runnerapi.Switch(state.Mode), SwitchReason: reason, SwitchSince: since, Facts: a.facts(), Running: a.jobs.Held(), ChainHead: a.localHead(),
			Recovery: brought.key, RecoverySigned: brought.signed, SealedSalt: brought.salt,
		})
		if why := a.over(err); why != nil { // no answer that changes by asking again
			over, err = why, nil
		}
		return err
	})
	if err == nil {
		err = over
	}
	if err != nil {
		a.writeStatus(func(s *Status) { s.Connected, s.Error = false, errorText(err) })
		return session, err
	}
	if session.Disputed != nil {
		a.dispute(life, "two processes hold the key of this runner: "+session.Disputed.Reason)
	}
	if err := a.place(life, &session); err != nil {
		a.cfg.Log.ErrorContext(life, "session is not used", "err", err)
		a.writeStatus(func(s *Status) { s.Connected, s.Error = false, errorText(err) })
		return session, err
	}
	a.cfg.Log.InfoContext(life, "session is open", "session_id", session.SessionID, "epoch", session.Epoch, "resumed", len(session.Jobs))
	a.writeStatus(func(s *Status) {
		s.SessionID, s.Connected, s.Since, s.Error = session.SessionID, true, a.cfg.Now().UTC(), ""
	})
	if err := a.comparePlane(life); err != nil {
		a.writeStatus(func(s *Status) { s.Connected, s.Error = false, errorText(err) })
		return session, err
	}
	a.closeIntents(life)
	a.jobs.Resume(session.Jobs)
	a.link.set(session)
	return session, nil
}

// serve runs all loops that need the session until one of them ends it.
func (a *agent) serve(work, life context.Context, session runnerapi.Session) error {
	g, ctx := errgroup.WithContext(life)
	g.Go(func() error {
		claims, stop := both(ctx, work)
		defer stop()
		return a.claim(claims, ctx)
	})
	g.Go(func() error { return a.renew(ctx, time.Duration(session.RenewSeconds)*time.Second) })
	if a.runner.InstallID != "" {
		g.Go(func() error { return a.followSettings(ctx) })
		g.Go(func() error {
			return a.chain.ship(ctx, a.api, a.cfg.Log, func(plane chain.Head) bool { return a.judgePlane(ctx, plane) })
		})
		g.Go(func() error { return a.followDecision(ctx) })
		g.Go(func() error { return a.followReseal(ctx) })
		g.Go(func() error { return a.followUnlock(ctx) })
		g.Go(func() error { return a.tellSecrets(ctx) })
		g.Go(func() error { return a.tellRoles(ctx) })
		g.Go(func() error { return a.tellConsents(ctx) })
	}
	return g.Wait()
}

// verdict turns answers that end a session, or the runner, into errors that
// say so.
func verdict(err error) error {
	switch {
	case control.Is(err, "runner_revoked"):
		return fmt.Errorf("%w: %s", ErrRevoked, err.Error())
	case control.Is(err, "session_void"):
		return fmt.Errorf("%w: %s", ErrSuperseded, err.Error())
	case control.Is(err, "session_overtaken"):
		return fmt.Errorf("%w: %s", errOvertaken, err.Error())
	}
	return err
}

// over is why no session can be opened any more, nil while one can.
func (a *agent) over(err error) error {
	switch {
	case control.Is(err, "runner_revoked"), control.Is(err, "session_void"):
		return verdict(err)
	case a.replaced(err):
		return fmt.Errorf("%w: another machine has replaced this one: %s", ErrSuperseded, err.Error())
	}
	return nil
}

// again decides what a loop of a session does after an error: try again after a
// while, or end the session.
func (a *agent) again(ctx context.Context, err error, try int) error {
	err = verdict(err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, ErrRevoked), errors.Is(err, ErrSuperseded), errors.Is(err, errOvertaken):
		return err
	case control.Status(err) == 401:
		return errReopen
	case try == 0:
		a.cfg.Log.WarnContext(ctx, "control plane does not answer, trying again", "err", err)
	}
	return pause.For(ctx, control.Backoff(try))
}

// renew keeps all leases in one call, every so often.
func (a *agent) renew(ctx context.Context, every time.Duration) error {
	if every <= 0 {
		every = 20 * time.Second
	}
	for try := 0; ; {
		if err := pause.For(ctx, every); err != nil {
			return err
		}
		for {
			held := a.jobs.Held()
			if len(held) == 0 {
				break
			}
			answers, err := a.renewOnce(ctx, runnerapi.RenewRequest{Leases: held, Progress: a.jobs.Progress()})
			if err == nil {
				a.heed(answers)
				try = 0
				break
			}
			if err := a.again(ctx, err, try); err != nil {
				return err
			}
			try++
		}
	}
}

// renewOnce renews, and reports what the engines do. A control plane older than this
// agent refuses the report: the leases count, so they are renewed without it.
func (a *agent) renewOnce(ctx context.Context, in runnerapi.RenewRequest) ([]runnerapi.RenewedLease, error) {
	answers, err := a.api.Renew(ctx, in)
	if status := control.Status(err); len(in.Progress) > 0 && (status == http.StatusBadRequest || status == http.StatusUnprocessableEntity) {
		in.Progress = nil
		return a.api.Renew(ctx, in)
	}
	return answers, err
}

// heed does what the answers of a renewal say.
func (a *agent) heed(answers []runnerapi.RenewedLease) {
	for _, answer := range answers {
		key := runnerapi.Attempt{JobID: answer.JobID, Attempt: answer.Attempt}
		switch answer.Answer {
		case runnerapi.LeaseAnswerCancel:
			a.jobs.Stop(key, ending.Cancel)
		case runnerapi.LeaseAnswerLost:
			a.jobs.Stop(key, ending.Lost)
		}
	}
}

// both returns a context that ends with either.
func both(a, b context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a)
	stop := context.AfterFunc(b, cancel)
	return ctx, func() { stop(); cancel() }
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
