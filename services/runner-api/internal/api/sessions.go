package api

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/Masterminds/semver/v3"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// OpenSession starts a life of the runner's process and ends the one before.
func (a *API) OpenSession(ctx context.Context, req apigen.OpenSessionRequestObject) (apigen.OpenSessionResponseObject, error) {
	org, key, err := a.provenRunner(ctx, req.Body.RunnerID)
	if err != nil {
		return nil, err
	}
	if !reaches(req.Body.Version, a.MinVersion) {
		return nil, fault.With(fault.Newf(fault.ErrForbidden, "runner %s is older than %s", req.Body.Version, a.MinVersion),
			fault.Code("runner_outdated"), fault.Remedy("update the runner"))
	}
	var answer apigen.OpenSession200JSONResponse
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		runner, err := tx.RunnerLock(ctx, req.Body.RunnerID)
		if err != nil {
			return err
		}
		// Between the proof and the lock the machine may have been replaced.
		if runner.State != model.RunnerActive || runner.PublicKey == nil || *runner.PublicKey != key {
			return unproven()
		}
		asked, err := a.judgeOpening(ctx, tx, runner, req.Body)
		if err != nil {
			return err
		}
		answer, err = a.openSession(ctx, tx, asked)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open session: %w", err)
	}
	a.metrics.sessions.Add(ctx, 1)
	a.log.InfoContext(ctx, "session opened", "org_id", org, "runner_id", req.Body.RunnerID, "epoch", answer.Epoch, "version", req.Body.Version)
	return answer, nil
}

// provenRunner checks that the request is signed by the key of the runner that
// it names. An unknown runner gets the same answer as a wrong key.
func (a *API) provenRunner(ctx context.Context, runnerID string) (org, key string, _ error) {
	err := a.store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		org, err = tx.RunnerOrgOf(ctx, runnerID)
		return err
	})
	if err != nil {
		return "", "", fmt.Errorf("find runner: %w", err)
	}
	if org == "" {
		return "", "", unproven()
	}
	var row runnerdb.RunnerByIDRow
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) (err error) {
		row, err = tx.RunnerByID(ctx, runnerID)
		return err
	})
	if err != nil {
		return "", "", fmt.Errorf("read runner: %w", err)
	}
	if row.PublicKey == nil {
		return "", "", unproven()
	}
	pub, err := capsule.ParsePublicKey(*row.PublicKey)
	if err != nil {
		return "", "", fmt.Errorf("key of runner %s: %w", runnerID, err)
	}
	if err := gate.VerifySigned(ctx, pub, runnerID); err != nil {
		return "", "", err
	}
	if row.State == model.RunnerRevoked { // said only to who has proved to be the runner
		return "", "", fault.With(fault.Newf(fault.ErrUnauthenticated, "the runner was revoked"), fault.Code("runner_revoked"))
	}
	return org, *row.PublicKey, nil
}

func unproven() error {
	return fault.With(fault.Newf(fault.ErrUnauthenticated, "the request is not signed by the runner's key"), fault.Code("signature_refused"))
}

// openSession does it, with the runner's row locked.
func (a *API) openSession(ctx context.Context, tx *database.Tx, asked opening) (answer apigen.OpenSession200JSONResponse, _ error) {
	runner, body := asked.runner, asked.request
	facts, err := json.Marshal(body.Facts)
	if err != nil {
		return answer, err
	}
	epoch, err := tx.RunnerStarted(ctx, runnerdb.RunnerStartedParams{
		ID: runner.ID, Version: body.Version, Slots: int32(body.Slots), Trust: string(body.Trust), Switch: string(body.Switch), Facts: facts,
		SwitchReason: body.SwitchReason, SwitchSince: body.SwitchSince, Opening: body.Opening,
	})
	if err != nil {
		return answer, err
	}
	token, hash := auth.NewSecret(auth.SessionPrefix)
	sessionID := asked.sameAs
	if sessionID != "" {
		err = tx.RunnerAnswerAgain(ctx, runnerdb.RunnerAnswerAgainParams{ID: sessionID, Epoch: epoch, TokenHash: hash, Version: body.Version})
	} else {
		sessionID = id.New(id.Session)
		err = replaceSession(ctx, tx, runnerdb.RunnerOpenSessionParams{
			ID: sessionID, RunnerID: runner.ID, Epoch: epoch, TokenHash: hash, Version: body.Version, Opening: body.Opening,
		})
	}
	if err != nil {
		return answer, err
	}
	jobs, err := a.resume(ctx, tx, asked, sessionID)
	if err != nil {
		return answer, err
	}
	var settings int64
	if runner.InstallID != nil {
		if err := a.compareChain(ctx, tx, runner, body.ChainHead); err != nil {
			return answer, err
		}
		if err := keepRecovery(ctx, tx, runner, body); err != nil {
			return answer, err
		}
		if settings, err = tx.RunnerSettingsVersion(ctx, *runner.InstallID); err != nil {
			return answer, err
		}
	}
	// All replicas drop what they know of the older session.
	tx.NotifyAfterCommit(model.ChannelRevoked, runner.ID)
	return apigen.OpenSession200JSONResponse{
		SessionID: sessionID, Token: token, Epoch: epoch, Jobs: jobs, SettingsVersion: settings,
		LeaseSeconds: int(a.Lease.Seconds()), RenewSeconds: max(1, int(a.Lease.Seconds()/3)),
		Registry: a.Registry, LogURL: a.LogURL, MinVersion: a.MinVersion,
		Disputed: asked.disputed,
	}, nil
}

