package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/internal/auth"
)

// post sends a login as a page of the dashboard does, with the cookie the browser has.
func (d *door) post(body, cookie string, header ...string) (int, http.Header, []byte) {
	d.t.Helper()
	if cookie != "" {
		header = append([]string{"Cookie", cookie}, header...)
	}
	return d.as("").raw(http.MethodPost, "/browser-sessions", body, append([]string{"Sec-Fetch-Site", "same-origin"}, header...)...)
}

// browser logs a browser in with a token.
func (d *door) browser(token string) caller {
	d.t.Helper()
	status, header, answer := d.post(fmt.Sprintf(`{"token":%q}`, token), "")
	if status != http.StatusCreated {
		d.t.Fatalf("login answered %d: %s", status, answer)
	}
	return d.with(cookieOf(d.t, header))
}

// with is a browser that has this cookie.
func (d *door) with(cookie string) caller {
	d.t.Helper()
	client, err := ctlapi.NewClientWithResponses(d.url, ctlapi.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Cookie", cookie)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		return nil
	}))
	if err != nil {
		d.t.Fatal(err)
	}
	return caller{ClientWithResponses: client, d: d, cookie: cookie}
}

// cookieOf is what a browser sends back after an answer.
func cookieOf(t testing.TB, header http.Header) string {
	t.Helper()
	set, err := http.ParseSetCookie(header.Get("Set-Cookie"))
	if err != nil {
		t.Fatalf("Set-Cookie is %q: %v", header.Get("Set-Cookie"), err)
	}
	return set.Name + "=" + set.Value
}

func (c caller) me() ctlapi.Me {
	c.d.t.Helper()
	got, err := c.GetMeWithResponse(c.d.t.Context())
	must(c.d.t, got, err, http.StatusOK)
	return *got.JSON200
}

// link makes a link that logs in, and returns what stands behind its #.
func (c caller) link() (address, secret string) {
	c.d.t.Helper()
	got, err := c.CreateLoginLinkWithResponse(c.d.t.Context(), nil)
	must(c.d.t, got, err, http.StatusCreated)
	address, secret, _ = strings.Cut(got.JSON201.URL, "#")
	if left := time.Until(got.JSON201.ExpiresAt); left <= 0 || left > time.Minute {
		c.d.t.Fatalf("the link lives for %s", left)
	}
	return address, secret
}

// ended fails the test unless the browser is logged out.
func (c caller) ended(why string) {
	c.d.t.Helper()
	status, _, answer := c.raw(http.MethodGet, "/me", "")
	if status != http.StatusUnauthorized || codeOf(answer) != "session_ended" {
		c.d.t.Errorf("%s: answered %d: %s", why, status, answer)
	}
}

func codeOf(answer []byte) string {
	var p ctlapi.Problem
	_ = json.Unmarshal(answer, &p)
	return p.Code
}

