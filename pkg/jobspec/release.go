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
	// Configs are what the app folder says of each component, by digest.
	Configs []ReleaseConfig `json:"configs,omitempty"`
	// Signed are the vendor's statements about this release (package offer). They are no
	// part of what the release brings.
	Signed []capsule.Envelope `json:"signed,omitempty"`
	// Revoked are the vendor's revocations of this release, which are no part of it either.
	Revoked []capsule.Envelope `json:"revoked,omitempty"`
}

// ReleaseConfig is what the app folder says of a component, of the sandbox or of the
// copies of secrets, see Spec.Config.
type ReleaseConfig struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// ReleaseArtifact is the build of one component, or of the sandbox.
type ReleaseArtifact struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Manifest names everything that a release brings by digest. It follows from
// the release alone: anybody with the release computes the same manifest. The
// vendor's key signs its digest (package offer).
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
	// ManifestConfig is what the app folder says of a component or an action.
	ManifestConfig ManifestKind = "config"
	// ManifestSecret and ManifestRole are declarations.
	ManifestSecret ManifestKind = "secret"
	ManifestRole   ManifestKind = "role"
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
		if s.Plugin == "" {
			config, err := configOfAction(s.Action, s.TimeoutSeconds)
			if err != nil {
				return Manifest{}, fmt.Errorf("script %q: %w", s.Action.Name, err)
			}
			m.Items = append(m.Items, config)
		}
	}
	for _, c := range r.Configs {
		m.Items = append(m.Items, ManifestItem{Kind: ManifestConfig, Name: c.Name, Digest: c.Digest})
	}
	for _, d := range r.Secrets {
		digest, err := capsule.DigestOf(d)
		if err != nil {
			return Manifest{}, fmt.Errorf("secret %q: %w", d.Name, err)
		}
		m.Items = append(m.Items, ManifestItem{Kind: ManifestSecret, Name: d.Name, Digest: digest})
	}
	for _, role := range r.Roles {
		role.Name, role.Known = "", false // of one install
		digest, err := capsule.DigestOf(role)
		if err != nil {
			return Manifest{}, fmt.Errorf("role %q: %w", role.Written, err)
		}
		m.Items = append(m.Items, ManifestItem{Kind: ManifestRole, Name: role.Written, Digest: digest})
	}
	slices.SortFunc(m.Items, func(a, b ManifestItem) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest))
	})
	m.Items = slices.Compact(m.Items)
	return m, nil
}

// Digest names the manifest, "sha256:…".
func (m Manifest) Digest() (string, error) { return capsule.DigestOf(m) }

// Is says whether items are those of the manifest with this digest.
func (m Manifest) Is(digest string, items []ManifestItem) bool {
	m.Items = items
	own, err := m.Digest()
	return err == nil && own == digest
}

// SecretsName is the name that a manifest has for the copies of secrets.
const SecretsName = "secrets"

// Config is what the app folder says of what the job is about, as a manifest names it:
// the same for every install. What one install says itself (its inputs, values and
// variables of its own) is no part of it. ok is false for a job about neither a
// component, nor the sandbox, an action or the copies of secrets.
func (s Spec) Config() (item ManifestItem, ok bool, err error) {
	switch {
	case s.Action != nil:
		item, err = configOfAction(*s.Action, s.TimeoutSeconds)
		return item, true, err
	case s.SecretSync != nil:
		item = ManifestItem{Kind: ManifestConfig, Name: SecretsName}
		item.Digest, err = capsule.DigestOf(struct {
			Copies []SecretCopy `json:"copies"`
		}{s.SecretSync.Copies})
		return item, true, err
	case s.Resource == nil || s.Artifact == nil:
		return item, false, nil
	}
	work := s.Work
	if m := work.TerraformModule; m != nil {
		own := *m
		own.InstallVars = ""
		work.TerraformModule = &own
	}
	if c := work.HelmChart; c != nil {
		own := *c
		own.InstallValues, own.RecordsHeld = "", false
		work.HelmChart = &own
	}
	item = ManifestItem{Kind: ManifestConfig, Name: s.Resource.Name}
	item.Digest, err = capsule.DigestOf(struct {
		Kind Kind `json:"kind"`
		Work Work `json:"work"`
	}{s.Kind, work})
	return item, true, err
}

// configOfAction is all of an action but when it runs.
func configOfAction(a Action, timeoutSeconds int) (ManifestItem, error) {
	digest, err := Script{Action: a, TimeoutSeconds: timeoutSeconds}.Digest()
	return ManifestItem{Kind: ManifestConfig, Name: "action/" + a.Name, Digest: digest}, err
}
