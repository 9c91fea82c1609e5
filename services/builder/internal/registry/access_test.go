package registry_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/services/builder/internal/registry"
)

// answer is what a client can learn from a response.
type answer struct {
	Status      int
	Body        string
	Challenge   string
	ContentType string
	Digest      string
}

func (f fixture) do(t testing.TB, method, path, token string, change func(*http.Request)) (answer, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, f.url+path, http.NoBody)
	must(t, err)
	req.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
	if token != "" {
		req.SetBasicAuth("any", token)
	}
	if change != nil {
		change(req)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return answer{
		Status: resp.StatusCode, Body: string(body), Challenge: resp.Header.Get("WWW-Authenticate"),
		ContentType: resp.Header.Get("Content-Type"), Digest: resp.Header.Get("Docker-Content-Digest"),
	}, resp.Header
}

// TestAttackMatrix asks for everything of org_b with tokens that must not have
// it, and for the same of an org that does not exist: the answers are equal.
func TestAttackMatrix(t *testing.T) { inEveryStorage(t, testAttackMatrix) }

func testAttackMatrix(t *testing.T, in place) {
	f := startIn(t, in, nil)
	owner := f.issue(registry.Grant{OrgID: "org_b", Actions: all})
	artifact, blob := pushBlob(t, f.remote("org_b/shop", owner), 1000)

	requests := []struct{ name, method, path string }{
		{"pull manifest", "GET", "/v2/REPO/manifests/" + artifact.String()},
		{"pull tag", "GET", "/v2/REPO/manifests/latest"},
		{"probe manifest", "HEAD", "/v2/REPO/manifests/latest"},
		{"pull blob", "GET", "/v2/REPO/blobs/" + blob.String()},
		{"probe blob", "HEAD", "/v2/REPO/blobs/" + blob.String()},
		{"push manifest", "PUT", "/v2/REPO/manifests/latest"},
		{"begin upload", "POST", "/v2/REPO/blobs/uploads/"},
		{"look at an upload", "GET", "/v2/REPO/blobs/uploads/0192aabb-0000-7000-8000-000000000000"},
		{"send a chunk", "PATCH", "/v2/REPO/blobs/uploads/0192aabb-0000-7000-8000-000000000000"},
		{"finish an upload", "PUT", "/v2/REPO/blobs/uploads/0192aabb-0000-7000-8000-000000000000?digest=" + blob.String()},
		{"cancel an upload", "DELETE", "/v2/REPO/blobs/uploads/0192aabb-0000-7000-8000-000000000000"},
		{"mount into", "POST", "/v2/REPO/blobs/uploads/?mount=" + blob.String() + "&from=org_a/mine"},
		{"delete manifest", "DELETE", "/v2/REPO/manifests/" + artifact.String()},
		{"delete tag", "DELETE", "/v2/REPO/manifests/latest"},
		{"delete blob", "DELETE", "/v2/REPO/blobs/" + blob.String()},
		{"list tags", "GET", "/v2/REPO/tags/list"},
		{"list referrers", "GET", "/v2/REPO/referrers/" + artifact.String()},
	}
	nobody, _ := registry.NewToken()
	unauthenticated := answer{
		Status: 401, Challenge: `Basic realm="berth"`, ContentType: "application/json",
		Body: `{"errors":[{"code":"UNAUTHORIZED","message":"a registry token is required"}]}`,
	}
	hidden := answer{
		Status: 404, ContentType: "application/json",
		Body: `{"errors":[{"code":"NAME_UNKNOWN","message":"repository name not known to registry"}]}`,
	}
	tokens := []struct {
		name, token string
		want        answer
	}{
		{"no token", "", unauthenticated},
		{"unknown token", nobody, unauthenticated},
		{"token of another kind", "brt_" + strings.TrimPrefix(owner, "brg_"), unauthenticated},
		{"expired", f.issue(registry.Grant{OrgID: "org_b", Actions: all, ExpiresAt: now}), unauthenticated},
		{"revoked", f.issue(registry.Grant{OrgID: "org_b", Actions: all, RevokedAt: now.Add(-time.Second)}), unauthenticated},
		{"another org", f.issue(registry.Grant{OrgID: "org_a", Actions: all}), hidden},
		{"an org whose id is a prefix", f.issue(registry.Grant{OrgID: "org", Actions: all}), hidden},
		{"an org whose id is longer", f.issue(registry.Grant{OrgID: "org_b2", Actions: all}), hidden},
		{"no org", f.issue(registry.Grant{Actions: all}), hidden},
		{"another repository of the org", f.issue(registry.Grant{OrgID: "org_b", Actions: all, RepositoryPrefix: "org_b/sho"}), hidden},
		{"a prefix in another org", f.issue(registry.Grant{OrgID: "org_a", Actions: all, RepositoryPrefix: "org_b/shop"}), hidden},
	}
	for _, tok := range tokens {
		for _, r := range requests {
			for _, repo := range []string{"org_b/shop", "org_nobody/nothing"} {
				want := tok.want
				if r.method == "HEAD" {
					want.Body = ""
				}
				got, _ := f.do(t, r.method, strings.Replace(r.path, "REPO", repo, 1), tok.token, nil)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %s of %s (-want +got):\n%s", tok.name, r.name, repo, diff)
				}
			}
		}
	}

	// And the owner still has it all.
	if got, _ := f.do(t, "GET", "/v2/org_b/shop/manifests/latest", owner, nil); got.Status != 200 || got.Digest != artifact.String() {
		t.Errorf("owner: got %+v", got)
	}
}

