package oci_test

import (
	"archive/tar"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/plugin/container/imagetest"
)

const platform = "linux/" + runtime.GOARCH

func unpackImage(t *testing.T, layout string, limits oci.Limits) (dir string, err error) {
	t.Helper()
	root := value(os.OpenRoot(layout))(t)
	defer root.Close()
	i, err := oci.FindImage(t.Context(), root, platform)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(t.TempDir(), "root")
	return dir, i.Unpack(t.Context(), dir, limits)
}

// Layers are put on top of each other as images want it: a later one replaces, removes
// and hides what earlier ones have.
func TestUnpackImage(t *testing.T) {
	t.Parallel()
	file, link := imagetest.File, imagetest.Link
	layout := t.TempDir()
	image := imagetest.Layout(t, layout, ocispec.ImageConfig{Entrypoint: []string{"/bin/x"}},
		[]imagetest.Entry{
			file("./bin/x", "old"), file("gone", "x"), file("dir/a", "a"), file("dir/sub/b", "b"), link("lib", "usr/lib"), file("usr/lib/so", "so"),
			file("was-a-dir/x", "x"), {Header: tar.Header{Name: "hard", Typeflag: tar.TypeLink, Linkname: "bin/x"}},
			{Header: tar.Header{Name: "setuid", Mode: 0o6755}}, {Header: tar.Header{Name: "plain", Mode: 0o600}, Text: "p"},
			{Header: tar.Header{Name: "dev/sda", Typeflag: tar.TypeBlock}}, link("away", "/etc/passwd"),
		},
		[]imagetest.Entry{
			file("bin/x", "new"), file(".wh.gone", ""), file("dir/c", "c"), file("dir/.wh..wh..opq", ""), file("lib/more", "more"), file("was-a-dir", "now a file"),
		})
	index := imagetest.Index(t, layout, image)
	dir, err := unpackImage(t, layout, oci.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"bin/x": "new", "hard": "old", "dir/c": "c", "usr/lib/so": "so", "usr/lib/more": "more", "was-a-dir": "now a file", "plain": "p",
	} {
		if got := string(value(os.ReadFile(filepath.Join(dir, name)))(t)); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"gone", "dir/a", "dir/sub", "dev/sda", ".wh.gone", "dir/.wh..wh..opq"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	for name, want := range map[string]os.FileMode{"setuid": 0o755, "plain": 0o644, "bin/x": 0o755} {
		if got := value(os.Stat(filepath.Join(dir, name)))(t).Mode(); got != want {
			t.Errorf("%s has mode %s, want %s", name, got, want)
		}
	}
	root := value(os.OpenRoot(layout))(t)
	defer root.Close()
	if i := value(oci.FindImage(t.Context(), root, platform))(t); i.Digest != index || i.Config.Entrypoint[0] != "/bin/x" {
		t.Errorf("found %s, want %s: %+v", i.Digest, index, i.Config)
	}
	if _, err := oci.FindImage(t.Context(), root, "linux/riscv64"); !errors.Is(err, oci.ErrNotFound) || !strings.Contains(err.Error(), "not for linux/riscv64") {
		t.Errorf("a platform that it has not: %v", err)
	}
}

// An image cannot be unpacked to anywhere but its directory, whatever its layers say.
func TestAttackUnpackImage(t *testing.T) {
	t.Parallel()
	file, link := imagetest.File, imagetest.Link
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.MkdirAll(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "mine"), []byte("mine"), 0o600))
	special := func(kind byte) []imagetest.Entry {
		return []imagetest.Entry{{Header: tar.Header{Name: "bin/special", Typeflag: kind}}}
	}
	for name, layers := range map[string][][]imagetest.Entry{
		"a path that climbs":               {{file("../x", "x")}},
		"a path that climbs inside":        {{file("a/../../x", "x")}},
		"through a symlink that climbs":    {{link("a", strings.Repeat("../", 30)+outside), file("a/x", "x")}},
		"through an absolute symlink":      {{link("a", outside), file("a/x", "x")}},
		"the same, in two layers":          {{link("a", outside)}, {file("a/x", "x")}},
		"a chain of symlinks":              {{link("a", "b"), link("b", outside), file("a/x", "x")}},
		"a hard link to what is not in it": {{{Header: tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "../../../" + outside + "/mine"}}}},
		"a hard link through a symlink":    {{link("a", outside), {Header: tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "a/mine"}}}},
		"a hard link to a symlink":         {{link("a", outside+"/mine"), {Header: tar.Header{Name: "h", Typeflag: tar.TypeLink, Linkname: "a"}}}},
		"a removal outside":                {{link("a", outside)}, {file("a/.wh.mine", "")}},
		"a removal of the directory above": {{file("a/.wh...", "")}},
		"a removal of itself":              {{file("a/.wh..", "")}},
		"hiding a directory outside":       {{link("a", outside)}, {file("a/.wh..wh..opq", "")}},
		"a character device":               {special(tar.TypeChar)},
		"a block device":                   {special(tar.TypeBlock)},
		"a pipe":                           {special(tar.TypeFifo)},
		"too many entries":                 {{file("1", ""), file("2", ""), file("3", ""), file("4", ""), file("5", ""), file("6", "")}},
		"too large a file":                 {{file("1", strings.Repeat("x", 2000))}},
		"too much in all layers":           {{file("1", strings.Repeat("x", 900))}, {file("1", strings.Repeat("x", 900))}, {file("1", strings.Repeat("x", 900))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			layout := t.TempDir()
			imagetest.Layout(t, layout, ocispec.ImageConfig{Entrypoint: []string{"/x"}}, layers...)
			dir, err := unpackImage(t, layout, oci.Limits{MaxEntries: 5, MaxFileBytes: 1000, MaxBytes: 2000})
			if !errors.Is(err, oci.ErrUnsafeArchive) {
				t.Errorf("%v, want it refused as unsafe", err)
			}
			if _, err := os.Lstat(dir); err == nil {
				t.Error("the image is there")
			}
		})
	}
	t.Cleanup(func() {
		all, err := os.ReadDir(outside)
		if raw, _ := os.ReadFile(filepath.Join(outside, "mine")); err != nil || len(all) != 1 || string(raw) != "mine" {
			t.Errorf("outside there is %v (%q), %v", all, raw, err)
		}
	})
}

