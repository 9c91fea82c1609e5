package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	health "github.com/berth-dev/berth/pkg/verdict"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/job"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/remedy"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

const (
	// remedyMayWait is how long a remedy waits for another change of the install that
	// began at the same moment.
	remedyMayWait = 5 * time.Minute
	// askTimeout is how long the control plane may take to say whether an attempt may
	// begin. Without an answer it begins.
	askTimeout = 5 * time.Second
	// askAgain is how long a no counts.
	askAgain = time.Minute
)

// holds are the attempts that the customer's side or the control plane holds back, by
// check.
type holds map[string]heldBack

type heldBack struct {
	why   string
	until time.Time
}

// openRemedies opens what is known of unhealthy checks.
func (a *agent) openRemedies(life context.Context, deps *job.Deps) {
	var broken error
	if a.remedies, broken = remedy.Open(a.dir.Remedies(), a.cfg.Now); broken != nil {
		to, moved := a.dir.SetAside(a.dir.Remedies(), "agent", broken)
		a.setAside(life, errors.Join(fmt.Errorf("%w; it was set aside as %s, and nothing is remedied for a day", broken, to), moved))
	}
	deps.TickEnded = a.tickEnded
}

// tickEnded keeps the outcome of a check, and the end of an attempt.
func (a *agent) tickEnded(tick jobdir.Tick, runID string, r jobspec.Result) error {
	done := r.Outcome == jobspec.OutcomeSucceeded
	switch {
	case tick.Remedy != nil:
		return a.remedies.Ended(runID, r.FinishedAt, done, jobspec.CutText(r.Error, 1000))
	case !tick.HealthCheck, r.Outcome == jobspec.OutcomeNotStarted, r.Outcome == jobspec.OutcomeStale:
		return nil // it says nothing about health
	}
	unknown := done && slices.ContainsFunc(r.Findings, func(f jobspec.Finding) bool { return f.Unknown })
	return a.remedies.Add(tick.Action, health.Outcome{RunID: runID, Good: done, Unknown: unknown, At: r.FinishedAt})
}

// keepHealthy heals checks that are unhealthy until work ends.
func (a *agent) keepHealthy(work, life context.Context) error {
	a.endInterrupted(life)
	no := holds{}
	for {
		changed := a.remedies.Changed()
		settings, renewed := a.current()
		now := a.cfg.Now()
		next := now.Add(maxSleep)
		cures := a.curesOf(life, settings.Settings)
		var checks []string
		for _, c := range cures {
			checks = append(checks, c.heal.Check)
		}
		if err := a.remedies.Watch(checks); err != nil {
			a.cfg.Log.ErrorContext(life, "remedies cannot be written", "err", a.disk.Failed(err))
		}
		for _, c := range cures {
			at, err := a.attend(life, settings, c, no)
			if err != nil {
				a.cfg.Log.ErrorContext(life, "check cannot be healed", "check", c.heal.Check, "err", a.disk.Failed(err))
			}
			if !at.IsZero() && at.Before(next) {
				next = at
			}
		}
		if err := a.nextLook(work, life, look{at: next, or: [2]<-chan struct{}{renewed, changed}}); err != nil {
			return err
		}
	}
}

// endInterrupted ends the attempts that were counted and never became a run: the agent
// ended in between.
func (a *agent) endInterrupted(ctx context.Context) {
	const why = "the runner ended before it began"
	for _, open := range a.remedies.Open() {
		if a.jobs.Knows(open.RunID) {
			continue
		}
		if err := a.disk.Insist(func() error { return a.remedies.Ended(open.RunID, a.cfg.Now(), false, why) }); err != nil {
			a.cfg.Log.ErrorContext(ctx, "remedies cannot be written", "err", err)
		}
	}
}

// cure is how a check is healed: by scripts that were accepted for it.
type cure struct {
	heal   jobspec.Heal
	script scripts.Accepted
	revert *scripts.Accepted // nil when there is none
	// silentAfter and resourceID are of the check.
	silentAfter time.Duration
	resourceID  string
}

