package api

import (
	"context"
	"strconv"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apps"
	"github.com/berth-dev/berth/services/ctl-api/internal/configdiff"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
)

// DiffConfigs compares two configs of an app.
func (s *Server) DiffConfigs(ctx context.Context, req apigen.DiffConfigsRequestObject) (apigen.DiffConfigsResponseObject, error) {
	var out apigen.DiffConfigs200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		from, err := findConfig(ctx, tx, req.Config)
		if err != nil {
			return err
		}
		to, err := findConfig(ctx, tx, referenceIn(from.AppName, req.Params.To))
		if err != nil {
			return err
		}
		if err := sameApp(from.Config.AppID, to.Config.AppID); err != nil {
			return err
		}
		before, err := apps.VersionOfConfig(ctx, tx, from.Config)
		if err != nil {
			return err
		}
		after, err := apps.VersionOfConfig(ctx, tx, to.Config)
		out = apigen.DiffConfigs200JSONResponse{
			App:  ref(from.Config.AppID, from.AppName),
			From: apigen.NumberRef{ID: from.Config.ID, Number: int(from.Config.Number)}, To: apigen.NumberRef{ID: to.Config.ID, Number: int(to.Config.Number)},
			Changes: convert(configdiff.Compare(before, after), diffObject),
		}
		return err
	})
	return out, err
}

// DiffReleases compares two releases of an app.
func (s *Server) DiffReleases(ctx context.Context, req apigen.DiffReleasesRequestObject) (apigen.DiffReleasesResponseObject, error) {
	var out apigen.DiffReleases200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		from, err := findRelease(ctx, tx, req.Release)
		if err != nil {
			return err
		}
		to, err := findRelease(ctx, tx, referenceIn(from.AppName, req.Params.To))
		if err != nil {
			return err
		}
		if err := sameApp(from.Release.AppID, to.Release.AppID); err != nil {
			return err
		}
		before, err := apps.VersionOfRelease(ctx, tx, from.Release)
		if err != nil {
			return err
		}
		after, err := apps.VersionOfRelease(ctx, tx, to.Release)
		out = apigen.DiffReleases200JSONResponse{
			App:  ref(from.Release.AppID, from.AppName),
			From: apigen.NumberRef{ID: from.Release.ID, Number: int(from.Release.Number)}, To: apigen.NumberRef{ID: to.Release.ID, Number: int(to.Release.Number)},
			Changes: convert(configdiff.Compare(before, after), diffObject),
		}
		return err
	})
	return out, err
}

// referenceIn reads "5" as the number 5 of the same app, and leaves other references
// as they are.
func referenceIn(app, to string) string {
	if _, err := strconv.ParseUint(to, 10, 31); err == nil {
		return app + "@" + to
	}
	return to
}

func sameApp(from, to string) error {
	if from == to {
		return nil
	}
	return fault.With(fault.Newf(fault.ErrInvalid, "these belong to two different apps"), fault.Code("two_apps"),
		fault.Remedy("compare two from the same app"))
}

func diffObject(o configdiff.Object) apigen.DiffObject {
	return apigen.DiffObject{
		Kind: apigen.DiffObjectKind(o.Kind), Name: o.Name, Change: apigen.DiffObjectChange(o.Change), Build: o.Build, Deploy: o.Deploy,
		Fields: convert(o.Fields, func(f configdiff.Field) apigen.FieldChange {
			return apigen.FieldChange{Path: f.Path, Before: f.Before, After: f.After}
		}),
	}
}
