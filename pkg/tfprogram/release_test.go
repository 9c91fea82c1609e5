package tfprogram_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
)

// The compiled-in key is the vendor's, by its published fingerprint.
func TestVendorKey(t *testing.T) {
	t.Parallel()
	armored, err := os.Open("hashicorp.asc")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = armored.Close() }()
	ring, err := openpgp.ReadArmoredKeyRing(armored)
	if err != nil {
		t.Fatal(err)
	}
	if len(ring) != 1 {
		t.Fatalf("%d keys, want 1", len(ring))
	}
	const want = "C874011F0AB405110D02105534365D9472D7468F"
	if got := fmt.Sprintf("%X", ring[0].PrimaryKey.Fingerprint); got != want {
		t.Errorf("fingerprint is %s, want %s", got, want)
	}
}