// curesOf finds the scripts in settings that were accepted to heal checks. What they heal
// and how often follows from what was accepted, not from what settings say.
func (a *agent) curesOf(ctx context.Context, settings jobspec.Settings) (cures []cure) {
	var accepted []scripts.Accepted
	for _, s := range settings.Remedies {
		digest, err := s.Digest()
		if err != nil {
			a.cfg.Log.ErrorContext(ctx, "remedy cannot be read", "action", s.Action.Name, "err", err)
			continue
		}
		a.scripts.Learn(s)
		known, found := a.scripts.Get(digest)
		if !found {
			if err := a.runs.Refused(ctx, s.Action.Name, digest, "a remedy in settings"); err != nil {
				a.cfg.Log.ErrorContext(ctx, "refusal cannot be recorded", "err", err)
			}
			continue
		}
		if known.Script.Action.BreakGlassRole == "" {
			accepted = append(accepted, known)
		}
	}
	plans := plansOf(settings.Schedule)
	for _, s := range accepted {
		for _, h := range s.Script.Heals {
			plan, known := plans[h.Check]
			same := func(c cure) bool { return c.heal.Check == h.Check }
			if h.Reverts || !known || slices.ContainsFunc(cures, same) {
				continue
			}
			c := cure{heal: h, script: s, silentAfter: plan.silence()}
			if p := plan[0].Probe; p != nil {
				c.resourceID = p.Resource.ID
			}
			for _, other := range accepted {
				if _, reverts := other.Script.HealOf(h.Check, true); reverts {
					c.revert = &other
				}
			}
			cures = append(cures, c)
		}
	}
	return cures
}

// silence is how long what is planned may not be heard of.
func (p plan) silence() time.Duration {
	var crons []string
	for _, s := range p {
		crons = append(crons, s.Cron)
	}
	return health.Silence(crons, time.Duration(p[0].TimeoutSeconds)*time.Second)
}

// attend does what is to be done about a check now and returns when to look again.
func (a *agent) attend(ctx context.Context, settings inForce, c cure, no holds) (time.Time, error) {
	h := c.heal
	known, err := a.remedies.Judge(h.Check, health.Rules{UnhealthyAfter: h.UnhealthyAfter, HealthyAfter: h.HealthyAfter, SilentAfter: c.silentAfter})
	if err != nil {
		return time.Time{}, err
	}
	now := a.cfg.Now()
	s := remedy.Situation{
		Now: now, Heal: h, CanRevert: c.revert != nil, Verdict: known.Verdict, Since: known.Since, Recent: known.Recent, Episode: known.Episode,
		Starts: a.remedies.Starts(), Expired: !now.Before(settings.until()), Mode: a.power.Read().Mode, Busy: a.jobs.Changing(),
	}
	s.Held, _ = a.stand.stopped()
	about := remedy.Opening{Action: c.script.Script.Action.Name, ResourceID: c.resourceID, Of: h.Attempts}
	d := remedy.Decide(s)
	if d.Do == remedy.Start || d.Do == remedy.Revert {
		if known.Episode == nil {
			if err := a.remedies.Set(h.Check, about, jobspec.RemediationWaiting, ""); err != nil {
				return time.Time{}, err
			}
		}
		if !now.Before(no[h.Check].until) {
			why, err := a.notAgreed(c, d.Do == remedy.Revert)
			if err != nil {
				return time.Time{}, err
			}
			if why == "" {
				why = a.askWhetherHeld(ctx, h.Check)
			}
			no[h.Check] = heldBack{why: why, until: now.Add(askAgain)}
		}
		if s.Held = no[h.Check].why; s.Held != "" {
			d = remedy.Decide(s)
			d.Until = no[h.Check].until
		} else {
			delete(no, h.Check) // a yes is for one attempt
		}
	}
	switch d.Do {
	case remedy.Wait:
		return d.Until, a.remedies.Set(h.Check, about, jobspec.RemediationWaiting, d.Why)
	case remedy.Start, remedy.Revert:
		return time.Time{}, a.remedy(ctx, settings.Settings, c, d.Do == remedy.Revert)
	case remedy.Helped:
		return a.turned(ctx, c, about, jobspec.RemediationHelped, "")
	case remedy.GiveUp:
		return a.turned(ctx, c, about, jobspec.RemediationNeedsAttention, d.Why)
	case remedy.End:
		return time.Time{}, a.remedies.End(h.Check)
	}
	return d.Until, nil
}

// turned records what came of the attempts, in the ledger and the chain.
func (a *agent) turned(ctx context.Context, c cure, about remedy.Opening, state jobspec.RemediationState, why string) (time.Time, error) {
	if err := a.remedies.Set(c.heal.Check, about, state, why); err != nil {
		return time.Time{}, err
	}
	a.cfg.Log.InfoContext(ctx, "remediation", "check", c.heal.Check, "state", string(state), "why", why)
	_, err := a.chain.Append(ctx, chain.Record{
		Actor: "runner", Kind: chain.Event, What: "remediation of " + c.heal.Check, Result: string(state), Detail: why,
	})
	return time.Time{}, err
}

