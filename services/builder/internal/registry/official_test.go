package registry_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/services/builder/internal/registry"
)

func TestOfficialConformance(t *testing.T) { inEveryStorage(t, testOfficialConformance) }

func testOfficialConformance(t *testing.T, in place) {
	suite := os.Getenv("BERTH_OCI_CONFORMANCE")
	f := startIn(t, in, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	cmd := exec.CommandContext(t.Context(), suite)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "OCI_REGISTRY="+f.host, "OCI_TLS=disabled", "OCI_REPO1=org_a/one", "OCI_REPO2=org_a/two", "OCI_USERNAME=x", "OCI_PASSWORD="+token, "OCI_VERSION=1.1",
		"OCI_API_BLOBS_DIGEST_HEADER=true", "OCI_API_MANIFESTS_DIGEST_HEADER=true", "OCI_API_BLOBS_UPLOAD_CANCEL=true", "OCI_DATA_SPARSE=false", "OCI_RESULTS_DIR="+filepath.Join("/tmp/oci-mods/results"))
	out, err := cmd.CombinedOutput()
	t.Logf("%v\n%s", err, out)
}
