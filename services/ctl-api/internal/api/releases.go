package api

import (
	"context"
	"fmt"
	"strconv"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/apps"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListReleases answers the releases of an app, newest first.
func (s *Server) ListReleases(ctx context.Context, req apigen.ListReleasesRequestObject) (apigen.ListReleasesResponseObject, error) {
	limit := paging.Limit(req.Params.Limit)
	before, err := beforeNumber(req.Params.After)
	if err != nil {
		return nil, err
	}
	var out apigen.ListReleases200JSONResponse
	err = s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		app, err := findApp(ctx, tx, req.App)
		if err != nil {
			return err
		}
		rows, err := tx.ShowReleases(ctx, ctldb.ShowReleasesParams{AppID: app.ID, Before: before, Most: int32(limit + 1)})
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ShowReleasesRow) string { return strconv.Itoa(int(r.Release.Number)) })
		out.Items = convert(rows, releaseView)
		return err
	})
	return out, err
}

// CreateRelease makes a release of chosen builds.
func (s *Server) CreateRelease(ctx context.Context, req apigen.CreateReleaseRequestObject) (apigen.CreateReleaseResponseObject, error) {
	var view apigen.Release
	var made bool
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		release, fresh, err := apps.Promote(ctx, tx, apps.Promotion{App: req.App, Config: optional.Value(req.Body.Config), Builds: req.Body.Builds})
		if err != nil {
			return "", err
		}
		if view, err = oneRelease(ctx, tx, release.ID); err != nil {
			return "", err
		}
		if made = fresh; !made {
			return "", nil
		}
		return fmt.Sprintf("make release %d of app %s", view.Number, view.App.Name), nil
	})
	if err != nil {
		return nil, err
	}
	if made {
		return apigen.CreateRelease201JSONResponse(view), nil
	}
	return apigen.CreateRelease200JSONResponse(view), nil
}

// GetRelease answers one release.
func (s *Server) GetRelease(ctx context.Context, req apigen.GetReleaseRequestObject) (apigen.GetReleaseResponseObject, error) {
	var out apigen.GetRelease200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		view, err := oneRelease(ctx, tx, req.Release)
		out = apigen.GetRelease200JSONResponse(view)
		return err
	})
	return out, err
}

// findRelease finds a release by id or as "hello@4".
func findRelease(ctx context.Context, tx *database.Tx, ref string) (ctldb.ShowReleasesRow, error) {
	find := ctldb.ShowReleasesParams{ID: ref, Most: 1}
	if app, number, ok := numbered(ref); ok {
		find = ctldb.ShowReleasesParams{AppName: app, Number: number, Most: 1}
	}
	rows, err := tx.ShowReleases(ctx, find)
	if err != nil {
		return ctldb.ShowReleasesRow{}, err
	}
	if ref == "" || len(rows) == 0 {
		return ctldb.ShowReleasesRow{}, fault.Newf(fault.ErrNotFound, "there is no release %q", ref)
	}
	return rows[0], nil
}

// oneRelease answers a release with its items.
func oneRelease(ctx context.Context, tx *database.Tx, ref string) (apigen.Release, error) {
	row, err := findRelease(ctx, tx, ref)
	if err != nil {
		return apigen.Release{}, err
	}
	view := releaseView(row)
	items, err := tx.ShowReleaseItems(ctx, view.ID)
	view.Items = convert(items, func(it ctldb.ShowReleaseItemsRow) apigen.ReleaseItem {
		return apigen.ReleaseItem{
			Component: it.Name, Kind: apigen.ReleaseItemKind(it.Kind), Type: it.Type, BuildID: it.BuildID,
			Artifact: apigen.Artifact{Repository: it.ArtifactRepository, Digest: it.ArtifactDigest, SizeBytes: it.ArtifactSizeBytes},
		}
	})
	if err != nil {
		return view, err
	}
	if view.Manifest, err = manifestView(ctx, tx, view.ID); err != nil {
		return view, err
	}
	if view.Statements, err = statementViews(ctx, tx, view.ID, view.Manifest.Digest); err != nil {
		return view, err
	}
	view.Revocations, err = revocationViews(ctx, tx, view.ID)
	return view, err
}

// manifestView is what a runner accepts of a release, by digest.
func manifestView(ctx context.Context, tx *database.Tx, releaseID string) (*apigen.ReleaseManifest, error) {
	release, err := releaseview.Brings(ctx, tx.Queries, releaseID)
	if err != nil {
		return nil, err
	}
	manifest, err := release.Manifest()
	if err != nil {
		return nil, fault.Newf(fault.ErrConflict, "the release has a script that cannot be accepted: %v", err)
	}
	digest, err := manifest.Digest()
	return &apigen.ReleaseManifest{Digest: digest, Items: convert(manifest.Items, func(i jobspec.ManifestItem) apigen.ManifestItem {
		return apigen.ManifestItem{Kind: apigen.ManifestItemKind(i.Kind), Name: i.Name, Digest: i.Digest}
	})}, err
}

func releaseView(r ctldb.ShowReleasesRow) apigen.Release {
	return apigen.Release{
		ID: r.Release.ID, App: ref(r.Release.AppID, r.AppName), Number: int(r.Release.Number),
		Config: apigen.NumberRef{ID: r.Release.ConfigID, Number: int(r.ConfigNumber)}, MadeBy: apigen.ReleaseMadeBy(r.Release.MadeBy),
		Digest: r.Release.Digest, SyncedBy: r.SyncedBy, SyncedAt: r.SyncedAt, CreatedAt: r.Release.CreatedAt,
		Origin: originView(r), Signed: r.Signed, Revoked: r.Revoked,
	}
}

// originView is nil where nothing is known.
func originView(r ctldb.ShowReleasesRow) *apigen.Origin {
	if r.Message == "" && r.GitCommit == "" {
		return nil
	}
	return &apigen.Origin{Message: r.Message, Commit: r.GitCommit, Author: r.GitAuthor, Modified: r.GitModified}
}