func TestLoginWithALink(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	address, secret := admin.link()
	if address != d.url+"/ui/login" {
		t.Errorf("the link leads to %s", address)
	}
	status, header, answer := d.post(fmt.Sprintf(`{"link":%q}`, secret), "", "User-Agent", "Browser/1.0")
	if status != http.StatusCreated || header.Get("Cache-Control") != "no-store" {
		t.Fatalf("login answered %d %v: %s", status, header, answer)
	}
	at, err := url.Parse(d.url)
	if err != nil {
		t.Fatal(err)
	}
	set, err := http.ParseSetCookie(header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	if set.Name != "berth-"+at.Port() || !set.HttpOnly || set.Secure || set.SameSite != http.SameSiteStrictMode || set.Path != "/" || set.Domain != "" ||
		!auth.WellFormed(auth.BrowserPrefix, set.Value) {
		t.Errorf("the cookie is %s", header.Get("Set-Cookie"))
	}
	if left := time.Until(set.Expires); left < 13*24*time.Hour || left > 14*24*time.Hour {
		t.Errorf("the cookie lives for %s", left)
	}
	if strings.Contains(string(answer), set.Value) {
		t.Error("scripts see the secret in the answer")
	}
	browser := d.with(cookieOf(t, header))
	me := browser.me()
	if me.Account.Name != "admin" || me.Org.Name != "initech" || !strings.HasPrefix(me.TokenID, "bss_") || codeOf(answer) != "" {
		t.Errorf("me: %+v", me)
	}
	made, err := browser.CreateCustomerWithResponse(t.Context(), nil, ctlapi.CustomerRequest{Name: "acme"})
	must(t, made, err, http.StatusCreated)

	list, err := browser.ListBrowserSessionsWithResponse(t.Context(), nil)
	must(t, list, err, http.StatusOK)
	if len(list.JSON200.Items) != 1 {
		t.Fatalf("sessions: %s", list.Body)
	}
	s := list.JSON200.Items[0]
	if s.ID != me.TokenID || s.UserAgent != "Browser/1.0" || !s.Current || s.MadeWith == nil || *s.MadeWith != admin.me().TokenID ||
		s.EndsAt.Sub(s.LastUsedAt) != 3*24*time.Hour || s.Account.Name != "admin" {
		t.Errorf("session: %+v", s)
	}
	tokens, err := admin.ListTokensWithResponse(t.Context(), nil)
	must(t, tokens, err, http.StatusOK)
	if len(tokens.JSON200.Items) != 1 {
		t.Errorf("sessions are listed as tokens: %s", tokens.Body)
	}
	if n := d.count(`select count(*) from tokens where tokens::text like '%' || $1 || '%'`, set.Value); n != 0 {
		t.Error("a session is stored in clear")
	}

	gone, err := browser.EndBrowserSessionWithResponse(t.Context(), "current")
	must(t, gone, err, http.StatusNoContent)
	taken, err := http.ParseSetCookie(gone.HTTPResponse.Header.Get("Set-Cookie"))
	if err != nil || taken.Name != set.Name || taken.Value != "" || taken.MaxAge >= 0 {
		t.Errorf("logout leaves the cookie: %v %v", gone.HTTPResponse.Header, err)
	}
	browser.ended("after the logout")
	// What was approved there stands: approvals fall with revoked tokens only.
	if n := d.count(`select count(*) from tokens where id = $1 and ended_at is not null and revoked_at is null`, me.TokenID); n != 1 {
		t.Error("a logout revokes")
	}
}

// One link, opened by many at once: one browser is logged in.
func TestAttackStolenLink(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	_, secret := admin.link()
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			status, header, answer := d.post(fmt.Sprintf(`{"link":%q}`, secret), "")
			switch {
			case status == http.StatusCreated:
				won.Add(1)
			case status != http.StatusUnauthorized && status != http.StatusTooManyRequests, header.Get("Set-Cookie") != "":
				t.Errorf("a link that was used answered %d: %s", status, answer)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d browsers were logged in with one link", won.Load())
	}

	_, late := admin.link()
	if _, err := d.db.Admin().Exec(t.Context(), `update login_links set expires_at = now() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	if status, _, answer := d.post(fmt.Sprintf(`{"link":%q}`, late), ""); status != http.StatusUnauthorized || codeOf(answer) != "bad_login" {
		t.Errorf("a link that expired answered %d: %s", status, answer)
	}
	if n := d.count(`select count(*) from tokens where kind = 'session'`); n != 1 {
		t.Errorf("there are %d sessions", n)
	}
}

// What another site, or another port of this machine, can make a browser send.
func TestAttackFromAnotherSite(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	browser := d.browser(admin.token)
	before := d.count(`select count(*) from customers`)
	for _, tt := range []struct {
		name, method, path, body string
		header                   []string
		want                     int
		code                     string
	}{
		{"a form", "POST", "/customers", `{"name":"x"}`, []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, 403, "cross_site"},
		{"a form of an older browser", "POST", "/customers", `{"name":"x"}`, []string{"Sec-Fetch-Site", "", "Origin", "https://evil.example"}, 403, "cross_site"},
		{"a form in a sandbox", "POST", "/customers", `{"name":"x"}`, []string{"Sec-Fetch-Site", "", "Origin", "null"}, 403, "cross_site"},
		{"a fetch as text", "POST", "/customers", `{"name":"x"}`, []string{"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"}, 403, "cross_site"},
		{"a page on another port", "POST", "/customers", `{"name":"x"}`, []string{"Sec-Fetch-Site", "same-site", "Origin", "http://127.0.0.1:1"}, 403, "cross_site"},
		{"a DELETE", "DELETE", "/browser-sessions/current", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross_site"},
		{"neither header", "POST", "/customers", `{"name":"x"}`, []string{"Sec-Fetch-Site", ""}, 403, "cross_site"},
		{"an image", "GET", "/me", "", []string{"Sec-Fetch-Site", "cross-site"}, 403, "cross_site"},
		{"a script of another port", "GET", "/me", "", []string{"Sec-Fetch-Site", "same-site"}, 403, "cross_site"},
		{"its own page, as text", "POST", "/customers", `{"name":"x"}`, []string{"Content-Type", "text/plain"}, 422, "invalid_request"},
		{"the address bar", "GET", "/me", "", []string{"Sec-Fetch-Site", "none"}, 200, ""},
		{"an older browser that reads", "GET", "/me", "", []string{"Sec-Fetch-Site", ""}, 200, ""},
	} {
		status, _, answer := browser.raw(tt.method, tt.path, tt.body, tt.header...)
		if status != tt.want || tt.want == 403 && codeOf(answer) != tt.code {
			t.Errorf("%s: answered %d %s, want %d %s", tt.name, status, answer, tt.want, tt.code)
		}
	}
	if after := d.count(`select count(*) from customers`); after != before {
		t.Errorf("another site made %d customers", after-before)
	}
	own, _, answer := browser.raw("POST", "/customers", `{"name":"own"}`, "Sec-Fetch-Site", "", "Origin", d.url)
	if own != http.StatusCreated {
		t.Errorf("its own page, by Origin alone: %d %s", own, answer)
	}

	// Nor does another site log somebody in as somebody else.
	for _, header := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "", "Origin", "https://evil.example"}, {"Sec-Fetch-Site", ""}} {
		status, got, answer := d.post(fmt.Sprintf(`{"token":%q}`, admin.token), "", header...)
		if status != http.StatusForbidden || codeOf(answer) != "cross_site" || got.Get("Set-Cookie") != "" {
			t.Errorf("a login with %v answered %d: %s", header, status, answer)
		}
	}
}

// A cookie that somebody planted before the login does not become the victim's session.
func TestAttackSessionFixation(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	attacker, victim := d.browser(d.org("umbrella").token), d.org("initech")
	status, header, answer := d.post(fmt.Sprintf(`{"token":%q}`, victim.token), attacker.cookie)
	if status != http.StatusCreated {
		t.Fatalf("login answered %d: %s", status, answer)
	}
	own := cookieOf(t, header)
	if own == attacker.cookie {
		t.Error("the planted session was taken over")
	}
	attacker.ended("the planted session")
	if me := d.with(own).me(); me.Org.Name != "initech" {
		t.Errorf("the victim is in %s", me.Org.Name)
	}
	d.with(attacker.cookie + "; " + own).ended("two cookies of one name")
	again, header, _ := d.post(fmt.Sprintf(`{"token":%q}`, victim.token), own)
	if again != http.StatusCreated || cookieOf(t, header) == own {
		t.Errorf("a second login answered %d with the same secret", again)
	}
}

// Guesses count against the address, and a good link works all the same.
func TestAttackGuessedLinks(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	_, link := d.org("initech").link()
	for n := 0; ; n++ {
		status, _, answer := d.post(`{"link":"bwl_guess"}`, "")
		if status == http.StatusTooManyRequests && codeOf(answer) == "too_many_failures" {
			break
		}
		if status != http.StatusUnauthorized || n > 2000 {
			t.Fatalf("guess %d answered %d: %s", n, status, answer)
		}
	}
	if status, _, answer := d.post(fmt.Sprintf(`{"link":%q}`, link), ""); status != http.StatusCreated {
		t.Errorf("a good link answered %d: %s", status, answer)
	}
}

// A secret works in its own place only.
func TestAttackSecretsInOtherPlaces(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	browser := d.browser(admin.token)
	name, session, _ := strings.Cut(browser.cookie, "=")
	_, link := admin.link()
	for _, tt := range []struct {
		name   string
		path   string
		header []string
		want   int
		code   string
	}{
		{"a session as a bearer", "/me", []string{"Authorization", "Bearer " + session}, 401, "unauthenticated"},
		{"a link as a bearer", "/me", []string{"Authorization", "Bearer " + link}, 401, "unauthenticated"},
		{"a token in the cookie", "/me", []string{"Cookie", name + "=" + admin.token}, 401, "session_ended"},
		{"a link in the cookie", "/me", []string{"Cookie", name + "=" + link}, 401, "session_ended"},
		{"the cookie of another port", "/me", []string{"Cookie", "berth-1=" + session}, 401, "unauthenticated"},
		{"the cookie of TLS", "/me", []string{"Cookie", "__Host-berth=" + session}, 401, "unauthenticated"},
		{"a bad header and a good cookie", "/me", []string{"Cookie", browser.cookie, "Authorization", "Bearer brt_bad"}, 401, "unauthenticated"},
		{"an empty header and a good cookie", "/me", []string{"Cookie", browser.cookie, "Authorization", ""}, 401, "unauthenticated"},
		{"a session in the query", "/me?x=" + session, []string{"Cookie", browser.cookie}, 422, "token_in_url"},
		{"a link in the query", "/login-methods?link=" + link, nil, 422, "token_in_url"},
		{"a token in the query", "/login-methods?token=" + admin.token, nil, 422, "token_in_url"},
	} {
		status, _, answer := d.as("").raw("GET", tt.path, "", tt.header...)
		if status != tt.want || codeOf(answer) != tt.code {
			t.Errorf("%s: answered %d, want %d %s: %s", tt.name, status, tt.want, tt.code, answer)
		}
		for _, secret := range []string{session, link, admin.token} {
			if strings.Contains(string(answer), secret) {
				t.Errorf("%s: the answer shows the secret", tt.name)
			}
		}
	}
	for _, body := range []string{fmt.Sprintf(`{"token":%q}`, session), fmt.Sprintf(`{"link":%q}`, session), fmt.Sprintf(`{"token":%q}`, link), `{"token":"brt_x"}`} {
		if status, _, answer := d.post(body, ""); status != http.StatusUnauthorized || codeOf(answer) != "bad_login" {
			t.Errorf("a login with the wrong secret answered %d: %s", status, answer)
		}
	}
	for _, body := range []string{`{}`, fmt.Sprintf(`{"token":%q,"link":%q}`, admin.token, link), `{"token":""}`} {
		if status, _, answer := d.post(body, ""); status != http.StatusUnprocessableEntity {
			t.Errorf("a login with %s answered %d: %s", strings.Split(body, ":")[0], status, answer)
		}
	}
	// Not at an address that is not ours: the browser would send the cookie in clear, or
	// somebody made a name of theirs point here.
	if status, _, answer := hostOf(d, "berth.example.com", admin.token); status != http.StatusForbidden || codeOf(answer) != "insecure_login" {
		t.Errorf("over http from another machine: %d %s", status, answer)
	}
}

// hostOf logs in at another name of the door.
func hostOf(d *door, host, token string) (int, http.Header, []byte) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, d.url+"/browser-sessions", strings.NewReader(fmt.Sprintf(`{"token":%q}`, token)))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Host = host
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	return d.do(req)
}

// What ends sessions: their end, disuse, and the end of what opened them.
func TestSessionsEnd(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.db.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	idle := d.browser(admin.token)
	_, hash, _ := strings.Cut(idle.cookie, "=")
	exec(`update tokens set last_used_at = now() - interval '3 days 1 second' where hash = $1`, auth.Hash(hash))
	idle.ended("unused for three days")

	old := d.browser(admin.token)
	_, hash, _ = strings.Cut(old.cookie, "=")
	exec(`update tokens set expires_at = now() where hash = $1`, auth.Hash(hash))
	old.ended("after its end")

	list, err := admin.ListBrowserSessionsWithResponse(t.Context(), nil)
	must(t, list, err, http.StatusOK)
	if len(list.JSON200.Items) != 0 {
		t.Errorf("sessions that ended are listed: %s", list.Body)
	}

	day := 1
	short, err := admin.CreateTokenWithResponse(t.Context(), nil, ctlapi.TokenRequest{Name: "a day", ExpiresInDays: &day})
	must(t, short, err, http.StatusCreated)
	first := d.browser(short.JSON201.Secret)
	_, link := first.link()
	status, header, answer := d.post(fmt.Sprintf(`{"link":%q}`, link), "")
	if status != http.StatusCreated {
		t.Fatalf("login answered %d: %s", status, answer)
	}
	second := d.with(cookieOf(t, header))
	for _, s := range []caller{first, second} {
		if n := d.count(`select count(*) from tokens s, tokens t where s.id = $1 and t.id = $2 and s.expires_at <= t.expires_at`, s.me().TokenID, short.JSON201.Token.ID); n != 1 {
			t.Error("a session outlives the token that opened it")
		}
	}
	made, err := second.CreateTokenWithResponse(t.Context(), nil, ctlapi.TokenRequest{Name: "of the browser"})
	must(t, made, err, http.StatusCreated)
	_, unused := first.link()
	revoked, err := admin.RevokeTokenWithResponse(t.Context(), short.JSON201.Token.ID, nil)
	must(t, revoked, err, http.StatusNoContent)
	first.ended("its token was revoked")
	second.ended("the token of the session that opened it was revoked")
	if status, _, answer := d.post(fmt.Sprintf(`{"link":%q}`, unused), ""); status != http.StatusUnauthorized {
		t.Errorf("a link of a revoked session answered %d: %s", status, answer)
	}
	if me := d.as(made.JSON201.Secret).me(); me.Account.Name != "admin" {
		t.Errorf("a token that was made with a session went with it: %+v", me)
	}

	bob := admin.member(ctlapi.MemberRequest{Name: "bob", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleViewer})
	one, two := d.browser(bob.token), d.browser(bob.token)
	of, err := one.EndBrowserSessionWithResponse(t.Context(), d.browser(admin.token).me().TokenID)
	must(t, of, err, http.StatusNotFound)
	other, err := one.EndBrowserSessionWithResponse(t.Context(), two.me().TokenID)
	must(t, other, err, http.StatusNoContent)
	if other.HTTPResponse.Header.Get("Set-Cookie") != "" {
		t.Error("ending another session took the cookie of this one")
	}
	two.ended("its owner ended it elsewhere")
	if n := d.count(`select count(*) from tokens where kind = 'session' and revoked_at is not null and account_id = $1`, one.me().Account.ID); n != 1 {
		t.Error("a session that was ended elsewhere is not revoked")
	}
	mine, err := one.ListBrowserSessionsWithResponse(t.Context(), nil)
	must(t, mine, err, http.StatusOK)
	if len(mine.JSON200.Items) != 1 {
		t.Errorf("bob sees %s", mine.Body)
	}
	asToken, err := admin.RevokeTokenWithResponse(t.Context(), one.me().TokenID, nil)
	must(t, asToken, err, http.StatusNotFound)
	none, err := admin.EndBrowserSessionWithResponse(t.Context(), "current")
	must(t, none, err, http.StatusNotFound)
	removed, err := admin.RemoveMemberWithResponse(t.Context(), "bob")
	must(t, removed, err, http.StatusNoContent)
	one.ended("its member was removed")
}

// A session that another replica ended is over here too, by its notification.
func TestSessionEndsOnOtherReplicas(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	other := newDoorOn(t, d.db, d.keys)
	browser := other.browser(admin.token) // at another port: its cookie has another name
	session := browser.me().TokenID
	ended, err := admin.EndBrowserSessionWithResponse(t.Context(), session)
	must(t, ended, err, http.StatusNoContent)
	for began := time.Now(); ; {
		status, _, _ := browser.raw("GET", "/me", "")
		if status == http.StatusUnauthorized {
			return
		}
		if time.Since(began) > patience {
			t.Fatal("the session goes on")
		}
	}
}