func TestActionsOfAToken(t *testing.T) { inEveryStorage(t, testActionsOfAToken) }

func testActionsOfAToken(t *testing.T, in place) {
	f := startIn(t, in, nil)
	owner := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	artifact, _ := pushBlob(t, f.remote("org_a/shop", owner), 1000)
	puller := f.issue(registry.Grant{OrgID: "org_a", Actions: []registry.Action{registry.ActionPull}, RepositoryPrefix: "org_a/shop", ExpiresAt: now.Add(time.Minute)})
	pusher := f.issue(registry.Grant{OrgID: "org_a", Actions: []registry.Action{registry.ActionPush, registry.ActionPull}})
	tests := []struct {
		name, token, method, path string
		want                      int
	}{
		{"version", puller, "GET", "/v2/", 200},
		{"pull", puller, "GET", "/v2/org_a/shop/manifests/latest", 200},
		{"pull below the prefix", puller, "GET", "/v2/org_a/shop/api/tags/list", 404},
		{"push with a pull token", puller, "POST", "/v2/org_a/shop/blobs/uploads/", 403},
		{"tag with a pull token", puller, "PUT", "/v2/org_a/shop/manifests/v2", 403},
		{"push", pusher, "POST", "/v2/org_a/shop/blobs/uploads/", 202},
		{"delete with a push token", pusher, "DELETE", "/v2/org_a/shop/manifests/" + artifact.String(), 403},
		{"catalog", owner, "GET", "/v2/_catalog", 404},
		{"catalog without a token", "", "GET", "/v2/_catalog", 401},
		{"org itself", owner, "GET", "/v2/org_a/tags/list", 404},
		{"encoded slash", owner, "GET", "/v2/org_b%2Fshop/tags/list", 404},
		{"climbing path", owner, "GET", "/v2/org_a/../org_b/shop/tags/list", 404},
		{"double slash", owner, "GET", "/v2//org_a/shop/tags/list", 404},
		{"other paths", owner, "GET", "/debug/vars", 404},
		{"no path", owner, "GET", "/", 404},
		{"delete", owner, "DELETE", "/v2/org_a/shop/manifests/" + artifact.String(), 202},
	}
	for _, tt := range tests {
		if got, _ := f.do(t, tt.method, tt.path, tt.token, nil); got.Status != tt.want {
			t.Errorf("%s: got %d %s, want %d", tt.name, got.Status, got.Body, tt.want)
		}
	}
}

