// Package certificate reads when certificates for TLS end, of which looks tell the control
// plane. It never sees a key.
package certificate

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/visible"
)

// maxText is the longest name and place, in bytes.
const maxText = 256

// Of is a certificate that is at a place.
func Of(place string, leaf *x509.Certificate) jobspec.Certificate {
	sum := sha256.Sum256(leaf.Raw)
	return jobspec.Certificate{
		Place: shown(place), Subject: shown(name(leaf)), Fingerprint: hex.EncodeToString(sum[:]), NotBefore: leaf.NotBefore.UTC(), NotAfter: leaf.NotAfter.UTC(),
	}
}

// Leaf is the first certificate of a chain as tls.crt of a Secret has it; nil when there is
// none that can be read.
func Leaf(chain []byte) *x509.Certificate {
	for {
		block, rest := pem.Decode(chain)
		if block == nil {
			return nil
		}
		if block.Type == "CERTIFICATE" {
			leaf, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil
			}
			return leaf
		}
		chain = rest
	}
}

func name(leaf *x509.Certificate) string {
	switch {
	case len(leaf.DNSNames) > 0:
		return leaf.DNSNames[0]
	case len(leaf.IPAddresses) > 0:
		return leaf.IPAddresses[0].String()
	case leaf.Subject.CommonName != "":
		return leaf.Subject.CommonName
	}
	return "no name"
}

func shown(text string) string { return visible.Line(jobspec.CutText(text, maxText)) }
