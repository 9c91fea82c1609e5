package api

import (
	"context"
	"fmt"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// GetMe answers who the caller is.
func (s *Server) GetMe(ctx context.Context, _ apigen.GetMeRequestObject) (apigen.GetMeResponseObject, error) {
	var out apigen.Me
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		out, err = s.meView(ctx, tx, auth.PrincipalOf(ctx))
		return err
	})
	return apigen.GetMe200JSONResponse(out), err
}

func (s *Server) meView(ctx context.Context, tx *database.Tx, p auth.Principal) (apigen.Me, error) {
	out := apigen.Me{
		Account: ref(p.AccountID, p.AccountName), Grants: convert(p.Grants, grantView), TokenID: p.TokenID, Version: s.Version, LogURL: s.LogURL,
	}
	account, err := tx.FindAccount(ctx, p.AccountID)
	if err != nil {
		return out, err
	}
	org, err := tx.GetOrg(ctx)
	out.Kind, out.Org = apigen.MeKind(account.Kind), ref(org.OrgID, org.Name)
	return out, err
}

// ListTokens answers the caller's tokens, those of the org to an admin.
func (s *Server) ListTokens(ctx context.Context, req apigen.ListTokensRequestObject) (apigen.ListTokensResponseObject, error) {
	p := auth.PrincipalOf(ctx)
	owner := p.AccountID
	if p.Scope(auth.TokensWrite).Everywhere {
		owner = ""
	}
	limit := paging.Limit(req.Params.Limit)
	var out apigen.ListTokens200JSONResponse
	err := s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ListTokens(ctx, ctldb.ListTokensParams{AccountID: owner, After: optional.Value(req.Params.After), Most: int32(limit + 1)})
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ListTokensRow) string { return r.Token.ID })
		out.Items = convert(rows, func(r ctldb.ListTokensRow) apigen.Token { return tokenView(r.Token, r.AccountName) })
		return err
	})
	return out, err
}

// CreateToken makes a token for the caller or, by an admin, for another member.
func (s *Server) CreateToken(ctx context.Context, req apigen.CreateTokenRequestObject) (apigen.CreateTokenResponseObject, error) {
	p := auth.PrincipalOf(ctx)
	var expires *time.Time
	if days := req.Body.ExpiresInDays; days != nil {
		at := s.now().Add(time.Duration(*days) * 24 * time.Hour)
		expires = &at
	}
	var out apigen.CreateToken201JSONResponse
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		owner, err := tx.FindAccount(ctx, p.AccountID)
		if err != nil {
			return "", err
		}
		if member := optional.Value(req.Body.Member); member != "" && member != owner.ID && member != owner.Name {
			if !p.Scope(auth.TokensWrite).Everywhere {
				return "", fault.Newf(fault.ErrForbidden, "only an admin can make tokens for others")
			}
			if owner, err = findMember(ctx, tx, member); err != nil {
				return "", err
			}
		}
		made, err := access.CreateToken(ctx, tx, access.TokenSpec{AccountID: owner.ID, Name: req.Body.Name, Expires: expires, MadeWith: p.TokenID})
		if err != nil {
			return "", err
		}
		out = apigen.CreateToken201JSONResponse{Token: tokenView(made.Row, owner.Name), Secret: made.Secret}
		return "create token " + made.Row.ID + " of " + owner.Name, nil
	})
	return out, err
}

// RevokeToken ends a token of the caller or, by an admin, of anybody.
func (s *Server) RevokeToken(ctx context.Context, req apigen.RevokeTokenRequestObject) (apigen.RevokeTokenResponseObject, error) {
	p := auth.PrincipalOf(ctx)
	err := s.write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		token, err := tx.GetToken(ctx, req.Token)
		if err != nil {
			return "", err
		}
		if token.AccountID != p.AccountID && !p.Scope(auth.TokensWrite).Everywhere {
			return "", fault.ErrNotFound // tokens of others are not shown either
		}
		what := ""
		if token.RevokedAt == nil {
			what = "revoke token " + token.ID
			s.revoked(tx, token.ID)
			if err := tx.RevokeToken(ctx, token.ID); err != nil {
				return "", err
			}
		}
		kind, noun := access.Sessions, "browser sessions"
		if optional.Value(req.Params.MadeWithIt) {
			kind, noun = access.TokensAndSessions, "tokens and browser sessions"
		}
		n, err := access.RevokeAll(ctx, tx, token.ID, kind, s.revoked)
		if n > 0 {
			what = fmt.Sprintf("revoke token %s and %d %s that were made with it", token.ID, n, noun)
		}
		return what, err
	})
	if err != nil {
		return nil, err
	}
	return apigen.RevokeToken204Response{}, nil
}

// revoked has every replica drop what it cached of a token or account.
func (s *Server) revoked(tx *database.Tx, ref string) {
	tx.AfterCommit(func() { s.Auth.Revoked(ref) })
	tx.NotifyAfterCommit(model.ChannelRevoked, ref)
}

func tokenView(t ctldb.Token, account string) apigen.Token {
	return apigen.Token{
		ID: t.ID, Name: t.Name, Prefix: t.Prefix, Account: ref(t.AccountID, account),
		CreatedAt: t.CreatedAt, ExpiresAt: t.ExpiresAt, LastUsedAt: t.LastUsedAt, RevokedAt: t.RevokedAt, MadeWith: t.MadeWith,
	}
}

func grantView(g auth.Grant) apigen.Grant {
	return apigen.Grant{Role: apigen.Role(g.Role), CustomerID: optional.Of(g.CustomerID), AppID: optional.Of(g.AppID), InstallID: optional.Of(g.InstallID)}
}
