package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/enrol"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// EnrolmentPosition says what a handover has to name. It changes nothing.
func (a *API) EnrolmentPosition(ctx context.Context, req apigen.EnrolmentPositionRequestObject) (apigen.EnrolmentPositionResponseObject, error) {
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
	var answer apigen.EnrolmentPosition200JSONResponse
	err = a.store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		enrolment, err := tx.RunnerEnrolmentBySecret(ctx, hash)
		if err != nil {
			return err
		}
		runner, err := tx.RunnerLock(ctx, enrolment.RunnerID)
		if err != nil {
			return err
		}
		if decision := decideEnrolment(pub, enrolment, runner); decision != enrol.Replace {
			if err := enrolmentRefused(decision); err != nil {
				return err
			}
			return fault.With(fault.Newf(fault.ErrConflict, "this enrolment replaces no machine"), fault.Code("nothing_to_replace"),
				fault.Remedy("start the runner without a handover"))
		}
		if runner.InstallID == nil || runner.PublicKey == nil {
			return fault.Newf(fault.ErrConflict, "only the runner of an install is handed over")
		}
		old, err := capsule.ParsePublicKey(*runner.PublicKey)
		if err != nil {
			return fmt.Errorf("key of runner %s: %w", runner.ID, err)
		}
		head, err := chainHead(ctx, tx, *runner.InstallID)
		if err != nil {
			return err
		}
		answer = apigen.EnrolmentPosition200JSONResponse{
			RunnerID: runner.ID, OrgID: org, InstallID: *runner.InstallID, MachineKey: capsule.KeyID(old),
			ChainHead: apigen.ChainHead{Seq: head.Seq, Hash: head.Hash},
		}
		known, err := found(tx.GetInstallRecovery(ctx, *runner.InstallID))
		if err == nil && known != nil {
			answer.RecoveryKey = known.KeyID
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("enrolment position: %w", err)
	}
	return answer, nil
}

// takeRecovery keeps the recovery key that a signed request brings, unless there
// is one: that stays, until it signs another in its place. ctl-api looks at it
// again before it seals to it.
func takeRecovery(ctx context.Context, tx *database.Tx, runner runnerdb.RunnerLockRow, key *recovery.Public, signed *capsule.Envelope) error {
	if key == nil || signed == nil {
		return nil
	}
	install := *runner.InstallID
	if err := key.Check(); err != nil {
		return fault.Newf(fault.ErrInvalid, "%s", err.Error())
	}
	before, err := found(tx.GetInstallRecovery(ctx, install))
	if err != nil {
		return err
	}
	evidence, err := json.Marshal(signed)
	if err != nil {
		return err
	}
	set := runnerdb.SetInstallRecoveryKeyParams{InstallID: install, KeyID: key.KeyID, SigningKey: key.SigningKey, Recipient: key.Recipient, Change: evidence}
	want := recovery.Change{OrgID: tx.OrgID(), InstallID: install, Next: *key}
	known := recoveryOf(before)
	switch {
	case known == nil:
		machine, err := capsule.ParsePublicKey(*runner.PublicKey)
		if err != nil {
			return fmt.Errorf("key of runner %s: %w", runner.ID, err)
		}
		if err := recovery.VerifyIntroduction(machine, *signed, want); err != nil {
			return fault.Newf(fault.ErrInvalid, "%s", err.Error())
		}
	case *known == *key:
		return nil
	default:
		refused := fault.With(fault.Newf(fault.ErrForbidden, "the install has another recovery key, %s", known.KeyID), fault.Code("recovery_key_differs"),
			fault.Remedy("let the present recovery key sign the new one: berth-runner recovery new --replace FILE"))
		if err := recovery.VerifyChange(*known, *signed, want); err != nil {
			return refused
		}
	}
	if err := tx.SetInstallRecoveryKey(ctx, set); err != nil {
		return err
	}
	return wake(ctx, tx, nil, nil, &install)
}

// keepRecovery keeps what a session brings for a machine that takes its place.
func keepRecovery(ctx context.Context, tx *database.Tx, runner runnerdb.RunnerLockRow, body *apigen.SessionRequest) error {
	if err := takeRecovery(ctx, tx, runner, body.Recovery, body.RecoverySigned); err != nil {
		return err
	}
	if body.SealedSalt == nil {
		return nil
	}
	return tx.SetInstallSalt(ctx, runnerdb.SetInstallSaltParams{InstallID: *runner.InstallID, SealedSalt: *body.SealedSalt})
}

// recoveryOf is the key in a row, nil without one.
func recoveryOf(row *runnerdb.InstallRecovery) *recovery.Public {
	if row == nil || row.KeyID == nil || row.SigningKey == nil || row.Recipient == nil {
		return nil
	}
	return &recovery.Public{KeyID: *row.KeyID, SigningKey: *row.SigningKey, Recipient: *row.Recipient}
}

