package api

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ListOrgs answers the org that the token opens.
func (s *Server) ListOrgs(ctx context.Context, _ apigen.ListOrgsRequestObject) (apigen.ListOrgsResponseObject, error) {
	var out apigen.ListOrgs200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		org, err := tx.GetOrg(ctx)
		out.Items = []apigen.Org{orgView(org)}
		return err
	})
	return out, err
}

// CreateOrg makes an org. It is recorded in the new org's chain and in that of
// the caller.
func (s *Server) CreateOrg(ctx context.Context, req apigen.CreateOrgRequestObject) (apigen.CreateOrgResponseObject, error) {
	made, err := access.CreateOrg(ctx, s.Store, s.Keys, access.OrgSpec{
		Name: req.Body.Name, Admin: req.Body.Admin, Roles: []auth.Role{auth.RoleAdmin}, Actor: auth.PrincipalOf(ctx).AccountName,
	})
	if err != nil {
		return nil, err
	}
	err = s.write(ctx, func(context.Context, *database.Tx) (string, error) { return "create org " + made.Org.Name, nil })
	if err != nil {
		return nil, err
	}
	return apigen.CreateOrg201JSONResponse{
		Org: orgView(made.Org), Admin: ref(made.Admin.ID, made.Admin.Name),
		Token: apigen.TokenSecret{Token: tokenView(made.Token.Row, made.Admin.Name), Secret: made.Token.Secret},
	}, nil
}

// ListKeys answers public keys.
func (s *Server) ListKeys(ctx context.Context, req apigen.ListKeysRequestObject) (apigen.ListKeysResponseObject, error) {
	var out apigen.ListKeys200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ListKeys(ctx, string(optional.Value(req.Params.Purpose)))
		out.Items = convert(rows, func(k ctldb.ListKeysRow) apigen.Key {
			return apigen.Key{
				ID: k.ID, KeyID: k.KeyID, Purpose: apigen.KeyPurpose(k.Purpose), Algorithm: apigen.KeyAlgorithm(k.Algorithm),
				PublicKey: k.PublicKey, InstallID: k.InstallID, CreatedAt: k.CreatedAt, RetiredAt: k.RetiredAt,
			}
		})
		return err
	})
	return out, err
}

// ListChainRecords answers the stored bytes of a chain.
func (s *Server) ListChainRecords(ctx context.Context, req apigen.ListChainRecordsRequestObject) (apigen.ListChainRecordsResponseObject, error) {
	out := apigen.ListChainRecords200JSONResponse{Items: []apigen.ChainRecord{}}
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		chain := tx.OrgID()
		if req.Chain != "org" && req.Chain != chain {
			install, err := installs.Find(ctx, tx, req.Chain)
			if err != nil {
				return err
			}
			chain = install.ID
		}
		head, err := tx.GetChainHead(ctx, chain)
		if errors.Is(err, fault.ErrNotFound) {
			return nil // nothing was recorded yet
		}
		if err != nil {
			return err
		}
		out.HeadSeq, out.HeadHash = head.Seq, hex.EncodeToString(head.Hash)
		rows, err := tx.ListChainRecords(ctx, ctldb.ListChainRecordsParams{Chain: chain, AfterSeq: optional.Value(req.Params.AfterSeq), Most: int32(paging.Limit(req.Params.Limit))})
		out.Items = convert(rows, func(r ctldb.ListChainRecordsRow) apigen.ChainRecord {
			return apigen.ChainRecord{Seq: r.Seq, Hash: hex.EncodeToString(r.Hash), Body: base64.StdEncoding.EncodeToString(r.Body), RecordedAt: r.RecordedAt}
		})
		return err
	})
	return out, err
}

func orgView(o ctldb.Org) apigen.Org {
	return apigen.Org{ID: o.OrgID, Name: o.Name, CreatedAt: o.CreatedAt}
}
