package registry_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
)

func indexOf(parts ...ocispec.Descriptor) ocispec.Index {
	return ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: parts}
}

// referrer puts an artifact that refers to a manifest.
func (h *house) referrer(artifactType string, subject ocispec.Descriptor, text string) ocispec.Descriptor {
	h.t.Helper()
	return h.putJSON(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: artifactType, Subject: &subject,
		Config: h.put(ocispec.MediaTypeEmptyJSON, []byte("{}")), Layers: []ocispec.Descriptor{h.put("text/plain", []byte(text))},
		Annotations: map[string]string{"about": text},
	})
}

// listed asks for referrers (end-12a, and end-12b with an artifactType).
func (h *house) listed(repository string, subject digest.Digest, artifactType string) []digest.Digest {
	h.t.Helper()
	path := "/v2/" + repository + "/referrers/" + subject.String()
	if artifactType != "" {
		path += "?artifactType=" + artifactType
	}
	resp, body := h.get(http.MethodGet, path)
	var index ocispec.Index
	if err := json.Unmarshal([]byte(body), &index); err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != ocispec.MediaTypeImageIndex || index.Manifests == nil {
		h.t.Fatalf("%s: %s %s: %v", path, resp.Status, body, err)
	}
	if artifactType != "" && resp.Header.Get("OCI-Filters-Applied") != "artifactType" {
		h.t.Errorf("%s: the filter is not named", path)
	}
	found := []digest.Digest{}
	for _, m := range index.Manifests {
		found = append(found, m.Digest)
		if m.Size == 0 || m.ArtifactType == "" || m.Annotations["about"] == "" {
			h.t.Errorf("%s: %+v says too little", path, m)
		}
	}
	return found
}

// What refers to an image of the install came with it: it is listed, and can be
// pulled, also what refers to that, and what refers to one platform.
func TestReferrersAreServed(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	amd, arm := h.image("amd64"), h.image("arm64")
	index := h.putJSON(ocispec.MediaTypeImageIndex, indexOf(amd, arm))
	h.keep("web", "1", index)
	sbom := h.referrer("application/vnd.example.sbom", index, "an SBOM")
	signature := h.referrer("application/vnd.example.signature", index, "a signature")
	ofSBOM := h.referrer("application/vnd.example.signature", sbom, "the signature of the SBOM")
	ofAMD := h.referrer("application/vnd.example.sbom", amd, "an SBOM of amd64")
	for _, tc := range []struct {
		subject ocispec.Descriptor
		kind    string
		want    []digest.Digest
	}{
		{index, "", []digest.Digest{sbom.Digest, signature.Digest}},
		{index, "application/vnd.example.sbom", []digest.Digest{sbom.Digest}},
		{index, "application/vnd.example.other", []digest.Digest{}},
		{sbom, "", []digest.Digest{ofSBOM.Digest}},
		{amd, "", []digest.Digest{ofAMD.Digest}},
		{arm, "", []digest.Digest{}},
	} {
		if got := h.listed("web", tc.subject.Digest, tc.kind); !slices.Equal(got, tc.want) {
			t.Errorf("referrers of %s %s: %v, want %v", tc.subject.Digest, tc.kind, got, tc.want)
		}
	}
	for _, path := range []string{
		"manifests/" + sbom.Digest.String(), "manifests/" + ofSBOM.Digest.String(), "manifests/" + ofAMD.Digest.String(),
		"blobs/" + digest.FromString("an SBOM").String(), "blobs/" + digest.FromString("the signature of the SBOM").String(),
		"blobs/" + digest.FromString("{}").String(),
	} {
		if resp, body := h.get(http.MethodGet, "/v2/web/"+path); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, resp.Status, body)
		}
	}
	if resp, _ := h.get(http.MethodGet, "/v2/web/referrers/latest"); resp.StatusCode != http.StatusBadRequest {
		t.Errorf("referrers of a tag: %s", resp.Status)
	}
}

