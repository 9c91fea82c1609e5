// Package oidclogin logs browsers in by an OpenID Connect provider: code with PKCE, state
// and nonce. The provider says who somebody is and in which groups; at each login Rules
// say which role that is in the org.
//
//	/login/oidc?to=/ui/… ─▶ cookie (state, nonce, verifier, page; sealed) ─▶ provider
//	                                                                           │
//	/login/oidc/callback ◀── code, state ──────────────────────────────────────┘
//	     │ state = cookie's? code ─▶ token ─▶ signature, audience, nonce ─▶ groups
//	     ▼
//	account of (issuer, subject), its role, a session ─▶ /ui/…
package oidclogin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/browser"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/fault"
)

const (
	// Path is where a browser begins.
	Path     = "/login/oidc"
	callback = Path + "/callback"

	// atOnce bounds the logins that wait for the provider: the callback is open to anybody.
	atOnce = 16
)

// Login are the two routes. All fields but Now are required.
type Login struct {
	Config Config
	Store  *database.Store
	Keys   *keys.Ring
	Sites  browser.Sites
	// Open makes a session for the browser of ctx and answers its cookie.
	Open func(ctx context.Context, org string, login func(context.Context, *database.Tx) (access.SessionSpec, error)) (cookie string, err error)
	// Revoked has every replica forget what it cached of an account.
	Revoked func(tx *database.Tx, ref string)
	Log     *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	rules    Rules
	provider *provider
	slots    chan struct{}

	mu  sync.Mutex
	org string // its id, once it was found
}

// Register adds the routes. Config.Validate has passed the settings.
func (l *Login) Register(router gin.IRouter) error {
	roles, err := ParseRoles(l.Config.Roles)
	if err != nil {
		return err
	}
	if l.Now == nil {
		l.Now = time.Now
	}
	l.rules = Rules{Roles: roles, FirstAdmin: l.Config.FirstAdmin}
	l.provider = newProvider(l.Config, l.Sites.Base()+callback)
	l.slots = make(chan struct{}, atOnce)
	router.GET(Path, l.begin)
	router.GET(callback, l.finish)
	return nil
}

// begin sends the browser to the provider.
func (l *Login) begin(c *gin.Context) {
	ctx := c.Request.Context()
	site, err := l.Sites.Of(c.Request.Host)
	if base := l.Sites.Base(); site.Base != base && (err == nil || l.Sites.Configured()) {
		// The provider knows one address to come back to, and cookies stay at theirs.
		c.Redirect(http.StatusFound, base+Path+"?to="+url.QueryEscape(pageOf(c.Query("to"))))
		return
	}
	if err != nil {
		problem(c, http.StatusForbidden, "This address cannot be logged in at", fault.From(err).Detail)
		return
	}
	org, err := l.orgID(ctx)
	if err != nil {
		l.failed(c, err)
		return
	}
	s := newState(c.Query("to"), l.Now())
	to, err := l.provider.address(ctx, s)
	if err != nil {
		l.failed(c, err)
		return
	}
	sealed, err := s.sealed(l.Keys, org)
	if err != nil {
		l.failed(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	http.SetCookie(c.Writer, setCookie(site, sealed, stateLife))
	c.Redirect(http.StatusFound, to)
}

// finish is where the provider sends the browser.
func (l *Login) finish(c *gin.Context) {
	c.Request = l.Sites.Context(c.Request)
	ctx := c.Request.Context()
	site, err := l.Sites.Of(c.Request.Host)
	if err != nil {
		problem(c, http.StatusForbidden, "This address cannot be logged in at", fault.From(err).Detail)
		return
	}
	cookies := c.Request.CookiesNamed(cookieOf(site))
	http.SetCookie(c.Writer, setCookie(site, "", 0)) // one try for each beginning
	org, err := l.orgID(ctx)
	if err != nil {
		l.failed(c, err)
		return
	}
	if len(cookies) != 1 {
		l.failed(c, errNoState)
		return
	}
	s, err := openState(l.Keys, org, cookies[0].Value, c.Query("state"), l.Now())
	if err != nil {
		l.failed(c, err)
		return
	}
	who, err := l.ask(c, s)
	if err != nil {
		l.failed(c, err)
		return
	}
	account, err := l.recognise(ctx, org, who)
	if err != nil {
		l.failed(c, err)
		return
	}
	cookie, err := l.Open(ctx, org, func(context.Context, *database.Tx) (access.SessionSpec, error) {
		return access.SessionSpec{AccountID: account}, nil
	})
	if err != nil {
		l.failed(c, err)
		return
	}
	c.Header("Cache-Control", "no-store")
	c.Writer.Header().Add("Set-Cookie", cookie)
	c.Redirect(http.StatusFound, pageOf(s.To))
}

// refusal is the provider saying no.
type refusal struct{ code string }

func (r refusal) Error() string { return "the provider refuses the login: " + r.code }

// ask changes the code of the request for a person.
func (l *Login) ask(c *gin.Context, s state) (Person, error) {
	if code := c.Query("error"); code != "" {
		return Person{}, refusal{code}
	}
	if issuer := c.Query("iss"); issuer != "" && issuer != l.Config.Issuer {
		return Person{}, fmt.Errorf("%w: another issuer", errUntrusted)
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), 2*askTimeout)
	defer cancel()
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
		return Person{}, ctx.Err()
	}
	return l.provider.person(ctx, c.Query("code"), s)
}

// failed answers with a page, and logs what an operator should know.
func (l *Login) failed(c *gin.Context, err error) {
	var no refusal
	switch {
	case errors.As(err, &no):
		problem(c, http.StatusForbidden, "You are not logged in", "The identity provider did not let you in"+saidSo(no.code)+".")
	case errors.Is(err, errNoState):
		problem(c, http.StatusBadRequest, "This login is over", "It began in another browser or more than ten minutes ago. Begin again.")
	case errors.Is(err, errUntrusted):
		l.Log.WarnContext(c.Request.Context(), "login refused", "issuer", l.Config.Issuer, "err", err)
		problem(c, http.StatusBadRequest, "You are not logged in", "What the identity provider answered does not belong to this login. Begin again.")
	case errors.Is(err, errNoRole):
		problem(c, http.StatusForbidden, "You have no access", l.whoGetsIn())
	case errors.Is(err, errRemoved):
		problem(c, http.StatusForbidden, "You have no access", "An admin removed your account from this org.")
	default:
		l.Log.WarnContext(c.Request.Context(), "login failed", "issuer", l.Config.Issuer, "err", err)
		problem(c, http.StatusServiceUnavailable, "You cannot be logged in now", "Berth cannot reach its identity provider, or is not set up for it. Try again; an operator finds the reason in the log of ctl-api.")
	}
}

func (l *Login) whoGetsIn() string {
	groups := l.rules.Groups()
	if len(groups) == 0 {
		return "Your identity provider knows you, but nobody else has access yet."
	}
	return "Your identity provider knows you, but you are in none of the groups with access: " + strings.Join(groups, ", ") + ". Ask who manages them."
}

// saidSo repeats an error code of the provider, if it is one.
func saidSo(code string) string {
	if len(code) > 64 || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz_") != "" {
		return ""
	}
	return " (" + code + ")"
}

// orgID finds the org of the settings.
func (l *Login) orgID(ctx context.Context) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.org != "" {
		return l.org, nil
	}
	org, err := access.OrgNamed(ctx, l.Store, l.Config.Org)
	if err == nil && org == "" {
		err = fmt.Errorf("BERTH_OIDC_ORG: there is no org %q", l.Config.Org)
	}
	l.org = cmp.Or(l.org, org)
	return org, err
}
