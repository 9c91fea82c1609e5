package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// AddReleaseRevocation stores that the vendor revoked a release, and has the settings of
// the app's installs say so.
func (s *Server) AddReleaseRevocation(ctx context.Context, req apigen.AddReleaseRevocationRequestObject) (apigen.AddReleaseRevocationResponseObject, error) {
	view, added, err := s.addSigned(ctx, req.Release, func(ctx context.Context, tx *database.Tx) (bool, string, error) {
		return addRevocation(ctx, tx, req.Release, envelopeOf(*req.Body))
	})
	if err != nil {
		return nil, err
	}
	if added {
		return apigen.AddReleaseRevocation201JSONResponse(view), nil
	}
	return apigen.AddReleaseRevocation200JSONResponse(view), nil
}

// addRevocation checks a revocation's form, and that it is about the release. Nobody here
// can tell whether the key that signed it counts.
func addRevocation(ctx context.Context, tx *database.Tx, ref string, env capsule.Envelope) (added bool, what string, err error) {
	row, err := findRelease(ctx, tx, ref)
	if err != nil {
		return false, "", err
	}
	said, err := offer.ReadRevocation(env)
	if err != nil {
		return false, "", fault.Newf(fault.ErrInvalid, "%v", err)
	}
	err = about("revocation", []claim{
		{"org", row.Release.OrgID, said.OrgID}, {"app", row.Release.AppID, said.AppID}, {"release", row.Release.ID, said.ReleaseID},
		{"release number", fmt.Sprint(row.Release.Number), fmt.Sprint(said.Number)},
	})
	if err != nil {
		return false, "", err
	}
	raw, err := json.Marshal(env)
	if err != nil {
		return false, "", err
	}
	rows, err := tx.AddReleaseRevocation(ctx, ctldb.AddReleaseRevocationParams{
		ReleaseID: row.Release.ID, Digest: env.PayloadDigest(), KeyID: said.KeyID, Reason: said.Reason, Envelope: raw, IssuedAt: said.Issued,
		AddedBy: auth.PrincipalOf(ctx).AccountName,
	})
	if err != nil || rows == 0 {
		return false, "", err
	}
	n, err := tx.CountReleaseRevocations(ctx, row.Release.ID)
	if err != nil {
		return false, "", err
	}
	if n > offer.MaxPerRelease {
		return false, "", fault.Newf(fault.ErrConflict, "release %d has %d revocations, which is the most", row.Release.Number, offer.MaxPerRelease)
	}
	what = fmt.Sprintf("store revocation %s of release %d of app %s", env.PayloadDigest(), row.Release.Number, row.AppName)
	return true, what, tx.WakeInstallsOfApp(ctx, row.Release.AppID)
}

// revocationViews are what was signed against a release.
func revocationViews(ctx context.Context, tx *database.Tx, releaseID string) ([]apigen.ReleaseRevocation, error) {
	rows, err := tx.RevocationsOfRelease(ctx, releaseID)
	if err != nil {
		return nil, err
	}
	return convert(rows, func(r ctldb.ReleaseRevocation) apigen.ReleaseRevocation {
		return apigen.ReleaseRevocation{Digest: r.Digest, KeyID: r.KeyID, Reason: r.Reason, IssuedAt: r.IssuedAt, AddedBy: r.AddedBy, AddedAt: r.AddedAt}
	}), nil
}
