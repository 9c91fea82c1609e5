package build

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	godigest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/source"
)

const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerConfig   = "application/vnd.docker.container.image.v1+json"
)

// upstream is a registry of somebody else with one image for two platforms, of
// Docker's types.
type upstream struct {
	host  string
	image godigest.Digest
	tags  []string // besides 1.2, of the same image
	named map[string]godigest.Digest
	parts map[godigest.Digest]ocispec.Descriptor
	data  map[godigest.Digest][]byte
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{parts: map[godigest.Digest]ocispec.Descriptor{}, data: map[godigest.Digest][]byte{}, named: map[string]godigest.Digest{}}
	u.push(t, "one")
	server := httptest.NewServer(u)
	t.Cleanup(server.Close)
	u.host = server.Listener.Addr().String()
	return u
}

// push makes the tag name another image.
func (u *upstream) push(t *testing.T, layer string) {
	t.Helper()
	list := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: dockerList}
	for _, platform := range []string{"amd64", "arm64"} {
		manifest := u.putJSON(t, dockerManifest, ocispec.Manifest{
			Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: dockerManifest,
			Config: u.put(dockerConfig, fmt.Appendf(nil, `{"architecture":%q}`, platform)),
			Layers: []ocispec.Descriptor{u.put("application/vnd.docker.image.rootfs.diff.tar.gzip", []byte(layer+" of "+platform))},
		})
		list.Manifests = append(list.Manifests, manifest)
	}
	u.image = u.putJSON(t, dockerList, list).Digest
}

func (u *upstream) put(mediaType string, raw []byte) ocispec.Descriptor {
	desc := ocispec.Descriptor{MediaType: mediaType, Digest: godigest.FromBytes(raw), Size: int64(len(raw))}
	u.parts[desc.Digest], u.data[desc.Digest] = desc, raw
	return desc
}

