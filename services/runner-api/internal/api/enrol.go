package api

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/enrol"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// enrolling is a request to enrol and the rows that it is about.
type enrolling struct {
	body      *apigen.Enrolment
	pub       ed25519.PublicKey
	enrolment runnerdb.RunnerEnrolmentBySecretRow
	runner    runnerdb.RunnerLockRow
}

// Enrol binds a runner to the key that signs this request.
func (a *API) Enrol(ctx context.Context, req apigen.EnrolRequestObject) (apigen.EnrolResponseObject, error) {
	pub, err := capsule.ParsePublicKey(req.Body.PublicKey)
	if err != nil {
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "%w", err), fault.Fields(fault.FieldError{Pointer: "/public_key", Detail: err.Error()}))
	}
	if err := gate.VerifySigned(ctx, pub, capsule.KeyID(pub)); err != nil {
		return nil, err
	}
	hash := auth.Hash(req.Body.Secret)
	org, err := a.orgOfSecret(ctx, "enrolment", hash)
	if err != nil {
		return nil, err
	}
	e := enrolling{body: req.Body, pub: pub}
	var decision enrol.Decision
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		if e.enrolment, err = tx.RunnerEnrolmentBySecret(ctx, hash); err != nil {
			return err
		}
		if e.runner, err = tx.RunnerLock(ctx, e.enrolment.RunnerID); err != nil {
			return err
		}
		decision = decideEnrolment(pub, e.enrolment, e.runner)
		if decision == enrol.Replace {
			ok, err := a.checkHandover(ctx, tx, e)
			if err != nil {
				return err
			}
			if !ok {
				decision = enrol.RefuseHandover
			}
		}
		switch decision {
		case enrol.Bind, enrol.Replace:
			return a.bind(ctx, tx, e, decision)
		case enrol.RefuseBound, enrol.RefuseEnrolled:
			return a.alarm(ctx, tx, e, decision)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("enrol: %w", err)
	}
	if err := enrolmentRefused(decision); err != nil {
		return nil, err
	}
	a.log.InfoContext(ctx, "runner enrolled", "org_id", org, "runner_id", e.runner.ID, "decision", decision)
	return apigen.Enrol200JSONResponse{
		RunnerID: e.runner.ID, OrgID: org, InstallID: e.runner.InstallID, Kind: apigen.RunnerKind(e.runner.Kind),
	}, nil
}

func decideEnrolment(pub ed25519.PublicKey, e runnerdb.RunnerEnrolmentBySecretRow, r runnerdb.RunnerLockRow) enrol.Decision {
	request := enrol.Request{
		Key: capsule.EncodePublicKey(pub), Replaces: e.Replaces, RunnerRevoked: r.State == model.RunnerRevoked,
		// The database has compared its own clock.
		ExpiresAt: e.ExpiresAt, Now: e.ExpiresAt.Add(-time.Nanosecond),
	}
	if e.Expired || e.State == model.EnrolmentExpired {
		request.Now = e.ExpiresAt
	}
	if e.BoundKey != nil {
		request.BoundKey = *e.BoundKey
	}
	if r.PublicKey != nil {
		request.RunnerKey = *r.PublicKey
	}
	return enrol.Decide(request)
}

// bind makes the key the runner's. On a replacement all that the machine before
// had ends first.
func (a *API) bind(ctx context.Context, tx *database.Tx, e enrolling, decision enrol.Decision) error {
	body, runner := e.body, e.runner
	if decision == enrol.Replace {
		if err := a.endMachine(ctx, tx, runner.ID); err != nil {
			return err
		}
	}
	facts, err := json.Marshal(body.Facts)
	if err != nil {
		return err
	}
	key := capsule.EncodePublicKey(e.pub)
	if err := tx.RunnerRetireKeys(ctx, runnerdb.RunnerRetireKeysParams{RunnerID: runner.ID, Kept: []string{key, body.SealRecipient}}); err != nil {
		return err
	}
	if err := tx.RunnerEnrolled(ctx, runnerdb.RunnerEnrolledParams{
		ID: runner.ID, PublicKey: key, SealRecipient: body.SealRecipient, Version: body.Version, Facts: facts,
	}); err != nil {
		return err
	}
	if err := tx.RunnerAddKey(ctx, runnerdb.RunnerAddKeyParams{
		ID: id.New(id.Key), InstallID: runner.InstallID, Purpose: "runner", Algorithm: "ed25519", KeyID: capsule.KeyID(e.pub), PublicKey: key,
	}); err != nil {
		return err
	}
	if err := tx.RunnerAddKey(ctx, runnerdb.RunnerAddKeyParams{
		ID: id.New(id.Key), InstallID: runner.InstallID, Purpose: "seal", Algorithm: "x25519", KeyID: body.SealRecipient, PublicKey: body.SealRecipient,
	}); err != nil {
		return err
	}
	if err := tx.RunnerBindEnrolment(ctx, runnerdb.RunnerBindEnrolmentParams{ID: e.enrolment.ID, BoundKey: key}); err != nil {
		return err
	}
	if runner.InstallID == nil {
		return wakeBuilds(ctx, tx)
	}
	return tx.WakeInstall(ctx, *runner.InstallID)
}