// A referrer opens nothing that its subject does not: not other components, nothing
// of the install's own, and nothing that only says that it belongs here.
func TestAttackReferrers(t *testing.T) {
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
	ofDB := h.referrer("application/vnd.example.sbom", db, "an SBOM of db")
	ofLoose := h.referrer("application/vnd.example.sbom", loose, "an SBOM of nothing")
	missing := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.FromString("missing"), Size: 7}
	ofMissing := h.referrer("application/vnd.example.sbom", missing, "an SBOM of what is gone")
	own := h.referrer(oci.KindSource.ArtifactType(), db, "source of the install's own")
	// The vendor's, of an image that is served: it claims a plan as its layer.
	stolen := ocispec.Descriptor{MediaType: "text/plain", Digest: digest.FromBytes(sealed), Size: int64(len(sealed))}
	thief := h.putJSON(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: "application/vnd.example.sbom", Subject: &web,
		Config: h.put(ocispec.MediaTypeEmptyJSON, []byte("{}")), Layers: []ocispec.Descriptor{stolen}, Annotations: map[string]string{"about": "theft"},
	})
	for _, tc := range []struct{ name, path string }{
		{"the referrer of another component", "manifests/" + ofDB.Digest.String()},
		{"its contents", "blobs/" + digest.FromString("an SBOM of db").String()},
		{"the referrer of an image that no plan brought", "manifests/" + ofLoose.Digest.String()},
		{"the referrer of what is gone", "manifests/" + ofMissing.Digest.String()},
		{"an artifact of the install's own, with a subject", "manifests/" + own.Digest.String()},
		{"a sealed plan as the layer of a referrer", "blobs/" + digest.FromBytes(sealed).String()},
		{"the manifest of the plan", "manifests/" + plan.String()},
	} {
		for _, repository := range []string{"web", "other"} {
			if resp, body := h.get(http.MethodGet, "/v2/"+repository+"/"+tc.path); resp.StatusCode != http.StatusNotFound {
				t.Errorf("%s in %s: %s %s", tc.name, repository, resp.Status, body)
			}
		}
	}
	for _, tc := range []struct {
		repository string
		subject    digest.Digest
		want       []digest.Digest
	}{
		{"web", web.Digest, []digest.Digest{thief.Digest}}, // it may be looked at, and leads nowhere
		{"web", db.Digest, []digest.Digest{}},
		{"other", db.Digest, []digest.Digest{}},
		{"web", loose.Digest, []digest.Digest{}},
		{"web", missing.Digest, []digest.Digest{}},
		{"web", plan, []digest.Digest{}},
	} {
		if got := h.listed(tc.repository, tc.subject, ""); !slices.Equal(got, tc.want) {
			t.Errorf("referrers of %s in %s: %v, want %v", tc.subject, tc.repository, got, tc.want)
		}
	}
}

// What is the install's own and says something about an image does not hide that. What
// it has itself stays hidden, also when the image claims it.
func TestAttackOwnArtifactAboutAnImage(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	claimed := h.put(ocispec.MediaTypeImageLayer, []byte("of the install's own"))
	layer := h.put(ocispec.MediaTypeImageLayer, []byte("web"))
	web := h.imageOf(layer, claimed)
	h.keep("web", "1", web)
	own := h.referrer(oci.KindSource.ArtifactType(), web, "of the install's own")
	ofOwn := h.referrer("application/vnd.example.signature", own, "a signature of the own")
	for path, want := range map[string]int{
		"manifests/1": http.StatusOK, "manifests/" + web.Digest.String(): http.StatusOK, "blobs/" + layer.Digest.String(): http.StatusOK,
		"blobs/" + claimed.Digest.String(): http.StatusNotFound, "manifests/" + own.Digest.String(): http.StatusNotFound, "manifests/" + ofOwn.Digest.String(): http.StatusNotFound,
	} {
		if resp, body := h.get(http.MethodGet, "/v2/web/"+path); resp.StatusCode != want {
			t.Errorf("%s: %s %s, want %d", path, resp.Status, body, want)
		}
	}
	if got := h.listed("web", web.Digest, ""); len(got) != 0 {
		t.Errorf("the image has referrers %v", got)
	}
}
