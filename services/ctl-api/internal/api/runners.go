package api

import (
	"context"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/fleetapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// onlineWithin is how recently we must have heard from a runner to call it
// online. While it polls, that is written every 15 s.
const onlineWithin = 2 * time.Minute

// ListRunners answers runners, newest first.
func (s *Server) ListRunners(ctx context.Context, req apigen.ListRunnersRequestObject) (apigen.ListRunnersResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListRunners200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		installID, err := installFilter(ctx, tx, req.Params.Install)
		if err != nil {
			return err
		}
		rows, err := tx.ShowRunners(ctx, ctldb.ShowRunnersParams{InstallID: installID, After: optional.Of(optional.Value(req.Params.After)), Most: int32(limit + 1)})
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ShowRunnersRow) string { return r.Runner.ID })
		if err != nil {
			return err
		}
		offered, err := tx.RunnerVersions(ctx, "")
		out.Items = convert(rows, func(r ctldb.ShowRunnersRow) apigen.Runner { return s.runnerNextTo(r, offered) })
		return err
	})
	return out, err
}

// GetRunner answers one runner.
func (s *Server) GetRunner(ctx context.Context, req apigen.GetRunnerRequestObject) (apigen.GetRunnerResponseObject, error) {
	var out apigen.Runner
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		out, err = s.findRunner(ctx, tx, req.Runner)
		return err
	})
	return apigen.GetRunner200JSONResponse(out), err
}

// RevokeRunner takes a runner's identity away: its sessions and tokens end.
func (s *Server) RevokeRunner(ctx context.Context, req apigen.RevokeRunnerRequestObject) (apigen.RevokeRunnerResponseObject, error) {
	var out apigen.Runner
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		if _, err := s.findRunner(ctx, tx, req.Runner); err != nil {
			return "", err
		}
		if err := tx.RevokeRunnerByID(ctx, req.Runner); err != nil {
			return "", err
		}
		reason := "revoked"
		if err := tx.CloseSessionsOfRunner(ctx, ctldb.CloseSessionsOfRunnerParams{RunnerID: req.Runner, Reason: &reason}); err != nil {
			return "", err
		}
		if err := tx.RevokeRegistryTokensOfRunner(ctx, req.Runner); err != nil {
			return "", err
		}
		tx.NotifyAfterCommit(model.ChannelRevoked, req.Runner)
		var err error
		out, err = s.findRunner(ctx, tx, req.Runner)
		return "revoke runner " + req.Runner, err
	})
	return apigen.RevokeRunner200JSONResponse(out), err
}

func (s *Server) findRunner(ctx context.Context, tx *database.Tx, id string) (apigen.Runner, error) {
	rows, err := tx.ShowRunners(ctx, ctldb.ShowRunnersParams{ID: &id, Most: 1})
	if err != nil {
		return apigen.Runner{}, err
	}
	if len(rows) == 0 {
		return apigen.Runner{}, fault.Newf(fault.ErrNotFound, "there is no runner %q", id)
	}
	offered, err := tx.RunnerVersions(ctx, "")
	return s.runnerNextTo(rows[0], offered), err
}

// runnerNextTo is a runner next to the versions that are on offer.
func (s *Server) runnerNextTo(row ctldb.ShowRunnersRow, offered []ctldb.RunnerVersion) apigen.Runner {
	out := s.runnerView(row.Runner, row.InstallName)
	if newest := fleetapi.NewestFor(row.Runner, offered); newest != "" {
		out.NewestVersion = &newest
	}
	return out
}

func (s *Server) runnerView(r ctldb.Runner, installName string) apigen.Runner {
	out := apigen.Runner{
		ID: r.ID, Kind: apigen.RunnerKind(r.Kind), Name: r.Name, State: apigen.RunnerState(r.State), Version: r.Version,
		Trust: apigen.RunnerTrust(r.Trust), Switch: apigen.RunnerSwitch(r.Switch), Slots: int(r.Slots), Epoch: r.Epoch,
		Facts: &r.Facts, LastSeenAt: r.LastSeenAt, CreatedAt: r.CreatedAt, RevokedAt: r.RevokedAt,
		DisputedSince: r.DisputedSince, SwitchReason: r.SwitchReason, SwitchSince: r.SwitchSince,
		Online: r.State == model.RunnerActive && r.LastSeenAt != nil && s.now().Sub(*r.LastSeenAt) < onlineWithin,
	}
	if problem := why.RunnerProblem(r); problem != "" {
		out.Problem = &problem
	}
	if r.InstallID != nil {
		install := ref(*r.InstallID, installName)
		out.Install = &install
	}
	return out
}
