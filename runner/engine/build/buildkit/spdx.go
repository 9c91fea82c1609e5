package buildkit

import (
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/attest/spdx"
)

// document lists the packages of one image. It is the same for the same image: its
// time is that of all builds.
func (c contents) document(o Origin, image digest.Digest) spdx.Document {
	d := spdx.New(spdx.Subject{ID: "SPDXRef-image", Name: o.Name, Digest: image, Purpose: "CONTAINER"}, Epoch, "Tool: berth-engine")
	d.Comment = "Lists the packages of dpkg, apk, and of programs that Go built."
	if missing := c.missing(); len(missing) > 0 {
		d.Comment += " Incomplete: there are also packages of " + strings.Join(missing, ", ") + "."
	}
	for _, p := range c.sorted() {
		d.Add(spdx.Package{Name: p.name, Version: p.version}, spdx.Contains, p.purl())
	}
	return d
}

func newSBOM(name string, image digest.Digest, d spdx.Document) statement {
	return about(name, image, attest.SPDX, d)
}
