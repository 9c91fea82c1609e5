package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/registry"
)

// writeImage puts an image into a layout, always the same.
func writeImage(ctx context.Context, layout *oci.Layout) (digest.Digest, error) {
	put := func(mediaType string, raw []byte) (ocispec.Descriptor, error) {
		desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
		return desc, layout.Push(ctx, desc, bytes.NewReader(raw))
	}
	config, err := put(ocispec.MediaTypeImageConfig, []byte(`{"architecture":"amd64"}`))
	if err != nil {
		return "", err
	}
	layer, err := put(ocispec.MediaTypeImageLayerGzip, []byte("a layer"))
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: config, Layers: []ocispec.Descriptor{layer},
	})
	if err != nil {
		return "", err
	}
	manifest, err := put(ocispec.MediaTypeImageManifest, raw)
	return manifest.Digest, err
}

// image is an engine that copies an image, or plans one.
func (e testEngine) image() error {
	if e.spec.Operation == jobspec.OperationBuild {
		layout, err := oci.Open(filepath.Join(e.dir, "out", "image"))
		if err == nil {
			_, err = writeImage(context.Background(), layout)
		}
		return err
	}
	e.result.NoChange = true
	e.leave("plan.canonical.json", map[string]any{})
	e.leave("plan.summary.json", jobspec.PlanSummary{NoChange: true})
	e.leave("outputs.json", jobspec.Outputs{"image": {Value: json.RawMessage(`{"ref":"` + os.Getenv("BERTH_REGISTRY") + `/web"}`)}})
	return nil
}

// An image is brought where kubelets pull it before its engine begins. What is
// no image is not, no matter who asks.
func TestImagesAreBroughtToTheOwnRegistry(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	layout, err := oci.Open(r.dir.Artifacts())
	if err != nil {
		t.Fatal(err)
	}
	image, err := writeImage(t.Context(), layout)
	if err != nil {
		t.Fatal(err)
	}
	plan, err := layout.PutBlob(t.Context(), oci.KindPlan.ArtifactType(), "chg_1", []byte("sealed"))
	if err != nil {
		t.Fatal(err)
	}
	withCluster(r)
	kubelet := httptest.NewServer(registry.Handler(layout, slog.New(slog.NewTextHandler(t.Output(), nil))))
	defer kubelet.Close()
	deploy := func(artifact digest.Digest) jobspec.Result {
		return r.plane.result(t, r.plane.give(jobspec.Spec{
			Kind: jobspec.KindContainerImage, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change),
			Resource: &jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: "web"},
			Artifact: &jobspec.Artifact{Repository: "org/shop/web", Digest: artifact.String()},
			Work:     jobspec.Work{ContainerImage: &jobspec.ContainerImage{Tag: "1.2"}},
		}))
	}
	result := deploy(image)
	if result.Outcome != jobspec.OutcomeSucceeded || !result.NoChange || !strings.Contains(string(result.Outputs["image"].Value), "127.0.0.1:5001/web") {
		t.Fatalf("result = %+v", result)
	}
	for _, reference := range []string{"1.2", image.String()} {
		resp, err := http.Get(kubelet.URL + "/v2/web/manifests/" + reference)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Docker-Content-Digest") != image.String() {
			t.Errorf("%s: %s, %s", reference, resp.Status, resp.Header.Get("Docker-Content-Digest"))
		}
	}
	if result := deploy(plan); result.Outcome != jobspec.OutcomeFailed || !strings.Contains(result.Error, "not a container image") {
		t.Errorf("a plan in the place of an image: %+v, want it refused", result)
	}
}

// shelf is an org's registry: it takes blobs and manifests and checks digests,
// as much as a push needs.
type shelf struct {
	mu    sync.Mutex
	found map[string]string // media type by digest
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case http.MethodHead:
		w.WriteHeader(http.StatusNotFound)
	case http.MethodPost:
		w.Header().Set("Location", r.URL.Path+"1")
		w.WriteHeader(http.StatusAccepted)
	case http.MethodPut:
		want := r.URL.Query().Get("digest")
		if want == "" {
			want = path.Base(r.URL.Path)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil || digest.FromBytes(body).String() != want || r.Header.Get("Authorization") != "Bearer brg_token" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.found[want] = r.Header.Get("Content-Type")
		w.Header().Set("Docker-Content-Digest", want)
		w.WriteHeader(http.StatusCreated)
	}
}

// A Build Runner pushes the image that its engine copied under the digest that
// was asked for, and nothing else.
func TestBuildsOfImagesArePushed(t *testing.T) {
	t.Parallel()
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	image, err := writeImage(t.Context(), layout)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t, runnerapi.RunnerKindBuild)
	store := &shelf{found: map[string]string{}}
	server := httptest.NewServer(store)
	defer server.Close()
	r.plane.change(func() { r.plane.registry = server.Listener.Addr().String() })
	r.start()
	build := func(image digest.Digest) jobspec.Result {
		return r.plane.result(t, r.plane.give(jobspec.Spec{
			Kind: jobspec.KindContainerImage, Operation: jobspec.OperationBuild, BuildID: id.New(id.Build),
			Source: &jobspec.Source{Kind: "image", Image: "registry.example.com/web", Ref: "1.2", ImageDigest: image.String(), Push: "org/shop/web"},
		}))
	}
	result := build(image)
	if made := result.Artifact; result.Outcome != jobspec.OutcomeSucceeded || made == nil || made.Digest != image.String() || made.Repository != "org/shop/web" || made.SizeBytes == 0 {
		t.Fatalf("result = %+v", result)
	}
	store.mu.Lock()
	if len(store.found) != 3 || store.found[image.String()] != ocispec.MediaTypeImageManifest {
		t.Errorf("the registry has %v", store.found)
	}
	store.mu.Unlock()
	if result := build(digest.FromString("another")); result.Outcome != jobspec.OutcomeFailed || result.Artifact != nil {
		t.Errorf("an image that the engine did not copy: %+v", result)
	}
}
