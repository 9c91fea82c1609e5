package registry_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/services/builder/internal/registry"
)

// A small blob comes in the request that announces it, and by the same rules as in
// an upload.
func TestSmallBlobInOneRequest(t *testing.T) { inEveryStorage(t, testSmallBlobInOneRequest) }

func testSmallBlobInOneRequest(t *testing.T, in place) {
	f := startIn(t, in, func(c *registry.Config) { c.MaxBlobBytes = 100 << 10 })
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	puller := f.issue(registry.Grant{OrgID: "org_a", Actions: []registry.Action{registry.ActionPull}})
	small, large := randomBytes(64<<10), randomBytes(64<<10+1)
	of := func(raw []byte) string { return digest.FromBytes(raw).String() }
	for _, tt := range []struct {
		name, repository, digest, token string
		body                            []byte
		announced                       int64
		want                            int
	}{
		{name: "small", repository: "org_a/shop", digest: of(small), token: token, body: small, want: 201},
		{name: "the same again", repository: "org_a/shop", digest: of(small), token: token, body: small, want: 201},
		{name: "empty", repository: "org_a/shop", digest: of(nil), token: token, want: 201},
		{name: "large", repository: "org_a/shop", digest: of(large), token: token, body: large, want: 202},
		{name: "of unknown length", repository: "org_a/shop", digest: of(small), token: token, body: small, announced: -1, want: 202},
		{name: "other bytes", repository: "org_a/shop", digest: of([]byte("other")), token: token, body: []byte("x"), want: 400},
		{name: "bytes of a blob that is there, and another digest", repository: "org_a/shop", digest: of([]byte("other")), token: token, body: small, want: 400},
		{name: "no digest", repository: "org_a/shop", digest: "sha256:zz", token: token, body: small, want: 400},
		{name: "another algorithm", repository: "org_a/shop", digest: digest.SHA512.FromBytes(small).String(), token: token, body: small, want: 202},
		{name: "a token that pulls", repository: "org_a/shop", digest: of(small), token: puller, body: small, want: 403},
		{name: "another org", repository: "org_b/shop", digest: of(small), token: token, body: small, want: 404},
		{name: "nobody", repository: "org_a/shop", digest: of(small), body: small, want: 401},
	} {
		got, header := f.do(t, "POST", "/v2/"+tt.repository+"/blobs/uploads/?digest="+url.QueryEscape(tt.digest), tt.token, func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(tt.body)), int64(len(tt.body))
			if len(tt.body) == 0 {
				r.Body = http.NoBody
			}
			if tt.announced != 0 {
				r.ContentLength = tt.announced
			}
		})
		if got.Status != tt.want {
			t.Errorf("%s: got %d %s, want %d", tt.name, got.Status, got.Body, tt.want)
		}
		if tt.want != 201 {
			continue
		}
		if location := header.Get("Location"); location != "/v2/org_a/shop/blobs/"+tt.digest || got.Digest != tt.digest {
			t.Errorf("%s: Location %q of %s", tt.name, location, got.Digest)
		}
		if got, _ := f.do(t, "GET", header.Get("Location"), token, nil); got.Status != 200 || got.Body != string(tt.body) {
			t.Errorf("%s: it is answered by %d and %d bytes", tt.name, got.Status, len(got.Body))
		}
	}
	for _, repository := range []string{"org_a/other", "org_b/shop"} {
		other := f.issue(registry.Grant{OrgID: repository[:5], Actions: all})
		if got, _ := f.do(t, "HEAD", "/v2/"+repository+"/blobs/"+of(small), other, nil); got.Status != 404 {
			t.Errorf("in %s it is there too: %d", repository, got.Status)
		}
	}
	// Where less is allowed, it is not a way around.
	tight := startIn(t, in, func(c *registry.Config) { c.MaxBlobBytes = 1000 })
	owner := tight.issue(registry.Grant{OrgID: "org_a", Actions: all})
	raw := make([]byte, 1001)
	got, header := tight.do(t, "POST", "/v2/org_a/shop/blobs/uploads/?digest="+url.QueryEscape(of(raw)), owner, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	})
	if got.Status != 202 {
		t.Fatalf("one byte more than allowed: %d", got.Status)
	}
	got, _ = tight.do(t, "PUT", header.Get("Location")+"&digest="+of(raw), owner, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	})
	if got.Status != 413 {
		t.Errorf("one byte more than allowed, in an upload: %d, want 413", got.Status)
	}
}

// After a power cut the files that say how far an upload is may be empty: it is
// purged when its time has come, and until then only that upload is lost.
func TestUploadAfterAPowerCut(t *testing.T) {
	t.Parallel()
	in := onDisk(t)
	f := startIn(t, in, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	_, header := f.do(t, "POST", "/v2/org_a/shop/blobs/uploads/", token, nil)
	_, header = f.do(t, "PATCH", header.Get("Location"), token, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader("half")), 4
	})
	emptied := 0
	must(t, filepath.WalkDir(in.Dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.Contains(path, "/_uploads/") && filepath.Base(path) != "data" {
			emptied++
			err = os.WriteFile(path, nil, 0o600)
		}
		return err
	}))
	if emptied < 2 {
		t.Fatalf("%d files of the upload", emptied)
	}
	whole := "half and half"
	if got, _ := f.do(t, "PUT", header.Get("Location")+"&digest="+digest.FromString(whole).String(), token, func(r *http.Request) {
		rest := strings.TrimPrefix(whole, "half")
		r.Body, r.ContentLength = io.NopCloser(strings.NewReader(rest)), int64(len(rest))
	}); got.Status == http.StatusOK {
		t.Error(fmt.Sprint("it goes on as if nothing was: ", got))
	}
	if got, _ := f.do(t, "GET", "/v2/org_a/shop/blobs/"+digest.FromString(whole).String(), token, nil); got.Status == http.StatusOK && got.Body != whole {
		t.Errorf("the blob is %q", got.Body)
	}
	reg, err := registry.New(in.config(anyone{}))
	must(t, err)
	_, err = reg.PurgeUploads(t.Context(), time.Now().Add(time.Hour))
	must(t, err)
	left, err := filepath.Glob(filepath.Join(in.Dir, "docker/registry/v2/repositories/org_a/shop/_uploads/*"))
	must(t, err)
	if len(left) > 0 {
		t.Errorf("after the purge: %q", left)
	}
	must(t, reg.Close())
}
