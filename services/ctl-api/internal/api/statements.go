package api

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// GetReleaseContents answers all that a release brings, as runners get it.
func (s *Server) GetReleaseContents(ctx context.Context, req apigen.GetReleaseContentsRequestObject) (apigen.GetReleaseContentsResponseObject, error) {
	var out apigen.GetReleaseContents200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		row, err := findRelease(ctx, tx, req.Release)
		if err != nil {
			return err
		}
		release, err := releaseview.Brings(ctx, tx.Queries, row.Release.ID)
		if err != nil {
			return err
		}
		out.OrgID, out.App = row.Release.OrgID, ref(row.Release.AppID, row.AppName)
		out.Release, err = json.Marshal(release)
		return err
	})
	return out, err
}

// AddReleaseStatement stores what the vendor signed of a release.
func (s *Server) AddReleaseStatement(ctx context.Context, req apigen.AddReleaseStatementRequestObject) (apigen.AddReleaseStatementResponseObject, error) {
	view, added, err := s.addSigned(ctx, req.Release, func(ctx context.Context, tx *database.Tx) (bool, string, error) {
		return addStatement(ctx, tx, req.Release, envelopeOf(*req.Body))
	})
	if err != nil {
		return nil, err
	}
	if added {
		return apigen.AddReleaseStatement201JSONResponse(view), nil
	}
	return apigen.AddReleaseStatement200JSONResponse(view), nil
}

// addSigned stores what the vendor signed with add, and answers the release.
func (s *Server) addSigned(ctx context.Context, ref string, add func(context.Context, *database.Tx) (added bool, what string, err error)) (view apigen.Release, added bool, err error) {
	err = s.write(ctx, func(ctx context.Context, tx *database.Tx) (what string, err error) {
		if added, what, err = add(ctx, tx); err != nil {
			return "", err
		}
		view, err = oneRelease(ctx, tx, ref)
		return what, err
	})
	return view, added, err
}

// addStatement checks a statement's form, and that it is about the release. Nobody here
// can tell whether the key that signed it counts.
func addStatement(ctx context.Context, tx *database.Tx, ref string, env capsule.Envelope) (added bool, what string, err error) {
	row, err := findRelease(ctx, tx, ref)
	if err != nil {
		return false, "", err
	}
	said, err := offer.Read(env)
	if err != nil {
		return false, "", fault.Newf(fault.ErrInvalid, "%v", err)
	}
	manifest, err := manifestView(ctx, tx, row.Release.ID)
	if err != nil {
		return false, "", err
	}
	err = about("statement", []claim{
		{"org", row.Release.OrgID, said.OrgID}, {"app", row.Release.AppID, said.AppID}, {"release", row.Release.ID, said.ReleaseID},
		{"release number", fmt.Sprint(row.Release.Number), fmt.Sprint(said.Number)}, {"manifest", manifest.Digest, said.Manifest},
	})
	if err != nil {
		return false, "", err
	}
	raw, err := json.Marshal(env)
	if err != nil {
		return false, "", err
	}
	rows, err := tx.AddReleaseStatement(ctx, ctldb.AddReleaseStatementParams{
		ReleaseID: row.Release.ID, Digest: env.PayloadDigest(), KeyID: said.KeyID, Envelope: raw, ExpiresAt: said.Expires, AddedBy: auth.PrincipalOf(ctx).AccountName,
	})
	if err != nil || rows == 0 {
		return false, "", err
	}
	n, err := tx.CountReleaseStatements(ctx, row.Release.ID)
	if err != nil {
		return false, "", err
	}
	if n > offer.MaxPerRelease {
		return false, "", fault.Newf(fault.ErrConflict, "release %d has %d statements, which is the most; make a new release", row.Release.Number, offer.MaxPerRelease)
	}
	return true, fmt.Sprintf("store statement %s about release %d of app %s", env.PayloadDigest(), row.Release.Number, row.AppName), nil
}

func envelopeOf(body apigen.SignedStatement) capsule.Envelope {
	env := capsule.Envelope{PayloadType: body.PayloadType, Payload: body.Payload}
	for _, sig := range body.Signatures {
		env.Signatures = append(env.Signatures, capsule.Signature{KeyID: sig.KeyID, Sig: sig.Sig})
	}
	return env
}

// claim is one thing that a signed document says, and what it has to say.
type claim struct{ what, want, got string }

// about checks that a signed document is about the release that it was sent for.
func about(document string, claims []claim) error {
	for _, c := range claims {
		if c.want != c.got {
			return fault.Newf(fault.ErrInvalid, "the %s is about %s %s, and this is %s", document, c.what, c.got, c.want)
		}
	}
	return nil
}

// statementViews are what was signed of a release.
func statementViews(ctx context.Context, tx *database.Tx, releaseID, manifest string) ([]apigen.ReleaseStatement, error) {
	rows, err := tx.StatementsOfRelease(ctx, releaseID)
	if err != nil {
		return nil, err
	}
	return convert(rows, func(r ctldb.ReleaseStatement) apigen.ReleaseStatement {
		var env capsule.Envelope
		_ = json.Unmarshal(r.Envelope, &env) // what cannot be read matches nothing
		said, err := offer.Read(env)
		return apigen.ReleaseStatement{
			Digest: r.Digest, KeyID: r.KeyID, ExpiresAt: r.ExpiresAt, Matches: err == nil && said.Manifest == manifest, AddedBy: r.AddedBy, AddedAt: r.AddedAt,
		}
	}), nil
}
