// Package loginapi logs browsers in and out: one-time links, sessions, and their list.
package loginapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/browser"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Logins are the routes. Read and Write are as in package eventapi.
type Logins struct {
	Read  func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	Write func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) (what string, err error)) error
	Store *database.Store
	Keys  *keys.Ring
	Sites browser.Sites
	// Me says who somebody is, as GET /me does.
	Me func(ctx context.Context, tx *database.Tx, p auth.Principal) (apigen.Me, error)
	// Revoked has every replica forget a token or session.
	Revoked func(tx *database.Tx, ref string)
	// Provider is who else vouches for people; nil for nobody.
	Provider *apigen.LoginProvider
}

// current names the session that asks.
const current = "current"

// GetLoginMethods answers how one can log in.
func (l *Logins) GetLoginMethods(context.Context, apigen.GetLoginMethodsRequestObject) (apigen.GetLoginMethodsResponseObject, error) {
	return apigen.GetLoginMethods200JSONResponse{Link: true, Token: true, Oidc: l.Provider}, nil
}

// CreateLoginLink makes a link that logs a browser in as the caller.
func (l *Logins) CreateLoginLink(ctx context.Context, _ apigen.CreateLoginLinkRequestObject) (apigen.CreateLoginLinkResponseObject, error) {
	p := auth.PrincipalOf(ctx)
	var out apigen.CreateLoginLink201JSONResponse
	err := l.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		secret, expires, err := access.NewLoginLink(ctx, tx, p.TokenID)
		out = apigen.CreateLoginLink201JSONResponse{URL: l.Sites.Base() + "/ui/login#" + secret, ExpiresAt: expires.UTC()}
		return "create login link with " + p.TokenID, err
	})
	return out, err
}

// CreateBrowserSession logs a browser in.
func (l *Logins) CreateBrowserSession(ctx context.Context, req apigen.CreateBrowserSessionRequestObject) (apigen.CreateBrowserSessionResponseObject, error) {
	visit := browser.VisitOf(ctx)
	if err := cmp.Or(visit.Foreign, visit.NoSite); err != nil {
		return nil, err
	}
	link, token := optional.Value(req.Body.Link), optional.Value(req.Body.Token)
	if (link == "") == (token == "") {
		return nil, fault.Newf(fault.ErrInvalid, "send a link or a token, one of the two")
	}
	shown, prefix := link, auth.LinkPrefix
	if token != "" {
		shown, prefix = token, auth.TokenPrefix
	}
	if !auth.WellFormed(prefix, shown) {
		return nil, access.ErrBadLogin
	}
	org, err := access.OrgOfLogin(ctx, l.Store, shown)
	if err != nil {
		return nil, err
	}
	opened, err := l.open(ctx, org, func(ctx context.Context, tx *database.Tx) (access.SessionSpec, error) {
		with, err := access.UseLogin(ctx, tx, shown)
		return access.SessionSpec{MadeWith: with}, err
	})
	if err != nil {
		return nil, err
	}
	return apigen.CreateBrowserSession201JSONResponse{
		Body: opened.me, Headers: apigen.CreateBrowserSession201ResponseHeaders{SetCookie: &opened.cookie, CacheControl: new("no-store")},
	}, nil
}

// opened is a session that the browser of the request has not got yet.
type opened struct {
	me     apigen.Me
	cookie string
}

// Open makes a session for the browser of ctx, of whom login names, and answers the header
// that sets its cookie.
func (l *Logins) Open(ctx context.Context, org string, login func(context.Context, *database.Tx) (access.SessionSpec, error)) (cookie string, err error) {
	opened, err := l.open(ctx, org, login)
	return opened.cookie, err
}

// open makes a session, always with a new secret, for the browser that asks, and ends the
// one that it had: a session that somebody planted does not become anybody's.
func (l *Logins) open(ctx context.Context, org string, login func(context.Context, *database.Tx) (access.SessionSpec, error)) (out opened, err error) {
	visit := browser.VisitOf(ctx)
	err = l.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		spec, err := login(ctx, tx)
		if err != nil {
			return err
		}
		spec.UserAgent = visit.UserAgent
		made, err := access.CreateSession(ctx, tx, spec)
		if err != nil {
			return err
		}
		out.cookie = visit.Site.SetCookie(made.Secret, made.Ends)
		if out.me, err = l.Me(ctx, tx, made.Holder); err != nil {
			return err
		}
		return l.Keys.Audit(ctx, tx, made.Holder.AccountName, "log in with a browser, session "+made.Holder.TokenID)
	})
	if err != nil || visit.Session == "" {
		return out, err
	}
	return out, l.end(ctx, visit.Session, "log out by another login")
}

