package timelineapi

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apiref"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/timeline"
	"github.com/berth-dev/berth/services/ctl-api/internal/treediff"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// GetState answers the state tree, the newest when neither a version nor a time is
// named.
func (h *Past) GetState(ctx context.Context, req apigen.GetStateRequestObject) (apigen.GetStateResponseObject, error) {
	var out apigen.GetState200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		row, err := treeAt(ctx, tx, found, optional.Value(req.Params.At))
		if err != nil {
			return err
		}
		out = apigen.GetState200JSONResponse{Version: int(row.Version), Cause: row.Cause, CreatedAt: row.CreatedAt}
		out.Tree, err = json.Marshal(seal.RedactLeaves(row.Tree))
		return err
	})
	return out, err
}

// DiffState answers what differs between two versions of the tree.
func (h *Past) DiffState(ctx context.Context, req apigen.DiffStateRequestObject) (apigen.DiffStateResponseObject, error) {
	var out apigen.DiffState200JSONResponse
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		from, err := treeAt(ctx, tx, found, req.Params.From)
		if err != nil {
			return err
		}
		to, err := treeAt(ctx, tx, found, optional.Value(req.Params.To))
		if err != nil {
			return err
		}
		changes, err := treediff.Compare(from.Tree, to.Tree)
		out = apigen.DiffState200JSONResponse{From: int(from.Version), To: int(to.Version), Changes: changesView(changes)}
		return err
	})
	return out, err
}

const (
	// versionsOfPage is the contract's default: each version brings its whole tree.
	versionsOfPage = 20
	// mostReasons bounds what is read to explain a page of versions.
	mostReasons = 1000
)

// ListStateVersions answers versions of the tree, each with what differs from the one
// before and why.
func (h *Past) ListStateVersions(ctx context.Context, req apigen.ListStateVersionsRequestObject) (apigen.ListStateVersionsResponseObject, error) {
	limit := versionsOfPage
	if req.Params.Limit != nil {
		limit = *req.Params.Limit
	}
	before := int64(math.MaxInt32)
	if after := optional.Value(req.Params.After); after != "" {
		var err error
		if before, err = strconv.ParseInt(after, 10, 32); err != nil {
			return nil, fault.Newf(fault.ErrInvalid, "after is not the next of a page")
		}
	}
	out := apigen.ListStateVersions200JSONResponse{Items: []apigen.StateVersion{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		found, err := installs.Find(ctx, tx, req.Install)
		if err != nil {
			return err
		}
		rows, err := tx.ListStateVersions(ctx, ctldb.ListStateVersionsParams{InstallID: found.ID, Before: int32(before), Most: int32(limit + 1)})
		if err != nil {
			return fmt.Errorf("read versions of state: %w", err)
		}
		if len(rows) == 0 {
			return nil
		}
		reasons, err := reasonsFor(ctx, tx, found, rows)
		if err != nil {
			return err
		}
		for i := range rows[:min(limit, len(rows))] {
			var older ctldb.StateVersion // the first has none, and nothing before it
			if i+1 < len(rows) {
				older = rows[i+1].StateVersion
			}
			view, err := versionView(older, rows[i], reasons)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, view)
		}
		_, out.Next = paging.Page(rows, limit, func(r ctldb.ListStateVersionsRow) string { return strconv.Itoa(int(r.StateVersion.Version)) })
		return nil
	})
	return out, err
}

// reasonsFor reads what happened while these versions came, newest first.
func reasonsFor(ctx context.Context, tx *database.Tx, install ctldb.Install, rows []ctldb.ListStateVersionsRow) ([]timeline.Entry, error) {
	var since time.Time
	if oldest := rows[len(rows)-1].StateVersion; oldest.Version > 1 {
		since = oldest.CreatedAt
	}
	return timeline.Read(ctx, tx, timeline.Query{
		Install: install, WithApp: mayReadApp(ctx, install), Since: since, Until: rows[0].StateVersion.CreatedAt.Add(time.Microsecond), Most: mostReasons,
		Kinds: []event.Kind{
			"action_run.failed", "action_run.succeeded", "change.applied", "inputs.changed", "install.updated", "runner.enrolled", "runner.revoked", "variables.changed",
		},
	})
}

func versionView(older ctldb.StateVersion, row ctldb.ListStateVersionsRow, reasons []timeline.Entry) (apigen.StateVersion, error) {
	v := row.StateVersion
	changes, err := treediff.Compare(older.Tree, v.Tree)
	if err != nil {
		return apigen.StateVersion{}, fmt.Errorf("compare version %d of state: %w", v.Version, err)
	}
	var between []timeline.Entry
	for _, e := range reasons {
		if e.At.After(older.CreatedAt) && !e.At.After(v.CreatedAt) {
			between = append(between, e)
		}
	}
	return apigen.StateVersion{
		Version: int(v.Version), Cause: v.Cause, CreatedAt: v.CreatedAt, InputsVersion: int(v.InputsVersion), Release: apiref.Number(v.ReleaseID, row.ReleaseNumber),
		Changes: changesView(changes), Because: entriesView(timeline.Because(between, changes)),
	}, nil
}

// mayReadApp says whether the caller may know what happens to the app of an install.
func mayReadApp(ctx context.Context, install ctldb.Install) bool {
	return auth.PrincipalOf(ctx).Scope(auth.AppsRead).Includes(auth.Location{AppID: install.AppID})
}
