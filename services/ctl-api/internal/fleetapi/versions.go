package fleetapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/releaselist"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// uploadTime is how long a token pushes: enough for an archive over a slow line.
const uploadTime = time.Hour

// CreateRunnerVersionUpload makes a token that pushes versions of the runner.
func (h *Fleet) CreateRunnerVersionUpload(ctx context.Context, _ apigen.CreateRunnerVersionUploadRequestObject) (apigen.CreateRunnerVersionUploadResponseObject, error) {
	p := auth.PrincipalOf(ctx)
	address, err := url.Parse(h.RegistryURL)
	if err != nil {
		return nil, errors.New("BERTH_REGISTRY_URL cannot be read") // Config.Validate has refused it
	}
	token, hash := auth.NewSecret(auth.RegistryPrefix)
	out := apigen.CreateRunnerVersionUpload201JSONResponse{
		Host: address.Host, PlainHTTP: address.Scheme == "http", Username: p.AccountName, Secret: token, Repositories: oci.RunnerVersions(p.OrgID),
	}
	err = h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		expires, err := tx.AddRegistryToken(ctx, ctldb.AddRegistryTokenParams{
			Hash: hash, TokenID: p.TokenID, Actions: []string{"pull", "push"}, Repositories: out.Repositories, Seconds: uploadTime.Seconds(),
		})
		if errors.Is(err, fault.ErrNotFound) {
			return "", fault.Newf(fault.ErrForbidden, "the token of this request was revoked")
		}
		out.ExpiresAt = expires.UTC()
		return "create token of " + p.AccountName + " to push runner versions", err
	})
	return out, err
}

// AddRunnerVersion offers a version of the runner. What its list says is taken from it
// unverified: only runners decide whose releases they run.
func (h *Fleet) AddRunnerVersion(ctx context.Context, req apigen.AddRunnerVersionRequestObject) (apigen.AddRunnerVersionResponseObject, error) {
	list, signedBy, err := releaselist.Claimed([]byte(req.Body.List))
	if err != nil {
		return nil, fault.Newf(fault.ErrInvalid, "list: %v", err)
	}
	if !version.Released(list.Version) {
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "the list is of version %q, and runners run releases: 1.4.0", list.Version),
			fault.Remedy("make the release with a version: make release BERTH_VERSION=1.4.0"))
	}
	name := releaselist.RunnerArchive(list.Version, req.Body.Platform)
	if _, found := list.File(name); !found {
		return nil, fault.Newf(fault.ErrInvalid, "the release has no %s", name)
	}
	p := auth.PrincipalOf(ctx)
	var out apigen.RunnerVersion
	err = h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		row, err := tx.PutRunnerVersion(ctx, ctldb.PutRunnerVersionParams{
			Version: list.Version, Platform: req.Body.Platform, Repository: oci.RunnerVersions(p.OrgID), Digest: req.Body.Digest,
			SizeBytes: req.Body.SizeBytes, List: req.Body.List, SignedBy: append([]string{}, signedBy...), CreatedBy: p.AccountName,
		})
		out = runnerVersionView(row)
		return fmt.Sprintf("offer runner version %s for %s", list.Version, req.Body.Platform), err
	})
	return apigen.AddRunnerVersion201JSONResponse(out), err
}

// ListRunnerVersions answers what is on offer.
func (h *Fleet) ListRunnerVersions(ctx context.Context, _ apigen.ListRunnerVersionsRequestObject) (apigen.ListRunnerVersionsResponseObject, error) {
	out := apigen.ListRunnerVersions200JSONResponse{Items: []apigen.RunnerVersion{}}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.RunnerVersions(ctx, "")
		for _, row := range rows {
			out.Items = append(out.Items, runnerVersionView(row))
		}
		return err
	})
	return out, err
}

// RemoveRunnerVersion takes a version off offer.
func (h *Fleet) RemoveRunnerVersion(ctx context.Context, req apigen.RemoveRunnerVersionRequestObject) (apigen.RemoveRunnerVersionResponseObject, error) {
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		platforms, err := tx.RemoveRunnerVersion(ctx, req.RunnerVersion)
		if err == nil && len(platforms) == 0 {
			err = fault.Newf(fault.ErrNotFound, "there is no runner version %q on offer", req.RunnerVersion)
		}
		return "withdraw runner version " + req.RunnerVersion + " for " + strings.Join(platforms, ", "), err
	})
	return apigen.RemoveRunnerVersion204Response{}, err
}

func runnerVersionView(r ctldb.RunnerVersion) apigen.RunnerVersion {
	return apigen.RunnerVersion{
		Version: r.Version, Platform: r.Platform, Digest: r.Digest, SizeBytes: r.SizeBytes, SignedBy: r.SignedBy,
		CreatedBy: r.CreatedBy, CreatedAt: r.CreatedAt.UTC(),
	}
}

// NewestFor is the newest version on offer for a runner, "" when that is not newer than
// the one it runs.
func NewestFor(r ctldb.Runner, offered []ctldb.RunnerVersion) string {
	var facts struct{ OS, Arch string }
	if json.Unmarshal(r.Facts, &facts) != nil {
		return ""
	}
	newest := ""
	for _, o := range offered {
		if o.Platform == facts.OS+"_"+facts.Arch && version.Newer(o.Version, r.Version) && (newest == "" || version.Newer(o.Version, newest)) {
			newest = o.Version
		}
	}
	return newest
}
