// Package spdx has the parts of SPDX 2.3 in JSON (https://spdx.github.io/spdx-spec/v2.3/)
// that Berth's bills of materials fill in, and how a package is added to one.
package spdx

import (
	"cmp"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"
)

const (
	noAssertion = "NOASSERTION"
	idDocument  = "SPDXRef-DOCUMENT"
)

// Relations between packages.
const (
	Contains  = "CONTAINS"
	DependsOn = "DEPENDS_ON"
)

// Document is a bill of materials.
type Document struct {
	Version       string         `json:"spdxVersion"`
	DataLicense   string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Comment       string         `json:"comment,omitempty"`
	CreationInfo  Creation       `json:"creationInfo"`
	Packages      []Package      `json:"packages"`
	Relationships []Relationship `json:"relationships"`
}

// Creation is when and by what a document was made.
type Creation struct {
	Created  time.Time `json:"created"`
	Creators []string  `json:"creators"`
}

// Package is one of a document.
type Package struct {
	ID       string `json:"SPDXID"`
	Name     string `json:"name"`
	Version  string `json:"versionInfo,omitempty"`
	Download string `json:"downloadLocation"`
	Analyzed bool   `json:"filesAnalyzed"`
	Refs     []Ref  `json:"externalRefs,omitempty"`
	Purpose  string `json:"primaryPackagePurpose,omitempty"`
}

// Ref names a package elsewhere.
type Ref struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

// Relationship says what one element is to another.
type Relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

// Subject is what a document is about.
type Subject struct {
	// ID is its element in the document, such as "SPDXRef-image".
	ID      string
	Name    string
	Digest  digest.Digest
	Purpose string // such as CONTAINER
}

// New is a document about a subject, without packages yet. creator is such as "Tool: NAME".
func New(s Subject, created time.Time, creator string) Document {
	return Document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: idDocument, Name: s.Name,
		Namespace:     "https://berth.dev/spdx/" + s.Name + "/" + s.Digest.Encoded(),
		CreationInfo:  Creation{Created: created, Creators: []string{creator}},
		Packages:      []Package{{ID: s.ID, Name: s.Name, Version: s.Digest.String(), Download: noAssertion, Purpose: s.Purpose}},
		Relationships: []Relationship{{idDocument, "DESCRIBES", s.ID}},
	}
}

// Add adds a package, numbered, which the subject contains or depends on. purl is its
// package URL, "" for none; without a Download nothing is asserted of where it is from.
func (d *Document) Add(p Package, relation, purl string) {
	p.ID = fmt.Sprintf("SPDXRef-package-%d", len(d.Packages))
	p.Download = cmp.Or(p.Download, noAssertion)
	if purl != "" {
		p.Refs = []Ref{{"PACKAGE-MANAGER", "purl", purl}}
	}
	subject := d.Packages[0].ID
	d.Packages = append(d.Packages, p)
	d.Relationships = append(d.Relationships, Relationship{subject, relation, p.ID})
}
