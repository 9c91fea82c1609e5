// Package imagefacts says what is known of an image besides its layers, as rules see it: who
// signed it, and which statements hang on it and on its platforms. No certificate and no log
// counts, only keys.
package imagefacts

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"os"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/policy"
)

// Keys are the public keys that signatures of an image count from.
type Keys struct {
	Keys []crypto.PublicKey
	// Unsigned: without any key every statement is shown as it hangs there, and none trusted.
	Unsigned bool
}

// ParseKeys reads keys as orders name them: in PEM, or as package capsule writes them.
func ParseKeys(texts []string) (Keys, error) {
	k := Keys{Unsigned: true}
	for _, text := range texts {
		var key crypto.PublicKey
		key, err := attest.ParseKey(text)
		if err != nil {
			if key, err = capsule.ParsePublicKey(text); err != nil {
				return Keys{}, errors.New("a key for images is neither PEM nor Ed25519 in base64")
			}
		}
		k.Keys = append(k.Keys, key)
	}
	return k, nil
}

// Source is a place with images and what refers to them: oci.Remote, or In.
type Source interface {
	Hanging(ctx context.Context, image digest.Digest) (manifest []byte, hung []oci.Hanging, err error)
	HangingOnParts(ctx context.Context, image digest.Digest) ([]oci.HangingOn, error)
}

// In is an image layout.
func In(layout *os.Root) Source { return folder{layout} }

type folder struct{ layout *os.Root }

func (f folder) Hanging(ctx context.Context, image digest.Digest) ([]byte, []oci.Hanging, error) {
	return oci.HangingIn(ctx, f.layout, image)
}

func (f folder) HangingOnParts(ctx context.Context, image digest.Digest) ([]oci.HangingOn, error) {
	return oci.HangingOnPartsIn(ctx, f.layout, image)
}

// Of reads what a place has of an image.
func Of(ctx context.Context, from Source, image digest.Digest, keys Keys) (policy.ImageMetadata, error) {
	found, err := Read(ctx, from, image)
	return found.By(keys), err
}

// Image is what a place has of an image.
type Image struct {
	manifest []byte
	hung     []oci.HangingOn // on the image, then on its platforms
}

// Read reads it, once for all who bring keys.
func Read(ctx context.Context, from Source, image digest.Digest) (Image, error) {
	manifest, hung, err := from.Hanging(ctx, image)
	if err != nil {
		return Image{}, err
	}
	parts, err := from.HangingOnParts(ctx, image)
	if err != nil {
		return Image{}, err
	}
	return Image{manifest, append([]oci.HangingOn{{Subject: image, Hung: hung}}, parts...)}, nil
}

// By is what keys make of it.
func (i Image) By(keys Keys) policy.ImageMetadata {
	if len(i.hung) == 0 || len(keys.Keys) == 0 && !keys.Unsigned {
		return policy.ImageMetadata{}
	}
	image := i.hung[0]
	signed := len(keys.Keys) > 0 && attest.Signed(keys.Keys, image.Subject, i.manifest, image.Hung) == nil
	var said []attest.Said
	for _, on := range i.hung {
		said = append(said, attest.Statements(keys.Keys, on.Subject, on.Hung)...)
	}
	return Metadata(signed, said)
}

// billsOfMaterials are the predicate types of documents that list what is in an image.
var billsOfMaterials = []string{attest.SPDX, "https://cyclonedx.org/bom"}

// Metadata is what rules see of statements.
func Metadata(signed bool, said []attest.Said) policy.ImageMetadata {
	m := policy.ImageMetadata{Signed: signed}
	for _, s := range said {
		m.Attestations = append(m.Attestations, json.RawMessage(s.Raw))
		if m.SBOM == nil && slices.Contains(billsOfMaterials, s.Statement.PredicateType) {
			m.SBOM = s.Statement.Predicate
		}
	}
	return m
}
