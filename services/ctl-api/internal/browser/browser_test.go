package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/browser"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
)

func TestSiteOf(t *testing.T) {
	t.Parallel()
	const refused = ""
	for _, tt := range []struct{ name, dashboard, host, cookie, base string }{
		{"this machine", "", "127.0.0.1:8700", "berth-8700", "http://127.0.0.1:8700"},
		{"by name", "", "localhost:8700", "berth-8700", "http://localhost:8700"},
		{"by a name below it", "", "berth.localhost:8700", "berth-8700", "http://berth.localhost:8700"},
		{"by IPv6", "", "[::1]:8700", "berth-8700", "http://[::1]:8700"},
		{"without a port", "", "127.0.0.1", "berth-80", "http://127.0.0.1"},
		{"another port has another cookie", "", "127.0.0.1:9999", "berth-9999", "http://127.0.0.1:9999"},
		{"an address in the network", "", "10.0.0.7:8700", refused, ""},
		{"all addresses", "", "0.0.0.0:8700", refused, ""},
		{"a name in the network", "", "berth.example.com", refused, ""},
		{"a name that looks like this machine", "", "localhost.evil.example", refused, ""},
		{"nor 127.0.0.1 in front", "", "127.0.0.1.evil.example", refused, ""},
		{"no host", "", "", refused, ""},
		{"behind TLS", "https://berth.example.com", "berth.example.com", "__Host-berth", "https://berth.example.com"},
		{"whatever the case", "https://berth.example.com", "Berth.Example.com:443", "__Host-berth", "https://berth.example.com"},
		{"behind TLS, by another name", "https://berth.example.com", "other.example.com", refused, ""},
		{"behind TLS, by another port", "https://berth.example.com", "berth.example.com:8443", refused, ""},
		{"behind TLS, on its own machine", "https://berth.example.com", "127.0.0.1:8700", "berth-8700", "http://127.0.0.1:8700"},
		{"a dashboard on this machine", "http://127.0.0.1:8700", "127.0.0.1:8700", "berth-8700", "http://127.0.0.1:8700"},
	} {
		site, err := browser.NewSites(tt.dashboard, "127.0.0.1:8700").Of(tt.host)
		if (err != nil) != (tt.cookie == refused) || site.Cookie != tt.cookie || site.Base != tt.base || site.Secure != strings.HasPrefix(tt.base, "https://") {
			t.Errorf("%s: %+v %v, want %q %q", tt.name, site, err, tt.cookie, tt.base)
		}
	}
}

func TestSetCookie(t *testing.T) {
	t.Parallel()
	ends := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	secure := browser.Site{Cookie: "__Host-berth", Secure: true}
	if got, want := secure.SetCookie("s", ends), "__Host-berth=s; Path=/; Expires=Tue, 01 Dec 2026 00:00:00 GMT; HttpOnly; Secure; SameSite=Strict"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	here := browser.Site{Cookie: "berth-8700"}
	if got, want := here.SetCookie("", time.Time{}), "berth-8700=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestBase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ dashboard, listen, want string }{
		{"", "127.0.0.1:8700", "http://127.0.0.1:8700"},
		{"", "[::]:8700", "http://127.0.0.1:8700"},
		{"", "0.0.0.0:8700", "http://127.0.0.1:8700"},
		{"https://Berth.example.com:443/", "0.0.0.0:8700", "https://berth.example.com"},
		{"http://localhost:80", "127.0.0.1:80", "http://localhost"},
	} {
		if got := browser.NewSites(tt.dashboard, tt.listen).Base(); got != tt.want {
			t.Errorf("%q on %s: %s, want %s", tt.dashboard, tt.listen, got, tt.want)
		}
	}
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"https://berth.example.com": true, "https://berth.example.com:8443/": true, "http://127.0.0.1:8700": true, "http://localhost:8700": true,
		"http://berth.example.com": false, "berth.example.com": false, "https://": false, "https://u:p@berth.example.com": false,
		"https://berth.example.com/ui": false, "https://berth.example.com?x": false, "ftp://berth.example.com": false, "javascript:alert(1)": false,
	} {
		if err := browser.CheckURL(address); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// A login through a proxy that speaks TLS and hides it would get a cookie without Secure.
func TestLoginThroughAProxyThatIsNotNamed(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:8700/browser-sessions", nil)
	r.Header.Set("Origin", "https://berth.example.com")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if err := browser.VisitOf(browser.NewSites("", "127.0.0.1:8700").Context(r).Context()).NoSite; fault.From(err).Code != "insecure_login" {
		t.Errorf("refused with %v", err)
	}
	if browser.VisitOf(t.Context()).NoSite == nil {
		t.Error("a visit that nobody looked at is not refused")
	}
}

func TestCredential(t *testing.T) {
	t.Parallel()
	session, _ := auth.NewSecret(auth.BrowserPrefix)
	sites := browser.NewSites("https://berth.example.com", "127.0.0.1:8700")
	for _, tt := range []struct {
		name, host, cookie string
		good               bool
	}{
		{"over TLS", "berth.example.com", "__Host-berth=" + session, true},
		{"here", "127.0.0.1:8700", "berth-8700=" + session, true},
		{"the cookie of http over TLS", "berth.example.com", "berth-8700=" + session, false},
		{"two of one name", "berth.example.com", "__Host-berth=" + session + "; __Host-berth=x", false},
		{"at a name that somebody else made point here", "evil.example", "berth-8700=" + session, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://"+tt.host+"/me", nil)
		r.Header.Set("Cookie", tt.cookie)
		got, err := sites.Credential(r)
		if (err == nil && got == session) != tt.good {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
