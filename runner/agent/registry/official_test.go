package registry_test

import (
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci/suitetest"
)

// TestOfficialConformance runs those parts of the official suite that are about a
// registry that only gives out: pull and referrers. It has a setting that wants digests
// in answers, which it cannot check for contents that it did not push.
func TestOfficialConformance(t *testing.T) {
	t.Parallel()
	program := suitetest.Program(t)
	h := newHouse(t)
	amd, arm := h.image("layer of amd64"), h.image("layer of arm64")
	index := h.putJSON(ocispec.MediaTypeImageIndex, indexOf(amd, arm))
	h.keep("web", "1.2", index)
	sbom := h.referrer("application/vnd.example.sbom", index, "an SBOM")
	layer := h.put(ocispec.MediaTypeImageLayer, []byte("layer of amd64"))
	summary, err := suitetest.Run(t.Context(), program, t.TempDir(),
		"OCI_REGISTRY="+strings.TrimPrefix(h.url, "http://"), "OCI_REPO1=web", "OCI_REPO2=web",
		"OCI_API_PUSH=false", "OCI_API_BLOBS_DELETE=false", "OCI_API_MANIFESTS_DELETE=false", "OCI_API_TAGS_DELETE=false", "OCI_API_TAGS_LIST=false",
		"OCI_RO_DATA_TAGS=1.2", "OCI_RO_DATA_MANIFESTS="+index.Digest.String()+" "+amd.Digest.String()+" "+sbom.Digest.String(),
		"OCI_RO_DATA_BLOBS="+layer.Digest.String(), "OCI_RO_DATA_REFERRERS="+index.Digest.String())
	if err != nil {
		t.Fatal(err)
	}
	if err := suitetest.Report("install", summary); err != nil {
		t.Fatal(err)
	}
}
