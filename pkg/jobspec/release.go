package jobspec

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/customersecret"
)

// Release is what a release brings to an install, as far as a runner has to
// accept it: the artifacts by digest, the scripts with their whole text. It is
// what a job of KindRelease is about.
type Release struct {
	ID        string            `json:"id"`
	Number    int               `json:"number"`
	Artifacts []ReleaseArtifact `json:"artifacts"`
	Scripts   []Script          `json:"scripts"`
	// Secrets are what the release says of the customer's secrets. The runner makes those
	// that it is to make when it plans the acceptance.
	Secrets []customersecret.Declaration `json:"secrets,omitempty"`
	// Roles are those that only the customer switches on. Their names are rendered.
	Roles []customerrole.Role `json:"roles,omitempty"`
}

// ReleaseArtifact is the build of one component, or of the sandbox.
type ReleaseArtifact struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Manifest names everything that a release brings by digest. It follows from
// the release alone: anybody with the release computes the same manifest. The
// release key is to sign it.
type Manifest struct {
	ReleaseID string         `json:"release_id"`
	Number    int            `json:"number"`
	Items     []ManifestItem `json:"items"` // sorted by kind, name, digest
}

// ManifestKind says what an item of a manifest is.
type ManifestKind string

// The kinds of items.
const (
	ManifestArtifact ManifestKind = "artifact"
	ManifestScript   ManifestKind = "script"
)

// ManifestItem is one thing that a release brings. An action with several
// schedules is several scripts of the same name.
type ManifestItem struct {
	Kind   ManifestKind `json:"kind"`
	Name   string       `json:"name"`
	Digest string       `json:"digest"`
}

// Manifest lists what the release brings. It fails on a script that has no
// canonical form: one with text that is not UTF-8.
func (r Release) Manifest() (Manifest, error) {
	m := Manifest{ReleaseID: r.ID, Number: r.Number, Items: []ManifestItem{}}
	for _, a := range r.Artifacts {
		m.Items = append(m.Items, ManifestItem{Kind: ManifestArtifact, Name: a.Name, Digest: a.Digest})
	}
	for _, s := range r.Scripts {
		digest, err := s.Digest()
		if err != nil {
			return Manifest{}, fmt.Errorf("script %q: %w", s.Action.Name, err)
		}
		m.Items = append(m.Items, ManifestItem{Kind: ManifestScript, Name: s.Action.Name, Digest: digest})
	}
	slices.SortFunc(m.Items, func(a, b ManifestItem) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest))
	})
	m.Items = slices.Compact(m.Items)
	return m, nil
}

// Digest names the manifest, "sha256:…".
func (m Manifest) Digest() (string, error) { return capsule.DigestOf(m) }