// replaceSession closes the session before and opens another.
func replaceSession(ctx context.Context, tx *database.Tx, next runnerdb.RunnerOpenSessionParams) error {
	if err := tx.RunnerCloseSessions(ctx, runnerdb.RunnerCloseSessionsParams{RunnerID: next.RunnerID, Reason: session.ClosedByNext}); err != nil {
		return err
	}
	if err := tx.RunnerRevokeRegistryTokens(ctx, &next.RunnerID); err != nil {
		return err
	}
	return tx.RunnerOpenSession(ctx, next)
}

// void tells a runner to end all of these.
func void(named []apigen.Attempt) []apigen.ResumedJob {
	answers := make([]apigen.ResumedJob, len(named))
	for i, n := range named {
		answers[i] = apigen.ResumedJob{JobID: n.JobID, Attempt: n.Attempt, State: apigen.ResumedStateVoid}
	}
	return answers
}

// resume answers for each attempt that the runner named, and hands the leases
// of those that go on over to the new session. While the runner is disputed none
// goes on: whose engines they are, nobody knows.
func (a *API) resume(ctx context.Context, tx *database.Tx, asked opening, sessionID string) ([]apigen.ResumedJob, error) {
	runnerID, named := asked.runner.ID, asked.request.Running
	if asked.disputed != nil {
		_, err := a.settle(ctx, tx, succession{runnerID: runnerID, why: session.ClosedByNext})
		return void(named), err
	}
	running := make([]session.Attempt, len(named))
	for i, n := range named {
		running[i] = session.Attempt{JobID: n.JobID, Attempt: n.Attempt}
	}
	rows, err := a.settle(ctx, tx, succession{runnerID, running, session.ClosedByNext})
	if err != nil {
		return nil, err
	}
	leases := make([]string, len(rows))
	resumed := map[session.Attempt]runnerdb.RunnerOpenAttemptsRow{}
	for i, row := range rows {
		leases[i] = row.LeaseID
		resumed[session.Attempt{JobID: row.ID, Attempt: int(row.Attempt)}] = row
	}
	var expires time.Time
	if len(leases) > 0 {
		expires, err = tx.RunnerResumeLeases(ctx, runnerdb.RunnerResumeLeasesParams{Ids: leases, SessionID: sessionID, LeaseSeconds: a.Lease.Seconds()})
		if err != nil {
			return nil, err
		}
	}
	answers := make([]apigen.ResumedJob, len(running))
	for i, attempt := range running {
		answers[i] = apigen.ResumedJob{JobID: attempt.JobID, Attempt: attempt.Attempt, State: apigen.ResumedStateVoid}
		row, ok := resumed[attempt]
		if !ok {
			continue
		}
		token, hash := auth.NewSecret(auth.LogPrefix)
		err := tx.MintLogToken(ctx, runnerdb.MintLogTokenParams{
			Hash: hash, StreamID: row.StreamID, RunnerID: runnerID, SessionID: sessionID, ExpiresAt: time.Now().Add(logTokenLifetime),
		})
		if err != nil {
			return nil, err
		}
		answers[i].State, answers[i].StreamID, answers[i].LogToken, answers[i].LeaseExpiresAt = apigen.ResumedStateResumed, &row.StreamID, &token, &expires
	}
	return answers, nil
}

// reaches reports whether version is at least floor. One that cannot be read
// (a build from a source tree) is taken for new.
func reaches(version, floor string) bool {
	least, err := semver.NewVersion(floor)
	if err != nil {
		return true
	}
	have, err := semver.NewVersion(version)
	return err != nil || !have.LessThan(least)
}
