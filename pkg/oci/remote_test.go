package oci_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
)

// static serves the artifacts of a layout by the distribution protocol, read
// only, and lets a test get in between. The builder's tests push and pull with
// its real registry.
func static(t testing.TB, l *oci.Layout, intercept func(w http.ResponseWriter, r *http.Request) (handled bool)) oci.Remote {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if intercept != nil && intercept(w, r) {
			return
		}
		dgst := digest.Digest(path.Base(r.URL.Path))
		if !l.Has(dgst) {
			http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		if strings.Contains(r.URL.Path, "/manifests/") {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
		}
		http.ServeFile(w, r, blobFile(l, dgst))
	}))
	t.Cleanup(server.Close)
	return oci.Remote{
		Registry: strings.TrimPrefix(server.URL, "http://"), Repository: "org/app", PlainHTTP: true,
		Client: server.Client(),
	}
}

func randomBytes(n int) []byte {
	data := make([]byte, n)
	rand.Read(data)
	return data
}

// progress checks the promise of TransferOptions.Progress while it records.
type progress struct {
	mu          sync.Mutex
	done, total int64
	backwards   bool
}

func (p *progress) report(done, total int64) {
	if !p.mu.TryLock() {
		panic("progress is called by two goroutines at once")
	}
	defer p.mu.Unlock()
	p.backwards = p.backwards || done < p.done
	p.done, p.total = done, total
}

func TestPullIsVerifiedAndRepeatable(t *testing.T) {
	t.Parallel()
	src, dst := openLayout(t), openLayout(t)
	dgst := value(oci.Pack(t.Context(), src, oci.PackInput{Kind: oci.KindSource, Dir: module.write(t)}))(t).Digest
	var blobs atomic.Int32
	remote := static(t, src, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			blobs.Add(1)
		}
		return false
	})
	var p progress
	must(t, remote.Pull(t.Context(), dgst, dst, oci.TransferOptions{Progress: p.report}))
	must(t, dst.Verify(t.Context(), dgst))
	size := value(oci.Inspect(t.Context(), dst, dgst))(t).Size
	if p.done != size || p.total != size || p.backwards {
		t.Errorf("progress ended at %d of %d, want %d of %d, never backwards", p.done, p.total, size, size)
	}

	before := blobs.Load()
	must(t, remote.Pull(t.Context(), dgst, dst, oci.TransferOptions{}))
	if again := blobs.Load() - before; again != 0 {
		t.Errorf("second pull fetched %d blobs, want 0", again)
	}

	// Damage on disk is repaired by the next pull, layer and manifest alike.
	layer := value(oci.Inspect(t.Context(), dst, dgst))(t).Layers[0].Digest
	replaceBlob(t, dst, layer, bytes.Repeat([]byte("x"), int(value(os.Stat(blobFile(dst, layer)))(t).Size())))
	replaceBlob(t, dst, dgst, []byte("{}"))
	must(t, remote.Pull(t.Context(), dgst, dst, oci.TransferOptions{}))
	must(t, dst.Verify(t.Context(), dgst))

	if err := remote.Pull(t.Context(), digest.FromString("nobody"), dst, oci.TransferOptions{}); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("unknown digest: got %v, want ErrNotFound", err)
	}
	if err := remote.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{MaxBytes: size - 1}); err == nil {
		t.Error("an artifact above MaxBytes was pulled")
	}
}

