package registry_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/registry"
)

// A bucket that cannot be used is said at the start, without the credentials.
func TestBucketsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	good := inBucket(t)
	tests := []struct {
		name   string
		change func(*registry.Config)
		want   string
	}{
		{"no bucket of this name", func(c *registry.Config) { c.S3.Bucket = "other" }, "registry: bucket other cannot be listed: "},
		{"another secret", func(c *registry.Config) { c.S3.SecretKey = "something-else" }, "SignatureDoesNotMatch"},
		{"nobody answers", func(c *registry.Config) { c.S3.Endpoint = "http://127.0.0.1:1" }, "connection refused"},
		{"no name", func(c *registry.Config) { c.S3.Bucket = "" }, "bucket and region are required"},
		{"a region that Amazon does not have", func(c *registry.Config) { c.S3.Endpoint, c.S3.Region = "", "moon-1" }, "invalid region provided: moon-1"},
		{"KMS without a key", func(c *registry.Config) { c.S3.Encryption = registry.EncryptionKMS }, "encryption with KMS wants a key"},
		{"a key without KMS", func(c *registry.Config) { c.S3.KMSKey = "k" }, "encryption with KMS wants a key"},
		{"a class that does not exist", func(c *registry.Config) { c.S3.StorageClass = "CHEAP" }, "the storageclass parameter must be one of"},
		{"without locks", func(c *registry.Config) { c.Locks = nil }, "a bucket wants locks"},
		{"a directory as well", func(c *registry.Config) { c.Dir = t.TempDir() }, "a directory or a bucket"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			config, bucket := good.config(anyone{}), *good.S3
			config.S3 = &bucket
			tt.change(&config)
			_, err := registry.New(config)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), good.S3.SecretKey) || strings.Contains(err.Error(), "something-else")) {
				t.Error("the error shows the secret")
			}
		})
	}
}

// Everything is below the prefix, a client never sees the bucket's address, and
// what a limit refuses leaves nothing.
func TestBucketIsOurs(t *testing.T) {
	t.Parallel()
	in := inBucket(t)
	f := startIn(t, in, func(c *registry.Config) { c.MaxBlobBytes = 12 << 20 })
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	artifact, blob := pushBlob(t, f.remote("org_a/shop", token), 6<<20)
	for _, path := range []string{"/v2/org_a/shop/blobs/" + blob.String(), "/v2/org_a/shop/manifests/" + artifact.String()} {
		if got, _ := f.do(t, "GET", path, token, nil); got.Status != http.StatusOK {
			t.Errorf("GET %s: %d, want 200 and the bytes themselves", path, got.Status)
		}
	}

	_, header := f.do(t, "POST", "/v2/org_a/shop/blobs/uploads/", token, nil)
	got, _ := f.do(t, "PATCH", header.Get("Location"), token, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(make([]byte, 13<<20))), -1
	})
	if got.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("too large a blob: %d, want 413", got.Status)
	}
	if parts := in.bucket.Parts(t); len(parts) > 0 {
		t.Errorf("a refused upload left parts: %q", parts)
	}
	for _, key := range in.bucket.Keys(t) {
		if !strings.HasPrefix(key, "berth/registry/docker/") || strings.Contains(key, "/_uploads/") {
			t.Errorf("object %s", key)
		}
	}
}

// Authorities for the SDK alone would become those of all clients of the process.
func TestTheClientOfTheProcessStaysAsItIs(t *testing.T) {
	t.Setenv("AWS_CA_BUNDLE", filepath.Join(t.TempDir(), "missing.pem"))
	startIn(t, inBucket(t), nil)
	if http.DefaultClient.Transport != nil {
		t.Errorf("http.DefaultClient got the transport %T", http.DefaultClient.Transport)
	}
}

// Two replicas on one bucket: what goes into one comes out of the other, an
// upload may change its replica in the middle, and referrers that both add at
// the same time are all there.
func TestTwoReplicasOnOneBucket(t *testing.T) {
	t.Parallel()
	in := inBucket(t)
	one, other := startIn(t, in, nil), startIn(t, in, nil)
	grant := registry.Grant{OrgID: "org_a", Actions: all}
	tokenOf := map[string]string{one.host: one.issue(grant), other.host: other.issue(grant)}

	artifact, _ := pushBlob(t, one.remote("org_a/shop", tokenOf[one.host]), 1<<20)
	must(t, other.remote("org_a/shop", tokenOf[other.host]).Pull(t.Context(), artifact, openLayout(t), oci.TransferOptions{}))

	data := randomBytes(11 << 20)
	_, header := one.do(t, "POST", "/v2/org_a/shop/blobs/uploads/", tokenOf[one.host], nil)
	location := header.Get("Location")
	for i, part := range [][]byte{data[:6<<20], data[6<<20:]} {
		at := []fixture{other, one}[i]
		got, header := at.do(t, "PATCH", location, tokenOf[at.host], func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(part)), int64(len(part))
		})
		if got.Status != http.StatusAccepted {
			t.Fatalf("chunk %d: %d %s", i, got.Status, got.Body)
		}
		location = header.Get("Location")
	}
	got, _ := other.do(t, "PUT", location+"&digest="+digest.FromBytes(data).String(), tokenOf[other.host], nil)
	if got.Status != http.StatusCreated {
		t.Fatalf("the end of the upload: %d %s", got.Status, got.Body)
	}

	const count = 10
	var wg sync.WaitGroup
	for i := range count {
		at := []fixture{one, other}[i%2]
		repo := repository(t, at, tokenOf[at.host])
		wg.Go(func() {
			subject, err := repo.Resolve(t.Context(), artifact.String())
			if err == nil {
				_, err = oras.PackManifest(t.Context(), repo, oras.PackManifestVersion1_1, "application/vnd.test", oras.PackManifestOptions{
					Subject: &subject, ManifestAnnotations: map[string]string{"n": fmt.Sprint(i), ocispec.AnnotationCreated: "2026-03-01T00:00:00Z"},
				})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	repo, found := repository(t, other, tokenOf[other.host]), 0
	subject, err := repo.Resolve(t.Context(), artifact.String())
	must(t, err)
	must(t, repo.Referrers(t.Context(), subject, "", func(page []ocispec.Descriptor) error {
		found += len(page)
		return nil
	}))
	if found != count {
		t.Errorf("%d referrers, want %d", found, count)
	}
}

func repository(t *testing.T, f fixture, token string) *remote.Repository {
	t.Helper()
	repo, err := remote.NewRepository(f.host + "/org_a/shop")
	must(t, err)
	repo.PlainHTTP = true
	repo.Client = &auth.Client{Credential: auth.StaticCredential(f.host, auth.Credential{Username: "any", Password: token})}
	return repo
}
