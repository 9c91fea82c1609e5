package api_test

import (
	"bufio"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/oidclogin"
)

// visitor is a browser that follows no redirect by itself.
type visitor struct {
	*http.Client
	t *testing.T
}

func newVisitor(t *testing.T) visitor {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return visitor{t: t, Client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

func (v visitor) get(address string) (resp *http.Response, body string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Sec-Fetch-Site", "cross-site") // it comes back from the provider
	return v.do(req)
}

func (v visitor) do(req *http.Request) (resp *http.Response, body string) {
	v.t.Helper()
	resp, err := v.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp, string(raw)
}

// begin begins a login and answers what the provider is asked.
func (v visitor) begin(d *door, to string) url.Values {
	v.t.Helper()
	resp, body := v.get(d.url + "/login/oidc?to=" + url.QueryEscape(to))
	at, err := resp.Location()
	if resp.StatusCode != http.StatusFound || err != nil {
		v.t.Fatalf("the login answered %d: %s", resp.StatusCode, body)
	}
	return at.Query()
}

func callbackOf(d *door, asked url.Values, code string) string {
	return d.url + "/login/oidc/callback?" + url.Values{"state": {asked.Get("state")}, "code": {code}}.Encode()
}

// session is the browser after a login, as a caller.
func (v visitor) session(d *door) caller {
	v.t.Helper()
	at, err := url.Parse(d.url)
	if err != nil {
		v.t.Fatal(err)
	}
	for _, c := range v.Jar.Cookies(at) {
		if c.Name == "berth-"+at.Port() {
			return d.with(c.Name + "=" + c.Value)
		}
	}
	v.t.Fatal("the browser has no session")
	return caller{}
}

func oidcDoor(t *testing.T, config oidclogin.Config) (*door, caller) {
	t.Helper()
	d := newDoorWith(t, func(w *wiring) { w.oidc = config })
	return d, d.org(config.Org)
}

func TestLoginByAProvider(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	d, admin := oidcDoor(t, oidclogin.Config{
		Issuer: i.URL, ClientID: "berth", Org: "initech", Name: "Initech", Roles: "admins=admin,devs=operator", GroupsClaim: "groups", FirstAdmin: "ada@example.com",
	})
	methods, err := d.as("").GetLoginMethodsWithResponse(t.Context())
	must(t, methods, err, http.StatusOK)
	if p := methods.JSON200.Oidc; p == nil || p.Name != "Initech" || p.Path != "/login/oidc" {
		t.Errorf("methods: %s", methods.Body)
	}
	// login is one login with these claims; it answers where it led.
	login := func(v visitor, claims map[string]any) (*http.Response, string) {
		t.Helper()
		asked := v.begin(d, "/ui/installs/acme?tab=logs")
		return v.get(callbackOf(d, asked, i.code(asked.Get("code_challenge"), i.token(i.claims(asked.Get("nonce"), claims)))))
	}
	grants := func(c caller) string {
		var all []string
		for _, g := range c.me().Grants {
			all = append(all, string(g.Role))
		}
		return strings.Join(all, ",")
	}

	ada := newVisitor(t)
	resp, body := login(ada, map[string]any{"sub": "1", "email": "ada@example.com", "email_verified": true})
	if resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "/ui/installs/acme?tab=logs" {
		t.Fatalf("the callback answered %d %s: %s", resp.StatusCode, resp.Header.Get("Location"), body)
	}
	if me := ada.session(d).me(); me.Account.Name != "ada@example.com" || me.Kind != ctlapi.MeKindUser || grants(ada.session(d)) != "admin" {
		t.Errorf("the first admin: %+v", me)
	}

	bob := newVisitor(t)
	if resp, body := login(bob, map[string]any{"sub": "2", "preferred_username": "admin", "groups": []string{"devs"}}); resp.StatusCode != http.StatusFound {
		t.Fatalf("bob: %d %s", resp.StatusCode, body)
	}
	first := bob.session(d)
	if me := first.me(); me.Account.Name != "admin-2" || grants(first) != "operator" {
		t.Errorf("somebody who calls himself admin: %+v", me)
	}
	if me := admin.me(); me.Account.Name != "admin" || len(me.Grants) != 2 {
		t.Errorf("the admin with a token is now %+v", me)
	}
	id := first.me().Account.ID
	// The subject is who it is, whatever the name; and the groups of today count.
	login(bob, map[string]any{"sub": "2", "preferred_username": "robert", "groups": []string{"admins", "devs"}})
	if me := bob.session(d).me(); me.Account.ID != id || me.Account.Name != "admin-2" || grants(bob.session(d)) != "admin" {
		t.Errorf("after a promotion: %+v", me)
	}
	resp, body = login(bob, map[string]any{"sub": "2", "groups": "sales"})
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "admins, devs") {
		t.Errorf("without a group: %d %s", resp.StatusCode, body)
	}
	if status, _, answer := bob.session(d).raw("GET", "/installs", ""); status != http.StatusForbidden { // the session of before
		t.Errorf("without a group the session of before still gets %d: %s", status, answer)
	}
	login(bob, map[string]any{"sub": "2", "groups": "devs"})

	if resp, _ := login(newVisitor(t), map[string]any{"sub": "3", "email": "ada@example.com", "email_verified": false}); resp.StatusCode != http.StatusForbidden {
		t.Errorf("an address that is not verified: %d", resp.StatusCode)
	}
	if resp, body := login(newVisitor(t), map[string]any{"sub": "4", "groups": []string{"*"}}); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a group called *: %d %s", resp.StatusCode, body)
	}
	if n := d.count(`select count(*) from accounts`); n != 3 {
		t.Errorf("there are %d accounts, want admin, ada and bob", n)
	}

	removed, err := admin.RemoveMemberWithResponse(t.Context(), id)
	must(t, removed, err, http.StatusNoContent)
	if resp, _ := login(bob, map[string]any{"sub": "2", "groups": []string{"admins"}}); resp.StatusCode != http.StatusForbidden || len(resp.Cookies()) != 1 {
		t.Errorf("somebody who was removed: %d %v", resp.StatusCode, resp.Cookies())
	}
}

