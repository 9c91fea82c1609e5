package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/berth-dev/berth/dev/image"
)

// example is an image of one real, small executable.
var example = recipe{Name: "team-example", Title: "Example", Description: "For a test", Executables: []string{"version"}}

// executables builds the example's executable for two architectures.
func executables(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=",
			"-o", filepath.Join(dir, arch, "version"), "./testdata/version")
		cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return dir
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func TestMake(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	o := options{
		executables: executables(t), version: "1.4.0+dirty", revision: "abcdef", created: time.Unix(1_700_000_000, 0).UTC(),
		arches: []string{"amd64", "arm64"}, out: t.TempDir(), push: host + "/team",
		license: "../../LICENSE", licenses: image.Licenses{Modules: goEnv(t, "GOMODCACHE"), GoRoot: goEnv(t, "GOROOT")},
	}
	digest, err := o.make(t.Context(), example)
	if err != nil {
		t.Fatal(err)
	}

	other := o
	other.out, other.push = filepath.Join(t.TempDir(), "another", "place"), ""
	again, err := other.make(t.Context(), example)
	if err != nil || again != digest {
		t.Errorf("the same files again: got %s, %v; want %s", again, err, digest)
	}
	if diff := cmp.Diff(filesOf(t, o.out), filesOf(t, other.out)); diff != "" {
		t.Errorf("the two layouts (-first +second):\n%s", diff)
	}
	other.created = o.created.Add(time.Second)
	if later, err := other.make(t.Context(), example); err != nil || later == digest {
		t.Errorf("of another commit: got %s, %v; want another digest", later, err)
	}

	// It says of itself what it should, and is found out when it does not.
	if err := checkOne(t.Context(), filepath.Join(o.out, example.Name), example, nil); err != nil {
		t.Errorf("check: %v", err)
	}
	more := example
	more.Executables = []string{"version", "other"}
	if err := checkOne(t.Context(), filepath.Join(o.out, example.Name), more, nil); err == nil || !strings.Contains(err.Error(), "its SBOM does not name other") {
		t.Errorf("check of an image with another SBOM: %v", err)
	}

	// An image that is called like its executable names both.
	twin := example
	twin.Name = "version"
	if _, err := other.make(t.Context(), twin); err != nil {
		t.Fatal(err)
	}
	if err := checkOne(t.Context(), filepath.Join(other.out, twin.Name), twin, nil); err != nil {
		t.Errorf("check of an image that is called like its executable: %v", err)
	}

	repo, err := remote.NewRepository(host + "/team/team-example")
	if err != nil {
		t.Fatal(err)
	}
	repo.PlainHTTP = true
	index, err := repo.Resolve(t.Context(), "1.4.0-dirty")
	if err != nil || index.Digest.String() != digest {
		t.Fatalf("pushed: got %s, %v; want %s", index.Digest, err, digest)
	}
	images, err := image.Images(t.Context(), repo, index)
	if err != nil {
		t.Fatal(err)
	}
	var arches []string
	for _, one := range images {
		arches = append(arches, one.Platform.Architecture)
		wantConfig(t, repo, one)
		wantSBOM(t, repo, one)
	}
	if diff := cmp.Diff([]string{"amd64", "arm64"}, arches); diff != "" {
		t.Errorf("architectures (-want +got):\n%s", diff)
	}
	if err := checkOne(t.Context(), filepath.Join(o.out, example.Name), example, nil); err != nil {
		t.Error(err)
	}
}

