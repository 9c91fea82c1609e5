package front_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/front"
)

// A certificate that was replaced is served; one that cannot be read is not.
func TestCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	if _, err := front.LoadCertificate(cert, key, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a missing certificate was loaded")
	}
	changed := time.Unix(1_700_000_000, 0)
	put := func(serial int64) {
		t.Helper()
		certPEM, keyPEM := certificate(t, serial)
		changed = changed.Add(time.Second)
		for file, text := range map[string][]byte{cert: certPEM, key: keyPEM} {
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(file, changed, changed); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(1)
	loaded, err := front.LoadCertificate(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	expect := func(when string, want int64) {
		t.Helper()
		pair, err := loaded.Get(nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := pair.Leaf.SerialNumber.Int64(); got != want {
			t.Errorf("%s: certificate %d, want %d", when, got, want)
		}
	}
	expect("at first", 1)
	put(2)
	expect("after it was replaced", 2)
	if err := os.WriteFile(key, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect("while the files do not fit", 2)
	put(3)
	expect("when they fit again", 3)
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	expect("while one is away", 3)
}

func certificate(t *testing.T, serial int64) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}
