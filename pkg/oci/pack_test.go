package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content/memory"

	"github.com/berth-dev/berth/pkg/oci"
)

// files describes a tree: "dir/" is a directory, a value "-> x" a symlink, a
// leading "#!" makes a file executable.
type files map[string]string

func (f files) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range f {
		file := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		switch target, isLink := strings.CutPrefix(body, "-> "); {
		case strings.HasSuffix(name, "/"):
			must(t, os.MkdirAll(file, 0o755))
		case isLink:
			must(t, os.Symlink(target, file))
		case strings.HasPrefix(body, "#!"):
			must(t, os.WriteFile(file, []byte(body), 0o755))
		default:
			must(t, os.WriteFile(file, []byte(body), 0o644))
		}
	}
	return dir
}

// readTree is the reverse of write.
func readTree(t testing.TB, dir string) files {
	t.Helper()
	got := files{}
	must(t, filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, _ := filepath.Rel(dir, file)
		switch {
		case entry.IsDir():
			got[name+"/"] = ""
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(file)
			got[name] = "-> " + target
			return err
		default:
			raw, err := os.ReadFile(file)
			got[name] = string(raw)
			return err
		}
		return nil
	}))
	return got
}

var module = files{
	"main.tf":          `resource "terraform_data" "a" {}`,
	"scripts/check.sh": "#!/bin/sh\nexit 0\n",
	"scripts/latest":   "-> check.sh",
	"modules/":         "",
}

func packDir(t *testing.T, dir string) error {
	t.Helper()
	root := value(os.OpenRoot(dir))(t)
	defer root.Close()
	return oci.PackRoot(t.Context(), io.Discard, root, nil)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func value[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

func openLayout(t testing.TB) *oci.Layout {
	t.Helper()
	return value(oci.Open(t.TempDir()))(t)
}

func TestPackIsDeterministic(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	in := oci.PackInput{Kind: oci.KindTerraformModule, Annotations: map[string]string{
		oci.AnnotationTitle: "network", oci.AnnotationSource: "file:///repo", oci.AnnotationRevision: "0123abc",
	}}

	in.Dir = module.write(t)
	first := value(oci.Pack(ctx, openLayout(t), in))(t)

	// The same tree elsewhere: other times, other modes, a .git next to it.
	in.Dir = module.write(t)
	must(t, os.Chtimes(filepath.Join(in.Dir, "main.tf"), time.Unix(1, 0), time.Unix(1, 0)))
	must(t, os.Chmod(filepath.Join(in.Dir, "main.tf"), 0o600))
	must(t, os.Chmod(filepath.Join(in.Dir, "scripts"), 0o700))
	must(t, os.MkdirAll(filepath.Join(in.Dir, ".git", "logs"), 0o755))
	second := value(oci.Pack(ctx, memory.New(), in))(t)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("descriptors of equal trees differ (-first +second):\n%s", diff)
	}

	// The same tree as somebody's tar, in another order.
	in.Archive, in.Dir = bytes.NewReader(archive(t,
		&tar.Header{Name: "pax_global_header", Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "0123abc"}},
		&tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o700},
		&tar.Header{Name: "./scripts/latest", Typeflag: tar.TypeSymlink, Linkname: "check.sh"},
		&tar.Header{Name: "./scripts/check.sh", Typeflag: tar.TypeReg, Mode: 0o4755, PAXRecords: bodyOf(module["scripts/check.sh"])},
		&tar.Header{Name: "./modules/", Typeflag: tar.TypeDir, Mode: 0o777, Uid: 1000, Uname: "me"},
		&tar.Header{Name: "./main.tf", Typeflag: tar.TypeReg, Mode: 0o666, ModTime: time.Now(), PAXRecords: bodyOf(module["main.tf"])},
	)), ""
	third := value(oci.Pack(ctx, openLayout(t), in))(t)
	if diff := cmp.Diff(first, third); diff != "" {
		t.Errorf("descriptors of directory and archive differ (-dir +archive):\n%s", diff)
	}
}

