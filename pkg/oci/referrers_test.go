package oci_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
)

// shelf is a registry that keeps what is pushed to it, for copies. It counts the
// bytes of blobs that come and go.
type shelf struct {
	remote    oci.Remote
	api       bool // it has the referrers API; else tags stand in
	intercept func(http.ResponseWriter, *http.Request) bool
	mu        sync.Mutex
	content   map[string][]byte // by digest, and by tag
	types     map[string]string
	listed    map[digest.Digest][]ocispec.Descriptor
	in, out   atomic.Int64
	mounts    atomic.Int32
}

func newShelf(t *testing.T, api bool) *shelf {
	t.Helper()
	m := &shelf{api: api, content: map[string][]byte{}, types: map[string]string{}, listed: map[digest.Digest][]ocispec.Descriptor{}}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.remote = oci.Remote{Registry: strings.TrimPrefix(server.URL, "http://"), Repository: "team/web", PlainHTTP: true, Client: server.Client()}
	return m
}

// put stores a blob or a manifest.
func (m *shelf) put(mediaType string, raw []byte) ocispec.Descriptor {
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.content[desc.Digest.String()], m.types[desc.Digest.String()] = raw, mediaType
	return desc
}

func (m *shelf) manifest(t *testing.T, subject *ocispec.Descriptor, layers ...ocispec.Descriptor) ocispec.Descriptor {
	t.Helper()
	raw, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: "application/vnd.example",
		Config: m.put(ocispec.MediaTypeEmptyJSON, []byte("{}")), Layers: layers, Subject: subject,
	})
	must(t, err)
	return m.put(ocispec.MediaTypeImageManifest, raw)
}

// refer makes a manifest about subject, and lists it.
func (m *shelf) refer(t *testing.T, subject ocispec.Descriptor, content string) ocispec.Descriptor {
	t.Helper()
	desc := m.manifest(t, &subject, m.put("application/octet-stream", []byte(content)))
	m.list(t, subject.Digest, desc)
	return desc
}

func (m *shelf) list(t *testing.T, subject digest.Digest, desc ocispec.Descriptor) {
	t.Helper()
	m.listed[subject] = append(m.listed[subject], desc)
	raw, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: m.listed[subject]})
	must(t, err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.content["list of "+subject.String()] = raw
}

