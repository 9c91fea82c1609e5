package source_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/builder/internal/source"
)

const someImage = "sha256:1111111111111111111111111111111111111111111111111111111111111111"

// manifest answers for the one tag that there is.
func manifest(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v2/team/web/manifests/1.2" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`)
		return
	}
	w.Header().Set("Content-Type", "application/vnd.docker.distribution.manifest.list.v2+json")
	w.Header().Set("Docker-Content-Digest", someImage)
	w.Header().Set("Content-Length", "100")
}

// withTokens gives a token to everybody, as public registries do.
func withTokens(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			fmt.Fprint(w, `{"token":"for-anybody"}`)
		case r.Header.Get("Authorization") != "Bearer for-anybody":
			w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+r.Host+`/token",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			next(w, r)
		}
	}
}

func refuseWith(status int, challenge string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if challenge != "" {
			w.Header().Set("WWW-Authenticate", challenge)
		}
		w.WriteHeader(status)
	}
}

func TestResolveImage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		handler   http.HandlerFunc
		tag       string // 1.2 when empty
		timeout   time.Duration
		want      string // in the error; "" when it is found
		transient bool
	}{
		{name: "a registry that asks for nothing", handler: manifest},
		{name: "a registry that gives tokens to anybody", handler: withTokens(manifest)},
		{name: "a tag that is not there", handler: withTokens(manifest), tag: "1.3", want: "there is no image HOST/team/web:1.3"},
		{name: "one that wants a password", handler: refuseWith(http.StatusUnauthorized, `Basic realm="x"`), want: "does not exist or is not public"},
		{name: "one that forbids it", handler: refuseWith(http.StatusForbidden, ""), want: "does not exist or is not public"},
		{name: "a token service elsewhere, in clear", handler: refuseWith(http.StatusUnauthorized, `Bearer realm="http://203.0.113.1/token"`), want: "leads to an address that is not https"},
		{name: "one that is broken", handler: refuseWith(http.StatusNotImplemented, ""), want: "cannot be reached now", transient: true},
		{name: "one that never answers", handler: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, timeout: time.Second, want: "did not answer within 1s", transient: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.handler)
			defer server.Close()
			host := server.Listener.Addr().String()
			src := source.Source{Kind: source.KindImage, Repo: host + "/team/web", Ref: "1.2"}
			if tc.tag != "" {
				src.Ref = tc.tag
			}
			commit, err := source.NewResolver(source.Config{Timeout: tc.timeout}).Resolve(t.Context(), src)
			if tc.want == "" {
				if err != nil || commit.Hash != someImage || src.Content(commit.Hash) != someImage {
					t.Errorf("Resolve: %+v, %v, want %s", commit, err, someImage)
				}
				return
			}
			var refused *source.Error
			if !errors.As(err, &refused) || !strings.Contains(strings.ReplaceAll(refused.Error(), host, "HOST"), tc.want) || refused.Transient != tc.transient {
				t.Errorf("Resolve: %v (%+v), want …%s, transient %v", err, refused, tc.want, tc.transient)
			}
		})
	}
}

// The newest tag within a range is pinned with its digest; names that move and
// prereleases are no versions.
func TestResolveRangeOfImages(t *testing.T) {
	t.Parallel()
	tags := `"latest","1.5","v1.5.0-rc.1","1.4.2","v1.4.10","1.4.9-alpine","2.0.0","sha256-abc.sig","1.4.010"`
	server := httptest.NewServer(withTokens(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v2/team/web/tags/list":
			if r.URL.Query().Get("last") == "" { // a page of its own
				w.Header().Set("Link", `</v2/team/web/tags/list?last=x>; rel="next"`)
				fmt.Fprintf(w, `{"name":"team/web","tags":["0.9.0"]}`)
				return
			}
			fmt.Fprintf(w, `{"name":"team/web","tags":[%s]}`, tags)
		case "/v2/team/web/manifests/v1.4.10", "/v2/team/web/manifests/v1.5.0-rc.1":
			r.URL.Path = "/v2/team/web/manifests/1.2"
			manifest(w, r)
		default:
			manifest(w, r)
		}
	}))
	defer server.Close()
	host := server.Listener.Addr().String()
	for _, tc := range []struct{ repo, within, want, key string }{
		{"team/web", "^1.4", "v1.4.10@" + someImage, ""},
		{"team/web", ">=1.5.0-0, <2", "v1.5.0-rc.1@" + someImage, ""},
		{"team/web", "^3", `has no tag that is a version within "^3"; its newest one is 2.0.0`, "update_policy"},
		{"team/none", "^1", "there is no image HOST/team/none", "image_url"},
	} {
		src := source.Source{Kind: source.KindImage, Repo: host + "/" + tc.repo, Ref: tc.within, Range: true}
		commit, err := source.NewResolver(source.Config{}).Resolve(t.Context(), src)
		if tc.key == "" {
			if err != nil || commit.Hash != tc.want || src.Content(commit.Hash) != someImage {
				t.Errorf("%s: %+v, %v, want %s", tc.within, commit, err, tc.want)
			}
			continue
		}
		var refused *source.Error
		if !errors.As(err, &refused) || !strings.Contains(strings.ReplaceAll(refused.Error(), host, "HOST"), tc.want) || string(refused.Key) != tc.key || refused.Transient {
			t.Errorf("%s: %v (%+v), want …%s", tc.within, err, refused, tc.want)
		}
	}
	if _, err := source.Parse([]byte(`{"kind":"image","repo":"registry.example.com/web","ref":"newest","range":true}`)); err == nil {
		t.Error("a range that is none is taken")
	}
}

func TestParseImage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ repo, tag, want string }{
		{"registry.example.com/team/web", "1.2", ""},
		{"team/web", "latest", ""},
		{"127.0.0.1:5000/web", "v1", ""},
		{"registry.example.com/team/web:1.2", "1.2", "is not the name of an image"},
		{"https://registry.example.com/web", "1.2", "is not the name of an image"},
		{"registry.example.com/../web", "1.2", "is not the name of an image"},
		{"registry.example.com/web", "", "cannot be the tag"},
		{"registry.example.com/web", "a/b", "cannot be the tag"},
	} {
		_, err := source.Parse(fmt.Appendf(nil, `{"kind":"image","repo":%q,"ref":%q}`, tc.repo, tc.tag))
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("Parse(%s, %s) = %v, want %q", tc.repo, tc.tag, err, tc.want)
		}
	}
}
