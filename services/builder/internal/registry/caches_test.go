package registry_test

import (
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/registry"
)

// TestAttackCaches tries to read and to poison what builds leave for each other,
// with every kind of token that somebody else can have.
func TestAttackCaches(t *testing.T) { inEveryStorage(t, testAttackCaches) }

func testAttackCaches(t *testing.T, in place) {
	f := startIn(t, in, nil)
	const cache = "org_a/build.cache/app_1/cmp_1"
	push := []registry.Action{registry.ActionPull, registry.ActionPush}
	builds := f.issue(registry.Grant{OrgID: "org_a", RunnerID: "rnr_b", Actions: push})
	kept, blob := pushBlob(t, f.remote(cache, builds), 1000)
	pushBlob(t, f.remote("org_a/shop/web", builds), 1000)

	pull := []registry.Action{registry.ActionPull}
	attackers := map[string]registry.Grant{
		"a runner of an install":      {OrgID: "org_a", RunnerID: "rnr_i", Actions: pull},
		"a person":                    {OrgID: "org_a", RepositoryPrefix: "org_a", Actions: pull},
		"a person with one app":       {OrgID: "org_a", RepositoryPrefix: "org_a/shop", Actions: pull},
		"a person with the prefix":    {OrgID: "org_a", RepositoryPrefix: "org_a/build.cache", Actions: pull},
		"builds of another org":       {OrgID: "org_b", RunnerID: "rnr_c", Actions: push},
		"builds of an org like it":    {OrgID: "org", RunnerID: "rnr_c", Actions: push},
		"one who may delete, no more": {OrgID: "org_a", Actions: []registry.Action{registry.ActionDelete}},
	}
	manifest := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"a/b","digest":"` + blob.String() + `","size":1000},"layers":[]}`
	for name, grant := range attackers {
		token := f.issue(grant)
		for _, request := range []struct{ method, path string }{
			{"GET", "/manifests/latest"},
			{"HEAD", "/manifests/" + kept.String()},
			{"GET", "/blobs/" + blob.String()},
			{"GET", "/tags/list"},
			{"GET", "/referrers/" + kept.String()},
			{"PUT", "/manifests/latest"},
			{"POST", "/blobs/uploads/"},
			{"POST", "/blobs/uploads/?mount=" + blob.String() + "&from=org_a/shop/web"},
			{"DELETE", "/manifests/latest"},
		} {
			got, _ := f.do(t, request.method, "/v2/"+cache+request.path, token, func(r *http.Request) {
				if request.method == "PUT" {
					r.Body, r.ContentLength = http.NoBody, 0
					r.Header.Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				}
			})
			if got.Status != http.StatusNotFound {
				t.Errorf("%s: %s %s got %d %s", name, request.method, request.path, got.Status, got.Body)
			}
		}
		if grant.OrgID == "org_a" {
			continue
		}
		// Nor does it come out by a mount.
		mine := grant.OrgID + "/mine"
		f.do(t, "POST", "/v2/"+mine+"/blobs/uploads/?mount="+blob.String()+"&from="+cache, token, nil)
		if got, _ := f.do(t, "GET", "/v2/"+mine+"/blobs/"+blob.String(), token, nil); got.Status != http.StatusNotFound {
			t.Errorf("%s: mounted the blob: %d", name, got.Status)
		}
	}
	// What is in a cache is in no artifact, no matter who asks: the sweep of one cannot
	// take it from the other.
	f.do(t, "POST", "/v2/org_a/shop/web/blobs/uploads/?mount="+blob.String()+"&from="+cache, builds, nil)
	got, _ := f.do(t, "PUT", "/v2/org_a/shop/web/manifests/x", builds, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(manifest)), int64(len(manifest))
		r.Header.Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
	})
	if got.Status == http.StatusCreated {
		t.Error("an artifact is made of a cache's blob")
	}
	// And whose it is still has it.
	must(t, f.remote(cache, builds).Pull(t.Context(), kept, openLayout(t), oci.TransferOptions{}))
}

// An app cannot take the place of the caches by its name.
func TestCachesAreNoApp(t *testing.T) {
	t.Parallel()
	if got := "org_1/" + oci.PathElement("build.cache", "app_1") + "/web"; oci.IsCacheRepository(got) {
		t.Errorf("an app called build.cache has its artifacts in %s", got)
	}
	for repository, want := range map[string]bool{
		oci.CacheRepository("org_1", "app_1", "cmp_1"): true, "org_1/build.cache": true,
		"org_1/web": false, "org_1/web/build.cache": false, "build.cache/web": false, "org_1/build.cachet/x": false, "": false,
	} {
		if got := oci.IsCacheRepository(repository); got != want {
			t.Errorf("%q: %t, want %t", repository, got, want)
		}
	}
}

func TestSuperfluous(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	limits := registry.CacheLimits{MaxBytes: 100, MaxAge: 24 * time.Hour}
	for _, tt := range []struct {
		name   string
		caches []registry.Cache
		want   []string
	}{
		{name: "none"},
		{name: "all fit", caches: []registry.Cache{{"org_1/a", ago(0), 50, false}, {"org_1/b", ago(time.Hour), 50, false}}},
		{name: "the one used least recently goes", caches: []registry.Cache{{"org_1/a", ago(2 * time.Hour), 50, false}, {"org_1/b", ago(time.Hour), 51, false}}, want: []string{"org_1/a"}},
		{name: "a smaller older one may stay", caches: []registry.Cache{{"org_1/a", ago(1), 90, false}, {"org_1/b", ago(2), 20, false}, {"org_1/c", ago(3), 10, false}}, want: []string{"org_1/b"}},
		{name: "each org has its own room", caches: []registry.Cache{{"org_1/a", ago(1), 100, false}, {"org_2/a", ago(2), 100, false}}},
		{name: "one larger than all there is", caches: []registry.Cache{{"org_1/a", ago(1), 101, false}}, want: []string{"org_1/a"}},
		{name: "one that nobody uses", caches: []registry.Cache{{"org_1/a", ago(25 * time.Hour), 1, false}}, want: []string{"org_1/a"}},
		{name: "one that cannot be read", caches: []registry.Cache{{"org_1/a", ago(1), 1, true}}, want: []string{"org_1/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, registry.Superfluous(tt.caches, limits, now)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Pruning takes what is past the limits and what no tag names, and never what is in
// an artifact, byte for byte the same or not.
func TestPruneCaches(t *testing.T) { inEveryStorage(t, testPruneCaches) }

func testPruneCaches(t *testing.T, in place) {
	store := &tokens{byHash: map[string]registry.Grant{}}
	reg, err := registry.New(in.config(registry.NewTokens(store, func() time.Time { return now })))
	must(t, err)
	t.Cleanup(func() { must(t, reg.Close()) })
	if n, err := reg.PruneCaches(t.Context(), registry.CacheLimits{}, now); n != 0 || err != nil {
		t.Fatalf("pruning nothing: %d, %v", n, err)
	}
	f := serve(t, store, reg)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	cache, other := f.remote("org_a/build.cache/app_1/cmp_1", token), f.remote("org_a/build.cache/app_1/cmp_2", token)
	l := openLayout(t)
	same, err := l.PutBlob(t.Context(), planType, "plan", randomBytes(5000))
	must(t, err)
	for _, to := range []oci.Remote{cache, f.remote("org_a/shop/web", token)} {
		_, err = to.Push(t.Context(), l, same.String(), oci.TransferOptions{Tag: "on"})
		must(t, err)
	}
	before, _ := pushBlob(t, cache, 3000)
	after, _ := pushBlob(t, cache, 3000) // takes its tag
	kept, _ := pushBlob(t, other, 100)

	limits := registry.CacheLimits{MaxBytes: 1 << 20, MaxAge: time.Hour}
	n, err := reg.PruneCaches(t.Context(), limits, time.Now())
	if n != 0 || err != nil {
		t.Fatalf("%d caches removed, %v", n, err)
	}
	pulls := func(from oci.Remote, what string) bool {
		list, err := oci.Tags(t.Context(), from, 9)
		if err != nil || !slices.Contains(list, what) {
			return false
		}
		dgst, err := oci.ResolveTag(t.Context(), from, what)
		return err == nil && from.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{}) == nil
	}
	if cache.Pull(t.Context(), before, openLayout(t), oci.TransferOptions{}) == nil {
		t.Error("what lost its tag is still there")
	}
	must(t, cache.Pull(t.Context(), after, openLayout(t), oci.TransferOptions{}))

	limits.MaxBytes = 1000 // the other one was used last, and fits
	if n, err = reg.PruneCaches(t.Context(), limits, time.Now()); n != 1 || err != nil {
		t.Fatalf("%d caches removed, %v", n, err)
	}
	if pulls(cache, "on") || pulls(cache, "latest") {
		t.Error("the cache that does not fit is still there")
	}
	must(t, other.Pull(t.Context(), kept, openLayout(t), oci.TransferOptions{}))
	if !pulls(f.remote("org_a/shop/web", token), "on") {
		t.Error("the artifact with the same blobs is gone")
	}
	if in.Dir != "" { // the bytes are gone, too
		files, _ := filepath.Glob(filepath.Join(in.Dir, "cache/docker/registry/v2/blobs/sha256/*/*/data"))
		if len(files) != 3 { // manifest, config and layer of the one that is kept
			t.Errorf("%d blobs are left", len(files))
		}
	}
	// It can come back.
	_, err = cache.Push(t.Context(), l, same.String(), oci.TransferOptions{Tag: "on"})
	must(t, err)
	if !pulls(cache, "on") {
		t.Error("a cache that was removed cannot be kept again")
	}
	if n, err = reg.PruneCaches(t.Context(), limits, time.Now().Add(2*time.Hour)); n != 2 || err != nil || pulls(cache, "on") {
		t.Errorf("%d caches removed when all are old, %v", n, err)
	}
}