// end logs the session with this secret out, of whatever org; one that is not open is fine.
func (l *Logins) end(ctx context.Context, secret, why string) error {
	hash := auth.Hash(secret)
	org, err := auth.OrgOfToken(ctx, l.Store.Store, hash)
	if errors.Is(err, auth.ErrBadToken) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		ended, err := tx.EndBrowserSession(ctx, hash)
		for _, session := range ended {
			l.Revoked(tx, session.ID)
			err = errors.Join(err, l.Keys.Audit(ctx, tx, session.AccountName, why+", session "+session.ID))
		}
		return err
	})
}

// ListBrowserSessions answers the caller's sessions, those of the org to an admin.
func (l *Logins) ListBrowserSessions(ctx context.Context, req apigen.ListBrowserSessionsRequestObject) (apigen.ListBrowserSessionsResponseObject, error) {
	p := auth.PrincipalOf(ctx)
	owner := p.AccountID
	if p.Scope(auth.TokensWrite).Everywhere {
		owner = ""
	}
	limit := paging.Limit(req.Params.Limit)
	out := apigen.ListBrowserSessions200JSONResponse{Items: []apigen.BrowserSession{}}
	err := l.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		rows, err := tx.ListBrowserSessions(ctx, ctldb.ListBrowserSessionsParams{AccountID: owner, After: optional.Value(req.Params.After), Most: int32(limit + 1)})
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ListBrowserSessionsRow) string { return r.Token.ID })
		for _, row := range rows {
			out.Items = append(out.Items, view(row, p.TokenID))
		}
		return err
	})
	return out, err
}

// EndBrowserSession logs the browser that asks out, or revokes a session of the caller or,
// by an admin, of anybody.
func (l *Logins) EndBrowserSession(ctx context.Context, req apigen.EndBrowserSessionRequestObject) (apigen.EndBrowserSessionResponseObject, error) {
	p, visit := auth.PrincipalOf(ctx), browser.VisitOf(ctx)
	asking := id.Valid(id.BrowserSession, p.TokenID)
	var err error
	switch {
	case req.Session != current:
		err = l.revoke(ctx, p, req.Session)
	case asking:
		err = l.end(ctx, visit.Session, "log out")
	default:
		err = fault.Newf(fault.ErrNotFound, "this request does not come from a browser that is logged in")
	}
	var out apigen.EndBrowserSession204Response
	if asking && (req.Session == current || req.Session == p.TokenID) {
		out.Headers.SetCookie = new(visit.Site.SetCookie("", time.Time{}))
	}
	return out, err
}

// revoke ends a session that may be in wrong hands, and what was opened with it.
func (l *Logins) revoke(ctx context.Context, p auth.Principal, named string) error {
	return l.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		session, err := tx.GetBrowserSession(ctx, named)
		if err != nil {
			return "", err
		}
		if session.AccountID != p.AccountID && !p.Scope(auth.TokensWrite).Everywhere {
			return "", fault.ErrNotFound // sessions of others are not shown either
		}
		what := ""
		if session.RevokedAt == nil {
			what = "revoke session " + session.ID
			l.Revoked(tx, session.ID)
			if err := tx.RevokeToken(ctx, session.ID); err != nil {
				return "", err
			}
		}
		n, err := access.RevokeAll(ctx, tx, session.ID, access.Sessions, l.Revoked)
		if n > 0 {
			what = fmt.Sprintf("revoke session %s and %d that were opened with it", session.ID, n)
		}
		return what, err
	})
}

func view(row ctldb.ListBrowserSessionsRow, asking string) apigen.BrowserSession {
	t := row.Token
	idleEnd := t.LastUsedAt.Add(time.Duration(optional.Value(t.IdleSeconds)) * time.Second)
	ends := *t.ExpiresAt
	if idleEnd.Before(ends) {
		ends = idleEnd
	}
	return apigen.BrowserSession{
		ID: t.ID, Account: apigen.Ref{ID: t.AccountID, Name: row.AccountName}, CreatedAt: t.CreatedAt, LastUsedAt: *t.LastUsedAt, EndsAt: ends, ExpiresAt: *t.ExpiresAt,
		UserAgent: optional.Value(t.UserAgent), MadeWith: t.MadeWith, Current: t.ID == asking,
	}
}
