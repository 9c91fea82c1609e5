package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/job"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// lookAtRuns is how often the agent checks the count of runs: a record is due
// once an hour.
const lookAtRuns = time.Minute

// Why a scheduled script is not run.
const (
	whyNotAccepted = "not accepted yet: a release with this script was not accepted on this install; `berth deploy INSTALL` shows it and asks"
	whyInputs      = "settings bring a value for an input of the script, which was not accepted to take it from a schedule"
	whyNoCheck     = "not accepted to run by itself: each run of this script needs a decision"
)

// openScripts opens what is known of scripts. Without the count of their runs
// the next run of each is called its first.
func (a *agent) openScripts(life context.Context, deps *job.Deps) (err error) {
	if a.scripts, err = scripts.Open(a.dir.Scripts()); err != nil {
		return damaged(a.dir.Scripts(), err, "restore the file from a copy, or remove it and deploy again: that asks for all scripts once more")
	}
	open := func() error {
		a.runs, err = scripts.OpenLedger(a.dir.ScriptRuns(), a.chain, a.disk, a.cfg.Now)
		return err
	}
	if broken := open(); broken != nil {
		to, err := a.dir.SetAside(a.dir.ScriptRuns(), "agent", broken)
		if to == "" {
			return errors.Join(broken, err)
		}
		a.setAside(life, fmt.Errorf("%w; it was set aside as %s", broken, to))
		if err := open(); err != nil {
			return err
		}
	}
	deps.Scripts, deps.Runs, deps.Scheduled = a.scripts, a.runs, a.scheduledScripts
	return nil
}

// scheduledScripts are the digests of the scripts that the settings in force
// schedule.
func (a *agent) scheduledScripts() []string {
	settings, _ := a.current()
	var digests []string
	for _, s := range settings.Schedule {
		if s.Probe != nil {
			continue
		}
		if digest, err := s.Script().Digest(); err == nil {
			digests = append(digests, digest)
		}
	}
	return digests
}

// mayRun finds the accepted script that a scheduled action is; why is the reason
// when it may not be run. A probe is no script: its code is the runner's own.
func (a *agent) mayRun(ctx context.Context, s jobspec.Scheduled) (_ scripts.Accepted, why string, err error) {
	if s.Probe != nil {
		return scripts.Accepted{}, "", nil
	}
	digest, err := s.Script().Digest()
	if err != nil {
		return scripts.Accepted{}, "", fmt.Errorf("scheduled script: %w", err)
	}
	a.scripts.Learn(s.Script())
	accepted, found := a.scripts.Get(digest)
	switch {
	case !found:
		return scripts.Accepted{}, whyNotAccepted, a.runs.Refused(ctx, s.Name(), digest, "the schedule")
	case len(s.Action.Inputs) > 0 && accepted.Script.Unattended:
		return scripts.Accepted{}, whyInputs, nil
	case !accepted.Script.Action.ReadOnly && !accepted.Script.Unattended:
		return scripts.Accepted{}, whyNoCheck, nil
	}
	return accepted, "", nil
}

// recordRuns records the runs of each hour in the chain.
func (a *agent) recordRuns(life context.Context) error {
	tick := time.NewTicker(lookAtRuns)
	defer tick.Stop()
	for {
		if err := a.runs.Flush(life, false); err != nil {
			a.cfg.Log.ErrorContext(life, "runs of scripts cannot be recorded", "err", err)
		}
		if err := a.offers.Tell(life); err != nil {
			a.cfg.Log.ErrorContext(life, "vendor keys and revoked releases cannot be recorded", "err", err)
		}
		select {
		case <-tick.C:
		case <-life.Done():
			return context.Cause(life)
		}
	}
}

// lastRuns records what was counted when the agent ends.
func (a *agent) lastRuns() {
	if a.runs == nil {
		return
	}
	if err := a.runs.Flush(context.Background(), true); err != nil {
		a.cfg.Log.Error("runs of scripts cannot be recorded", "err", err)
	}
}