// TestMountFromAnotherOrg tries all ways to name a source repository. Each must
// begin an ordinary upload, as if the blob were not there.
func TestMountFromAnotherOrg(t *testing.T) { inEveryStorage(t, testMountFromAnotherOrg) }

func testMountFromAnotherOrg(t *testing.T, in place) {
	f := startIn(t, in, nil)
	_, secret := pushBlob(t, f.remote("org_b/shop", f.issue(registry.Grant{OrgID: "org_b", Actions: all})), 1000)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	_, mine := pushBlob(t, f.remote("org_a/shop", token), 1000)
	narrow := f.issue(registry.Grant{OrgID: "org_a", Actions: all, RepositoryPrefix: "org_a/copy"})

	query := func(dgst digest.Digest, from ...string) string {
		return "?" + url.Values{"mount": {dgst.String()}, "from": from}.Encode()
	}
	form := func(contentType string) func(*http.Request) {
		return func(r *http.Request) {
			body := url.Values{"mount": {secret.String()}, "from": {"org_b/shop"}}.Encode()
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
			r.Header.Set("Content-Type", contentType)
		}
	}
	tests := []struct {
		name, token, query string
		change             func(*http.Request)
		want               int
	}{
		{name: "own repository", token: token, query: query(mine, "org_a/shop"), want: 201},
		{name: "other org", token: token, query: query(secret, "org_b/shop"), want: 202},
		{name: "other org, blob that does not exist", token: token, query: query(digest.FromString("x"), "org_b/shop"), want: 202},
		{name: "own blob named by the other org", token: token, query: query(mine, "org_b/shop"), want: 202},
		{name: "own repository first", token: token, query: query(secret, "org_a/shop", "org_b/shop"), want: 202},
		{name: "other org first", token: token, query: query(secret, "org_b/shop", "org_a/shop"), want: 202},
		{name: "in a form", token: token, change: form("application/x-www-form-urlencoded"), want: 202},
		{name: "in a form next to an allowed query", token: token, query: query(secret, "org_a/shop"), change: form("application/x-www-form-urlencoded; charset=utf-8"), want: 202},
		{name: "climbing", token: token, query: query(secret, "org_a/../org_b/shop"), want: 202},
		{name: "outside the prefix", token: narrow, query: query(mine, "org_a/shop"), want: 202},
		{name: "with a semicolon", token: token, query: "?mount=" + secret.String() + ";from=org_b/shop", want: 400},
	}
	for _, tt := range tests {
		got, header := f.do(t, "POST", "/v2/org_a/copy/blobs/uploads/"+tt.query, tt.token, tt.change)
		if got.Status != tt.want {
			t.Errorf("%s: got %d %s, want %d", tt.name, got.Status, got.Body, tt.want)
		}
		if location := header.Get("Location"); tt.want == 202 && !strings.HasPrefix(location, "/v2/org_a/copy/blobs/uploads/") {
			t.Errorf("%s: location %q", tt.name, location)
		}
	}
	if got, _ := f.do(t, "GET", "/v2/org_a/copy/blobs/"+secret.String(), token, nil); got.Status != 404 {
		t.Errorf("the other org's blob: got %d, want 404", got.Status)
	}
	// Nor can a manifest name a blob that the repository was not given.
	manifest := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"a/b","digest":"` +
		secret.String() + `","size":1000},"layers":[]}`
	got, _ := f.do(t, "PUT", "/v2/org_a/copy/manifests/x", token, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(manifest)), int64(len(manifest))
		r.Header.Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	})
	if got.Status != 400 && got.Status != 404 {
		t.Errorf("manifest over the other org's blob: got %d %s", got.Status, got.Body)
	}
}

