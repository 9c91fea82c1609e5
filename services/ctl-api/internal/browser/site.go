package browser

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/internal/fault"
)

// Site is an address at which a browser sees the dashboard.
type Site struct {
	// Base is its origin, such as "https://berth.example.com".
	Base string
	// Cookie is the name of the session's cookie.
	Cookie string
	// Secure: the browser talks TLS, to us or to a proxy before us.
	Secure bool
}

// Sites are the addresses at which browsers may be logged in: the one that was
// configured, and those of this machine.
type Sites struct {
	dashboard *url.URL
	listen    string
}

// secureCookie has a name that browsers take only with Secure, from the host itself and
// for all of it: no sibling domain can plant one.
const secureCookie = "__Host-berth"

// NewSites knows the address of the dashboard, empty for none, and where ctl-api listens.
// CheckURL has passed dashboard.
func NewSites(dashboard, listen string) Sites {
	s := Sites{listen: listen}
	if dashboard != "" {
		s.dashboard, _ = url.Parse(dashboard) // CheckURL has read it
		s.dashboard.Host = plainHost(s.dashboard.Scheme, s.dashboard.Host)
	}
	return s
}

// Configured says that there is an address of the dashboard besides that of this machine.
func (s Sites) Configured() bool { return s.dashboard != nil }

// CheckURL says what is wrong with the address of the dashboard.
func CheckURL(dashboard string) error {
	u, err := url.Parse(dashboard)
	switch {
	case err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return fault.Newf(fault.ErrInvalid, "is not an address such as https://berth.example.com")
	case u.Scheme == "https", u.Scheme == "http" && loopback(u.Host):
		return nil
	}
	return fault.Newf(fault.ErrInvalid, "must begin with https://, or http:// with an address of this machine")
}

// Of is the site that a request was sent to, by its Host. A browser cannot be logged in at
// another one: its cookie would cross a network in clear.
func (s Sites) Of(host string) (Site, error) {
	switch {
	case s.dashboard != nil && s.dashboard.Scheme == "https" && plainHost("https", host) == s.dashboard.Host:
		return Site{Base: s.Base(), Cookie: secureCookie, Secure: true}, nil
	case loopback(host):
		return Site{Base: "http://" + plainHost("http", host), Cookie: "berth-" + port(host, "80")}, nil
	}
	return Site{}, errInsecure
}

var errInsecure = fault.With(fault.Newf(fault.ErrForbidden, "a browser can log in only over https, or on the machine that Berth runs on"),
	fault.Code("insecure_login"), fault.Remedy("put ctl-api behind TLS and set BERTH_DASHBOARD_URL to that address, or use http://127.0.0.1 through a tunnel"))

// Base is where links to the dashboard lead.
func (s Sites) Base() string {
	if s.dashboard != nil {
		return s.dashboard.Scheme + "://" + s.dashboard.Host
	}
	host, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		return "http://" + s.listen
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "127.0.0.1" // it listens everywhere, so here too
	}
	return "http://" + net.JoinHostPort(host, port)
}

// SetCookie is the header that gives a browser its session until then; a zero time takes
// it away.
func (s Site) SetCookie(secret string, until time.Time) string {
	cookie := http.Cookie{Name: s.Cookie, Value: secret, Path: "/", HttpOnly: true, Secure: s.Secure, SameSite: http.SameSiteStrictMode, Expires: until}
	if until.IsZero() {
		cookie.MaxAge = -1
	}
	return cookie.String()
}

// plainHost is a host as browsers write it into an origin.
func plainHost(scheme, host string) string {
	return strings.TrimSuffix(strings.ToLower(host), map[string]string{"https": ":443", "http": ":80"}[scheme])
}

// loopback says that a Host, which may have a port, is this machine for the browser too.
func loopback(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	if ip, err := netip.ParseAddr(strings.Trim(name, "[]")); err == nil {
		return ip.IsLoopback()
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

func port(host, otherwise string) string {
	if _, p, err := net.SplitHostPort(host); err == nil && p != "" {
		return p
	}
	return otherwise
}
