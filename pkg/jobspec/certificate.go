package jobspec

import "time"

// MaxCertificates is how many certificates a look tells of at most.
const MaxCertificates = 20

// CertificatesOutput is the name under which a Run of a probe has the certificates that it
// saw among its outputs. A look that did not come so far has none; one that saw none has an
// empty list.
const CertificatesOutput = "certificates"

// Certificate is a certificate for TLS that a look saw. Nothing of it is secret: who
// connects is shown it.
type Certificate struct {
	// Place is where it is: "Secret shop/web-tls", "https://shop.example.com".
	Place string `json:"place"`
	// Subject is the first name that it is for.
	Subject string `json:"subject"`
	// Fingerprint is the SHA-256 of all of it, in hex.
	Fingerprint string    `json:"fingerprint"`
	NotBefore   time.Time `json:"not_before"`
	NotAfter    time.Time `json:"not_after"`
}
