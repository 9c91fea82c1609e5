package registry_test

import (
	"testing"
	"bytes"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/registry"
	"encoding/json"
	"fmt"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func BenchmarkProf(b *testing.B) {
	for _, c := range []struct{n, size int}{{200, 4096}, {20, 5<<20}} {
		b.Run(fmt.Sprint(c.n), func(b *testing.B) {
	f := start(b, nil)
	token := f.issue(registry.Grant{OrgID: "org_a", Actions: all})
	l := openLayout(b)
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, Config: ocispec.DescriptorEmptyJSON}
	put := func(mt string, raw []byte) ocispec.Descriptor {
		d := ocispec.Descriptor{MediaType: mt, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
		must(b, l.Push(b.Context(), d, bytes.NewReader(raw)))
		return d
	}
	put("application/vnd.oci.empty.v1+json", []byte("{}"))
	for range c.n {
		m.Layers = append(m.Layers, put("application/octet-stream", randomBytes(c.size)))
	}
	raw, _ := json.Marshal(m)
	d := put(ocispec.MediaTypeImageManifest, raw)
	i := 0
	for b.Loop() {
		i++
		_, err := f.remote(fmt.Sprintf("org_a/shop%d", i), token).Push(b.Context(), l, d.Digest.String(), oci.TransferOptions{})
		must(b, err)
	}
	})
	}
}
