// Package attest is what Berth says of the artifacts that it builds, for programs of
// others: statements of in-toto (v1) with SLSA's provenance (v1) or an SPDX document (2.3),
// signed by the key of the machine that built, as bundles of sigstore that hang on the
// artifact in its registry.
//
//	artifact ◀──subject── manifest, type BundleType
//	                      └─ layer: bundle {publicKey hint, DSSE {in-toto statement}}
//
// The package makes, reads and verifies them. Where they are pushed is up to the agent.
// Which key is the right one, nobody here decides: who verifies brings it.
package attest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest/spdx"
)

// Types of predicates and of what they are in.
const (
	SLSA = "https://slsa.dev/provenance/v1"
	SPDX = "https://spdx.dev/Document"

	// StatementType is the payload of the envelope, and the layer of one that nobody signed.
	StatementType = "application/vnd.in-toto+json"

	statementV1 = "https://in-toto.io/Statement/v1"
)

// MaxBytes bounds a statement and the bundle around it.
const MaxBytes = 64 << 20

// Resource is a resource descriptor of in-toto: something that a build worked from, or made.
type Resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// Statement says something about artifacts.
type Statement struct {
	Type          string          `json:"_type"`
	Subject       []Resource      `json:"subject"`
	PredicateType string          `json:"predicateType"`
	Predicate     json.RawMessage `json:"predicate"`
}

// About is a statement about one artifact.
func About(name string, artifact digest.Digest, predicateType string, predicate any) (Statement, error) {
	raw, err := Encode(predicate)
	if err != nil {
		return Statement{}, fmt.Errorf("statement about %s: %w", artifact, err)
	}
	return Statement{
		Type: statementV1, Subject: []Resource{{Name: name, Digest: DigestSet(artifact)}}, PredicateType: predicateType, Predicate: raw,
	}, nil
}

// DigestSet is a digest as in-toto writes it.
func DigestSet(d digest.Digest) map[string]string {
	return map[string]string{d.Algorithm().String(): d.Encoded()}
}

// Names says whether the statement is about an artifact.
func (s Statement) Names(artifact digest.Digest) bool {
	for _, subject := range s.Subject {
		if subject.Digest[artifact.Algorithm().String()] == artifact.Encoded() {
			return true
		}
	}
	return false
}

// ReadStatement reads a statement and refuses what is none.
func ReadStatement(raw []byte) (Statement, error) {
	var s Statement
	if len(raw) > MaxBytes {
		return s, fmt.Errorf("a statement of %d bytes, at most %d are read", len(raw), MaxBytes)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return s, fmt.Errorf("it is no statement of in-toto: %w", err)
	}
	if s.Type != statementV1 && s.Type != "https://in-toto.io/Statement/v0.1" || s.PredicateType == "" {
		return s, errors.New("it is no statement of in-toto")
	}
	return s, nil
}

// Provenance is SLSA's, as far as it is filled in.
type Provenance struct {
	BuildDefinition struct {
		BuildType            string         `json:"buildType"`
		ExternalParameters   map[string]any `json:"externalParameters"`
		ResolvedDependencies []Resource     `json:"resolvedDependencies,omitempty"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID      string            `json:"id"`
			Version map[string]string `json:"version,omitempty"`
		} `json:"builder"`
		Metadata struct {
			InvocationID string    `json:"invocationId"`
			StartedOn    time.Time `json:"startedOn"`
			FinishedOn   time.Time `json:"finishedOn"`
		} `json:"metadata"`
	} `json:"runDetails"`
}

// BuilderID is the builder of an org's artifacts.
func BuilderID(orgID string) string { return "berth/" + orgID }

// Package is something that an artifact contains, or that it names and fetches when it is
// deployed.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	// PURL is its package URL, "" where there is no type for it.
	PURL string `json:"purl,omitempty"`
	// From is where it comes from, an address without credentials.
	From string `json:"from,omitempty"`
	// Purpose is SPDX's: CONTAINER, LIBRARY, APPLICATION.
	Purpose string `json:"purpose,omitempty"`
	// Named: the artifact names it and does not contain it.
	Named bool `json:"named,omitempty"`
}

// Contents are the packages of an artifact.
type Contents struct {
	Packages []Package `json:"packages"`
	// Comment says what is listed and what cannot be known.
	Comment string `json:"comment"`
}

// Document is the SPDX document of an artifact. It is the same for the same artifact; its
// time is that of the build that made it first here.
func (c Contents) Document(name string, artifact digest.Digest, created time.Time) any {
	d := spdx.New(spdx.Subject{ID: "SPDXRef-artifact", Name: name, Digest: artifact, Purpose: "ARCHIVE"}, created.UTC().Truncate(time.Second), "Tool: berth-runner")
	d.Comment = c.Comment
	for _, p := range c.Packages {
		relation := spdx.Contains
		if p.Named {
			relation = spdx.DependsOn
		}
		d.Add(spdx.Package{Name: p.Name, Version: p.Version, Download: p.From, Purpose: p.Purpose}, relation, p.PURL)
	}
	return d
}

// Encode writes JSON as people read it: & and < stay.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
