package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/dated"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
	"github.com/berth-dev/berth/services/runner-api/internal/run"
	"github.com/berth-dev/berth/services/runner-api/internal/series"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// PutRun records a run that the runner started by itself.
func (a *API) PutRun(ctx context.Context, req apigen.PutRunRequestObject) (apigen.PutRunResponseObject, error) {
	s, err := gate.SessionOf(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := installOf(s); err != nil {
		return nil, err
	}
	err = dated.Check(time.Now(), dated.Time{Pointer: "/scheduled_at", At: req.Body.ScheduledAt},
		dated.Time{Pointer: "/started_at", At: req.Body.StartedAt}, dated.Time{Pointer: "/finished_at", At: req.Body.FinishedAt})
	if err != nil {
		return nil, err
	}
	var recorded apigen.PutRun200JSONResponse
	err = a.write(ctx, s, func(ctx context.Context, tx *database.Tx) error {
		stored, err := a.putRun(ctx, tx, s, req)
		if err != nil {
			return err
		}
		recorded = apigen.PutRun200JSONResponse{RunID: stored.ID}
		if recorded.Drift, err = takeLook(ctx, tx, s, reported{runID: stored.ID, Run: *req.Body}); err != nil {
			return err
		}
		if !run.HasLog(*req.Body, stored.StreamID != nil) {
			return nil
		}
		stream, token, err := openRunLog(ctx, tx, s, stored)
		recorded.StreamID, recorded.LogToken = &stream, &token
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("put run: %w", err)
	}
	return recorded, nil
}

// putRun returns the run as it was known before this report, if it was.
func (a *API) putRun(ctx context.Context, tx *database.Tx, s *session.Session, req apigen.PutRunRequestObject) (stored runnerdb.RunnerRunByKeyRow, _ error) {
	r := *req.Body
	key := r.Key()
	var remediation *string
	var attempt *int32
	if r.Remedy != nil {
		n := int32(r.Remedy.Attempt)
		remediation, attempt = &r.Remedy.Remediation, &n
	}
	of, _ := jobspec.DriftNamed(r.Action)
	// Whatever settings were good at that time may name it: reports come late,
	// after newer settings have dropped an action.
	known, err := tx.RunnerKnowsRun(ctx, runnerdb.RunnerKnowsRunParams{
		InstallID: s.InstallID, Key: key, ScheduledAt: r.ScheduledAt, Action: r.Action, ProbePrefix: jobspec.ProbePrefix, RemediationID: remediation,
		DriftKind: of.Kind, DriftName: of.Name,
	})
	if err != nil {
		return stored, err
	}
	if !known {
		return stored, fault.With(fault.Newf(fault.ErrInvalid, "no settings of this install schedule %q", r.Action),
			fault.Code("action_unknown"), fault.Fields(fault.FieldError{Pointer: "/action", Code: "action_unknown", Detail: "is not in any settings that were in force at that time"}))
	}
	err = tx.RunnerAddRun(ctx, runnerdb.RunnerAddRunParams{
		ID: req.Run, InstallID: s.InstallID, Action: r.Action, Key: key, ScheduledAt: r.ScheduledAt, RunnerID: &s.RunnerID, CreatedBy: s.RunnerID,
		RemediationID: remediation, RemediationAttempt: attempt,
	})
	if err != nil {
		return stored, err
	}
	stored, err = tx.RunnerRunByKey(ctx, runnerdb.RunnerRunByKeyParams{InstallID: s.InstallID, Key: key})
	if err != nil {
		return stored, err
	}
	before := run.Stored{State: stored.State, Error: stored.Error}
	if stored.ExitCode != nil {
		before.ExitCode = int(*stored.ExitCode)
	}
	switch run.Accept(before, r) {
	case run.Replayed:
		return stored, nil
	case run.Finished:
		return stored, fault.With(fault.Newf(fault.ErrConflict, "this run has already ended as %s", stored.State), fault.Code("run_finished"))
	}
	if err := tx.RunnerReportRun(ctx, report(stored.ID, s.RunnerID, r)); err != nil {
		return stored, err
	}
	if !model.RunState(r.State).Ended() {
		return stored, nil
	}
	if !strings.HasPrefix(r.Action, jobspec.ProbePrefix) && !strings.HasPrefix(r.Action, jobspec.DriftPrefix) { // those run no script
		err = a.series.Store(ctx, tx, series.Run{
			InstallID: s.InstallID, Action: r.Action, ID: stored.ID, EndedAt: r.FinishedAt, Metrics: r.Metrics, Problem: r.MetricsError,
		})
		if err != nil {
			return stored, err
		}
	}
	return stored, tx.WakeInstall(ctx, s.InstallID)
}

// openRunLog opens the log of a run, once, and mints a token that appends to
// it, each time: only its hash is kept, so a lost one cannot be shown again.
func openRunLog(ctx context.Context, tx *database.Tx, s *session.Session, stored runnerdb.RunnerRunByKeyRow) (stream, token string, _ error) {
	stream, err := tx.OpenRunLogStream(ctx, runnerdb.OpenRunLogStreamParams{ID: id.New(id.Stream), InstallID: &s.InstallID, RunID: stored.ID})
	if err != nil {
		return "", "", err
	}
	if stored.StreamID == nil {
		if err := tx.RunnerSetRunStream(ctx, runnerdb.RunnerSetRunStreamParams{ID: stored.ID, StreamID: stream}); err != nil {
			return "", "", err
		}
	}
	token, hash := auth.NewSecret(auth.LogPrefix)
	return stream, token, tx.MintLogToken(ctx, runnerdb.MintLogTokenParams{
		Hash: hash, StreamID: stream, RunnerID: s.RunnerID, SessionID: s.ID, ExpiresAt: time.Now().Add(logTokenLifetime),
	})
}

func report(runID, runnerID string, r jobspec.Run) runnerdb.RunnerReportRunParams {
	state := model.RunState(r.State)
	params := runnerdb.RunnerReportRunParams{
		ID: runID, RunnerID: &runnerID, State: state, Error: optional(r.Error), Outputs: json.RawMessage(`{}`),
		StartedAt: known(r.StartedAt), FinishedAt: known(r.FinishedAt),
	}
	if state.Ended() && state != model.RunMissed {
		code := int32(r.ExitCode)
		params.ExitCode = &code
	}
	if len(r.Outputs) > 0 {
		// Decoded from JSON a moment ago, so it encodes.
		params.Outputs, _ = json.Marshal(r.Outputs)
	}
	return params
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
