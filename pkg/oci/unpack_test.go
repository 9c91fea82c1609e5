package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"

	"github.com/berth-dev/berth/pkg/oci"
)

// hostile stores archives as the layers of an artifact, as somebody with a
// registry could, without passing through Pack.
func hostile(t testing.TB, l *oci.Layout, archives ...[]byte) digest.Digest {
	t.Helper()
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest,
		ArtifactType: oci.KindSource.ArtifactType(), Config: ocispec.DescriptorEmptyJSON,
	}
	for _, raw := range archives {
		m.Layers = append(m.Layers, value(oras.PushBytes(t.Context(), l, ocispec.MediaTypeImageLayerGzip, raw))(t))
	}
	return pushManifest(t, l, m)
}

func pushManifest(t testing.TB, dst content.Pusher, m ocispec.Manifest) digest.Digest {
	t.Helper()
	if err := dst.Push(t.Context(), m.Config, bytes.NewReader(m.Config.Data)); err != nil && !strings.Contains(err.Error(), "already exists") {
		t.Fatal(err)
	}
	raw := encode(t, m)
	desc := content.NewDescriptorFromBytes(m.MediaType, raw)
	must(t, dst.Push(t.Context(), desc, bytes.NewReader(raw)))
	return desc.Digest
}

func TestUnpackRestoresTheTree(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	desc := value(oci.Pack(t.Context(), l, oci.PackInput{Kind: oci.KindSource, Dir: module.write(t)}))(t)
	dir := t.TempDir() // empty is as good as missing
	must(t, l.Unpack(t.Context(), desc.Digest, dir, oci.Limits{}))

	want := files{"scripts/": ""}
	for name, body := range module {
		want[name] = body
	}
	if diff := cmp.Diff(want, readTree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	info := value(os.Stat(filepath.Join(dir, "scripts/check.sh")))(t)
	if info.Mode()&0o100 == 0 {
		t.Errorf("mode of the script: got %s, want executable", info.Mode())
	}
	if err := l.Unpack(t.Context(), desc.Digest, dir, oci.Limits{}); err == nil {
		t.Error("unpacked over a directory that is not empty")
	}
}

func TestUnpackMergesLayers(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	dgst := hostile(t, l,
		archive(t, &tar.Header{Name: "d/", Typeflag: tar.TypeDir}, &tar.Header{Name: "d/a", PAXRecords: bodyOf("1")}),
		archive(t, &tar.Header{Name: "d/", Typeflag: tar.TypeDir}, &tar.Header{Name: "d/b", PAXRecords: bodyOf("2")}),
	)
	dir := filepath.Join(t.TempDir(), "out")
	must(t, l.Unpack(t.Context(), dgst, dir, oci.Limits{}))
	if diff := cmp.Diff(files{"d/": "", "d/a": "1", "d/b": "2"}, readTree(t, dir)); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestUnpackRefusesAttacks(t *testing.T) {
	t.Parallel()
	file := func(name, body string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, PAXRecords: bodyOf(body)}
	}
	symlink := func(name, target string) *tar.Header {
		return &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	zeros := strings.Repeat("\x00", 20<<20)
	tests := []struct {
		name    string
		entries []*tar.Header
		limits  oci.Limits
	}{
		{name: "parent directory", entries: []*tar.Header{file("../evil", "x")}},
		{name: "parent inside the path", entries: []*tar.Header{file("a/../../evil", "x")}},
		{name: "parent that stays inside", entries: []*tar.Header{file("a/../b", "x")}},
		{name: "absolute path", entries: []*tar.Header{file("/tmp/evil", "x")}},
		{name: "directory called dot dot", entries: []*tar.Header{{Name: "../", Typeflag: tar.TypeDir}}},
		{name: "backslash", entries: []*tar.Header{file(`a\..\..\evil`, "x")}},
		{name: "double slash", entries: []*tar.Header{file("a//b", "x")}},
		{name: "not UTF-8", entries: []*tar.Header{{Name: "a\xff", Format: tar.FormatGNU}}},
		{name: "too deep", entries: []*tar.Header{file(strings.Repeat("d/", 200)+"f", "x")}},
		{name: "absolute symlink", entries: []*tar.Header{symlink("a", "/etc")}},
		{name: "symlink out", entries: []*tar.Header{symlink("a", "..")}},
		{name: "symlink out of a directory", entries: []*tar.Header{symlink("d/a", "../../x")}},
		{name: "symlink through another", entries: []*tar.Header{symlink("a/b/up", "../.."), symlink("x", "a/b/up/../..")}},
		{name: "symlink through another, deep enough by count", entries: []*tar.Header{symlink("d/e/up", "../.."), symlink("d/e/x", "up/../..")}},
		{name: "empty symlink", entries: []*tar.Header{symlink("a", "")}},
		{name: "file through a symlink", entries: []*tar.Header{symlink("a", "b"), {Name: "b/", Typeflag: tar.TypeDir}, file("a/f", "x")}},
		{name: "symlink in place of a directory", entries: []*tar.Header{file("a/f", "x"), symlink("a", ".")}},
		{name: "file twice", entries: []*tar.Header{file("a", "x"), file("a", "y")}},
		{name: "file that differs in case", entries: []*tar.Header{file("README", "x"), file("readme", "y")}},
		{name: "directory that differs in case", entries: []*tar.Header{file("Lib/a", "x"), file("lib/b", "y")}},
		{name: "file that folds to another letter", entries: []*tar.Header{file("\u212a", "x"), file("k", "y")}}, // the Kelvin sign
		{name: "symlink that differs in case from a directory", entries: []*tar.Header{file("A/f", "x"), symlink("a", "b")}},
		{name: "file below a file", entries: []*tar.Header{file("a", "x"), file("a/b", "y")}},
		{name: "hard link", entries: []*tar.Header{{Name: "a", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}},
		{name: "character device", entries: []*tar.Header{{Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}},
		{name: "block device", entries: []*tar.Header{{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8}}},
		{name: "pipe", entries: []*tar.Header{{Name: "pipe", Typeflag: tar.TypeFifo}}},
		{name: "large file", entries: []*tar.Header{file("a", "12345")}, limits: oci.Limits{MaxFileBytes: 4}},
		{name: "large tree", entries: []*tar.Header{file("a", "123"), file("b", "123")}, limits: oci.Limits{MaxBytes: 5}},
		{name: "many entries", entries: []*tar.Header{file("a", ""), file("b", ""), file("c", "")}, limits: oci.Limits{MaxEntries: 2}},
		{name: "implied directories count", entries: []*tar.Header{file("a/b/c/d", "")}, limits: oci.Limits{MaxEntries: 3}},
		{name: "gzip bomb", entries: []*tar.Header{file("a", zeros)}},
		{name: "bomb of entries that are skipped", entries: skipped(40 << 20), limits: oci.Limits{MaxBytes: 16 << 20, MaxRatio: 1 << 30}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := openLayout(t)
			dgst := hostile(t, l, archive(t, tt.entries...))
			outer := t.TempDir()
			dir := filepath.Join(outer, "one", "two")
			err := l.Unpack(t.Context(), dgst, dir, tt.limits)
			if !errors.Is(err, oci.ErrUnsafeArchive) {
				t.Errorf("got %v, want ErrUnsafeArchive", err)
			}
			if diff := cmp.Diff(files{"one/": ""}, readTree(t, outer)); diff != "" {
				t.Errorf("something was left behind (-want +got):\n%s", diff)
			}
		})
	}
}

// skipped has n bytes of extended headers, which are no file's content.
func skipped(n int) []*tar.Header {
	var all []*tar.Header
	for range n / (900 << 10) {
		all = append(all, &tar.Header{
			Name: "pax_global_header", Typeflag: tar.TypeXGlobalHeader,
			PAXRecords: map[string]string{"comment": strings.Repeat("x", 900<<10)},
		})
	}
	return all
}

func TestUnpackStopsABombEarly(t *testing.T) {
	t.Parallel()
	// 8 GiB of zeros in 8 MiB: with all of it unpacked the test would time out
	// or fill the disk.
	pr, pw := io.Pipe()
	go func() {
		zw, _ := gzip.NewWriterLevel(pw, gzip.BestSpeed)
		tw := tar.NewWriter(zw)
		err := tw.WriteHeader(&tar.Header{Name: "zeros", Size: 8 << 30, Format: tar.FormatGNU})
		for err == nil {
			_, err = tw.Write(make([]byte, 1<<20))
		}
		pw.CloseWithError(err)
	}()
	_, err := oci.Pack(t.Context(), openLayout(t), oci.PackInput{
		Kind: oci.KindSource, Archive: pr, Limits: oci.Limits{MaxBytes: 1 << 40, MaxFileBytes: 1 << 40},
	})
	pr.Close()
	if !errors.Is(err, oci.ErrUnsafeArchive) || !strings.Contains(fmt.Sprint(err), "times its size") {
		t.Errorf("got %v, want the ratio refused", err)
	}
}

func TestUnpackVerifies(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	desc := value(oci.Pack(t.Context(), l, oci.PackInput{Kind: oci.KindSource, Dir: module.write(t), Annotations: map[string]string{oci.AnnotationTitle: "shop"}}))(t)
	layer := value(oci.Inspect(t.Context(), l, desc.Digest))(t).Layers[0]
	// A well-formed archive of another tree in its place.
	other := archive(t, &tar.Header{Name: "main.tf", PAXRecords: bodyOf("evil")})
	replaceBlob(t, l, layer.Digest, other)

	dir := filepath.Join(t.TempDir(), "out")
	err := l.Unpack(t.Context(), desc.Digest, dir, oci.Limits{})
	var corrupt *oci.CorruptError
	if !errors.As(err, &corrupt) {
		t.Fatalf("got %v, want a CorruptError", err)
	}
	want := []oci.BadBlob{{
		Digest: layer.Digest, MediaType: layer.MediaType, Title: "shop",
		Problem: "is " + digest.FromBytes(other).String() + " now",
	}}
	if diff := cmp.Diff(want, corrupt.Blobs); diff != "" {
		t.Errorf("blobs (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the changed tree was unpacked: %v", err)
	}
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	desc := value(oci.Pack(t.Context(), l, oci.PackInput{Kind: oci.KindSource, Dir: module.write(t)}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Unpack(ctx, desc.Digest, filepath.Join(t.TempDir(), "out"), oci.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
