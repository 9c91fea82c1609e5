package browser

import (
	"context"
	"net/http"
	"strings"

	"github.com/berth-dev/berth/services/internal/auth"
)

// maxUserAgent is how many bytes are kept of what a browser says of itself.
const maxUserAgent = 256

// Visit is what a handler needs to know of the browser that asks.
type Visit struct {
	// Site is where it logs in, unless NoSite says why it cannot there.
	Site   Site
	NoSite error
	// Foreign: another site may have sent the request.
	Foreign error
	// Session is the secret in its cookie, or "". It proves nothing by itself.
	Session   string
	UserAgent string
}

type contextKey struct{}

// VisitOf is the visit that Sites.Context put into ctx; else one that cannot log in.
func VisitOf(ctx context.Context) Visit {
	if v, ok := ctx.Value(contextKey{}).(Visit); ok {
		return v
	}
	return Visit{NoSite: errInsecure}
}

// Context adds the visit to a request.
func (s Sites) Context(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), contextKey{}, s.visit(r)))
}

func (s Sites) visit(r *http.Request) Visit {
	v := Visit{UserAgent: strings.ToValidUTF8(r.UserAgent()[:min(len(r.UserAgent()), maxUserAgent)], "")}
	v.Foreign = CheckOrigin(r)
	if v.Site, v.NoSite = s.Of(r.Host); v.NoSite != nil {
		return v
	}
	if cookies := r.CookiesNamed(v.Site.Cookie); len(cookies) == 1 && auth.WellFormed(auth.BrowserPrefix, cookies[0].Value) {
		v.Session = cookies[0].Value
	}
	v.NoSite = checkScheme(r, v.Site)
	return v
}

// Credential is the token of a request or, without an Authorization header, the session
// of its cookie. Neither works in the other's place.
func (s Sites) Credential(r *http.Request) (string, error) {
	if _, there := r.Header["Authorization"]; there {
		token, err := auth.Bearer(r)
		if err == nil && auth.WellFormed(auth.BrowserPrefix, token) {
			err = auth.ErrBadToken
		}
		return token, err
	}
	site, err := s.Of(r.Host)
	if err != nil {
		return auth.Bearer(r)
	}
	cookies := r.CookiesNamed(site.Cookie)
	switch {
	case len(cookies) == 0:
		return auth.Bearer(r)
	case len(cookies) > 1, !auth.WellFormed(auth.BrowserPrefix, cookies[0].Value):
		return "", auth.ErrSessionEnded
	}
	return cookies[0].Value, CheckOrigin(r)
}