func (m *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if m.intercept != nil && m.intercept(w, r) {
		return
	}
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	blob := strings.Contains(r.URL.Path, "/blobs/")
	switch {
	case r.Method == http.MethodPost && m.get(r.URL.Query().Get("mount")) != nil:
		m.mounts.Add(1)
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPost:
		w.Header().Set("Location", "/v2/team/web/blobs/uploads/1")
		w.WriteHeader(http.StatusAccepted)
	case r.Method == http.MethodPut:
		raw, err := io.ReadAll(r.Body)
		m.in.Add(int64(len(raw)))
		dgst := digest.FromBytes(raw)
		if want := r.URL.Query().Get("digest"); err != nil || blob && want != dgst.String() {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		m.put(r.Header.Get("Content-Type"), raw)
		w.Header().Set("Docker-Content-Digest", dgst.String())
		if m.api {
			w.Header().Set("OCI-Subject", "yes")
		}
		w.WriteHeader(http.StatusCreated)
	case strings.Contains(r.URL.Path, "/referrers/"):
		if !m.api {
			http.NotFound(w, r)
			return
		}
		m.answer(w, r, "list of "+name, ocispec.MediaTypeImageIndex)
	case strings.HasPrefix(name, "sha256-"):
		m.answer(w, r, "list of "+strings.Replace(name, "-", ":", 1), ocispec.MediaTypeImageIndex)
	default:
		m.mu.Lock()
		mediaType := m.types[name]
		m.mu.Unlock()
		m.answer(w, r, name, mediaType)
	}
}

func (m *shelf) answer(w http.ResponseWriter, r *http.Request, name, mediaType string) {
	raw := m.get(name)
	ok := raw != nil
	if !ok && strings.HasPrefix(name, "list of") && m.api {
		raw, ok = []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`), true
	}
	if !ok {
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", digest.FromBytes(raw).String())
	http.ServeContent(&counted{w, &m.out}, r, "", time.Time{}, bytes.NewReader(raw))
}

// get is what is stored under a name, nil when nothing is.
func (m *shelf) get(name string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.content[name]
}

// counted counts what is written.
type counted struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c *counted) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

// TestReferrersComeAlong copies a tree of what refers to an image to another
// registry and from there to a layout; both know it then.
func TestReferrersComeAlong(t *testing.T) {
	t.Parallel()
	for _, api := range []bool{true, false} {
		t.Run(fmt.Sprintf("referrers API %v", api), func(t *testing.T) {
			t.Parallel()
			src, dst := newShelf(t, api), newShelf(t, api)
			image := src.manifest(t, nil, src.put("application/octet-stream", []byte("a layer")))
			signature := src.refer(t, image, "a signature")
			sbom := src.refer(t, image, "an SBOM")
			ofSBOM := src.refer(t, sbom, "the signature of the SBOM")
			other := src.manifest(t, nil, src.put("application/octet-stream", []byte("another image")))
			stranger := src.manifest(t, &other, src.put("application/octet-stream", []byte("about another image")))
			src.list(t, image.Digest, stranger)                                                                                                  // a list that lies
			src.list(t, image.Digest, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("gone"), Size: 9}) // and is old
			src.list(t, signature.Digest, image)                                                                                                 // a circle

			var notes []string
			_, err := src.remote.Copy(t.Context(), image.Digest, dst.remote, oci.TransferOptions{Referrers: true, Note: func(text string) { notes = append(notes, text) }})
			must(t, err)
			layout := openLayout(t)
			dst.listed, src.listed = src.listed, nil // what a registry does when it gets a subject
			for subject := range dst.listed {
				dst.content["list of "+subject.String()] = src.content["list of "+subject.String()]
			}
			must(t, dst.remote.Pull(t.Context(), image.Digest, layout, oci.TransferOptions{Referrers: true}))
			for name, want := range map[string]ocispec.Descriptor{"signature": signature, "SBOM": sbom, "signature of the SBOM": ofSBOM} {
				must(t, layout.Verify(t.Context(), want.Digest))
				if _, err := layout.Resolve(t.Context(), want.Digest.String()); err != nil {
					t.Errorf("the %s is not listed: %v", name, err)
				}
			}
			if layout.Has(stranger.Digest) || layout.Has(other.Digest) {
				t.Error("what refers to another image came along")
			}
			if text := strings.Join(notes, "\n"); len(notes) != 2 || !strings.Contains(text, "refers to something else") || !strings.Contains(text, "it is not there") {
				t.Errorf("notes: %q", notes)
			}

			// What refers to an image is collected with it, and not before.
			_, err = layout.GC(t.Context(), oci.GCOptions{Keep: []digest.Digest{image.Digest}})
			must(t, err)
			must(t, layout.Verify(t.Context(), ofSBOM.Digest))
			root := value(os.OpenRoot(layout.Dir()))(t)
			defer root.Close()
			last := newShelf(t, true)
			_, err = last.remote.PushFolder(t.Context(), root, image.Digest, oci.TransferOptions{Referrers: true})
			must(t, err)
			if last.content[ofSBOM.Digest.String()] == nil || last.content[signature.Digest.String()] == nil {
				t.Error("a push of the layout left referrers behind")
			}
			_, err = layout.GC(t.Context(), oci.GCOptions{})
			must(t, err)
			if layout.Has(signature.Digest) {
				t.Error("the signature outlives its image")
			}
		})
	}
}

// A source cannot make a copy endless: referrers of referrers end, and so does their
// number.
func TestReferrersAreBounded(t *testing.T) {
	t.Parallel()
	src, dst := newShelf(t, true), newShelf(t, true)
	image := src.manifest(t, nil)
	subject := image
	var chain []ocispec.Descriptor
	for i := range 10 {
		subject = src.refer(t, subject, fmt.Sprint("step ", i))
		chain = append(chain, subject)
	}
	for i := range 600 {
		src.refer(t, image, fmt.Sprint("number ", i))
	}
	var notes int
	_, err := src.remote.Copy(t.Context(), image.Digest, dst.remote, oci.TransferOptions{Referrers: true, Note: func(string) { notes++ }})
	must(t, err)
	if dst.content[chain[0].Digest.String()] == nil || dst.content[chain[5].Digest.String()] != nil {
		t.Error("the chain of referrers was not cut")
	}
	manifests := 0
	for name := range dst.content {
		if dst.types[name] == ocispec.MediaTypeImageManifest {
			manifests++
		}
	}
	if manifests > 501 || manifests < 400 || notes < 100 {
		t.Errorf("%d manifests arrived, %d left out", manifests, notes)
	}
}

// A copy that is repeated sends only what is missing, a blob resumes with a range, and
// within one registry nothing is sent.
func TestCopySendsWhatIsMissing(t *testing.T) {
	t.Parallel()
	const big, small = 4 << 20, 1 << 20
	src, dst := newShelf(t, true), newShelf(t, true)
	image := src.manifest(t, nil, src.put("application/octet-stream", randomBytes(big)), src.put("application/octet-stream", randomBytes(small)))

	// The first answer for the big blob ends in the middle, once.
	var cut atomic.Bool
	src.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		raw := src.get(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
		if r.Method != http.MethodGet || len(raw) != big || !cut.CompareAndSwap(false, true) {
			return false
		}
		w.Header().Set("Accept-Ranges", "bytes")
		w.Header().Set("Content-Length", fmt.Sprint(big))
		src.out.Add(big / 2)
		_, _ = w.Write(raw[:big/2])
		panic(http.ErrAbortHandler)
	}
	size, err := src.remote.Copy(t.Context(), image.Digest, dst.remote, oci.TransferOptions{})
	must(t, err)
	if slack := int64(64 << 10); src.out.Load() > size+slack || dst.in.Load() != size {
		t.Errorf("%d bytes left the source and %d arrived, of %d", src.out.Load(), dst.in.Load(), size)
	}
	before := dst.in.Load()
	_, err = src.remote.Copy(t.Context(), image.Digest, dst.remote, oci.TransferOptions{})
	must(t, err)
	if again := dst.in.Load() - before; again > 64<<10 {
		t.Errorf("a copy of what is there sent %d bytes", again)
	}
	there := dst.remote
	there.Repository = "team/other"
	before = dst.in.Load()
	// This stand-in has one store for all repositories: forget, so that it is asked.
	dst.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodHead && strings.HasPrefix(r.URL.Path, "/v2/team/other/blobs/") {
			http.NotFound(w, r)
			return true
		}
		return false
	}
	_, err = dst.remote.Copy(t.Context(), image.Digest, there, oci.TransferOptions{})
	must(t, err)
	if sent := dst.in.Load() - before; sent > 64<<10 || dst.mounts.Load() != 3 {
		t.Errorf("within one registry %d bytes were sent and %d blobs mounted, want 3", sent, dst.mounts.Load())
	}
}

// After a power cut the index may be empty: what was tagged is there still, and
// what was only pulled is pulled again.
func TestIndexAfterAPowerCut(t *testing.T) {
	t.Parallel()
	src, layout := newShelf(t, true), openLayout(t)
	kept := value(layout.PutBlob(t.Context(), "application/vnd.example", "plan", []byte("a plan")))(t)
	image := src.manifest(t, nil, src.put("application/octet-stream", []byte("a layer")))
	must(t, src.remote.Pull(t.Context(), image.Digest, layout, oci.TransferOptions{}))
	must(t, os.WriteFile(filepath.Join(layout.Dir(), "index.json"), nil, 0o600))

	layout, err := oci.Open(layout.Dir())
	must(t, err)
	if _, err := layout.Resolve(t.Context(), kept.String()); err != nil {
		t.Errorf("what was on the disk is lost: %v", err)
	}
	if _, err := layout.Resolve(t.Context(), image.Digest.String()); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("what was only pulled: %v", err)
	}
	must(t, src.remote.Pull(t.Context(), image.Digest, layout, oci.TransferOptions{}))
	// What asks for the disk gets it, and the copy of before goes.
	_, err = layout.PutBlob(t.Context(), "application/vnd.example", "plan", []byte("another plan"))
	must(t, err)
	for _, dgst := range []digest.Digest{kept, image.Digest} {
		if _, err := layout.Resolve(t.Context(), dgst.String()); err != nil {
			t.Errorf("Resolve: %v", err)
		}
	}
	if _, err := os.Stat(filepath.Join(layout.Dir(), ".index.synced.json")); err == nil {
		t.Error("the copy of the index stays")
	}

	// One that was only pulled into has nothing to lose; a marker without contents is
	// written again.
	for _, left := range []string{"", "\x00\x00\x00\x00"} {
		layout = openLayout(t)
		for range 2 {
			must(t, src.remote.Pull(t.Context(), image.Digest, layout, oci.TransferOptions{}))
		}
		for _, name := range []string{"index.json", ".index.synced.json", "oci-layout"} {
			must(t, os.WriteFile(filepath.Join(layout.Dir(), name), []byte(left), 0o600))
		}
		layout, err = oci.Open(layout.Dir())
		must(t, err)
		if listed, err := layout.Artifacts(); err != nil || len(listed) != 0 {
			t.Errorf("artifacts %v, %v", listed, err)
		}
		must(t, src.remote.Pull(t.Context(), image.Digest, layout, oci.TransferOptions{}))
		must(t, layout.Verify(t.Context(), image.Digest))
		if raw, err := os.ReadFile(filepath.Join(layout.Dir(), "oci-layout")); err != nil || !strings.Contains(string(raw), "imageLayoutVersion") {
			t.Errorf("oci-layout: %q, %v", raw, err)
		}
	}
}
