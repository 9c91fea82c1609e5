package api_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/oidclogin"
)

// heard is a log that a test reads.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// No secret of a login is in the log, whether the login worked or not, nor in a row in
// clear.
func TestSecretsOfLoginsAreNotWrittenDown(t *testing.T) {
	t.Parallel()
	var log heard
	i := newIssuer(t)
	address, _ := logs(t)
	d := newDoorWith(t, func(w *wiring) {
		w.logURL, w.log = address, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		w.oidc = oidclogin.Config{Issuer: i.URL, ClientID: "berth", Org: "initech", Roles: "*=viewer", GroupsClaim: "groups"}
	})
	admin := d.org("initech")
	_, link := admin.link()
	status, header, answer := d.post(fmt.Sprintf(`{"link":%q}`, link), "")
	if status != http.StatusCreated {
		t.Fatalf("login answered %d: %s", status, answer)
	}
	browser := d.with(cookieOf(t, header))
	_, session, _ := strings.Cut(browser.cookie, "=")
	d.post(fmt.Sprintf(`{"link":%q}`, link), browser.cookie) // used up
	d.post(fmt.Sprintf(`{"link":%q,"token":%q}`, link, admin.token), "")
	d.post(fmt.Sprintf(`{"lnik":%q}`, link), "")
	d.post(fmt.Sprintf(`{"link":%q}`, session), "")
	browser.raw("GET", "/me?link="+link, "")
	browser.raw("GET", "/login-methods?session="+session, "")
	browser.raw("GET", "/logs/streams/str_1", "")
	browser.raw("GET", "/logs/streams/str_1?x="+session, "")
	d.as(session).raw("GET", "/me", "")
	v := newVisitor(t)
	asked := v.begin(d, "/ui/")
	code := i.code(asked.Get("code_challenge"), i.token(i.claims(asked.Get("nonce"), nil)))
	v.get(callbackOf(d, asked, code))
	v.get(callbackOf(d, asked, code))
	_, other, _ := strings.Cut(v.session(d).cookie, "=")

	said := log.String()
	if !strings.Contains(said, "CreateBrowserSession") || !strings.Contains(said, "/login/oidc/callback") {
		t.Fatal("the log says nothing of the logins: what is tested?")
	}
	for name, secret := range map[string]string{
		"link": link, "session": session, "session of the provider": other, "token": admin.token, "code": code, "state": asked.Get("state"), "nonce": asked.Get("nonce"),
	} {
		if strings.Contains(said, secret) {
			t.Errorf("the %s is in the log", name)
		}
		for _, table := range []string{"tokens", "login_links", "chain_records", "account_identities"} {
			if n := d.count(`select count(*) from `+table+` x where position($1 in x::text) > 0 or position(encode($1::bytea, 'hex') in x::text) > 0`, secret); n != 0 {
				t.Errorf("the %s is in %s", name, table)
			}
		}
	}
}