// filesOf returns the contents of all files below a folder, by path.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(at string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(at)
		below, _ := filepath.Rel(dir, at)
		found[below] = string(raw[:min(len(raw), 4096)])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func wantConfig(t *testing.T, repo *remote.Repository, one ocispec.Descriptor) {
	t.Helper()
	var manifest ocispec.Manifest
	fetch(t, repo, one, &manifest)
	var config ocispec.Image
	fetch(t, repo, manifest.Config, &config)
	want := ocispec.ImageConfig{
		User: "65532:65532", Entrypoint: []string{"/usr/local/bin/version"}, WorkingDir: "/", Env: []string{image.SearchPath},
		Labels: map[string]string{
			"org.opencontainers.image.title": "Example", "org.opencontainers.image.description": "For a test",
			"org.opencontainers.image.version": "1.4.0+dirty", "org.opencontainers.image.revision": "abcdef",
			"org.opencontainers.image.created": "2023-11-14T22:13:20Z", "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": "https://github.com/berth-dev/berth", "org.opencontainers.image.vendor": "Berth",
		},
	}
	if diff := cmp.Diff(want, config.Config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if config.Architecture != one.Platform.Architecture {
		t.Errorf("the config is for %s, the index says %s", config.Architecture, one.Platform.Architecture)
	}
	if diff := cmp.Diff(want.Labels, manifest.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
}

// wantSBOM looks for an image's one referrer, and in it for what the executable
// links.
func wantSBOM(t *testing.T, repo *remote.Repository, one ocispec.Descriptor) {
	t.Helper()
	var found []ocispec.Descriptor
	if err := repo.Referrers(t.Context(), one, "", func(page []ocispec.Descriptor) error {
		found = append(found, page...)
		return nil
	}); err != nil || len(found) != 1 {
		t.Fatalf("referrers of %s: %v, %v; want one", one.Digest, found, err)
	}
	var manifest ocispec.Manifest
	fetch(t, repo, found[0], &manifest)
	if manifest.ArtifactType != image.SBOMType {
		t.Errorf("the referrer is %q, want %q", manifest.ArtifactType, image.SBOMType)
	}
	raw, err := content.FetchAll(t.Context(), repo, manifest.Layers[0])
	if err != nil {
		t.Fatal(err)
	}
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(bytes.NewReader(raw), cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, c := range *bom.Components {
		names[c.Name] = c.Version != ""
	}
	for _, name := range []string{"version", "std", "github.com/opencontainers/go-digest", image.RootsModule} {
		if !names[name] {
			t.Errorf("the SBOM lacks %s, or its version; it has %v", name, slices.Sorted(maps.Keys(names)))
		}
	}
}

func fetch(t *testing.T, from content.Fetcher, desc ocispec.Descriptor, out any) {
	t.Helper()
	raw, err := content.FetchAll(t.Context(), from, desc)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
}

// TestCheckRuns has the check run a real executable as a user that nobody knows,
// and see one that cannot.
func TestCheckRuns(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: it changes the root directory and the user")
	}
	root := t.TempDir()
	program := filepath.Join(root, binDir, "version")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := root; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./testdata/version")
	build.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := runAll(t.Context(), root, example, ""); err != nil {
		t.Errorf("an executable for everybody: %v", err)
	}
	if err := os.Chmod(program, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := runAll(context.WithoutCancel(t.Context()), root, example, ""); err == nil {
		t.Error("an executable for root alone ran as another user")
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	good := []tar.Header{
		{Typeflag: tar.TypeReg, Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644},
		{Typeflag: tar.TypeDir, Name: "tmp", Mode: 0o1777},
		{Typeflag: tar.TypeReg, Name: "usr/share/doc/berth/LICENSE", Mode: 0o644},
		{Typeflag: tar.TypeReg, Name: "usr/share/doc/berth/" + image.LicensesFile, Mode: 0o644},
		{Typeflag: tar.TypeReg, Name: "usr/local/bin/version", Mode: 0o755},
	}
	with := func(h tar.Header) []tar.Header { return append(slices.Clone(good), h) }
	packages := example
	packages.Packages = true
	for _, tc := range []struct {
		name    string
		recipe  recipe
		headers []tar.Header
		want    []string
	}{
		{name: "as it should be", recipe: example, headers: good},
		{name: "an executable is missing", recipe: example, headers: good[:4], want: []string{"usr/local/bin/version is missing"}},
		{
			name: "the licenses are missing", recipe: example, headers: append(slices.Clone(good[:3]), good[4]),
			want: []string{"usr/share/doc/berth/" + image.LicensesFile + " is missing"},
		},
		{
			name: "a package without its license", recipe: packages, headers: with(tar.Header{Typeflag: tar.TypeReg, Name: "var/lib/dpkg/status.d/a", Mode: 0o644}),
			want: []string{"usr/share/doc/a/copyright is missing"},
		},
		{
			name: "a package with that of another, which is missing", recipe: packages,
			headers: append(with(tar.Header{Typeflag: tar.TypeReg, Name: "var/lib/dpkg/status.d/a", Mode: 0o644}),
				tar.Header{Typeflag: tar.TypeSymlink, Name: "usr/share/doc/a", Linkname: "b", Mode: 0o777}),
			want: []string{"usr/share/doc/b/copyright is missing"},
		},
		{
			name: "a shell", recipe: example, headers: with(tar.Header{Typeflag: tar.TypeReg, Name: "bin/sh", Mode: 0o755}),
			want: []string{"bin/sh is not expected"},
		},
		{name: "a shell among packages", recipe: packages, headers: with(tar.Header{Typeflag: tar.TypeReg, Name: "bin/sh", Mode: 0o755})},
		{
			name: "setuid", recipe: packages, headers: with(tar.Header{Typeflag: tar.TypeReg, Name: "bin/su", Mode: 0o4755}),
			want: []string{"bin/su has setuid or setgid"},
		},
		{
			name: "not root's", recipe: packages, headers: with(tar.Header{Typeflag: tar.TypeReg, Name: "bin/x", Mode: 0o755, Uid: 1000}),
			want: []string{"bin/x belongs to 1000:0"},
		},
		{
			name: "everybody may write", recipe: packages, headers: with(tar.Header{Typeflag: tar.TypeReg, Name: "etc/x", Mode: 0o666}),
			want: []string{"etc/x can be written by everybody"},
		},
		{
			name: "a closed tmp", recipe: packages, headers: with(tar.Header{Typeflag: tar.TypeDir, Name: "tmp", Mode: 0o755}),
			want: []string{"tmp cannot be written by everybody"},
		},
		{
			name: "terraform", recipe: packages, headers: with(tar.Header{Typeflag: tar.TypeReg, Name: "usr/local/bin/terraform", Mode: 0o755}),
			want: []string{"usr/local/bin/terraform: its license forbids shipping it"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, err := range problems(tc.recipe, tc.headers) {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{"1.4.0": "1.4.0", "1.4.0-3-gabc-dirty": "1.4.0-3-gabc-dirty", "1.4.0+x/y": "1.4.0-x-y"} {
		if got := tag(version); got != want {
			t.Errorf("tag(%q) = %q, want %q", version, got, want)
		}
	}
}

func TestUnpackStaysInside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	if err := unpack(root, &tar.Header{Typeflag: tar.TypeSymlink, Name: "up", Linkname: ".."}, nil); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../out", "up/out", "/out"} {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}
		if err := unpack(root, h, strings.NewReader("")); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}
