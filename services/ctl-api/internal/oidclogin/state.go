package oidclogin

import (
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode"

	"golang.org/x/oauth2"

	"github.com/berth-dev/berth/services/ctl-api/internal/browser"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
)

// stateLife is how long somebody may take at the provider.
const stateLife = 10 * time.Minute

// home is where a login leads that says no other page.
const home = "/ui/"

// state is what the browser keeps of a login, sealed, until the provider sends it back.
type state struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	To       string    `json:"to"`
	Until    time.Time `json:"until"`
}

func newState(to string, now time.Time) state {
	return state{State: oauth2.GenerateVerifier(), Nonce: oauth2.GenerateVerifier(), Verifier: oauth2.GenerateVerifier(), To: pageOf(to), Until: now.Add(stateLife)}
}

// pageOf is to if that is a page of the dashboard, else home: nobody is led elsewhere.
func pageOf(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" {
		return home
	}
	// What browsers read in other ways than we do is none of ours.
	odd := strings.Contains(u.Path, `\`) || strings.Contains(u.Path, "//") || strings.ContainsFunc(u.Path, unicode.IsControl)
	if odd || !strings.HasPrefix(u.EscapedPath(), home) || !strings.HasPrefix(path.Clean(u.Path)+"/", home) {
		return home
	}
	return (&url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}).String()
}

// cookieOf is the name of the cookie at a site, which comes back with a redirect from
// another site (SameSite=Lax).
func cookieOf(site browser.Site) string { return site.Cookie + "-oidc" }

func setCookie(site browser.Site, value string, life time.Duration) *http.Cookie {
	c := &http.Cookie{Name: cookieOf(site), Value: value, Path: "/", HttpOnly: true, Secure: site.Secure, SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds())}
	if life == 0 {
		c.MaxAge = -1
	}
	return c
}

func (s state) sealed(ring *keys.Ring, org string) (string, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	sealed, err := ring.Seal(keys.LoginState(org), raw)
	return base64.RawURLEncoding.EncodeToString(sealed), err
}

var errNoState = errors.New("the browser did not begin this login, or began it too long ago")

// openState reads the cookie and holds it against the state that the provider sent back.
func openState(ring *keys.Ring, org, cookie, sent string, now time.Time) (s state, err error) {
	sealed, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil {
		return s, errNoState
	}
	raw, err := ring.Open(keys.LoginState(org), sealed)
	if err != nil || json.Unmarshal(raw, &s) != nil || !now.Before(s.Until) ||
		subtle.ConstantTimeCompare([]byte(s.State), []byte(sent)) != 1 {
		return s, errNoState
	}
	return s, nil
}
