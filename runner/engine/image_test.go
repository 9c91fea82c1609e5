package engine_test

import (
	"bytes"
	"crypto"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/registry"
)

// upstream serves one image for two platforms as team:1.2, from a registry, with bundles that
// hang on it.
func upstream(t *testing.T, hung ...[]byte) (host string, image digest.Digest) {
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
	of := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: image}
	if desc, err := layout.Resolve(t.Context(), image.String()); err == nil {
		of.Size = desc.Size
	}
	for _, bundle := range hung {
		put(ocispec.MediaTypeImageManifest, ocispec.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: attest.BundleType,
			Config: put(ocispec.MediaTypeEmptyJSON, []byte("{}")), Layers: []ocispec.Descriptor{put(attest.BundleType, bundle)}, Subject: &of,
		})
	}
	server := httptest.NewServer(registry.Handler(layout, slog.New(slog.NewTextHandler(t.Output(), nil))))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), image
}

// withTag puts a registry in front of another, that has the signature of an image as a tag,
// as cosign 1 and 2 write it.
func withTag(t *testing.T, host string, image digest.Digest, payload, signature string) string {
	t.Helper()
	layer := ocispec.Descriptor{
		MediaType: attest.SimpleSigningType, Digest: digest.FromString(payload), Size: int64(len(payload)),
		Annotations: map[string]string{attest.AnnotationSignature: signature},
	}
	raw, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageConfig, Digest: digest.FromString("{}"), Size: 2}, Layers: []ocispec.Descriptor{layer},
	})
	if err != nil {
		t.Fatal(err)
	}
	behind := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: host})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for path, body := range map[string]string{
			"/v2/team/manifests/" + image.Algorithm().String() + "-" + image.Encoded() + ".sig": string(raw),
			"/v2/team/blobs/" + layer.Digest.String():                                           payload,
			"/v2/team/blobs/" + digest.FromString("{}").String():                                "{}",
		} {
			if r.URL.Path == path {
				w.Header().Set("Content-Type", ocispec.MediaTypeImageManifest)
				w.Header().Set("Docker-Content-Digest", digest.FromString(body).String())
				http.ServeContent(w, r, "", time.Time{}, strings.NewReader(body))
				return
			}
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// The signatures in testdata/signatures are made by the libraries of sigstore (sigstore
// v1.9, sigstore-go v1.1), with a new key for each: simple.json has what cosign 2 puts
// into a tag, bundle.json is what cosign 3 hangs on an image, without any log or certificate.
func TestBuildWantsAnImageSigned(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join("testdata", "signatures", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	var simple struct{ Payload, Signature string }
	if err := json.Unmarshal([]byte(read("simple.json")), &simple); err != nil {
		t.Fatal(err)
	}
	bare, image := upstream(t)
	hung, _ := upstream(t, []byte(read("bundle.json")))
	tagged := withTag(t, bare, image, simple.Payload, simple.Signature)
	forged := withTag(t, bare, image, strings.Replace(simple.Payload, "team", "evil", 1), simple.Signature)
	elsewhere := withTag(t, bare, image, strings.Replace(simple.Payload, image.Encoded(), digest.FromString("x").Encoded(), 1), simple.Signature)
	for _, tc := range []struct {
		name, host, key, wrong string
	}{
		{"by a tag", tagged, read("cosign.pub"), ""},
		{"by a bundle", hung, read("bundle.pub"), ""},
		{"without a key nothing is asked", bare, "", ""},
		{"not at all", bare, read("cosign.pub"), "no signature hangs on it"},
		{"a tag by another key", tagged, read("bundle.pub"), "not of this key"},
		{"a bundle by another key", hung, read("cosign.pub"), "is of this key"},
		{"another payload", forged, read("cosign.pub"), "not of this key"},
		{"of another image", elsewhere, read("cosign.pub"), "not of this key"},
	} {
		j := imageBuild(t, tc.host, image)
		j.spec.Source.ImageKey = tc.key
		r := j.run(t)
		if tc.wrong == "" {
			if r.Outcome != jobspec.OutcomeSucceeded {
				t.Errorf("%s: %+v", tc.name, r)
			}
			continue
		}
		if r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, tc.wrong) || r.Remedy == "" {
			t.Errorf("%s: %+v, want %q", tc.name, r, tc.wrong)
		}
	}

	// What was only a tag hangs on the copy, and verifies there for the customer.
	j := imageBuild(t, tagged, image)
	j.must(t)
	root, err := os.OpenRoot(filepath.Join(j.path, "out/image"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	manifest, found, err := oci.HangingIn(t.Context(), root, image)
	if err != nil {
		t.Fatal(err)
	}
	key, err := attest.ParseKey(read("cosign.pub"))
	if err != nil {
		t.Fatal(err)
	}
	if err := attest.Signed([]crypto.PublicKey{key}, image, manifest, found); err != nil {
		t.Error(err)
	}
	if err := attest.Signed([]crypto.PublicKey{key}, digest.FromString("other"), manifest, found); err == nil {
		t.Error("it passes for the signature of another image")
	}
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
