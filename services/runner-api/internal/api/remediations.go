package api

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/dated"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/heldback"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// PutRemediation records what a runner does about an unhealthy check, and answers whether its
// next attempt may begin.
func (a *API) PutRemediation(ctx context.Context, req apigen.PutRemediationRequestObject) (apigen.PutRemediationResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := installOf(s); err != nil {
		return nil, err
	}
	err = dated.Check(time.Now(), dated.Time{Pointer: "/began_at", At: req.Body.BeganAt},
		dated.Time{Pointer: "/changed_at", At: req.Body.ChangedAt}, dated.Time{Pointer: "/ended_at", At: req.Body.EndedAt})
	if err != nil {
		return nil, err
	}
	var out apigen.PutRemediation200JSONResponse
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		hold, err := putRemediation(ctx, tx, s, req)
		if hold != "" {
			out.Hold = &hold
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("put remediation: %w", err)
	}
	return out, nil
}

func putRemediation(ctx context.Context, tx *database.Tx, s *session.Session, req apigen.PutRemediationRequestObject) (hold string, _ error) {
	r := *req.Body
	remedied, err := tx.RunnerKnowsRemedy(ctx, runnerdb.RunnerKnowsRemedyParams{ID: req.Remediation, InstallID: s.InstallID, BeganAt: r.BeganAt, CheckName: r.Check})
	if err != nil {
		return "", err
	}
	if !remedied {
		return "", fault.With(fault.Newf(fault.ErrInvalid, "no settings of this install have a remedy of %q", r.Check),
			fault.Code("check_unknown"), fault.Fields(fault.FieldError{Pointer: "/check", Code: "check_unknown", Detail: "is in no settings that were in force at that time"}))
	}
	_, err = tx.RunnerPutRemediation(ctx, runnerdb.RunnerPutRemediationParams{
		ID: req.Remediation, InstallID: s.InstallID, CheckName: r.Check, Action: r.Action, ResourceID: optional(r.ResourceID), Seq: r.Seq,
		State: r.State, Why: r.Why, Attempts: int32(r.Attempts), AttemptsOf: int32(r.Of), Reverted: r.Reverted,
		BeganAt: r.BeganAt, ChangedAt: r.ChangedAt, EndedAt: known(r.EndedAt),
	})
	if err != nil || !r.Asks {
		return "", err
	}
	if err := tx.RunnerLockRemediations(ctx); err != nil {
		return "", err
	}
	facts, err := tx.RunnerRemediationFacts(ctx, runnerdb.RunnerRemediationFactsParams{InstallID: s.InstallID, Action: r.Action})
	if err != nil {
		return "", err
	}
	hold = heldback.Why(heldback.Facts{
		Locked: facts.Locked, Workflow: int(facts.Workflow), Running: int(facts.Running), Failed: int(facts.Failed), Action: r.Action,
	})
	if hold != "" {
		return hold, nil
	}
	return "", tx.RunnerMayRemedy(ctx, runnerdb.RunnerMayRemedyParams{ID: req.Remediation, InstallID: s.InstallID})
}
