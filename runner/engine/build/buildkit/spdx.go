package buildkit

import (
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
)

// The types below are SPDX 2.3 in JSON, as far as it is filled in.

type spdxDocument struct {
	Version       string             `json:"spdxVersion"`
	DataLicense   string             `json:"dataLicense"`
	ID            string             `json:"SPDXID"`
	Name          string             `json:"name"`
	Namespace     string             `json:"documentNamespace"`
	Comment       string             `json:"comment,omitempty"`
	CreationInfo  spdxCreation       `json:"creationInfo"`
	Packages      []spdxPackage      `json:"packages"`
	Relationships []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  time.Time `json:"created"`
	Creators []string  `json:"creators"`
}

type spdxPackage struct {
	ID       string    `json:"SPDXID"`
	Name     string    `json:"name"`
	Version  string    `json:"versionInfo,omitempty"`
	Download string    `json:"downloadLocation"`
	Analyzed bool      `json:"filesAnalyzed"`
	Refs     []spdxRef `json:"externalRefs,omitempty"`
	Purpose  string    `json:"primaryPackagePurpose,omitempty"`
}

type spdxRef struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

const (
	noAssertion = "NOASSERTION"
	idDocument  = "SPDXRef-DOCUMENT"
	idImage     = "SPDXRef-image"
)

// document lists the packages of one image. It is the same for the same image: its
// time is that of all builds.
func (c contents) document(o Origin, image digest.Digest) spdxDocument {
	d := spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: idDocument, Name: o.Name,
		Namespace:     "https://berth.dev/spdx/" + o.Name + "/" + image.Encoded(),
		CreationInfo:  spdxCreation{Created: Epoch, Creators: []string{"Tool: berth-engine"}},
		Packages:      []spdxPackage{{ID: idImage, Name: o.Name, Version: image.String(), Download: noAssertion, Purpose: "CONTAINER"}},
		Relationships: []spdxRelationship{{idDocument, "DESCRIBES", idImage}},
	}
	d.Comment = "Lists the packages of dpkg, apk, and of programs that Go built."
	if missing := c.missing(); len(missing) > 0 {
		d.Comment += " Incomplete: there are also packages of " + strings.Join(missing, ", ") + "."
	}
	for i, p := range c.sorted() {
		id := fmt.Sprintf("SPDXRef-package-%d", i+1)
		d.Packages = append(d.Packages, spdxPackage{
			ID: id, Name: p.name, Version: p.version, Download: noAssertion,
			Refs: []spdxRef{{"PACKAGE-MANAGER", "purl", p.purl()}},
		})
		d.Relationships = append(d.Relationships, spdxRelationship{idImage, "CONTAINS", id})
	}
	return d
}

func newSBOM(name string, image digest.Digest, d spdxDocument) statement {
	return about(name, image, predicateSPDX, d)
}