func TestPullGoesOnWhereItBrokeOff(t *testing.T) {
	t.Parallel()
	const size, cut = 5 << 20, 2 << 20
	for _, tt := range []struct {
		name    string
		damaged bool // the kept part is changed on disk in between
		want    []string
	}{
		{name: "intact", want: []string{"", "bytes"}},
		{name: "kept part damaged", damaged: true, want: []string{"", "bytes", "bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			src, dst := openLayout(t), openLayout(t)
			data := randomBytes(size)
			dgst := value(src.PutBlob(t.Context(), planType, "big", data))(t)
			blob := digest.FromBytes(data)

			var broken atomic.Bool
			var mu sync.Mutex
			var ranges []string
			remote := static(t, src, func(w http.ResponseWriter, r *http.Request) bool {
				if path.Base(r.URL.Path) != blob.String() || r.Method != http.MethodGet {
					return false
				}
				if broken.Load() {
					mu.Lock()
					defer mu.Unlock()
					ranges = append(ranges, strings.Split(r.Header.Get("Range"), "=")[0])
					return false
				}
				w.Header().Set("Content-Length", "5242880")
				w.Header().Set("Accept-Ranges", "bytes")
				w.Write(data[:cut])
				panic(http.ErrAbortHandler)
			})

			// Each attempt starts at the same cut, so this pull gives up.
			if err := remote.Pull(t.Context(), dgst, dst, oci.TransferOptions{}); err == nil {
				t.Fatal("pull succeeded over a broken connection")
			}
			if dst.Has(blob) || dst.Has(dgst) {
				t.Fatal("a part is taken for the whole")
			}
			partial := filepath.Join(dst.Dir(), "ingest", blob.Encoded()+".partial")
			kept := value(os.ReadFile(partial))(t)
			if len(kept) == 0 {
				t.Fatal("nothing was kept")
			}
			if tt.damaged {
				kept[0] ^= 1
				must(t, os.WriteFile(partial, kept, 0o600))
			}

			broken.Store(true)
			var p progress
			must(t, remote.Pull(t.Context(), dgst, dst, oci.TransferOptions{Progress: p.report}))
			must(t, dst.Verify(t.Context(), dgst))
			if ranges[1] != "bytes" {
				t.Errorf("requests by range: got %q, want the second to be partial", ranges)
			}
			if p.done != p.total {
				t.Errorf("progress ended at %d of %d", p.done, p.total)
			}
		})
	}
}

