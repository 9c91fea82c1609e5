package imagefacts_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/imagefacts"
)

// A store is a layout that a test writes.
type store struct {
	t      *testing.T
	layout *oci.Layout
}

func newStore(t *testing.T) store {
	t.Helper()
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return store{t, layout}
}

func (s store) put(mediaType string, raw []byte) ocispec.Descriptor {
	s.t.Helper()
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	has, err := s.layout.Exists(context.Background(), d)
	if err == nil && !has {
		err = s.layout.Push(context.Background(), d, bytes.NewReader(raw))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s store) putJSON(mediaType string, v any) ocispec.Descriptor {
	s.t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.put(mediaType, raw)
}

// platform is an image for one platform.
func (s store) platform(name string) ocispec.Descriptor {
	return s.putJSON(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		Config: s.put(ocispec.MediaTypeImageConfig, []byte(`{"architecture":"`+name+`"}`)), Layers: []ocispec.Descriptor{s.put(ocispec.MediaTypeImageLayer, []byte(name))},
	})
}

// hang puts a statement about one manifest on another, or on the same.
func (s store) hang(on, about ocispec.Descriptor, predicate string, key ed25519.PrivateKey) {
	s.t.Helper()
	said, err := attest.About("web", about.Digest, predicate, map[string]any{"about": about.Digest.String()})
	if err != nil {
		s.t.Fatal(err)
	}
	bundle, err := attest.Sign(key, said)
	if err != nil {
		s.t.Fatal(err)
	}
	s.putJSON(ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: attest.BundleType,
		Config: s.put(ocispec.MediaTypeEmptyJSON, []byte("{}")), Layers: []ocispec.Descriptor{s.put(attest.BundleType, bundle)},
		Subject: &ocispec.Descriptor{MediaType: on.MediaType, Digest: on.Digest, Size: on.Size},
	})
}

// What rules see of an image is what a key signed that is given; without one a vendor sees
// what hangs there and trusts nothing, and a customer sees nothing.
func TestOf(t *testing.T) {
	t.Parallel()
	good, bad := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)), ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	s := newStore(t)
	amd64, arm64 := s.platform("amd64"), s.platform("arm64")
	index := s.putJSON(ocispec.MediaTypeImageIndex, ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: []ocispec.Descriptor{amd64, arm64}})
	s.hang(index, index, attest.CosignSign, good)
	s.hang(index, amd64, attest.SPDX, good) // about something else than what it hangs on
	s.hang(arm64, arm64, attest.SPDX, good)
	s.hang(amd64, amd64, attest.SPDX, bad)
	other := s.platform("other")
	s.hang(other, other, attest.SPDX, good)

	root, err := os.OpenRoot(s.layout.Dir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	type seen struct {
		Signed bool
		SBOM   string // what it is about
		Said   int
	}
	for _, tc := range []struct {
		name  string
		image ocispec.Descriptor
		keys  imagefacts.Keys
		want  seen
	}{
		{"the key that signed", index, imagefacts.Keys{Keys: []crypto.PublicKey{good.Public()}}, seen{true, arm64.Digest.String(), 2}},
		{"one of two keys", index, imagefacts.Keys{Keys: []crypto.PublicKey{bad.Public(), good.Public()}}, seen{true, amd64.Digest.String(), 3}},
		{"another key", index, imagefacts.Keys{Keys: []crypto.PublicKey{bad.Public()}, Unsigned: true}, seen{false, amd64.Digest.String(), 1}},
		{"no key, the vendor", index, imagefacts.Keys{Unsigned: true}, seen{false, amd64.Digest.String(), 3}},
		{"no key, the customer", index, imagefacts.Keys{}, seen{}},
		{"an image without platforms", other, imagefacts.Keys{Keys: []crypto.PublicKey{good.Public()}}, seen{false, other.Digest.String(), 1}},
	} {
		got, err := imagefacts.Of(t.Context(), imagefacts.In(root), tc.image.Digest, tc.keys)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		var sbom struct {
			About string `json:"about"`
		}
		if got.SBOM != nil {
			if err := json.Unmarshal(got.SBOM, &sbom); err != nil {
				t.Errorf("%s: %v", tc.name, err)
			}
		}
		if diff := cmp.Diff(tc.want, seen{got.Signed, sbom.About, len(got.Attestations)}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if _, err := imagefacts.Of(t.Context(), imagefacts.In(root), digest.FromString("nothing"), imagefacts.Keys{}); err == nil {
		t.Error("an image that is not there is known")
	}
}

func TestParseKeys(t *testing.T) {
	t.Parallel()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	got, err := imagefacts.ParseKeys([]string{capsule.EncodePublicKey(key)})
	if err != nil || !got.Unsigned || len(got.Keys) != 1 || !key.Equal(got.Keys[0]) {
		t.Errorf("a machine's key: %+v, %v", got, err)
	}
	if _, err := imagefacts.ParseKeys([]string{"nonsense"}); err == nil {
		t.Error("nonsense is a key")
	}
}