// wakeBuilds wakes what waits for the Build Runner's key.
func wakeBuilds(ctx context.Context, tx *database.Tx) error {
	builds, err := tx.RunnerWaitingBuilds(ctx)
	if err != nil {
		return err
	}
	for _, build := range builds {
		if err := tx.WakeBuild(ctx, build); err != nil {
			return err
		}
	}
	return nil
}

// endMachine ends the sessions and attempts of a machine that is gone.
func (a *API) endMachine(ctx context.Context, tx *database.Tx, runnerID string) error {
	const reason = session.ClosedByReplacement
	if err := tx.RunnerVoidEpoch(ctx, runnerID); err != nil {
		return err
	}
	if err := tx.RunnerCloseSessions(ctx, runnerdb.RunnerCloseSessionsParams{RunnerID: runnerID, Reason: reason}); err != nil {
		return err
	}
	if err := tx.RunnerRevokeRegistryTokens(ctx, &runnerID); err != nil {
		return err
	}
	if err := tx.RevokeLogTokensOfRunner(ctx, runnerID); err != nil {
		return err
	}
	if err := tx.RunnerCloseRunStreams(ctx, runnerID); err != nil {
		return err
	}
	if _, err := a.settle(ctx, tx, succession{runnerID: runnerID, why: reason}); err != nil {
		return err
	}
	if err := endQueued(ctx, tx, runnerID); err != nil {
		return err
	}
	tx.NotifyAfterCommit(model.ChannelRevoked, runnerID)
	return nil
}

// alarm records that a secret is in the hands of somebody else. It commits; the
// refusal follows.
func (a *API) alarm(ctx context.Context, tx *database.Tx, e enrolling, decision enrol.Decision) error {
	first, err := tx.RunnerAlarmEnrolment(ctx, e.enrolment.ID)
	if err != nil || first == 0 {
		return err
	}
	tx.AfterCommit(func() {
		a.metrics.enrolAlarms.Add(ctx, 1)
		a.log.ErrorContext(ctx, "enrolment secret used with another key", "org_id", tx.OrgID(), "runner_id", e.runner.ID, "enrolment_id", e.enrolment.ID)
	})
	return raise(ctx, tx, alarm{
		runnerID: e.runner.ID, installID: e.runner.InstallID,
		kind: alarmEnrolment, subject: e.enrolment.ID, detail: map[string]any{"refused": decision, "key_id": capsule.KeyID(e.pub)},
	})
}

func enrolmentRefused(d enrol.Decision) error {
	refuse := func(code, remedy, text string) error {
		return fault.With(fault.Newf(fault.ErrForbidden, "%s", text), fault.Code(code), fault.Remedy("%s", remedy))
	}
	switch d {
	case enrol.RefuseExpired:
		return refuse("enrolment_expired", "make a new enrolment secret", "the enrolment secret has expired")
	case enrol.RefuseBound:
		return refuse("enrolment_bound", "find out who used it; then make a new enrolment secret", "the enrolment secret was used with another key")
	case enrol.RefuseEnrolled:
		return refuse("runner_enrolled", "ask the customer to consent to a replacement", "the runner is enrolled on another machine")
	case enrol.RefuseSuperseded:
		return refuse("enrolment_superseded", "make a new enrolment secret", "another machine has replaced this one")
	case enrol.RefuseHandover:
		return refuse("handover_required", "sign the handover with the customer's recovery key: berth-runner replace --recovery FILE",
			"the customer's recovery key has not signed for this machine to replace the one before")
	case enrol.RefuseRevoked:
		return refuse("runner_revoked", "create a new runner", "the runner was revoked")
	}
	return nil
}