func TestPullRefusesWrongBytes(t *testing.T) {
	t.Parallel()
	src := openLayout(t)
	dgst := value(src.PutBlob(t.Context(), planType, "p", []byte("sealed")))(t)
	blob := digest.FromString("sealed")
	tests := []struct {
		name, target, body string
	}{
		{"other blob", blob.String(), "forged"},
		{"shorter blob", blob.String(), "seal"},
		{"longer blob", blob.String(), "sealed!"},
		{"other manifest", dgst.String(), `{"schemaVersion":2,"layers":[]}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dst := openLayout(t)
			remote := static(t, src, func(w http.ResponseWriter, r *http.Request) bool {
				if path.Base(r.URL.Path) != tt.target {
					return false
				}
				w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
				w.Header().Set("Docker-Content-Digest", tt.target)
				_, _ = io.WriteString(w, tt.body)
				return true
			})
			if err := remote.Pull(t.Context(), dgst, dst, oci.TransferOptions{}); err == nil {
				t.Error("wrong bytes were accepted")
			}
			if dst.Has(digest.Digest(tt.target)) || dst.Has(dgst) {
				t.Error("wrong bytes are in the layout")
			}
		})
	}
}

func TestPullRefusesManifestOfTwoMeanings(t *testing.T) {
	t.Parallel()
	src := openLayout(t)
	dgst := pushManifest(t, src, ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: ocispec.DescriptorEmptyJSON})
	remote := static(t, src, func(w http.ResponseWriter, r *http.Request) bool {
		if path.Base(r.URL.Path) == dgst.String() {
			w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
			http.ServeFile(w, r, blobFile(src, dgst))
			return true
		}
		return false
	})
	err := remote.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{})
	if err == nil || !strings.Contains(err.Error(), "calls itself") {
		t.Errorf("got %v, want the media type refused", err)
	}
}

func TestTokenGoesToTheRegistryAlone(t *testing.T) {
	t.Parallel()
	src := openLayout(t)
	data := []byte("sealed")
	dgst := value(src.PutBlob(t.Context(), planType, "p", data))(t)

	var stranger []string
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		stranger = append(stranger, r.Header.Get("Authorization"))
		w.Write(data)
	}))
	t.Cleanup(storage.Close)

	var registry []string
	remote := static(t, src, func(w http.ResponseWriter, r *http.Request) bool {
		registry = append(registry, r.Header.Get("Authorization"))
		if path.Base(r.URL.Path) == digest.FromBytes(data).String() {
			// Another port is another host to our transport.
			http.Redirect(w, r, storage.URL, http.StatusTemporaryRedirect)
			return true
		}
		return false
	})
	remote.Token = func(context.Context) (string, error) { return "brg_secret", nil }
	must(t, remote.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{Concurrency: 1}))
	for _, got := range registry {
		if got != "Bearer brg_secret" {
			t.Errorf("registry got %q, want the token", got)
		}
	}
	if diff := cmp.Diff([]string{""}, stranger); diff != "" {
		t.Errorf("authorization at the redirect's target (-want +got):\n%s", diff)
	}

	remote.Token = func(context.Context) (string, error) { return "", errors.New("keyring is locked") }
	err := remote.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{})
	if err == nil || !strings.Contains(err.Error(), "keyring is locked") {
		t.Errorf("got %v, want the token's error", err)
	}
}

func TestBasicAnswersTheChallenge(t *testing.T) {
	t.Parallel()
	src := openLayout(t)
	dgst := value(src.PutBlob(t.Context(), planType, "p", []byte("sealed")))(t)
	remote := static(t, src, func(w http.ResponseWriter, r *http.Request) bool {
		if user, password, _ := r.BasicAuth(); user == "robot" && password == "secret" {
			return false
		}
		w.Header().Set("WWW-Authenticate", `Basic realm="r"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	remote.Username = "robot"
	remote.Token = func(context.Context) (string, error) { return "secret", nil }
	must(t, remote.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{}))

	remote.Token = func(context.Context) (string, error) { return "wrong-secret", nil }
	err := remote.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{})
	if err == nil || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("got %v, want an error without the secret", err)
	}
}

func TestProxyIsUsed(t *testing.T) {
	t.Parallel()
	src := openLayout(t)
	dgst := value(src.PutBlob(t.Context(), planType, "p", []byte("sealed")))(t)
	remote := static(t, src, nil)
	proxy := &url.URL{Scheme: "http", Host: remote.Registry}
	remote.Registry = "127.0.0.1:1" // nobody listens there
	remote.Client = &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	must(t, remote.Pull(t.Context(), dgst, openLayout(t), oci.TransferOptions{}))
}

func TestRemoteValidate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		remote oci.Remote
		ok     bool
	}{
		{"https", oci.Remote{Registry: "registry.example:443", Repository: "org/app"}, true},
		{"plain on loopback", oci.Remote{Registry: "127.0.0.1:5000", Repository: "org/app", PlainHTTP: true}, true},
		{"plain on IPv6 loopback", oci.Remote{Registry: "[::1]:5000", Repository: "org/app", PlainHTTP: true}, true},
		{"plain elsewhere", oci.Remote{Registry: "10.0.0.1:5000", Repository: "org/app", PlainHTTP: true}, false},
		{"plain on a name that only starts well", oci.Remote{Registry: "127.0.0.1.example:80", Repository: "org/app", PlainHTTP: true}, false},
		{"credentials in the host", oci.Remote{Registry: "user:pw@registry.example", Repository: "org/app"}, false},
		{"path in the host", oci.Remote{Registry: "registry.example/org", Repository: "app"}, false},
		{"upper case", oci.Remote{Registry: "registry.example", Repository: "Org/app"}, false},
		{"empty", oci.Remote{}, false},
	}
	for _, tt := range tests {
		if err := tt.remote.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: got %v, want ok=%v", tt.name, err, tt.ok)
		}
	}
}