func (u *upstream) putJSON(t *testing.T, mediaType string, v any) ocispec.Descriptor {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return u.put(mediaType, raw)
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/tags/list") {
		_ = json.NewEncoder(w).Encode(map[string]any{"tags": u.tags})
		return
	}
	dgst := godigest.Digest(path.Base(r.URL.Path))
	if dgst == "1.2" || slices.Contains(u.tags, dgst.String()) {
		dgst = u.image
	}
	if named, ok := u.named[dgst.String()]; ok {
		dgst = named
	}
	desc, known := u.parts[dgst]
	if !known {
		http.Error(w, `{"errors":[{"code":"MANIFEST_UNKNOWN"}]}`, http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", desc.MediaType)
	w.Header().Set("Content-Length", strconv.FormatInt(desc.Size, 10))
	w.Header().Set("Docker-Content-Digest", dgst.String())
	_, _ = w.Write(u.data[dgst])
}

// copyImage does a job as a Build Runner does: the engine copies the image into
// a folder, the agent pushes the folder.
func (w *world) copyImage(buildID string) jobspec.BuiltArtifact {
	w.t.Helper()
	_, spec := w.jobOf(buildID)
	from, err := oci.ImageRemote(spec.Source.Image)
	if err != nil {
		w.t.Fatal(err)
	}
	dir := w.t.TempDir()
	layout, err := oci.Open(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	image := godigest.Digest(spec.Source.ImageDigest)
	if err := from.Pull(w.t.Context(), image, layout, oci.TransferOptions{}); err != nil {
		w.t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer root.Close()
	size, err := w.remote(w.token(w.org, "pull", "push"), spec.Source.Push).PushFolder(w.t.Context(), root, image, oci.TransferOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	made := jobspec.BuiltArtifact{Repository: spec.Source.Push, Digest: image.String(), SizeBytes: size}
	w.report(buildID, "succeeded", jobspec.Result{Artifact: &made})
	return made
}

// An image goes by digest from its registry to the org's, unchanged, and the
// install gets it from there. The same image is not copied twice.
func TestImageBecomesAnArtifact(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	up := newUpstream(t)
	first := up.image
	web := component{name: "web", buildDigest: repeated("1"), source: source.Source{Kind: source.KindImage, Repo: up.host + "/team/web", Ref: "1.2"}}
	_, builds := w.addConfig(web)
	w.advance(builds["web"])
	_, spec := w.jobOf(builds["web"])
	want := &jobspec.Source{Kind: "image", Image: up.host + "/team/web", Ref: "1.2", ImageDigest: first.String(), Push: w.org + "/hello/web"}
	if diff := cmp.Diff(want, spec.Source); diff != "" {
		t.Errorf("source of the job (-want +got):\n%s", diff)
	}
	made := w.copyImage(builds["web"])
	w.advance(builds["web"])
	if diff := cmp.Diff(ended{State: "succeeded", Repository: made.Repository, Digest: first.String(), Commit: first.String()}, w.ended(builds["web"])); diff != "" {
		t.Errorf("build (-want +got):\n%s", diff)
	}

	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.remote(w.token(w.org, "pull"), made.Repository).Pull(t.Context(), first, layout, oci.TransferOptions{}); err != nil {
		t.Fatal(err)
	}
	for dgst, raw := range up.data {
		file, err := layout.Open(dgst)
		if err != nil {
			t.Errorf("%s did not arrive: %v", up.parts[dgst].MediaType, err)
			continue
		}
		var got bytes.Buffer
		if _, err := got.ReadFrom(file); err != nil || !bytes.Equal(got.Bytes(), raw) {
			t.Errorf("%s arrived as %q, %v", up.parts[dgst].MediaType, got.Bytes(), err)
		}
		file.Close()
	}

	again := w.rebuild(web)
	w.advance(again)
	if got := w.ended(again); got.State != "succeeded" || got.ReusedFrom != builds["web"] {
		t.Errorf("the same image again: %+v, want it taken over", got)
	}
	up.push(t, "two")
	moved := w.rebuild(web)
	w.advance(moved)
	if got := w.ended(moved); got.State != "running" || got.Commit != up.image.String() {
		t.Errorf("after the tag moved: %+v, want a job for %s", got, up.image)
	}
}

// A range names the newest tag within it; the build is made again only when that is
// another image.
func TestImageOfARange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	up := newUpstream(t)
	up.tags = []string{"2.0.0", "1.2.9", "1.2.10"}
	web := component{name: "web", buildDigest: repeated("1"), source: source.Source{Kind: source.KindImage, Repo: up.host + "/team/web", Ref: "^1.2", Range: true}}
	_, builds := w.addConfig(web)
	w.advance(builds["web"])
	_, spec := w.jobOf(builds["web"])
	want := &jobspec.Source{Kind: "image", Image: up.host + "/team/web", Ref: "1.2.10", ImageDigest: up.image.String(), Push: w.org + "/hello/web"}
	if diff := cmp.Diff(want, spec.Source); diff != "" {
		t.Errorf("source of the job (-want +got):\n%s", diff)
	}
	w.copyImage(builds["web"])
	w.advance(builds["web"])
	if got := w.ended(builds["web"]); got.State != "succeeded" || got.Digest != up.image.String() || got.Commit != "1.2.10@"+up.image.String() {
		t.Errorf("build: %+v", got)
	}

	up.tags = append(up.tags, "1.3.0")
	named := w.rebuild(web)
	w.advance(named)
	if got := w.ended(named); got.State != "succeeded" || got.ReusedFrom != builds["web"] || got.Commit != "1.3.0@"+up.image.String() {
		t.Errorf("the same image by a newer tag: %+v, want it taken over", got)
	}
	up.push(t, "two")
	moved := w.rebuild(web)
	w.advance(moved)
	if got := w.ended(moved); got.State != "running" || got.Commit != "1.3.0@"+up.image.String() {
		t.Errorf("another image: %+v, want a job", got)
	}
}

func TestImageThatIsNotThereFailsTheBuild(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	up := newUpstream(t)
	_, builds := w.addConfig(component{name: "web", buildDigest: repeated("1"), source: source.Source{Kind: source.KindImage, Repo: up.host + "/team/web", Ref: "9"}})
	w.advance(builds["web"])
	want := ended{State: "failed", Error: "there is no image " + up.host + "/team/web:9; correct tag in components/it.toml"}
	if diff := cmp.Diff(want, w.ended(builds["web"])); diff != "" {
		t.Errorf("build (-want +got):\n%s", diff)
	}
}
