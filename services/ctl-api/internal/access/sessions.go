package access

import (
	"context"
	"errors"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// sessionLife is how long a browser stays logged in, however much it is used.
	sessionLife = 14 * 24 * time.Hour
	// sessionIdle is how long it may go unused: a long weekend.
	sessionIdle = 3 * 24 * time.Hour
	// linkLife is enough to open a link that was just made.
	linkLife = 60 * time.Second

	// shownOfSession are the characters of a session's secret that are kept in clear: none
	// of its own, since nobody compares it with a cookie by eye.
	shownOfSession = len(auth.BrowserPrefix)
)

// ErrBadLogin answers every link and every token that logs nobody in.
var ErrBadLogin = fault.With(fault.Newf(fault.ErrUnauthenticated, "this link or token is unknown, used, expired or revoked"),
	fault.Code("bad_login"), fault.Remedy("make a new link with `berth ui`; each works once, for a minute"))

// NewLoginLink makes the secret of a link that logs a browser in as the token's account.
func NewLoginLink(ctx context.Context, tx *database.Tx, tokenID string) (secret string, expires time.Time, err error) {
	if err := tx.DropOldLoginLinks(ctx); err != nil {
		return "", expires, err
	}
	secret, hash := auth.NewSecret(auth.LinkPrefix)
	expires, err = tx.InsertLoginLink(ctx, ctldb.InsertLoginLinkParams{Hash: hash, MadeWith: tokenID, Seconds: linkLife.Seconds()})
	return secret, expires, err
}

// OrgOfLogin is the org of a link or token; ErrBadLogin when there is none.
func OrgOfLogin(ctx context.Context, st *database.Store, shown string) (string, error) {
	hash := auth.Hash(shown)
	var org string
	var err error
	switch {
	case auth.WellFormed(auth.LinkPrefix, shown):
		org, err = auth.OrgOf(ctx, st.Store, func(ctx context.Context, tx *store.Tx) (string, error) {
			return ctldb.New(tx.DB()).OrgOfLoginLink(ctx, hash)
		})
	case auth.WellFormed(auth.TokenPrefix, shown):
		org, err = auth.OrgOfToken(ctx, st.Store, hash)
	default:
		return "", ErrBadLogin
	}
	return org, badLogin(err)
}

// UseLogin uses a link up, or looks a token up, and answers the id of the token or session
// that is behind it.
func UseLogin(ctx context.Context, tx *database.Tx, shown string) (madeWith string, err error) {
	hash := auth.Hash(shown)
	if auth.WellFormed(auth.LinkPrefix, shown) {
		link, err := tx.TakeLoginLink(ctx, hash)
		if err == nil && !link.Good {
			err = ErrBadLogin
		}
		return link.MadeWith, badLogin(err)
	}
	p, _, err := auth.User(ctx, tx.Tx, hash)
	return p.TokenID, badLogin(err)
}

// badLogin hides which of the ways in which a login can be bad it was.
func badLogin(err error) error {
	if errors.Is(err, auth.ErrBadToken) || errors.Is(err, fault.ErrNotFound) {
		return ErrBadLogin
	}
	return err
}

// NewSession is a session of a browser whose secret has not been shown yet.
type NewSession struct {
	Secret string
	Ends   time.Time
	Holder auth.Principal
}

// SessionSpec is a session to be made.
type SessionSpec struct {
	// MadeWith is the token or session that opens it, which must be good now. It is
	// empty when an identity provider said who it is, and then AccountID is not.
	MadeWith, AccountID string
	UserAgent           string
}

// CreateSession makes a session. It never lasts longer than what it was made with.
func CreateSession(ctx context.Context, tx *database.Tx, spec SessionSpec) (made NewSession, err error) {
	secret, hash := auth.NewSecret(auth.BrowserPrefix)
	row := ctldb.InsertBrowserSessionParams{
		ID: id.New(id.BrowserSession), AccountID: spec.AccountID, Prefix: secret[:shownOfSession], Hash: hash, Seconds: sessionLife.Seconds(),
		IdleSeconds: int32(sessionIdle.Seconds()), UserAgent: spec.UserAgent, MadeWith: optional.Of(spec.MadeWith),
	}
	if spec.MadeWith != "" {
		parent, err := tx.LockGoodToken(ctx, spec.MadeWith)
		if err != nil {
			return made, badLogin(err)
		}
		row.AccountID, row.NotAfter = parent.AccountID, parent.ExpiresAt
	}
	session, err := tx.InsertBrowserSession(ctx, row)
	if err != nil {
		return made, err
	}
	made = NewSession{Secret: secret, Ends: *session.ExpiresAt}
	made.Holder, _, err = auth.User(ctx, tx.Tx, hash)
	return made, err
}

// Made says what RevokeAll revokes of what was made with a token or session.
type Made int

// The values of Made.
const (
	Sessions Made = iota
	TokensAndSessions
)

// RevokeAll revokes what was made with a token or session, directly or not, and answers how
// many that were.
func RevokeAll(ctx context.Context, tx *database.Tx, madeWith string, what Made, revoked func(tx *database.Tx, ref string)) (n int, _ error) {
	for {
		var ids []string
		var err error
		if what == TokensAndSessions {
			ids, err = tx.RevokeTokensMadeWith(ctx, &madeWith)
		} else {
			ids, err = tx.RevokeSessionsMadeWith(ctx, &madeWith)
		}
		if err != nil || len(ids) == 0 {
			return n, err
		}
		n += len(ids)
		for _, id := range ids {
			revoked(tx, id)
		}
	}
}