// What is not what its digest says is not unpacked, and neither is what is no image.
func TestUnpackImageVerifies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(t *testing.T, layout string, image digest.Digest)
		want   string
	}{
		{"a layer that was changed", func(t *testing.T, layout string, _ digest.Digest) {
			swap(t, layout, "the layer's text", "another's  text.")
		}, "it is sha256:"},
		{"a config that was changed", func(t *testing.T, layout string, _ digest.Digest) { swap(t, layout, "/entry", "/other") }, "config of image"},
		{"a manifest that was changed", func(t *testing.T, layout string, _ digest.Digest) {
			swap(t, layout, `"schemaVersion":2,"mediaType"`, `"schemaVersion":3,"mediaType"`)
		}, "manifest sha256:"},
		{"a blob that is gone", func(t *testing.T, layout string, image digest.Digest) {
			must(t, os.Remove(filepath.Join(layout, "blobs", "sha256", image.Encoded())))
		}, "not found"},
		{"two images", func(t *testing.T, layout string, _ digest.Digest) {
			path := filepath.Join(layout, "index.json")
			raw := string(value(os.ReadFile(path))(t))
			_, entry, _ := strings.Cut(raw, `"manifests":[`)
			entry, _, _ = strings.Cut(entry, "]")
			must(t, os.WriteFile(path, []byte(strings.Replace(raw, entry, entry+","+entry, 1)), 0o600))
		}, "lists 2 artifacts"},
	} {
		layout := t.TempDir()
		image := imagetest.Layout(t, layout, ocispec.ImageConfig{Entrypoint: []string{"/entry"}}, []imagetest.Entry{imagetest.File("a", "the layer's text")})
		tc.change(t, layout, image)
		if _, err := unpackImage(t, layout, oci.Limits{}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// swap changes a text in the blobs of a layout, of the same length.
func swap(t *testing.T, layout, from, to string) {
	t.Helper()
	for _, path := range value(filepath.Glob(filepath.Join(layout, "blobs", "sha256", "*")))(t) {
		raw := string(value(os.ReadFile(path))(t))
		must(t, os.WriteFile(path, []byte(strings.Replace(raw, from, to, 1)), 0o600))
	}
}

func TestCopyImage(t *testing.T) {
	t.Parallel()
	layout, to := t.TempDir(), filepath.Join(t.TempDir(), "image")
	image := imagetest.Layout(t, layout, ocispec.ImageConfig{Entrypoint: []string{"/entry"}}, []imagetest.Entry{imagetest.File("entry", "x")})
	must(t, os.WriteFile(filepath.Join(layout, "blobs", "sha256", "other"), nil, 0o600))
	root := value(os.OpenRoot(layout))(t)
	defer root.Close()
	must(t, oci.CopyImage(t.Context(), root, image, to))
	if all := value(filepath.Glob(filepath.Join(to, "blobs", "sha256", "*")))(t); len(all) != 3 {
		t.Errorf("the copy has %d blobs, want a manifest, a config and a layer: %v", len(all), all)
	}
	if _, err := unpackImage(t, to, oci.Limits{}); err != nil {
		t.Error(err)
	}
	swap(t, layout, "/entry", "/other")
	if err := oci.CopyImage(t.Context(), root, image, to+"2"); err == nil {
		t.Error("a blob that was changed was copied")
	}
}
