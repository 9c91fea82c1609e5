// Package imagetest makes container images for tests, good ones and hostile ones.
package imagetest

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Entry is a file of a layer. The header's zero values stand for a regular file of
// mode 0755 with the size of Text.
type Entry struct {
	tar.Header
	Text string
}

// File is a regular file.
func File(name, text string) Entry { return Entry{Header: tar.Header{Name: name}, Text: text} }

// Link is a symlink.
func Link(name, to string) Entry {
	return Entry{Header: tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}}
}

// Layout writes an image for this machine's platform to a new layout in dir, and
// returns the digest of its manifest. Each layer is a list of entries.
func Layout(t testing.TB, dir string, config ocispec.ImageConfig, layers ...[]Entry) digest.Digest {
	t.Helper()
	w := writer{t: t, dir: dir}
	c := ocispec.Image{Platform: ocispec.Platform{OS: "linux", Architecture: runtime.GOARCH}, Config: config}
	c.RootFS.Type = "layers"
	m := ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest}
	for _, entries := range layers {
		raw := w.tar(entries)
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, digest.FromBytes(raw))
		m.Layers = append(m.Layers, w.blob(ocispec.MediaTypeImageLayer, raw))
	}
	m.Config = w.json(ocispec.MediaTypeImageConfig, c)
	desc := w.json(ocispec.MediaTypeImageManifest, m)
	w.index(desc)
	return desc.Digest
}

// Index puts an index in front of the image of a layout that Layout wrote, with
// another platform and an attestation next to it, as build tools do.
func Index(t testing.TB, dir string, image digest.Digest) digest.Digest {
	t.Helper()
	w := writer{t: t, dir: dir}
	raw, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", image.Encoded()))
	w.must(err)
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: image, Size: int64(len(raw))}
	with := func(arch, system string) ocispec.Descriptor {
		d := desc
		d.Platform = &ocispec.Platform{Architecture: arch, OS: system}
		return d
	}
	index := w.json(ocispec.MediaTypeImageIndex, ocispec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex,
		Manifests: []ocispec.Descriptor{with("s390x", "linux"), with("unknown", "unknown"), with(runtime.GOARCH, "linux")},
	})
	w.index(index)
	return index.Digest
}

type writer struct {
	t   testing.TB
	dir string
}

func (w writer) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w writer) tar(entries []Entry) []byte {
	w.t.Helper()
	var b bytes.Buffer
	tw := tar.NewWriter(&b)
	for _, e := range entries {
		h := e.Header
		if h.Typeflag == 0 {
			h.Typeflag, h.Size = tar.TypeReg, int64(len(e.Text))
		}
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		w.must(tw.WriteHeader(&h))
		_, err := tw.Write([]byte(e.Text))
		w.must(err)
	}
	w.must(tw.Close())
	return b.Bytes()
}

func (w writer) blob(mediaType string, raw []byte) ocispec.Descriptor {
	w.t.Helper()
	d := ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(raw), Size: int64(len(raw))}
	w.write(filepath.Join("blobs", "sha256", d.Digest.Encoded()), raw)
	return d
}

func (w writer) json(mediaType string, v any) ocispec.Descriptor {
	w.t.Helper()
	raw, err := json.Marshal(v)
	w.must(err)
	return w.blob(mediaType, raw)
}

func (w writer) index(desc ocispec.Descriptor) {
	w.t.Helper()
	raw, err := json.Marshal(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, Manifests: []ocispec.Descriptor{desc}})
	w.must(err)
	w.write(ocispec.ImageIndexFile, raw)
	w.write(ocispec.ImageLayoutFile, []byte(`{"imageLayoutVersion":"1.0.0"}`))
}

func (w writer) write(name string, raw []byte) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, raw, 0o644))
}

// known are the layers of Programs, by the names asked for.
var known sync.Map

// Programs are programs of this machine with the libraries that they need, as a layer.
func Programs(t testing.TB, names ...string) []Entry {
	t.Helper()
	key := strings.Join(names, " ")
	if all, found := known.Load(key); found {
		if all, ok := all.([]Entry); ok {
			return all
		}
	}
	files := map[string]string{} // by their path in the image, the one here
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		files["bin/"+name] = path
		out, err := exec.CommandContext(t.Context(), "ldd", path).Output()
		if err != nil {
			continue // static
		}
		for _, word := range strings.Fields(string(out)) {
			if filepath.IsAbs(word) {
				files[strings.TrimPrefix(word, "/")] = word
			}
		}
	}
	var all []Entry
	for _, name := range slices.Sorted(maps.Keys(files)) {
		raw, err := os.ReadFile(files[name])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, File(name, string(raw)))
	}
	known.Store(key, all)
	return all
}