func TestPackDescribesItself(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	desc := value(oci.Pack(t.Context(), l, oci.PackInput{
		Kind: oci.KindSource, Dir: module.write(t), Annotations: map[string]string{oci.AnnotationTitle: "shop"},
		Exclude: func(path string) bool { return path == "scripts" },
	}))(t)
	got := value(oci.Inspect(t.Context(), l, desc.Digest))(t)
	if len(got.Layers) != 1 {
		t.Fatalf("layers: got %d, want 1", len(got.Layers))
	}
	want := oci.Artifact{
		Digest: desc.Digest, ArtifactType: "application/vnd.berth.source.v1", Kind: oci.KindSource,
		Annotations: map[string]string{"org.opencontainers.image.title": "shop"},
		Layers:      []ocispec.Descriptor{{MediaType: "application/vnd.oci.image.layer.v1.tar+gzip", Digest: got.Layers[0].Digest, Size: got.Layers[0].Size, Annotations: map[string]string{"org.opencontainers.image.title": "shop"}}},
		Size:        desc.Size + 2 + got.Layers[0].Size,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("artifact (-want +got):\n%s", diff)
	}
	dir := filepath.Join(t.TempDir(), "out")
	must(t, l.Unpack(t.Context(), desc.Digest, dir, oci.Limits{}))
	if diff := cmp.Diff(files{"main.tf": module["main.tf"], "modules/": ""}, readTree(t, dir)); diff != "" {
		t.Errorf("excluded directory is packed (-want +got):\n%s", diff)
	}
}

func TestPackRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		tree files
		want string
	}{
		{"absolute symlink", files{"a": "-> /etc/passwd"}, "a: symlink"},
		{"symlink to the parent", files{"d/a": "-> ../../x"}, "d/a: symlink"},
		{"symlink that climbs from another", files{"a/b/up": "-> ../..", "x": "-> a/b/up/../.."}, "x: symlink"},
		{"symlink that climbs from another, deep enough by count", files{"d/e/up": "-> ../..", "d/e/x": "-> up/../.."}, "d/e/x: symlink"},
		{"symlink in a directory, climbing too far", files{"d/": "", "d/up": "-> ../.."}, "d/up: symlink"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := packDir(t, tt.tree.write(t))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error that names %q", err, tt.want)
			}
		})
	}

	t.Run("socket", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		ln := value(net.Listen("unix", filepath.Join(dir, "agent.sock")))(t)
		defer ln.Close()
		err := packDir(t, dir)
		if err == nil || !strings.Contains(err.Error(), "agent.sock") {
			t.Errorf("got %v, want an error that names the socket", err)
		}
	})

	for name, in := range map[string]oci.PackInput{
		"kind with a slash":     {Kind: "a/b", Dir: "."},
		"neither dir nor input": {Kind: oci.KindSource},
		"both":                  {Kind: oci.KindSource, Dir: ".", Archive: strings.NewReader("")},
	} {
		if _, err := oci.Pack(t.Context(), openLayout(t), in); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// archive makes a tar.gz of headers; see bodyOf for contents.
func archive(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	for _, h := range headers {
		body := h.PAXRecords["BERTH.body"]
		if h.Typeflag != tar.TypeXGlobalHeader {
			h.PAXRecords, h.Size = nil, int64(len(body))
		}
		must(t, tw.WriteHeader(h))
		_, err := io.WriteString(tw, body)
		must(t, err)
	}
	must(t, tw.Close())
	must(t, zw.Close())
	return out.Bytes()
}

func bodyOf(s string) map[string]string { return map[string]string{"BERTH.body": s} }

func TestPackRefusesNamesThatDifferInCase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"README", "readme"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) < 2 { // never on Linux
		t.Skip("this file system does not tell them apart either")
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	err = oci.PackRoot(t.Context(), io.Discard, root, nil)
	if err == nil || !strings.Contains(err.Error(), "in case only") {
		t.Errorf("packed: %v", err)
	}
}
