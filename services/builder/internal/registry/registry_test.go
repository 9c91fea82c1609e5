package registry_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/registry"
)

const planType = "application/vnd.berth.plan.v1"

// tokens is a store of tokens in memory, keyed as the table is.
type tokens struct {
	mu     sync.Mutex
	byHash map[string]registry.Grant
	err    error // of the next lookups
}

func (s *tokens) LookupRegistryToken(_ context.Context, hash []byte) (registry.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return registry.Grant{}, s.err
	}
	grant, ok := s.byHash[string(hash)]
	if !ok {
		return registry.Grant{}, fmt.Errorf("lookup: %w", registry.ErrUnauthenticated)
	}
	return grant, nil
}

func (s *tokens) issue(grant registry.Grant) string {
	token, hash := registry.NewToken()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byHash[string(hash)] = grant
	return token
}

// fixture is a registry on a loopback port.
type fixture struct {
	*tokens
	url  string
	host string
}

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func start(t testing.TB, change func(*registry.Config)) fixture {
	return startIn(t, onDisk(t), change)
}

func startIn(t testing.TB, in place, change func(*registry.Config)) fixture {
	t.Helper()
	store := &tokens{byHash: map[string]registry.Grant{}}
	config := in.config(registry.NewTokens(store, func() time.Time { return now }))
	if change != nil {
		change(&config)
	}
	reg, err := registry.New(config)
	must(t, err)
	t.Cleanup(func() { must(t, reg.Close()) })
	return serve(t, store, reg)
}

func serve(t testing.TB, store *tokens, reg *registry.Registry) fixture {
	t.Helper()
	server := httptest.NewServer(reg)
	t.Cleanup(server.Close)
	return fixture{tokens: store, url: server.URL, host: strings.TrimPrefix(server.URL, "http://")}
}

var all = []registry.Action{registry.ActionPull, registry.ActionPush, registry.ActionDelete}