// What a login must not take for an answer of the provider.
func TestAttackLoginByAProvider(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	d, _ := oidcDoor(t, oidclogin.Config{Issuer: i.URL, ClientID: "berth", Org: "initech", Roles: "*=viewer", GroupsClaim: "groups"})
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	with := func(more map[string]any) func(string) string {
		return func(nonce string) string { return i.token(i.claims(nonce, more)) }
	}
	public := i.key.N.Bytes()
	for _, tt := range []struct {
		name  string
		token func(nonce string) string
	}{
		{"no token", func(string) string { return "" }},
		{"no signature", func(nonce string) string {
			return jwt(map[string]any{"alg": "none"}, i.claims(nonce, nil), func(string) []byte { return nil })
		}},
		{"another key", func(nonce string) string {
			return jwt(map[string]any{"alg": "RS256", "kid": "1"}, i.claims(nonce, nil), signedBy(other))
		}},
		{"the public key as a shared secret", func(nonce string) string {
			return jwt(map[string]any{"alg": "HS256", "kid": "1"}, i.claims(nonce, nil), func(text string) []byte {
				mac := hmac.New(sha256.New, public)
				mac.Write([]byte(text))
				return mac.Sum(nil)
			})
		}},
		{"claims that were changed", func(nonce string) string {
			parts := strings.Split(i.token(i.claims(nonce, nil)), ".")
			raw, _ := json.Marshal(i.claims(nonce, map[string]any{"sub": "2"}))
			return parts[0] + "." + b64.EncodeToString(raw) + "." + parts[2]
		}},
		{"another audience", with(map[string]any{"aud": "other"})},
		{"two audiences and no party", with(map[string]any{"aud": []string{"berth", "other"}})},
		{"made for another client", with(map[string]any{"aud": []string{"berth", "other"}, "azp": "other"})},
		{"another issuer", with(map[string]any{"iss": "https://evil.example"})},
		{"expired", with(map[string]any{"exp": time.Now().Add(-time.Minute).Unix()})},
		{"the nonce of another login", with(map[string]any{"nonce": "other"})},
		{"no nonce", with(map[string]any{"nonce": ""})},
	} {
		v := newVisitor(t)
		asked := v.begin(d, "/ui/")
		resp, body := v.get(callbackOf(d, asked, i.code(asked.Get("code_challenge"), tt.token(asked.Get("nonce")))))
		refused(t, tt.name, resp, body)
	}

	good := func(asked url.Values) string {
		return i.code(asked.Get("code_challenge"), i.token(i.claims(asked.Get("nonce"), nil)))
	}
	// The attacker's code in the victim's browser, which began no login, or another one.
	attacker, victim := newVisitor(t), newVisitor(t)
	planted := attacker.begin(d, "/ui/")
	code := good(planted)
	resp, body := victim.get(callbackOf(d, planted, code))
	refused(t, "a login that this browser did not begin", resp, body)
	victim.begin(d, "/ui/")
	resp, body = victim.get(callbackOf(d, planted, code))
	refused(t, "the state of another login", resp, body)
	own := victim.begin(d, "/ui/")
	resp, body = victim.get(callbackOf(d, own, code))
	refused(t, "the code of another login", resp, body)

	// The same answer twice.
	v := newVisitor(t)
	asked := v.begin(d, "/ui/")
	answer := callbackOf(d, asked, good(asked))
	at, _ := url.Parse(d.url)
	kept := v.Jar.Cookies(at)
	if resp, body := v.get(answer); resp.StatusCode != http.StatusFound {
		t.Fatalf("a good login answered %d: %s", resp.StatusCode, body)
	}
	resp, body = v.get(answer)
	refused(t, "an answer again", resp, body)
	thief := newVisitor(t)
	thief.Jar.SetCookies(at, kept)
	resp, body = thief.get(answer)
	refused(t, "an answer again, with the cookie of before", resp, body)

	// Elsewhere.
	for _, to := range []string{"https://evil.example", "//evil.example/ui/", "/\\evil.example", "/reference", "/ui/../me"} {
		v := newVisitor(t)
		asked := v.begin(d, to)
		if resp, _ := v.get(callbackOf(d, asked, good(asked))); resp.Header.Get("Location") != "/ui/" {
			t.Errorf("to=%s leads to %s", to, resp.Header.Get("Location"))
		}
	}
	v = newVisitor(t)
	asked = v.begin(d, "/ui/")
	if resp, body := v.get(d.url + "/login/oidc/callback?error=access_denied&error_description=%3Cscript%3E&state=" + url.QueryEscape(asked.Get("state"))); resp.StatusCode != http.StatusForbidden || strings.Contains(body, "<script") {
		t.Errorf("a refusal: %d %s", resp.StatusCode, body)
	}
	v = newVisitor(t)
	asked = v.begin(d, "/ui/")
	if resp, body := v.get(d.url + "/login/oidc/callback?error=%3Cscript%3E&state=" + url.QueryEscape(asked.Get("state"))); resp.StatusCode != http.StatusForbidden || strings.Contains(body, "<script") ||
		!strings.Contains(resp.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("a refusal with a code that is none: %d %s", resp.StatusCode, body)
	}
	if asked.Get("code_challenge_method") != "S256" || len(asked.Get("code_challenge")) != 43 || asked.Get("nonce") == "" || asked.Get("redirect_uri") != d.url+"/login/oidc/callback" {
		t.Errorf("the provider is asked %v", asked)
	}
}

