package agent_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
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
	"oras.land/oras-go/v2/errdef"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/imagetrust"
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

// hangOn signs a statement about an image and puts it into its layout.
func hangOn(ctx context.Context, layout *oci.Layout, image digest.Digest, predicate string, key ed25519.PrivateKey) error {
	desc, err := layout.Resolve(ctx, image.String())
	if err != nil {
		return err
	}
	s, err := attest.About("web", image, predicate, map[string]any{"of": predicate})
	if err != nil {
		return err
	}
	bundle, err := attest.Sign(key, s)
	if err != nil {
		return err
	}
	put := func(mediaType string, raw []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
		if wrong := layout.Push(ctx, d, bytes.NewReader(raw)); wrong != nil && !errors.Is(wrong, errdef.ErrAlreadyExists) {
			err = wrong
		}
		return d
	}
	raw, wrong := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: attest.BundleType,
		Config: put(ocispec.MediaTypeEmptyJSON, []byte("{}")), Layers: []ocispec.Descriptor{put(attest.BundleType, bundle)},
		Subject: &ocispec.Descriptor{MediaType: desc.MediaType, Digest: desc.Digest, Size: desc.Size},
	})
	if wrong != nil {
		return wrong
	}
	put(ocispec.MediaTypeImageManifest, raw)
	return err
}

// upstreamKey signs the image that the engine copies, always the same.
var upstreamKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// pemOf writes a public key as cosign does.
func pemOf(t *testing.T, key ed25519.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// image is an engine that copies an image with what hangs on it when a key is named, or plans
// one.
func (e testEngine) image() error {
	if e.spec.Operation == jobspec.OperationBuild {
		layout, err := oci.Open(filepath.Join(e.dir, "out", "image"))
		if err != nil {
			return err
		}
		made, err := writeImage(context.Background(), layout)
		if err != nil || e.spec.Source.ImageKey == "" {
			return err
		}
		return errors.Join(
			hangOn(context.Background(), layout, made, attest.CosignSign, upstreamKey),
			hangOn(context.Background(), layout, made, attest.SPDX, upstreamKey))
	}
	if err := e.leaveImage(); err != nil {
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

// An image comes into an install only as the customer's trust.json wants it: signed by a key
// that is named for it, whatever the control plane calls it; and one without a rule does not.
func TestAttackUnsignedImage(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	gone := httptest.NewServer(http.NotFoundHandler())
	defer gone.Close()
	r.plane.change(func() { r.plane.registry = gone.Listener.Addr().String() })
	layout, err := oci.Open(r.dir.Artifacts())
	if err != nil {
		t.Fatal(err)
	}
	image, err := writeImage(t.Context(), layout)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := r.dir.LoadTrust()
	if err != nil {
		t.Fatal(err)
	}
	trust.Images = []imagetrust.Rule{{Match: "ghcr.io/team/*", Key: pemOf(t, key)}}
	trust.Registry = gone.URL
	if err := datadir.WriteJSON(r.dir.Trust(), trust); err != nil {
		t.Fatal(err)
	}
	withCluster(r)
	deploy := func(name string) jobspec.Result {
		return r.plane.result(t, r.plane.give(jobspec.Spec{
			Kind: jobspec.KindContainerImage, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change),
			Resource: &jobspec.Resource{ID: id.New(id.Resource), Kind: "component", Name: "web"},
			Artifact: &jobspec.Artifact{Repository: "org/shop/web", Digest: image.String()},
			Work:     jobspec.Work{ContainerImage: &jobspec.ContainerImage{Image: name, Tag: "1.2"}},
		}))
	}
	refused := func(what string, result jobspec.Result, want string) {
		t.Helper()
		if result.Outcome != jobspec.OutcomeRefused || !strings.Contains(result.Error, want) || result.Remedy == "" {
			t.Errorf("%s: %+v, want it refused: %s", what, result, want)
		}
		entries, err := layout.Artifacts()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Annotations[ocispec.AnnotationRefName] != "" && e.Digest == image {
				t.Errorf("%s: kubelets can pull it", what)
			}
		}
	}
	refused("unsigned", deploy("ghcr.io/team/web"), "no signature hangs on it")
	refused("under a name that no rule has", deploy("docker.io/library/busybox"), "no rule in images")
	refused("without a name", deploy(""), "no rule in images")

	hang := func(predicate string, key ed25519.PrivateKey) {
		t.Helper()
		if err := hangOn(t.Context(), layout, image, predicate, key); err != nil {
			t.Fatal(err)
		}
	}
	_, other, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	hang(attest.CosignSign, other)
	refused("signed by somebody", deploy("ghcr.io/team/web"), "is of this key")
	hang(attest.SPDX, key)
	refused("an SBOM alone", deploy("ghcr.io/team/web"), "no signature of the image")
	hang(attest.CosignSign, key)
	if result := deploy("ghcr.io/team/web"); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("signed: %+v", result)
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
		var m ocispec.Manifest
		if json.Unmarshal(body, &m) == nil && m.Subject != nil { // it would list it as a referrer
			w.Header().Set("OCI-Subject", m.Subject.Digest.String())
		}
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
