package api

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/look"
	"github.com/berth-dev/berth/services/runner-api/internal/session"
)

// reported is a run as it was reported, and the id that it has.
type reported struct {
	runID string
	jobspec.Run
}

// takeLook keeps what a look for drift found, once for each resource and tick; nil for a
// run that is none, or has not ended. Which component it is about follows from the name
// that this install's settings schedule, and from nothing that the report says.
func takeLook(ctx context.Context, tx *database.Tx, s *session.Session, r reported) (*apigen.RunRecordedDrift, error) {
	of, isLook := jobspec.DriftNamed(r.Action)
	if !isLook && r.Drift == nil {
		return nil, nil
	}
	found, err := look.Read(r.Run)
	if err != nil {
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "what was found of drift cannot be: %v", err), fault.Code("drift_invalid"),
			fault.Fields(fault.FieldError{Pointer: "/drift", Code: "drift_invalid", Detail: err.Error()}))
	}
	if found == nil {
		return nil, nil
	}
	about, err := tx.RunnerResourceOfLook(ctx, runnerdb.RunnerResourceOfLookParams{InstallID: s.InstallID, Kind: model.ResourceKind(of.Kind), Name: of.Name})
	if errors.Is(err, fault.ErrNotFound) {
		return new(apigen.RunRecordedDriftStale), nil
	}
	if err != nil {
		return nil, err
	}
	if about.State != model.ResourceLive || found.Change != "" && found.Change != about.LiveChangeID {
		return new(apigen.RunRecordedDriftStale), nil
	}
	row := runnerdb.RunnerAddLookParams{
		InstallID: s.InstallID, ResourceID: about.ID, ScheduledAt: r.ScheduledAt, ChangeID: about.LiveChangeID, RunID: r.runID, LookedAt: r.FinishedAt,
		Error: optional(found.Error),
	}
	if r.FinishedAt.IsZero() {
		row.LookedAt = r.ScheduledAt
	}
	if found.Report != nil {
		if row.Report, err = json.Marshal(found.Report); err != nil {
			return nil, err
		}
	}
	_, err = tx.RunnerAddLook(ctx, row)
	return new(apigen.RunRecordedDriftTaken), err
}
