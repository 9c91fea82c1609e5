package tfprogram_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

// The compiled-in keys are the vendors', by their published fingerprints.
func TestVendorKeys(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{
		"hashicorp.asc": "C874011F0AB405110D02105534365D9472D7468F",
		"opentofu.asc":  "E3E6E43D84CB852EADB0051D0C0AF313E5FD9F80",
	} {
		armored, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := openpgp.ReadArmoredKeyRing(bytes.NewReader(armored))
		if err != nil {
			t.Fatal(err)
		}
		if len(ring) != 1 {
			t.Fatalf("%s: %d keys, want 1", file, len(ring))
		}
		if got := fmt.Sprintf("%X", ring[0].PrimaryKey.Fingerprint); got != want {
			t.Errorf("%s: fingerprint is %s, want %s", file, got, want)
		}
	}
}

// The version of OpenTofu that is fetched is the one that tests run.
func TestOpenTofuVersionIsTested(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.FromSlash("../../dev/scripts/tofu.sh"))
	if err != nil {
		t.Fatal(err)
	}
	if want := "version=v" + tfprogram.OpenTofuVersion + " "; !strings.Contains(string(raw), want) {
		t.Errorf("dev/scripts/tofu.sh has no %q", want)
	}
}

// What the vendors call their files, and whose an executable is.
func TestVendors(t *testing.T) {
	t.Parallel()
	tofu := tfprogram.OpenTofu
	for got, want := range map[string]string{
		tofu.Folder("1.12.6"):                           "v1.12.6",
		tofu.SumsName("1.12.6"):                         "tofu_1.12.6_SHA256SUMS",
		tofu.SignatureName("1.12.6"):                    "tofu_1.12.6_SHA256SUMS.gpgsig",
		tofu.PlainName("1", tofu.SignatureName("1")):    "SHA256SUMS.gpgsig",
		tfprogram.Terraform.Folder("1.11.4"):            "1.11.4",
		tfprogram.Terraform.SignatureName("1.11.4"):     "terraform_1.11.4_SHA256SUMS.sig",
		tfprogram.Of("/usr/bin/tofu").Tool:              "opentofu",
		tfprogram.Of("/usr/bin/tofu-1.9").Tool:          "opentofu",
		tfprogram.Of("/opt/tofu/terraform").Tool:        "terraform",
		tfprogram.Of("/opt/tools/anything-at-all").Tool: "terraform",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