// checkHandover decides whether a machine may take the place of another. With a
// recovery key it needs its signature. ok is false when it may not; then, and when
// it may without one, there is an alarm.
func (a *API) checkHandover(ctx context.Context, tx *database.Tx, body *apigen.Enrolment, runner runnerdb.RunnerLockRow, newKey string) (ok bool, _ error) {
	if runner.InstallID == nil {
		return true, nil
	}
	row, err := found(tx.GetInstallRecovery(ctx, *runner.InstallID))
	if err != nil {
		return false, err
	}
	old, err := capsule.ParsePublicKey(*runner.PublicKey)
	if err != nil {
		return false, fmt.Errorf("key of runner %s: %w", runner.ID, err)
	}
	key := recoveryOf(row)
	if key == nil {
		return true, raise(ctx, tx, runner.ID, runner.InstallID, alarm{
			kind: alarmNoRecovery, subject: "machine " + newKey, detail: map[string]any{"old_machine": capsule.KeyID(old)},
		})
	}
	reason := "it came without a handover"
	if body.Handover != nil {
		_, err := recovery.VerifyHandover(*key, *body.Handover, recovery.Handover{
			OrgID: tx.OrgID(), InstallID: *runner.InstallID, RunnerID: runner.ID, OldMachine: capsule.KeyID(old),
			NewMachine: newKey, SealRecipient: body.SealRecipient,
		})
		if err == nil {
			raw, err := json.Marshal(body.Handover)
			if err != nil {
				return false, err
			}
			return true, tx.SetInstallHandover(ctx, runnerdb.SetInstallHandoverParams{InstallID: *runner.InstallID, Handover: raw})
		}
		reason = err.Error()
	}
	return false, raise(ctx, tx, runner.ID, runner.InstallID, alarm{
		kind: alarmHandover, subject: "machine " + newKey, detail: map[string]any{"old_machine": capsule.KeyID(old), "recovery_key": key.KeyID, "reason": reason},
	})
}

// ListSealed names what a runner may seal again.
func (a *API) ListSealed(ctx context.Context, _ apigen.ListSealedRequestObject) (apigen.ListSealedResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if s.Disputed {
		return nil, session.ErrDisputed()
	}
	install, err := installOf(s)
	if err != nil {
		return nil, err
	}
	answer := apigen.ListSealed200JSONResponse{Resources: []apigen.SealedResource{}}
	err = a.read(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		row, err := found(tx.GetInstallRecovery(ctx, install))
		if err != nil {
			return err
		}
		if row != nil && len(row.SealedSalt) > 0 {
			answer.SealedSalt = &row.SealedSalt
		}
		rows, err := tx.RunnerSealedResources(ctx, install)
		for _, r := range rows {
			answer.Resources = append(answer.Resources, apigen.SealedResource{ID: r.ID, Kind: string(r.Kind), Name: r.Name})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list sealed: %w", err)
	}
	return answer, nil
}

// GetSealed gives out state and outputs of a resource of the runner's install.
func (a *API) GetSealed(ctx context.Context, req apigen.GetSealedRequestObject) (apigen.GetSealedResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if s.Disputed {
		return nil, session.ErrDisputed()
	}
	install, err := installOf(s)
	if err != nil {
		return nil, err
	}
	var answer apigen.GetSealed200JSONResponse
	err = a.read(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		row, err := tx.RunnerSealedResource(ctx, runnerdb.RunnerSealedResourceParams{InstallID: install, ID: req.Resource})
		if err != nil {
			return err
		}
		answer.ID, answer.Kind, answer.Name = row.ID, string(row.Kind), row.Name
		if err := json.Unmarshal(row.Outputs, &answer.Outputs); err != nil {
			return fmt.Errorf("decode outputs: %w", err)
		}
		current, err := found(tx.RunnerCurrentState(ctx, req.Resource))
		if err == nil && current != nil {
			answer.State = &apigen.SealedState{Serial: current.Serial, Lineage: current.Lineage, Digest: current.Digest, Body: current.Body}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get sealed: %w", err)
	}
	return answer, nil
}

// PutSealed takes state and outputs back, when only their sealing differs.
func (a *API) PutSealed(ctx context.Context, req apigen.PutSealedRequestObject) (apigen.PutSealedResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if s.Disputed {
		return nil, session.ErrDisputed()
	}
	install, err := installOf(s)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(req.Body.OutputsBefore)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(req.Body.Outputs)
	if err != nil {
		return nil, err
	}
	moved := func(what string) error {
		return fault.With(fault.Newf(fault.ErrConflict, "the %s is not the one that was read, or more than its sealing differs", what),
			fault.Code("sealed_moved"), fault.Remedy("read it again"))
	}
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		if _, err := tx.RunnerSealedResource(ctx, runnerdb.RunnerSealedResourceParams{InstallID: install, ID: req.Resource}); err != nil {
			return err
		}
		done, err := tx.RunnerResealOutputs(ctx, runnerdb.RunnerResealOutputsParams{InstallID: install, ID: req.Resource, Before: before, After: after})
		if err != nil {
			return err
		}
		if !done {
			return moved("output")
		}
		if state := req.Body.State; state != nil {
			n, err := tx.RunnerResealState(ctx, runnerdb.RunnerResealStateParams{
				ResourceID: req.Resource, Serial: state.Serial, Lineage: state.Lineage, Digest: state.Digest, Body: state.Body,
			})
			if err != nil {
				return err
			}
			if n == 0 {
				return moved("state")
			}
		}
		return wake(ctx, tx, nil, nil, &install)
	})
	if err != nil {
		return nil, fmt.Errorf("put sealed: %w", err)
	}
	return apigen.PutSealed204Response{}, nil
}

// chainPage is how many records are read at once.
const chainPage = 500

// GetChain reads the copy of the install's chain.
func (a *API) GetChain(ctx context.Context, req apigen.GetChainRequestObject) (apigen.GetChainResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	install, err := installOf(s)
	if err != nil {
		return nil, err
	}
	answer := apigen.GetChain200JSONResponse{Records: []apigen.ChainRecord{}}
	err = a.read(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.RunnerChainRecords(ctx, runnerdb.RunnerChainRecordsParams{Chain: install, FirstSeq: req.Params.After + 1, LastSeq: req.Params.After + chainPage})
		for _, row := range rows {
			answer.Records = append(answer.Records, apigen.ChainRecord{Seq: row.Seq, Body: row.Body})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read chain: %w", err)
	}
	return answer, nil
}
