// Package toolchaintest publishes releases of Terraform for tests, signed with a key of
// their own.
package toolchaintest

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

// Vendor signs releases. Key is its armored public key.
type Vendor struct {
	Key    string
	Of     tfprogram.Vendor // whose releases it signs; NewVendor makes it Terraform's
	entity *openpgp.Entity
}

// NewVendor makes a vendor with a new key.
func NewVendor(t *testing.T) Vendor {
	t.Helper()
	entity, err := openpgp.NewEntity("Vendor", "", "vendor@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(entity.Serialize(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	return Vendor{Key: out.String(), Of: tfprogram.Terraform, entity: entity}
}

// Release puts the vendor's files of a version, with this program, into a directory.
func (v Vendor) Release(t *testing.T, dir, version string, program []byte) {
	t.Helper()
	var raw, sig bytes.Buffer
	z := zip.NewWriter(&raw)
	w, err := z.CreateHeader(&zip.FileHeader{Name: v.Of.Program, Method: zip.Store})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw.Bytes())
	sums := hex.EncodeToString(sum[:]) + "  " + v.Of.ArchiveName(version) + "\n"
	if err := openpgp.DetachSign(&sig, v.entity, strings.NewReader(sums), nil); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{v.Of.ArchiveName(version): raw.Bytes(), v.Of.SumsName(version): []byte(sums), v.Of.SignatureName(version): sig.Bytes()} {
		Write(t, filepath.Join(dir, name), data, 0o644)
	}
}

// Write writes a file that everybody may read, and the directories above it.
func Write(t *testing.T, path string, data []byte, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, mode); err != nil {
		t.Fatal(err)
	}
}
