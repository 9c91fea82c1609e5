package registry_test

import (
	"testing"

	"github.com/berth-dev/berth/pkg/oci/suitetest"
	"github.com/berth-dev/berth/services/builder/internal/registry"
)

// TestOfficialConformance runs the official suite of the specification. What it is not
// asked stands in docs/reference/artifacts.md#conformance, with the reason.
func TestOfficialConformance(t *testing.T) { inEveryStorage(t, testOfficialConformance) }

func testOfficialConformance(t *testing.T, in place) {
	program := suitetest.Program(t)
	f := startIn(t, in, nil)
	summary, err := suitetest.Run(t.Context(), program, t.TempDir(),
		"OCI_REGISTRY="+f.host, "OCI_REPO1=org_a/one", "OCI_REPO2=org_a/two",
		"OCI_USERNAME=x", "OCI_PASSWORD="+f.issue(registry.Grant{OrgID: "org_a", Actions: all}),
		// More than it asks by default.
		"OCI_API_BLOBS_UPLOAD_CANCEL=true", "OCI_API_BLOBS_DIGEST_HEADER=true", "OCI_API_MANIFESTS_DIGEST_HEADER=true",
		// Less: all contents are named by SHA-256, and are here.
		"OCI_DATA_SHA512=false", "OCI_DATA_NONDISTRIBUTABLE=false")
	must(t, err)
	if in.S3 == nil {
		must(t, suitetest.Report("org", summary))
	}
}