// notAgreed says why the customer's side has not agreed to a run, "" when it has or is not
// asked. People see then what to agree to. The run itself asks again.
func (a *agent) notAgreed(c cure, reverts bool) (string, error) {
	script := c.script
	if reverts {
		script = *c.revert
	}
	if a.consents == nil {
		return "", nil
	}
	answer, err := a.consents.GrantTick(id.New(id.ActionRun), script.Digest, script.Script.Action.Name, a.cfg.Now())
	if err != nil {
		return "", err
	}
	if answer.Refusal != nil {
		return answer.Refusal.Text, nil
	}
	answer.Done()
	return "", nil
}

// askWhetherHeld asks the control plane whether an attempt may begin now. It can say no, and
// why; with no answer the runner's own counts decide.
func (a *agent) askWhetherHeld(ctx context.Context, check string) string {
	if !a.link.open() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	e, found := a.remedies.Episode(check)
	if !found {
		return ""
	}
	report := e.Report()
	report.Asks = true
	why, err := a.api.ReportRemediation(ctx, e.ID, report)
	if err != nil {
		a.cfg.Log.WarnContext(ctx, "no answer about a remediation: it starts within the runner's own limits", "check", check, "err", err)
		return ""
	}
	return why
}

// remedy counts an attempt or the revert and then starts it.
func (a *agent) remedy(ctx context.Context, settings jobspec.Settings, c cure, reverts bool) error {
	script := c.script
	if reverts {
		script = *c.revert
	}
	check := c.heal.Check
	at := a.cfg.Now().UTC().Truncate(time.Second)
	runID := id.New(id.ActionRun)
	about := remedy.Opening{Action: c.script.Script.Action.Name, ResourceID: c.resourceID, Of: c.heal.Attempts}
	err := a.remedies.Begin(check, about, remedy.Attempt{RunID: runID, Action: script.Script.Action.Name, Started: at}, reverts)
	if err != nil {
		return err
	}
	e, _ := a.remedies.Episode(check)
	tick := jobdir.Tick{
		Action: script.Script.Action.Name, At: at, Script: script.Digest, Until: at.Add(remedyMayWait),
		Remedy: &jobspec.RunRemedy{Remediation: e.ID, Check: check, Attempt: len(e.Attempts), Of: c.heal.Attempts, Reverts: reverts},
	}
	action := script.Script.Action
	action.Inputs = map[string]string{} // nobody brings values
	for _, input := range script.Script.Inputs {
		action.Inputs[input] = ""
	}
	spec := jobspec.Spec{
		Version: jobspec.Version, JobID: runID, OrgID: settings.OrgID, InstallID: settings.InstallID,
		Kind: jobspec.KindAction, Operation: jobspec.OperationTick, Action: &action,
		State: settings.State, StateVersion: settings.StateVersion, TimeoutSeconds: script.Script.TimeoutSeconds,
	}
	a.cfg.Log.InfoContext(ctx, "remediation starts", "check", check, "action", tick.Action, "attempt", tick.Remedy.Attempt, "of", tick.Remedy.Of, "reverts", reverts)
	if err := a.jobs.StartTick(runID, tick, spec, func() error { return nil }); err != nil {
		return errors.Join(err, a.remedies.Ended(runID, a.cfg.Now(), false, "it could not be started"))
	}
	return nil
}

// tellRemedies tells the control plane of remediations until life ends: as they are, so
// that after an outage each is told once.
func (a *agent) tellRemedies(life context.Context) error {
	for {
		changed := a.remedies.Changed()
		for _, e := range a.remedies.Untold() {
			err := control.Retry(life, a.cfg.Log, "report remediation", func(ctx context.Context) error {
				_, err := a.api.ReportRemediation(ctx, e.ID, e.Report())
				return err
			})
			if life.Err() != nil {
				return context.Cause(life)
			}
			if err != nil {
				a.cfg.Log.WarnContext(life, "report of a remediation was refused", "check", e.Check, "err", err)
			}
			if err := a.disk.Insist(func() error { return a.remedies.Tell(e.ID, e.Seq) }); err != nil {
				a.cfg.Log.ErrorContext(life, "remedies cannot be written", "err", err) // it is told again
			}
		}
		select {
		case <-changed:
		case <-life.Done():
			return context.Cause(life)
		}
	}
}
