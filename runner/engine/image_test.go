package engine_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/registry"
)

// upstream serves one image for two platforms as team:1.2, from a registry.
func upstream(t *testing.T) (host string, image digest.Digest) {
	t.Helper()
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(mediaType string, v any) ocispec.Descriptor {
		t.Helper()
		raw, ok := v.([]byte)
		if !ok {
			if raw, err = json.Marshal(v); err != nil {
				t.Fatal(err)
			}
		}
		desc := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
		if err := layout.Push(t.Context(), desc, bytes.NewReader(raw)); err != nil {
			t.Fatal(err)
		}
		return desc
	}
	index := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex}
	for _, platform := range []string{"amd64", "arm64"} {
		index.Manifests = append(index.Manifests, put(ocispec.MediaTypeImageManifest, ocispec.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
			Config: put(ocispec.MediaTypeImageConfig, []byte(`{"architecture":"`+platform+`"}`)),
			Layers: []ocispec.Descriptor{put(ocispec.MediaTypeImageLayerGzip, []byte("layer of "+platform))},
		}))
	}
	image = put(ocispec.MediaTypeImageIndex, index).Digest
	if err := registry.Keep(t.Context(), layout, registry.Image{Repository: "team", Tag: "1.2", Digest: image}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.Handler(layout, slog.New(slog.NewTextHandler(t.Output(), nil))))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), image
}

func imageBuild(t *testing.T, host string, image digest.Digest) *jobDir {
	t.Helper()
	return newJob(t, jobspec.Spec{
		Kind: jobspec.KindContainerImage, Operation: jobspec.OperationBuild, BuildID: "bld_1",
		Source: &jobspec.Source{Kind: "image", Image: host + "/team", Ref: "1.2", ImageDigest: image.String(), Push: "org_1/app/web"},
	})
}

func TestBuildCopiesAnImage(t *testing.T) {
	t.Parallel()
	host, image := upstream(t)
	j := imageBuild(t, host, image)
	j.must(t)
	layout, err := oci.Open(filepath.Join(j.path, "out/image"))
	if err != nil {
		t.Fatal(err)
	}
	if err := layout.Verify(t.Context(), image); err != nil {
		t.Error(err)
	}
	contents, err := oci.ReadContents(t.Context(), layout, image)
	if err != nil || !contents.Image || len(contents.Parts) != 7 { // an index; manifest, config and layer for each platform
		t.Errorf("image %v with %d parts, %v; want one of 7", contents.Image, len(contents.Parts), err)
	}
	wantContains(t, "log", j.log(t), "copying "+host+"/team:1.2, which is "+image.String())
}

func TestBuildOfAnImageThatCannotBeCopied(t *testing.T) {
	t.Parallel()
	host, image := upstream(t)
	closed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer closed.Close()
	for _, tc := range []struct {
		name  string
		host  string
		image digest.Digest
		want  string
	}{
		{"a digest that is gone", host, digest.FromString("gone"), "is not there any more"},
		{"a registry that wants a password", closed.Listener.Addr().String(), image, "is not given out without credentials"},
	} {
		r := imageBuild(t, tc.host, tc.image).run(t)
		if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, tc.want) || r.Remedy == "" {
			t.Errorf("%s: %+v, want %q and a remedy", tc.name, r, tc.want)
		}
	}
}

func imagePlan(t *testing.T) *jobDir {
	t.Helper()
	j := newJob(t, jobspec.Spec{
		Kind: jobspec.KindContainerImage, Operation: jobspec.OperationPlan,
		Resource: &jobspec.Resource{ID: "res_1", Kind: "component", Name: "web"},
		Artifact: &jobspec.Artifact{Repository: "org_1/app/web", Digest: "sha256:" + strings.Repeat("a", 64)},
		Work:     jobspec.Work{ContainerImage: &jobspec.ContainerImage{Tag: "1.2"}},
	})
	j.env["BERTH_REGISTRY"] = "127.0.0.1:5001"
	return j
}

// An image is where kubelets pull it before its plan, so there is nothing to
// approve and nothing to apply.
func TestPlanOfAnImageNamesItForKubelets(t *testing.T) {
	t.Parallel()
	j := imagePlan(t)
	if r := j.must(t); !r.NoChange {
		t.Errorf("result %+v, want no change", r)
	}
	var outputs map[string]struct{ Value map[string]string }
	j.readJSON(t, "out/outputs.json", &outputs)
	want := map[string]string{
		"repository": "127.0.0.1:5001/web", "tag": "1.2", "digest": j.spec.Artifact.Digest, "ref": "127.0.0.1:5001/web@" + j.spec.Artifact.Digest,
	}
	if diff := cmp.Diff(want, outputs["image"].Value); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	var summary jobspec.PlanSummary
	j.readJSON(t, "out/plan.summary.json", &summary)
	wantContains(t, "summary", summary.Text, want["ref"])
	if !summary.NoChange || !strings.Contains(j.read(t, "out/plan.canonical.json"), j.spec.Artifact.Digest) {
		t.Errorf("summary %+v", summary)
	}
}

func TestTeardownOfAnImageChangesNothing(t *testing.T) {
	t.Parallel()
	j := imagePlan(t)
	j.spec.Destroy = true
	delete(j.env, "BERTH_REGISTRY") // it may be gone already
	if r := j.must(t); !r.NoChange || j.read(t, "out/outputs.json") != "{}" {
		t.Errorf("result %+v with outputs %s", r, j.read(t, "out/outputs.json"))
	}
}

func TestPlanOfAnImageNeedsARegistry(t *testing.T) {
	t.Parallel()
	j := imagePlan(t)
	delete(j.env, "BERTH_REGISTRY")
	r := j.run(t)
	if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "no registry that a cluster can pull from") || !strings.Contains(r.Remedy, "--registry-address") {
		t.Errorf("result %+v, want a failure that says how to give the runner a registry", r)
	}
}
