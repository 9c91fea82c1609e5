package agent

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/job"
	"github.com/berth-dev/berth/runner/agent/versions"
)

// UpdateConfig is what the launcher says of the version that runs.
type UpdateConfig struct {
	// Installed is the version of the package, and InstalledPath its executable; both
	// empty where this is it.
	Installed, InstalledPath string
	// Folder has the executables of this version, "" for those of the package.
	Folder string
	// OnTrial: this version has to show that it works before it takes work.
	OnTrial bool
}

// shown are the folders below the data directory that engines must see all the same.
func (u UpdateConfig) shown(data string) []string {
	if u.Folder == "" || !strings.HasPrefix(u.Folder, data+string(filepath.Separator)) {
		return nil
	}
	return []string{u.Folder}
}

// selfTestTimeout bounds one try of the engine and of the claim: the launcher bounds
// the trial as a whole.
const selfTestTimeout = 20 * time.Second

// trial is what an agent has to pass before it takes work, and the end of one whose
// version is to be replaced.
type trial struct {
	passed    chan struct{} // closed once it is not on trial any more
	restart   chan struct{} // closed when another version is to run
	restarted *sync.Once
}

func newTrial() trial {
	return trial{passed: make(chan struct{}), restart: make(chan struct{}), restarted: &sync.Once{}}
}

// over waits until the trial is passed.
func (t trial) over(ctx context.Context) error {
	select {
	case <-t.passed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// updates is what jobs need to update this runner.
func (a *agent) updates() job.Update {
	u := job.Update{
		Versions: versions.In(a.dir.Path()), Installed: first(a.cfg.Update.Installed, a.cfg.Version), Keys: a.dir.LoadReleaseKeys,
		Restart: func() { a.trial.restarted.Do(func() { close(a.trial.restart) }) }, Decided: a.trial.passed,
	}
	if a.cfg.Pod != nil || a.cfg.Engines == EnginesJobs {
		u.Elsewhere = "apply the manifest of the newer version in the cluster: berth-runner manifest of that version, or its chart, with the image by digest"
	}
	return u
}

// awaitRestart ends the agent once another version is to run in its place.
func (a *agent) awaitRestart(life context.Context) error {
	select {
	case <-a.trial.restart:
		a.cfg.Log.InfoContext(life, "runner makes way for another version", "engines", a.jobs.Running())
		return ErrUpdated
	case <-life.Done():
		return context.Cause(life)
	}
}

// passTrial shows that this version can do what an agent must: start its engine, open a
// session, and have a claim answered. Then it is the current version.
func (a *agent) passTrial(life context.Context) error {
	if !a.cfg.Update.OnTrial {
		close(a.trial.passed)
		return nil
	}
	a.cfg.Log.InfoContext(life, "this version is on trial", "version", a.cfg.Version)
	if err := a.tryEngine(life); err != nil {
		return fmt.Errorf("trial: %w", err)
	}
	for try := 0; ; try++ {
		err := a.tryClaim(life)
		if err == nil {
			break
		}
		if life.Err() != nil {
			return context.Cause(life)
		}
		a.cfg.Log.WarnContext(life, "claim of the trial was not answered, trying again", "err", err)
		if err := pause.For(life, control.Backoff(try)); err != nil {
			return err
		}
	}
	store := versions.In(a.dir.Path())
	if err := store.Confirm(filepath.Base(a.cfg.Update.Folder)); err != nil {
		return fmt.Errorf("trial: %w", err)
	}
	a.note(life, "runner version", a.cfg.Version+" passed its trial")
	a.cfg.Log.InfoContext(life, "this version passed its trial", "version", a.cfg.Version)
	close(a.trial.passed)
	if err := store.Tidy(); err != nil {
		a.cfg.Log.WarnContext(life, "earlier versions cannot be removed", "err", err)
	}
	return nil
}

// tryEngine starts the engine of this version.
func (a *agent) tryEngine(life context.Context) error {
	ctx, cancel := context.WithTimeout(life, selfTestTimeout)
	defer cancel()
	said, err := exec.CommandContext(ctx, a.cfg.Engine, "version").Output()
	if err != nil {
		return fmt.Errorf("its engine cannot be started: %w", err)
	}
	if strings.TrimSpace(string(said)) == "" {
		return errors.New("its engine does not say its version")
	}
	return nil
}

// tryClaim has a claim answered in an open session. It asks for no work.
func (a *agent) tryClaim(life context.Context) error {
	if _, err := a.link.wait(life); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(life, selfTestTimeout)
	defer cancel()
	state, _ := a.power.Now()
	claim := runnerapi.ClaimRequest{ClaimID: newClaimID(), Switch: runnerapi.Switch(state.Mode)}
	claim.SwitchReason, claim.SwitchSince = switchNote(state)
	_, err := a.api.Claim(ctx, claim)
	return err
}