func TestUploadOfOneRepositoryIsNoneOfAnother(t *testing.T) {
	inEveryStorage(t, testUploadOfOneRepositoryIsNoneOfAnother)
}

func testUploadOfOneRepositoryIsNoneOfAnother(t *testing.T, in place) {
	f := startIn(t, in, nil)
	theirs := f.issue(registry.Grant{OrgID: "org_b", Actions: all})
	_, header := f.do(t, "POST", "/v2/org_b/shop/blobs/uploads/", theirs, nil)
	location := header.Get("Location")
	mine := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	got, _ := f.do(t, "PATCH", strings.Replace(location, "org_b/shop", "org_a/shop", 1), mine, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("evil")), 4
	})
	if got.Status < 400 {
		t.Errorf("stolen upload state: got %d", got.Status)
	}
}

func TestUploadLimit(t *testing.T) { inEveryStorage(t, testUploadLimit) }

func testUploadLimit(t *testing.T, in place) {
	f := startIn(t, in, func(c *registry.Config) { c.MaxBlobBytes = 1000 })
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	send := func(method, location string, n int, chunked bool) (answer, string) {
		got, header := f.do(t, method, location, token, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, n))), int64(n)
			if chunked {
				r.ContentLength = -1
			}
		})
		return got, header.Get("Location")
	}
	begin := func() string {
		_, header := f.do(t, "POST", "/v2/org_a/shop/blobs/uploads/", token, nil)
		return header.Get("Location")
	}
	exact := digest.FromBytes(make([]byte, 1000)).String()
	tests := []struct {
		name   string
		chunks []int
		want   int
		stream bool
	}{
		{"as large as allowed", []int{1000}, 202, false},
		{"in two chunks", []int{400, 600}, 202, false},
		{"one byte more", []int{1001}, 413, false},
		{"one byte more in the second chunk", []int{400, 601}, 413, false},
		{"one byte, then too much", []int{1, 1001}, 413, false},
		{"of unknown length, as large as allowed", []int{1000}, 202, true},
		{"of unknown length, too large", []int{5000}, 413, true},
		{"of unknown length, too large in the second chunk", []int{999, 2}, 413, true},
	}
	for _, tt := range tests {
		location := begin()
		var got answer
		var at string
		for _, n := range tt.chunks {
			got, at = send("PATCH", location, n, tt.stream)
			if at != "" {
				location = at
			}
		}
		if got.Status != tt.want {
			t.Errorf("%s: got %d %s, want %d", tt.name, got.Status, got.Body, tt.want)
		}
		finished, _ := f.do(t, "PUT", location+"&digest="+exact, token, nil)
		if want := map[int]int{202: 201, 413: 404}[tt.want]; finished.Status != want {
			t.Errorf("%s: finishing got %d %s, want %d", tt.name, finished.Status, finished.Body, want)
		}
	}
	if got, _ := send("PUT", begin()+"&digest="+exact, 1001, true); got.Status != 413 {
		t.Errorf("too large in one request: got %d, want 413", got.Status)
	}
}

func TestStoreThatIsAway(t *testing.T) {
	t.Parallel()
	f := start(t, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	f.err = errors.New("connection refused")
	got, _ := f.do(t, "GET", "/v2/", token, nil)
	if got.Status != 503 || strings.Contains(got.Body, "refused") {
		t.Errorf("got %d %s, want 503 that tells nothing: a runner must not give up its token", got.Status, got.Body)
	}
}

func TestTokensAreNotStored(t *testing.T) {
	t.Parallel()
	token, hash := registry.NewToken()
	other, _ := registry.NewToken()
	if token == other || len(token) < len("brg_")+40 {
		t.Errorf("tokens are guessable: %q", token)
	}
	if !bytes.Equal(hash, registry.HashToken(token)) || bytes.Contains(hash, []byte(token)) {
		t.Error("the hash is not the token's")
	}
}
