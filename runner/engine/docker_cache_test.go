package engine_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/buildkit"
)

// cached makes the job one that leaves its layers for the next one, and begins with
// those in given, "" for none.
func (j *jobDir) cached(t *testing.T, given string) *jobDir {
	t.Helper()
	j.spec.Source.Cache = "org_1/build.cache/app_1/cmp_1"
	if given != "" {
		if err := os.CopyFS(filepath.Join(j.path, "in/cache"), os.DirFS(given)); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// What one daemon has built another one takes over, and makes the same image of it
// as one that begins from nothing. A cache that is damaged costs time, and no build.
func TestDockerBuildCache(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"Dockerfile": shell + `FROM base AS made
COPY a /a
RUN echo made > /b; /bin/busybox mkdir /c; echo a | /bin/busybox tee -a /bin/more
FROM base AS other
COPY --from=made /b /bin/more /d/
RUN --mount=type=cache,target=/cache /bin/busybox ls /cache > /e; echo x > /cache/of-this-app
`, "a": "a",
	}
	nothing := newKitchen(t, buildkit.Settings{}).job(t, jobspec.Docker{}, files)
	nothing.must(t)
	want := nothing.image(t).digest
	if _, err := os.Stat(filepath.Join(nothing.path, "out/cache")); err == nil {
		t.Error("a build that is to leave nothing leaves a cache")
	}

	first := newKitchen(t, buildkit.Settings{}).job(t, jobspec.Docker{}, files).cached(t, "")
	first.must(t)
	if got := first.image(t).digest; got != want {
		t.Errorf("a build that leaves a cache made %s, want %s", got, want)
	}
	left := filepath.Join(first.path, "out/cache")

	k := newKitchen(t, buildkit.Settings{})
	second := k.job(t, jobspec.Docker{}, files).cached(t, left)
	second.must(t)
	if got := second.image(t).digest; got != want {
		t.Errorf("with the cache the image is %s, want %s", got, want)
	}
	if log := second.log(t); strings.Contains(log, "| made") || strings.Count(log, ": cached") < 4 {
		t.Errorf("the cache was not used:\n%s", log)
	}

	// Another component of the org does not find what this one left in a mount.
	files["Dockerfile"] += "RUN --mount=type=cache,target=/cache /bin/busybox test ! -e /cache/of-this-app\n"
	other := k.job(t, jobspec.Docker{Args: map[string]string{"BUILDKIT_CACHE_MOUNT_NS": first.spec.Source.Cache}}, files).cached(t, "")
	other.spec.Source.Cache = "org_1/build.cache/app_2/cmp_2"
	other.must(t)
	for name, damage := range map[string]func(t *testing.T, m ocispec.Manifest, blob func(ocispec.Descriptor) string){
		"a config that is none": func(t *testing.T, m ocispec.Manifest, blob func(ocispec.Descriptor) string) {
			t.Helper()
			overwrite(t, blob(m.Config), "{")
		},
		"a layer that is gone": func(t *testing.T, m ocispec.Manifest, blob func(ocispec.Descriptor) string) {
			t.Helper()
			for _, layer := range m.Layers {
				_ = os.Remove(blob(layer))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newKitchen(t, buildkit.Settings{}).job(t, jobspec.Docker{}, map[string]string{
				"Dockerfile": first.read(t, "in/source/Dockerfile"), "a": "a",
			}).cached(t, left)
			var index ocispec.Index
			j.readJSON(t, "in/cache/index.json", &index)
			blob := func(d ocispec.Descriptor) string {
				return filepath.Join(j.path, "in/cache/blobs/sha256", d.Digest.Encoded())
			}
			raw, err := os.ReadFile(blob(index.Manifests[0]))
			if err != nil {
				t.Fatal(err)
			}
			var m ocispec.Manifest
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
			damage(t, m, blob)
			j.must(t)
			if got := j.image(t).digest; got != want {
				t.Errorf("the image is %s, want %s", got, want)
			}
		})
	}
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
