package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/registry"
)

const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerConfig   = "application/vnd.docker.container.image.v1+json"
)

// house is a layout and a server of its images.
type house struct {
	t      *testing.T
	layout *oci.Layout
	url    string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.Handler(layout, slog.New(slog.NewTextHandler(t.Output(), nil))))
	t.Cleanup(server.Close)
	return &house{t: t, layout: layout, url: server.URL}
}

func (h *house) put(mediaType string, raw []byte) ocispec.Descriptor {
	h.t.Helper()
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	if err := h.layout.Push(h.t.Context(), desc, bytes.NewReader(raw)); err != nil && !strings.Contains(err.Error(), "already exists") {
		h.t.Fatal(err)
	}
	return desc
}

func (h *house) putJSON(mediaType string, v any) ocispec.Descriptor {
	h.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		h.t.Fatal(err)
	}
	return h.put(mediaType, raw)
}

// image puts an image with a layer of the given text, of Docker's types.
func (h *house) image(layer string) ocispec.Descriptor {
	h.t.Helper()
	return h.imageOf(h.put(ocispec.MediaTypeImageLayer, []byte(layer)))
}

func (h *house) imageOf(layers ...ocispec.Descriptor) ocispec.Descriptor {
	h.t.Helper()
	return h.putJSON(dockerManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: dockerManifest,
		Config: h.put(dockerConfig, []byte(`{"architecture":"amd64","layers":`+fmt.Sprint(len(layers))+`}`)), Layers: layers,
	})
}

func (h *house) keep(repository, tag string, image ocispec.Descriptor) {
	h.t.Helper()
	if err := registry.Keep(h.t.Context(), h.layout, registry.Image{Repository: repository, Tag: tag, Digest: image.Digest}); err != nil {
		h.t.Fatal(err)
	}
}

// get asks for a path as it is written.
func (h *house) get(method, path string, header ...string) (*http.Response, string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.t.Context(), method, h.url+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return resp, string(body)
}

func TestImagesAreServed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	layer := digest.FromString("layer of amd64")
	amd, arm := h.image("layer of amd64"), h.image("layer of arm64")
	index := h.putJSON(ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{amd, arm},
	})
	h.keep("web", "1.2", index)

	for _, tc := range []struct {
		name, path, header, value string
		status                    int
		contentType, body         string // body is looked at when it is set
	}{
		{name: "the version check", path: "/v2/", status: 200, contentType: "application/json", body: "{}"},
		{name: "an index by its tag", path: "/v2/web/manifests/1.2", status: 200, contentType: ocispec.MediaTypeImageIndex},
		{name: "an index by its digest", path: "/v2/web/manifests/" + index.Digest.String(), status: 200, contentType: ocispec.MediaTypeImageIndex},
		{name: "as containerd asks", path: "/v2/web/manifests/1.2?ns=127.0.0.1:5000", status: 200, contentType: ocispec.MediaTypeImageIndex},
		{name: "the manifest of a platform", path: "/v2/web/manifests/" + amd.Digest.String(), status: 200, contentType: dockerManifest},
		{name: "a layer", path: "/v2/web/blobs/" + layer.String(), status: 200, contentType: "application/octet-stream", body: "layer of amd64"},
		{name: "the rest of a layer", path: "/v2/web/blobs/" + layer.String(), header: "Range", value: "bytes=9-", status: 206, contentType: "application/octet-stream", body: "amd64"},
		{name: "a range behind the end", path: "/v2/web/blobs/" + layer.String(), header: "Range", value: "bytes=99-", status: 416},
		{name: "a layer that is known already", path: "/v2/web/blobs/" + layer.String(), header: "If-None-Match", value: `"` + layer.String() + `"`, status: 304},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			var header []string
			if tc.header != "" {
				header = []string{tc.header, tc.value}
			}
			resp, body := h.get(method, tc.path, header...)
			if resp.StatusCode != tc.status || tc.contentType != "" && resp.Header.Get("Content-Type") != tc.contentType {
				t.Errorf("%s %s: %s, %s: %s", method, tc.name, resp.Status, resp.Header.Get("Content-Type"), body)
			}
			if tc.body != "" && method == http.MethodGet && body != tc.body {
				t.Errorf("%s: %q, want %q", tc.name, body, tc.body)
			}
			if method == http.MethodHead && body != "" {
				t.Errorf("%s: HEAD has a body: %s", tc.name, body)
			}
		}
	}
	if resp, _ := h.get(http.MethodGet, "/v2/web/manifests/1.2"); resp.Header.Get("Docker-Content-Digest") != index.Digest.String() {
		t.Errorf("the tag names %s, want %s", resp.Header.Get("Docker-Content-Digest"), index.Digest)
	}
}

