package source_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/builder/internal/keyring"
	"github.com/berth-dev/berth/services/builder/internal/source"
)

const registrySecret = "hunter2hunter2"

// behindTokens is a private registry: its token service takes a password, or an
// identity token by OAuth 2. The registry itself takes what that gave out.
func behindTokens(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, password, basic := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && r.Method == http.MethodPost:
			if r.FormValue("grant_type") != "refresh_token" || r.FormValue("refresh_token") != registrySecret {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"access_token":"for-a-while"}`)
		case r.URL.Path == "/token":
			if !basic || password != registrySecret || r.FormValue("service") != "test" || r.FormValue("scope") != "repository:team/web:pull" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			fmt.Fprint(w, `{"token":"for-a-while"}`)
		case r.Header.Get("Authorization") != "Bearer for-a-while":
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			next(w, r)
		}
	}
}

func behindPassword(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "berth" || password != registrySecret {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next(w, r)
	}
}

func behindBearer(token string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next(w, r)
	}
}

func limited(after string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// tokenUntil is a JSON web token that says when it ends.
func tokenUntil(at time.Time) string {
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, at.Unix())) + ".c2ln"
}

func TestPrivateImage(t *testing.T) {
	t.Parallel()
	ended, lasting := tokenUntil(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), tokenUntil(time.Now().Add(time.Hour))
	password := `{"username": "berth", "password": "` + registrySecret + `"}`
	for _, tc := range []struct {
		name, entry string // none when empty
		handler     http.HandlerFunc
		change      func(s *source.Source)
		want        string // in the error; "" when it is found
		transient   bool
		operator    bool
	}{
		{name: "a password", entry: password, handler: behindPassword(manifest)},
		{name: "a password at a token service", entry: password, handler: behindTokens(manifest)},
		{name: "an identity token", entry: `{"identity_token": "` + registrySecret + `"}`, handler: behindTokens(manifest)},
		{name: "a token as it is", entry: `{"token": "` + lasting + `"}`, handler: behindBearer(lasting, manifest)},
		{name: "no entry", handler: behindPassword(manifest), want: "has no entry for it"},
		{name: "an entry of other orgs", entry: `{"username": "berth", "password": "` + registrySecret + `", "orgs": ["org_2"]}`, handler: behindPassword(manifest), want: "has no entry for it"},
		{name: "a wrong password", entry: `{"username": "berth", "password": "` + registrySecret + `!"}`, handler: behindPassword(manifest), want: "the registry refuses these credentials", operator: true},
		{name: "a wrong password at a token service", entry: `{"username": "berth", "password": "` + registrySecret + `!"}`, handler: behindTokens(manifest), want: "the registry refuses these credentials", operator: true},
		{name: "a token that has ended", entry: `{"token": "` + ended + `"}`, handler: behindBearer(lasting, manifest), want: "expired at 2026-01-02T03:04:05Z", operator: true},
		{name: "a repository that is not there", entry: password, handler: behindPassword(manifest), change: func(s *source.Source) { s.Repo += "s" }, want: "there is no image"},
		{name: "a registry that has enough for an hour", entry: password, handler: limited("3600"), want: "allows no more requests for 1h0m0s; sync again then"},
		{name: "a registry that has enough for a moment", entry: password, handler: limited("8"), want: "allows no more requests for 8s", transient: true},
		{name: "ECR without an entry", handler: manifest, change: func(s *source.Source) { s.ECR = &keyring.ECR{} }, want: "has no entry with the helper aws_ecr that org org_1 may use", operator: true},
		{name: "ECR with an entry of another kind", entry: password, handler: manifest, change: func(s *source.Source) { s.ECR = &keyring.ECR{} }, want: "has no entry with the helper aws_ecr", operator: true},
		{name: "ECR without a region", entry: `{"helper": "aws_ecr"}`, handler: behindPassword(manifest), change: func(s *source.Source) { s.ECR = &keyring.ECR{} }, want: "nothing says in which region of AWS", operator: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			host := server.Listener.Addr().String()
			src := source.Source{Kind: source.KindImage, Repo: host + "/team/web", Ref: "1.2", Org: "org_1"}
			if tc.change != nil {
				tc.change(&src)
			}
			config := source.Config{}
			if tc.entry != "" {
				config.Keys = keys(t, "oci://"+host, tc.entry)
			}
			r := source.NewResolver(config)
			commit, err := r.Resolve(t.Context(), src)
			if tc.want == "" {
				if err != nil || commit.Hash != someImage {
					t.Errorf("Resolve: %+v, %v, want %s", commit, err, someImage)
				}
				if _, private, err := r.Image(src); !private || err != nil {
					t.Errorf("Image: private %v, %v", private, err)
				}
				return
			}
			refused, ok := errors.AsType[*source.Error](err)
			if !ok || !strings.Contains(refused.Error(), tc.want) || refused.Transient != tc.transient || refused.Operator != tc.operator {
				t.Errorf("Resolve: %v (%+v), want …%s, transient %v, operator %v", err, refused, tc.want, tc.transient, tc.operator)
			}
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "eyJ")) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

// The credentials reach no other host: not a token service in clear, not where the
// registry redirects to, and no registry whose certificate is not trusted.
func TestPrivateImageKeepsItsKey(t *testing.T) {
	t.Parallel()
	shown := make(chan string, 10)
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown <- r.Header.Get("Authorization")
		manifest(w, r)
	}))
	defer thief.Close()
	registry := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, ok := r.BasicAuth(); ok {
			http.Redirect(w, r, thief.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		w.Header().Set("WWW-Authenticate", challenge(r, thief.URL))
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer registry.Close()
	trusted := registry.Client().Transport.(*http.Transport).Clone()
	for _, tc := range []struct{ name, repo, want string }{
		{"a redirect in clear", "team/redirect", "is not https"},
		{"a token service in clear", "team/service", "cannot be reached now"},
	} {
		host := "example.com"
		transport := trusted.Clone()
		transport.DialContext = dialTo(registry.Listener.Addr().String())
		r := source.NewResolver(source.Config{Transport: transport, Keys: keys(t, "oci://"+host, `{"username": "berth", "password": "`+registrySecret+`"}`)})
		_, err := r.Resolve(t.Context(), source.Source{Kind: source.KindImage, Repo: host + "/" + tc.repo, Ref: "1.2"})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want …%s", tc.name, err, tc.want)
		}
	}
	untrusting := &http.Transport{DialContext: dialTo(registry.Listener.Addr().String())}
	r := source.NewResolver(source.Config{Transport: untrusting, Keys: keys(t, "oci://example.com", `{"token": "x"}`)})
	if _, err := r.Resolve(t.Context(), source.Source{Kind: source.KindImage, Repo: "example.com/team/web", Ref: "1.2"}); err == nil || !strings.Contains(err.Error(), "certificate is not trusted") || !strings.Contains(err.Error(), "SSL_CERT_FILE") {
		t.Errorf("another CA: %v, want what to do", err)
	}
	select {
	case got := <-shown:
		t.Errorf("another host was shown %q", got)
	default:
	}
}

func challenge(r *http.Request, elsewhere string) string {
	if strings.Contains(r.URL.Path, "/service/") {
		return `Bearer realm="` + elsewhere + `/token",service="test"`
	}
	return `Basic realm="test"`
}

func keys(t *testing.T, address, entry string) *keyring.Ring {
	t.Helper()
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{%q: %s}`, address, entry), 0o600); err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.Read(file, keyring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// dialTo connects to one address, whatever name was asked for.
func dialTo(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}
}
