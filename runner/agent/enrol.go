package agent

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// enrol finds out who the runner is: from disk, or with the single-use secret.
// A lost answer, a crash at any point: the same key may ask again.
func (a *agent) enrol(ctx context.Context) error {
	runner, found, err := a.dir.LoadRunner()
	if err != nil {
		return damaged(a.dir.Runner(), err, "restore the file from a copy, or enrol this runner once more")
	}
	if !found {
		if runner, err = a.askIdentity(ctx); err != nil {
			return err
		}
		if runner.InstallID != "" {
			if err := a.beginChain(); err != nil {
				return err
			}
		}
		if err := datadir.WriteJSON(a.dir.Runner(), runner); err != nil {
			return err
		}
		a.cfg.Log.InfoContext(ctx, "runner is enrolled", "runner_id", runner.RunnerID, "install_id", runner.InstallID, "kind", runner.Kind)
	}
	if err := datadir.Remove(a.dir.Enrolment()); err != nil {
		return fmt.Errorf("used enrolment secret: %w", err)
	}
	a.runner = runner
	a.api.Identify(runner.RunnerID)
	return nil
}

func (a *agent) askIdentity(ctx context.Context) (datadir.Runner, error) {
	secret, err := a.dir.EnrolmentSecret()
	if errors.Is(err, fs.ErrNotExist) {
		return datadir.Runner{}, fmt.Errorf("%w: this runner is not enrolled, and %s is missing", ErrEnrolment, a.dir.Enrolment())
	}
	if err != nil {
		return datadir.Runner{}, err
	}
	request := runnerapi.Enrolment{
		Secret: secret, PublicKey: base64.StdEncoding.EncodeToString(a.keys.Public()),
		SealRecipient: a.keys.Seal.Recipient(), Version: a.cfg.Version, Facts: a.facts(),
	}
	var handover capsule.Envelope
	if found, err := datadir.ReadJSON(a.dir.Handover(), &handover); err != nil {
		return datadir.Runner{}, err
	} else if found {
		request.Handover = &handover
	}
	var id runnerapi.Identity
	var refused error
	err = control.Retry(ctx, a.cfg.Log, "enrol", func(ctx context.Context) (err error) {
		id, err = a.api.Enrol(ctx, request)
		if err != nil && !control.Away(err) { // also a 401: there is no session yet whose end it could be
			refused, err = err, nil
		}
		return err
	})
	switch {
	case err != nil:
		return datadir.Runner{}, err
	case refused != nil:
		return datadir.Runner{}, fmt.Errorf("%w: %w", ErrEnrolment, refused)
	}
	runner := datadir.Runner{RunnerID: id.RunnerID, OrgID: id.OrgID, Kind: string(id.Kind)}
	if id.InstallID != nil {
		runner.InstallID = *id.InstallID
	}
	return runner, nil
}
