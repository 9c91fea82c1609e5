package certificate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/runner/engine/certificate"
)

func TestLeaf(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ends := time.Date(2026, 12, 4, 0, 0, 0, 0, time.UTC)
	issue := func(of x509.Certificate) []byte {
		of.SerialNumber, of.NotBefore, of.NotAfter = big.NewInt(1), ends.Add(-90*24*time.Hour), ends
		der, err := x509.CreateCertificate(rand.Reader, &of, &of, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	named := issue(x509.Certificate{DNSNames: []string{"shop.example.com", "www.example.com"}, Subject: pkix.Name{CommonName: "other"}})
	issuer := issue(x509.Certificate{Subject: pkix.Name{CommonName: "issuer"}})
	private := pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("canary")})
	for name, tt := range map[string]struct {
		chain []byte
		want  string // the subject; "" for none
	}{
		"the first of a chain":   {append(named[:len(named):len(named)], issuer...), "shop.example.com"},
		"behind something else":  {append(private, named...), "shop.example.com"},
		"a common name":          {issuer, "issuer"},
		"an address":             {issue(x509.Certificate{IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)}}), "10.0.0.1"},
		"no name":                {issue(x509.Certificate{}), "no name"},
		"a name that plays":      {issue(x509.Certificate{Subject: pkix.Name{CommonName: "a\x1b[2J" + strings.Repeat("b", 60)}}), "a⟨U+001B⟩[2J" + strings.Repeat("b", 60)},
		"a key alone":            {private, ""},
		"nothing":                {nil, ""},
		"no PEM":                 {[]byte("hello"), ""},
		"a certificate of noise": {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("noise")}), ""},
	} {
		leaf := certificate.Leaf(tt.chain)
		if leaf == nil || tt.want == "" {
			if leaf != nil || tt.want != "" {
				t.Errorf("%s: got %v, want %q", name, leaf, tt.want)
			}
			continue
		}
		c := certificate.Of("Secret shop/web", leaf)
		if c.Subject != tt.want || c.Place != "Secret shop/web" || !c.NotAfter.Equal(ends) || c.NotAfter.Location() != time.UTC || len(c.Fingerprint) != 64 {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
