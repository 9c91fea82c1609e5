package oci_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/oci"
)

func TestImageRemote(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, registry, repository string
		plain                      bool
	}{
		{"registry.example.com/team/web", "registry.example.com", "team/web", false},
		{"registry.example.com:5000/web", "registry.example.com:5000", "web", false},
		{"127.0.0.1:5000/web", "127.0.0.1:5000", "web", true},
		{"localhost/web", "localhost", "web", true},
		{"team/web", "docker.io", "team/web", false},
		{"web", "docker.io", "library/web", false},
		{"docker.io/web", "docker.io", "library/web", false},
		{"a/b/c", "docker.io", "a/b/c", false},
	} {
		r, err := oci.ImageRemote(tc.name)
		if err != nil || r.Registry != tc.registry || r.Repository != tc.repository || r.PlainHTTP != tc.plain {
			t.Errorf("ImageRemote(%q) = %s, %s, plain %v, %v", tc.name, r.Registry, r.Repository, r.PlainHTTP, err)
		}
	}
	for _, name := range []string{"", "registry.example.com/", "https://registry.example.com/web", "registry.example.com/web:1.2", "registry.example.com/Web", "user@registry.example.com/web", "registry.example.com/../web"} {
		if r, err := oci.ImageRemote(name); err == nil {
			t.Errorf("ImageRemote(%q) = %s, want an error", name, r)
		}
	}
}

func TestRepositoryOf(t *testing.T) {
	t.Parallel()
	for component, want := range map[string]string{
		"web": "web", "my-api_v2.1": "my-api_v2.1", "Web": "res_1", "a..b": "res_1", "a/b": "res_1", "": "res_1", strings.Repeat("a", 200): "res_1",
	} {
		if got := oci.RepositoryOf(component, "res_1"); got != want {
			t.Errorf("RepositoryOf(%q) = %q, want %q", component, got, want)
		}
	}
}

// sink takes every blob and manifest, also several at once, and remembers what
// it was sent.
type sink struct {
	mu     sync.Mutex
	bodies strings.Builder
}

// received is what was sent by requests that have ended.
func (s *sink) received() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bodies.String()
}

func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodHead:
		w.WriteHeader(http.StatusNotFound)
	case http.MethodPost:
		w.Header().Set("Location", "/v2/org/app/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPut:
		var body strings.Builder
		_ = r.Write(&body) // also a part of it counts
		s.mu.Lock()
		s.bodies.WriteString(body.String())
		s.mu.Unlock()
		w.Header().Set("Docker-Content-Digest", r.URL.Query().Get("digest"))
		w.WriteHeader(http.StatusCreated)
	}
}

// An engine may have put anything where the layout should be. Nothing outside of
// the folder leaves the machine, and nobody is waited for.
func TestPushFolderDoesNotTrustTheFolder(t *testing.T) {
	t.Parallel()
	const secret = "the agent's private key"
	for _, tc := range []struct {
		name  string
		spoil func(t *testing.T, dir, blob string)
	}{
		{"a link out of it in the place of a blob", func(t *testing.T, dir, blob string) {
			outside := filepath.Join(t.TempDir(), "identity")
			must(t, os.WriteFile(outside, []byte(secret), 0o600))
			must(t, os.Symlink(outside, blob))
		}},
		{"a link out of it in the place of the index", func(t *testing.T, dir, blob string) {
			outside := filepath.Join(t.TempDir(), "index.json")
			must(t, os.Rename(filepath.Join(dir, "index.json"), outside))
			must(t, os.Symlink(outside, filepath.Join(dir, "index.json")))
		}},
		{"a pipe that nobody writes to", func(t *testing.T, _, blob string) { must(t, unix.Mkfifo(blob, 0o600)) }},
		{"a directory", func(t *testing.T, _, blob string) { must(t, os.Mkdir(blob, 0o700)) }},
		{"nothing", func(*testing.T, string, string) {}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			layout := openLayout(t)
			packed := value(oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindSource, Dir: module.write(t)}))(t)
			artifact := value(oci.Inspect(t.Context(), layout, packed.Digest))(t)
			blob := blobFile(layout, artifact.Layers[0].Digest)
			must(t, os.Remove(blob))
			tc.spoil(t, layout.Dir(), blob)
			target := &sink{}
			server := httptest.NewServer(target)
			defer server.Close()
			root := value(os.OpenRoot(layout.Dir()))(t)
			defer root.Close()
			began := time.Now()
			_, err := oci.Remote{
				Registry: server.Listener.Addr().String(), Repository: "org/app", PlainHTTP: true,
			}.PushFolder(t.Context(), root, packed.Digest,

				oci.TransferOptions{})

			took := time.Since(began)
			server.Close() // a request that was given up may still be in the handler
			if sent := target.received(); err == nil || strings.Contains(sent, secret) || took > 20*time.Second {
				t.Errorf("PushFolder: %v after %s; sent:\n%s", err, took, sent)
			}
		})
	}
}

func TestPushFolderPushesWhatWasAskedForOnly(t *testing.T) {
	t.Parallel()
	layout := openLayout(t)
	packed := value(oci.Pack(t.Context(), layout, oci.PackInput{Kind: oci.KindSource, Dir: module.write(t)}))(t)
	target := &sink{}
	server := httptest.NewServer(target)
	defer server.Close()
	root := value(os.OpenRoot(layout.Dir()))(t)
	defer root.Close()
	to := oci.Remote{Registry: server.Listener.Addr().String(), Repository: "org/app", PlainHTTP: true}
	if _, err := to.PushFolder(t.Context(), root, digest.FromString("another"), oci.TransferOptions{}); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("an artifact that is not there: %v", err)
	}
	size, err := to.PushFolder(t.Context(), root, packed.Digest, oci.TransferOptions{})
	if err != nil || size == 0 || !strings.Contains(target.received(), packed.Digest.String()) {
		t.Errorf("PushFolder: %d bytes, %v", size, err)
	}
}
