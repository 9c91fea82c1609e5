package buildkit

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// file is one of a layer, in its order.
type file struct{ name, text string }

func layerOf(t *testing.T, l layout, files []file) ocispec.Descriptor {
	t.Helper()
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	w := tar.NewWriter(zip)
	for _, f := range files {
		mode := int64(0o644)
		if strings.HasPrefix(f.text, "\x7fELF") {
			mode = 0o755
		}
		if err := w.WriteHeader(&tar.Header{Name: f.name, Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(f.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := l.put(ocispec.MediaTypeImageLayerGzip, packed.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const dpkg = "Package: libc6\nStatus: install ok installed\nArchitecture: amd64\nVersion: 2.36-9+deb12u14\n\nPackage: gone\nStatus: deinstall ok config-files\nArchitecture: amd64\nVersion: 1\n"

// Packages are those of the image as it is in the end: what a layer removes or
// replaces counts no more.
func TestPackages(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		layers [][]file
		want   []string // package URLs, or beginnings of them
		lacks  []string
	}{
		{"Debian", [][]file{{{"var/lib/dpkg/status", dpkg}}}, []string{"pkg:deb/libc6@2.36-9%2Bdeb12u14?arch=amd64"}, nil},
		{"Debian without dpkg", [][]file{{{"./var/lib/dpkg/status.d/base", "Package: base-files\nArchitecture: all\nVersion: 12\n"}, {"var/lib/dpkg/status.d/base.md5sums", "x  y\n"}}},
			[]string{"pkg:deb/base-files@12?arch=all"}, nil},
		{"Alpine", [][]file{{{"lib/apk/db/installed", "C:Q1\nP:musl\nV:1.2.5-r1\nA:x86_64\nD:so:x\n\nP:zlib\nV:1.3\nA:x86_64\n"}}},
			[]string{"pkg:apk/musl@1.2.5-r1?arch=x86_64", "pkg:apk/zlib@1.3?arch=x86_64"}, nil},
		{"replaced", [][]file{{{"var/lib/dpkg/status", dpkg}}, {{"var/lib/dpkg/status", "Package: new\nVersion: 2\n"}}}, []string{"pkg:deb/new@2"}, nil},
		{"removed", [][]file{{{"var/lib/dpkg/status", dpkg}}, {{"var/lib/dpkg/.wh.status", ""}}}, nil, nil},
		{"removed with its folder", [][]file{{{"var/lib/dpkg/status", dpkg}}, {{"var/lib/.wh.dpkg", ""}}}, nil, nil},
		{"a folder that hides what was below", [][]file{{{"var/lib/dpkg/status", dpkg}}, {{"var/lib/dpkg/status", "Package: new\nVersion: 2\n"}, {"var/lib/dpkg/.wh..wh..opq", ""}}}, []string{"pkg:deb/new@2"}, nil},
		{"what is not read is named", [][]file{{{"var/lib/rpm/rpmdb.sqlite", "x"}, {"app/node_modules/left-pad/package.json", "{}"}, {"usr/lib/python3/x-1.dist-info/METADATA", "x"}}}, nil, []string{"Python", "RPM", "npm"}},
		{"a program that is none of Go's", [][]file{{{"bin/a", "\x7fELF nothing"}}}, nil, nil},
		{"a program of Go", [][]file{{{"bin/a", string(program)}}}, []string{"pkg:golang/"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := layout(t.TempDir())
			if err := os.MkdirAll(filepath.Join(string(l), "blobs/sha256"), 0o700); err != nil {
				t.Fatal(err)
			}
			manifest := ocispec.Manifest{}
			for _, files := range tt.layers {
				manifest.Layers = append(manifest.Layers, layerOf(t, l, files))
			}
			d := putJSON(t, l, manifest)
			found, err := l.packages(d)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range found.sorted() {
				got = append(got, p.purl())
			}
			if tt.name == "a program of Go" {
				if !slices.ContainsFunc(got, func(u string) bool { return strings.HasPrefix(u, "pkg:golang/stdlib@1.") }) || len(got) < 2 {
					t.Errorf("packages %q", got)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.lacks, found.missing()); diff != "" {
				t.Errorf("named as missing (-want +got):\n%s", diff)
			}
			document := found.document(Origin{Name: "shop/web"}, d.Digest)
			if strings.Contains(document.Comment, "Incomplete") != (tt.lacks != nil) || len(document.Packages) != 1+len(tt.want) {
				t.Errorf("document %+v", document)
			}
		})
	}
}

func putJSON(t *testing.T, l layout, v any) ocispec.Descriptor {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.put(ocispec.MediaTypeImageManifest, raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