// refused fails the test if a login gave the browser anything.
func refused(t *testing.T, name string, resp *http.Response, body string) {
	t.Helper()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("%s: answered %d: %s", name, resp.StatusCode, body)
	}
	for _, c := range resp.Cookies() {
		if c.Value != "" {
			t.Errorf("%s: the browser got the cookie %s", name, c.Name)
		}
	}
}

var formAction = regexp.MustCompile(`action="([^"]+)"`)

// The real thing: a certified provider, which is away when ctl-api starts.
func TestLoginByACertifiedProvider(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("needs node")
	}
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	_, port, _ := net.SplitHostPort(address)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("of-the-test-of-the-test-of-the-test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, _ := oidcDoor(t, oidclogin.Config{Issuer: "http://" + address, ClientID: "berth", ClientSecretFile: secret, Org: "initech", Roles: "devs=operator", GroupsClaim: "groups"})
	if resp, body := newVisitor(t).get(d.url + "/login/oidc"); resp.StatusCode != http.StatusServiceUnavailable || strings.Contains(body, address) {
		t.Errorf("while the provider is away: %d %s", resp.StatusCode, body)
	}
	provide(t, port, d.url+"/login/oidc/callback", "of-the-test-of-the-test-of-the-test")

	// walk logs somebody in at the provider and answers where that led.
	walk := func(v visitor, who string) (last *http.Response, body, answer string) {
		t.Helper()
		resp, body := v.get(d.url + "/login/oidc?to=/ui/installs")
		for range 20 {
			at := resp.Request.URL
			next, err := resp.Location()
			switch {
			case err == nil && next.Host == at.Host && strings.HasPrefix(next.Path, "/ui/"):
				return resp, body, answer
			case err == nil:
				if next.Path == "/login/oidc/callback" {
					answer = next.String()
				}
				resp, body = v.get(next.String())
			case formAction.MatchString(body):
				action, err := at.Parse(formAction.FindStringSubmatch(body)[1])
				if err != nil {
					t.Fatal(err)
				}
				form := url.Values{"prompt": {"consent"}}
				if strings.Contains(body, `value="login"`) {
					form = url.Values{"prompt": {"login"}, "login": {who}, "password": {"any"}}
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, action.String(), strings.NewReader(form.Encode()))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				resp, body = v.do(req)
			default:
				return resp, body, answer
			}
		}
		t.Fatal("the provider sends the browser around in circles")
		return nil, "", ""
	}
	ada := newVisitor(t)
	resp, body, answer := walk(ada, "ada")
	for tries := 0; resp.StatusCode == http.StatusServiceUnavailable && tries < 100; tries++ { // it rests for a second
		time.Sleep(50 * time.Millisecond)
		resp, body, answer = walk(ada, "ada")
	}
	if resp.StatusCode != http.StatusFound || resp.Header.Get("Location") != "/ui/installs" {
		t.Fatalf("ada: %d: %s", resp.StatusCode, body)
	}
	if me := ada.session(d).me(); me.Account.Name != "ada@example.com" || len(me.Grants) != 1 || me.Grants[0].Role != "operator" {
		t.Errorf("ada: %+v", me)
	}
	resp, body = ada.get(answer)
	refused(t, "an answer again", resp, body)
	if resp, body, _ := walk(newVisitor(t), "eve"); resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "devs") {
		t.Errorf("eve, who is in no group: %d %s", resp.StatusCode, body)
	}
}

// provide runs oidc-provider until the test ends.
func provide(t *testing.T, port, redirect, secret string) {
	t.Helper()
	install := exec.CommandContext(t.Context(), "../../../../dev/scripts/npm.sh", "dev/oidc")
	install.Stderr = t.Output()
	out, err := install.Output()
	if err != nil {
		t.Fatalf("install oidc-provider: %v", err)
	}
	modules := filepath.Dir(strings.TrimSpace(string(out)))
	cmd := exec.CommandContext(t.Context(), "node", "../../../../dev/oidc/provider.mjs", modules, port, redirect, secret)
	cmd.Stderr = t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close() // it ends with it
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if lines.Text() == "ready" {
			go func() { _, _ = io.Copy(io.Discard, stdout) }()
			return
		}
	}
	t.Fatal("the provider did not start")
}
