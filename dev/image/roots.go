package image

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// RootsModule is the module that the certificates come from.
const RootsModule = "golang.org/x/crypto/x509roots/fallback"

// rootsPath is where Go, curl and OpenSSL of Debian look.
const rootsPath = "etc/ssl/certs/ca-certificates.crt"

// Roots returns Mozilla's certificate authorities in PEM, as the Go project
// keeps them in a module: go.sum pins them, so all architectures and all
// machines get the same file. Authorities that Mozilla trusts only under
// conditions are left out, since PEM cannot say conditions.
func Roots() []byte {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return out.Bytes()
}

// Ground is the first layer of every image: the roots, and a /tmp that
// everybody can write to where the pod's root file system is not read-only.
func Ground() Tree {
	t := Tree{}
	t.File(rootsPath, Roots())
	t.Dir("tmp", 0o1777)
	return t
}