func (f fixture) remote(repository, token string) oci.Remote {
	return oci.Remote{
		Registry: f.host, Repository: repository, PlainHTTP: true,
		Token: func(context.Context) (string, error) { return token, nil },
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openLayout(t testing.TB) *oci.Layout {
	t.Helper()
	l, err := oci.Open(t.TempDir())
	must(t, err)
	return l
}

func randomBytes(n int) []byte {
	data := make([]byte, n)
	rand.Read(data)
	return data
}

// pushBlob puts an artifact of n random bytes into a repository.
func pushBlob(t testing.TB, to oci.Remote, n int) (artifact, blob digest.Digest) {
	t.Helper()
	l, data := openLayout(t), randomBytes(n)
	artifact, err := l.PutBlob(t.Context(), planType, "plan", data)
	must(t, err)
	_, err = to.Push(t.Context(), l, artifact.String(), oci.TransferOptions{Tag: "latest"})
	must(t, err)
	return artifact, digest.FromBytes(data)
}

func TestPushPull(t *testing.T) { inEveryStorage(t, testPushPull) }

func testPushPull(t *testing.T, in place) {
	f := startIn(t, in, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	shop := f.remote("org_a/shop/api", token)
	dgst, _ := pushBlob(t, shop, 3<<20)

	l := openLayout(t)
	must(t, shop.Pull(t.Context(), dgst, l, oci.TransferOptions{}))
	must(t, l.Verify(t.Context(), dgst))

	var sent, total int64
	to := f.remote("org_a/copy", token)
	_, err := to.Push(t.Context(), l, dgst.String(), oci.TransferOptions{
		Tag:      "v1",
		Progress: func(done, all int64) { sent, total = done, all },
	})
	must(t, err)
	if sent != total || total == 0 {
		t.Errorf("progress ended at %d of %d", sent, total)
	}
	must(t, to.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{}))
}

func TestContentsOutliveTheProcess(t *testing.T) { inEveryStorage(t, testContentsOutliveTheProcess) }

func testContentsOutliveTheProcess(t *testing.T, in place) {
	f := startIn(t, in, nil)
	grant := registry.Grant{OrgID: "org_a", Actions: all}
	dgst, _ := pushBlob(t, f.remote("org_a/shop", f.issue(grant)), 1000)

	f = startIn(t, in, nil)
	must(t, f.remote("org_a/shop", f.issue(grant)).Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{}))
}

func TestBasicCredentialsOfOtherTools(t *testing.T) {
	inEveryStorage(t, testBasicCredentialsOfOtherTools)
}

func testBasicCredentialsOfOtherTools(t *testing.T, in place) {
	f := startIn(t, in, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	repo, err := remote.NewRepository(f.host + "/org_a/shop")
	must(t, err)
	repo.PlainHTTP = true
	repo.Client = &auth.Client{Credential: auth.StaticCredential(f.host, auth.Credential{Username: "any", Password: token})}
	desc, err := oras.PushBytes(t.Context(), repo, "text/plain", []byte("hello"))
	must(t, err)
	_, got, err := oras.FetchBytes(t.Context(), repo.Blobs(), desc.Digest.String(), oras.DefaultFetchBytesOptions)
	must(t, err)
	if string(got) != "hello" {
		t.Errorf("got %q, want what was pushed", got)
	}
}

func TestReferrers(t *testing.T) { inEveryStorage(t, testReferrers) }

func testReferrers(t *testing.T, in place) {
	f := startIn(t, in, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	target := f.remote("org_a/shop", token)
	dgst, _ := pushBlob(t, target, 1000)

	repo, err := remote.NewRepository(f.host + "/org_a/shop")
	must(t, err)
	repo.PlainHTTP = true
	repo.Client = &auth.Client{Credential: auth.StaticCredential(f.host, auth.Credential{Username: "any", Password: token})}
	subject, err := repo.Resolve(t.Context(), dgst.String())
	must(t, err)

	// Signatures that are pushed side by side do not overwrite each other.
	const count = 8
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() {
			_, err := oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, fmt.Sprintf("application/vnd.test.%d", i%2), oras.PackManifestOptions{
				Subject: &subject, ManifestAnnotations: map[string]string{"n": fmt.Sprint(i), ocispec.AnnotationCreated: "2026-03-01T00:00:00Z"},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()

	list := func(artifactType string) (found []ocispec.Descriptor) {
		must(t, repo.Referrers(t.Context(), subject, artifactType, func(page []ocispec.Descriptor) error {
			found = append(found, page...)
			return nil
		}))
		return found
	}
	if got := len(list("")); got != count {
		t.Errorf("all referrers: got %d, want %d", got, count)
	}
	even := list("application/vnd.test.0")
	if len(even) != count/2 {
		t.Fatalf("referrers of one type: got %d, want %d", len(even), count/2)
	}
	must(t, repo.Delete(t.Context(), even[0]))
	if got := len(list("")); got != count-1 {
		t.Errorf("after a deletion: got %d, want %d", got, count-1)
	}
	var tags []string
	must(t, repo.Tags(t.Context(), "", func(page []string) error {
		tags = append(tags, page...)
		return nil
	}))
	if diff := cmp.Diff([]string{"latest"}, tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
}

func TestConcurrentPushesOfTheSameBlob(t *testing.T) {
	inEveryStorage(t, testConcurrentPushesOfTheSameBlob)
}

func testConcurrentPushesOfTheSameBlob(t *testing.T, in place) {
	f := startIn(t, in, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	l, data := openLayout(t), randomBytes(2<<20)
	dgst, err := l.PutBlob(t.Context(), planType, "plan", data)
	must(t, err)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			to := f.remote(fmt.Sprintf("org_a/shop%d", i%2), token)
			if _, err := to.Push(t.Context(), l, dgst.String(), oci.TransferOptions{Tag: "latest"}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 2 {
		pulled := openLayout(t)
		must(t, f.remote(fmt.Sprintf("org_a/shop%d", i), token).Pull(t.Context(), dgst, pulled, oci.TransferOptions{}))
		_, got, err := pulled.GetBlob(t.Context(), planType, dgst)
		must(t, err)
		if !bytes.Equal(got, data) {
			t.Error("pulled bytes differ from the pushed ones")
		}
	}
}

// cutter is a transport that breaks the first bodies after some bytes.
type cutter struct {
	after int64
	mu    sync.Mutex
	cuts  int // still to come
	broke bool
	asked []string // Range of each blob request
}

func (c *cutter) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet || !strings.Contains(req.URL.Path, "/blobs/") {
		return resp, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, req.Header.Get("Range"))
	// A resumed request is preceded by a whole one, which is let go unread.
	first := !c.broke
	if resp.ContentLength > c.after && c.cuts > 0 && (first || req.Header.Get("Range") != "") {
		c.cuts, c.broke = c.cuts-1, true
		resp.Body = cutBody{io.MultiReader(io.LimitReader(resp.Body, c.after), broken{}), resp.Body}
	}
	return resp, nil
}

type cutBody struct {
	io.Reader
	io.Closer
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestPullResumes(t *testing.T) { inEveryStorage(t, testPullResumes) }

func testPullResumes(t *testing.T, in place) {
	f := startIn(t, in, nil)
	shop := f.remote("org_a/shop", f.issue(registry.Grant{OrgID: "org_a", Actions: all}))
	dgst, _ := pushBlob(t, shop, 3<<20)

	wire := &cutter{after: 1 << 20, cuts: 2}
	shop.Client = &http.Client{Transport: wire}
	l := openLayout(t)
	must(t, shop.Pull(t.Context(), dgst, l, oci.TransferOptions{Concurrency: 1}))
	must(t, l.Verify(t.Context(), dgst))
	var resumed []string
	for _, r := range wire.asked {
		if r != "" {
			resumed = append(resumed, r)
		}
	}
	want := []string{"bytes=1048576-3145727", "bytes=2097152-3145727"}
	if diff := cmp.Diff(want, resumed); diff != "" {
		t.Errorf("ranges asked for (-want +got):\n%s", diff)
	}
}