// After a deploy the tag names the new image; the old one can still be pulled by
// its digest, by pods that start again and for a rollback.
func TestOldImagesStay(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	before, after := h.image("before"), h.image("after")
	h.keep("web", "latest", before)
	h.keep("web", "latest", after)
	h.keep("web", "latest", after) // a plan that is repeated
	if resp, _ := h.get(http.MethodGet, "/v2/web/manifests/latest"); resp.Header.Get("Docker-Content-Digest") != after.Digest.String() {
		t.Errorf("the tag names %s", resp.Header.Get("Docker-Content-Digest"))
	}
	if _, err := h.layout.GC(t.Context(), oci.GCOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"manifests/" + before.Digest.String(), "blobs/" + digest.FromString("before").String()} {
		if resp, body := h.get(http.MethodGet, "/v2/web/"+path); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
}

// Whatever is asked for: only what belongs to an image of the repository is
// given out, and the answer does not tell what else there is.
func TestNothingElseIsServed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	web, db := h.image("web"), h.image("db")
	h.keep("web", "1", web)
	h.keep("db", "1", db)
	loose := h.image("an image that no plan brought")
	sealed := []byte("age-encryption.org/v1 sealed plan")
	plan, err := h.layout.PutBlob(t.Context(), oci.KindPlan.ArtifactType(), "chg_1", sealed)
	if err != nil {
		t.Fatal(err)
	}
	// An image of the vendor that claims a plan as one of its layers.
	stolen := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayer, Digest: digest.FromBytes(sealed), Size: int64(len(sealed))}
	thief := h.imageOf(stolen)
	h.keep("thief", "1", thief)
	if err := os.WriteFile(filepath.Join(filepath.Dir(h.layout.Dir()), "identity"), []byte("private"), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, tc := range []struct{ name, path string }{
		{"a digest that is not there", "/v2/web/manifests/" + digest.FromString("x").String()},
		{"a tag that is not there", "/v2/web/manifests/2"},
		{"a repository that is not there", "/v2/other/manifests/1"},
		{"the image of another component", "/v2/web/manifests/" + db.Digest.String()},
		{"a layer of another component", "/v2/web/blobs/" + digest.FromString("db").String()},
		{"an image that no plan brought", "/v2/web/manifests/" + loose.Digest.String()},
		{"the manifest of a plan", "/v2/web/manifests/" + plan.String()},
		{"the manifest of a plan as a blob", "/v2/web/blobs/" + plan.String()},
		{"a sealed plan", "/v2/web/blobs/" + digest.FromBytes(sealed).String()},
		{"a sealed plan as a layer", "/v2/thief/blobs/" + digest.FromBytes(sealed).String()},
		{"the name that the layout gives", "/v2/images/web/manifests/1"},
		{"a blob as a manifest", "/v2/web/manifests/" + digest.FromString("web").String()},
		{"a list of tags", "/v2/web/tags/list"},
		{"a list of repositories", "/v2/_catalog"},
		{"a way out of the folder", "/v2/web/blobs/../../../identity"},
		{"the same, escaped", "/v2/web/blobs/..%2f..%2f..%2fidentity"},
		{"the same, as a digest", "/v2/web/blobs/sha256:..%2f..%2f..%2f..%2fidentity"},
		{"a repository that climbs", "/v2/../web/manifests/1"},
		{"an escaped slash in a good path", "/v2/web%2fmanifests/1"},
		{"an escaped letter", "/v2/w%65b/manifests%2F1"},
		{"a digest of another algorithm", "/v2/web/blobs/md5:d41d8cd98f00b204e9800998ecf8427e"},
		{"a digest with capitals", "/v2/web/blobs/" + strings.ToUpper(digest.FromString("web").String())},
		{"a reference with a query inside", "/v2/web/manifests/1%3Fx"},
		{"outside of the protocol", "/index.json"},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			resp, body := h.get(method, tc.path)
			if resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s %s (%s): %s, want 404\n%s", method, tc.name, tc.path, resp.Status, body)
			}
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		if resp, _ := h.get(method, "/v2/web/manifests/1"); resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %s, want 405", method, resp.Status)
		}
	}
	// What is not an image does not become one by its name.
	if err := registry.Keep(t.Context(), h.layout, registry.Image{Repository: "plan", Tag: "1", Digest: plan}); err == nil || !strings.Contains(err.Error(), "not a container image") {
		t.Errorf("a plan was named as an image: %v", err)
	}
}

// Another process, the agent, writes while kubelets pull.
func TestPullsWhileTheAgentWrites(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	h.keep("web", "1", h.image("the first"))
	agent, err := oci.Open(h.layout.Dir())
	if err != nil {
		t.Fatal(err)
	}
	writer := &house{t: t, layout: agent}
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for range 20 {
				for _, path := range []string{"manifests/1", "blobs/" + digest.FromString("the first").String()} {
					if resp, body := h.get(http.MethodGet, "/v2/web/"+path); resp.StatusCode != http.StatusOK {
						t.Errorf("puller %d: %s: %s %s", n, path, resp.Status, body)
						return
					}
				}
			}
		})
	}
	for n := range 20 {
		writer.keep("web", "2", writer.image(fmt.Sprintf("image %d", n)))
	}
	all.Wait()
	if resp, _ := h.get(http.MethodGet, "/v2/web/blobs/"+digest.FromString("image 19").String()); resp.StatusCode != http.StatusOK {
		t.Errorf("what the agent wrote last: %s", resp.Status)
	}
}
