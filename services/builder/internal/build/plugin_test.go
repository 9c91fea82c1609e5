package build

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	godigest "github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/services/builder/internal/keyring"
	"github.com/berth-dev/berth/services/builder/internal/source"
)

// author packs plugins as people do: tar, gzip, a manifest around it.
type author struct {
	t   *testing.T
	key ed25519.PrivateKey
}

func newAuthor(t *testing.T) (author, string) {
	t.Helper()
	pub, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return author{t, key}, capsule.EncodePublicKey(pub)
}

// files are those of a signed plugin.
func (a author) files(version string) fstest.MapFS {
	files := fstest.MapFS{
		"plugin.json": {Data: fmt.Appendf(nil, `{"contract": 1, "type": "greeting", "version": %q, "executables": {"any": "run.sh"}}`, version)},
		"run.sh":      {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
	}
	envelope, err := plugin.Sign(a.key, files)
	if err != nil {
		a.t.Fatal(err)
	}
	raw, err := json.Marshal(envelope)
	if err != nil {
		a.t.Fatal(err)
	}
	files[plugin.SignatureFile] = &fstest.MapFile{Data: raw}
	return files
}

func (a author) packed(files fstest.MapFS, more ...tar.Header) []byte {
	a.t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, file := range files {
		header := tar.Header{Name: name, Size: int64(len(file.Data)), Mode: 0o755, Typeflag: tar.TypeReg}
		if err := w.WriteHeader(&header); err != nil {
			a.t.Fatal(err)
		}
		if _, err := w.Write(file.Data); err != nil {
			a.t.Fatal(err)
		}
	}
	for _, header := range more {
		if err := w.WriteHeader(&header); err != nil {
			a.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		a.t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		a.t.Fatal(err)
	}
	return b.Bytes()
}

// push puts an artifact with one layer behind a tag.
func (a author) push(u *upstream, tag, mediaType string, layer []byte) godigest.Digest {
	return a.pushLayer(u, tag, u.put(mediaType, layer))
}

func (a author) pushLayer(u *upstream, tag string, layer ocispec.Descriptor) godigest.Digest {
	desc := u.putJSON(a.t, ocispec.MediaTypeImageManifest, ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: "application/vnd.berth.plugin.v1",
		Config: u.put(ocispec.MediaTypeEmptyJSON, []byte(`{}`)), Layers: []ocispec.Descriptor{layer},
	})
	u.named[tag] = desc.Digest
	return desc.Digest
}

// pluginConfig stores a component that names a plugin in a registry.
func (w *world) pluginConfig(name, signer string, src source.Source) string {
	w.t.Helper()
	_, builds := w.addConfig(component{name: name, buildDigest: godigest.FromString(name + signer).String(), source: src})
	w.exec(`update component_revisions set type = 'greeting',
		spec = spec || jsonb_build_object('berth', jsonb_build_object('plugin', jsonb_build_object('signer', $2::text)))
		where id = (select revision_id from builds where id = $1)`, builds[name], signer)
	return builds[name]
}

// A plugin of a private registry is fetched by builder, pinned by its digest, and
// travels to the engine as it was signed, without the password. A tag that was moved
// is another build.
func TestPluginOfARegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	up := &private{upstream: newUpstream(t)}
	server := httptest.NewServer(up)
	defer server.Close()
	host := server.Listener.Addr().String()
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"oci://%s/team": {"username": "berth", "password": %q, "orgs": [%q]}}`, host, imagePassword, w.org), 0o600); err != nil {
		t.Fatal(err)
	}
	ring, err := keyring.Read(file, keyring.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.worker.Resolver = source.NewResolver(source.Config{Keys: ring})
	a, signer := newAuthor(t)
	one := a.push(up.upstream, "v1", ocispec.MediaTypeImageLayerGzip, a.packed(a.files("1.0.0")))
	src := source.Source{Kind: source.KindOCI, Repo: host + "/team/greeting", Ref: "v1"}

	first := w.pluginConfig("hello", signer, src)
	w.advance(first)
	_, spec := w.jobOf(first)
	if spec.Kind != "plugin" || spec.Source.Kind != "archive" || spec.Source.Archive == nil || spec.Source.Ref != one.String() {
		t.Fatalf("the job: %+v, source %+v", spec, spec.Source)
	}
	layout, err := oci.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "source")
	pull(t, w.remote(w.token(w.org, "pull"), spec.Source.Archive.Repository), spec.Source.Archive.Digest, layout, dir)
	if signed, err := plugin.Verify(signer, os.DirFS(dir)); err != nil || signed.Version != "1.0.0" {
		t.Errorf("the engine gets %+v, %v", signed, err)
	}
	w.work(first)
	w.advance(first)
	if got := w.ended(first); got.State != "succeeded" || got.Commit != one.String() {
		t.Fatalf("build: %+v", got)
	}

	two := a.push(up.upstream, "v1", ocispec.MediaTypeImageLayerGzip, a.packed(a.files("2.0.0")))
	moved := w.rebuildOf(first)
	w.advance(moved)
	if _, spec := w.jobOf(moved); spec.Source.Ref != two.String() {
		t.Errorf("after the tag was moved: %+v", spec.Source)
	}
	src.Ref = one.String() // by digest it is what it was, whatever the tag says
	pinned := w.pluginConfig("pinned", signer, src)
	w.advance(pinned)
	if got := w.ended(pinned); got.Commit != one.String() || got.ReusedFrom != first {
		t.Errorf("by digest: %+v", got)
	}
	if n := w.count(`select count(*) from builds b left join runner_jobs j on j.build_id = b.id where b::text like $1 or j::text like $1`, "%"+imagePassword+"%"); n > 0 {
		t.Errorf("%d rows hold the password", n)
	}
}

// rebuildOf queues one more build of the same revision.
func (w *world) rebuildOf(buildID string) string {
	w.t.Helper()
	again := buildID[:len(buildID)-4] + "AGAI"
	w.exec(`insert into builds (id, org_id, app_id, component_id, revision_id, build_digest, source, requested_by)
		select $2, org_id, app_id, component_id, revision_id, build_digest, source, 'test' from builds where id = $1`, buildID, again)
	return again
}

// What is no plugin of the author's never gets as far as a Build Runner: the build
// fails and says why, and which key to correct.
func TestAttackPluginOfARegistry(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	up := newUpstream(t)
	w.worker.Resolver = source.NewResolver(source.Config{})
	a, signer := newAuthor(t)
	thief, _ := newAuthor(t)
	good := a.packed(a.files("1.0.0"))
	changed := a.files("1.0.0")
	changed["run.sh"] = &fstest.MapFile{Data: []byte("#!/bin/sh\nsteal\n")}
	other := a.files("1.0.0")
	delete(other, plugin.SignatureFile)
	const layer = ocispec.MediaTypeImageLayerGzip

	a.push(up, "stolen", layer, thief.packed(thief.files("1.0.0")))
	a.push(up, "changed", layer, a.packed(changed))
	a.push(up, "unsigned", layer, a.packed(other))
	a.push(up, "link", layer, a.packed(a.files("1.0.0"), tar.Header{Name: "out", Typeflag: tar.TypeSymlink, Linkname: "../../../etc"}))
	a.push(up, "inner-link", layer, a.packed(a.files("1.0.0"), tar.Header{Name: "in", Typeflag: tar.TypeSymlink, Linkname: "run.sh"}))
	a.push(up, "outside", layer, a.packed(fstest.MapFS{"../x": {Data: []byte("x")}}))
	a.push(up, "other-layer", "application/vnd.example.exe", good)
	a.pushLayer(up, "huge", ocispec.Descriptor{MediaType: layer, Digest: godigest.FromString("huge"), Size: 1 << 40})
	a.pushLayer(up, "negative", ocispec.Descriptor{MediaType: layer, Digest: godigest.FromString("huge"), Size: -1})
	swapped := up.put(layer, a.packed(a.files("3.0.0")))
	a.pushLayer(up, "swapped", swapped)
	up.data[swapped.Digest] = bytes.Repeat([]byte("x"), int(swapped.Size))
	a.push(up, "bomb", layer, a.packed(fstest.MapFS{"zeros": {Data: make([]byte, 40<<20)}}))

	for tag, want := range map[string]string{
		"stolen":      "signature refused: no signature of a trusted key; correct signer in components",
		"changed":     "signature of the plugin refused: run.sh is sha256:",
		"unsigned":    "it is not signed",
		"link":        "cannot be unpacked",
		"inner-link":  "in is no file",
		"outside":     "cannot be unpacked",
		"other-layer": `it has a layer of type "application/vnd.example.exe"`,
		"huge":        "is larger than 512 MiB",
		"negative":    "is larger than 512 MiB",
		"swapped":     "cannot be reached now", // its bytes are not those of its digest
		"bomb":        "cannot be unpacked",
		"1.2":         "is no plugin: it has no layers", // an index of images
		"nothing":     "there is no plugin",
	} {
		build := w.pluginConfig("of-"+tag, signer, source.Source{Kind: source.KindOCI, Repo: up.host + "/team/greeting", Ref: tag})
		err := w.worker.Advance(t.Context(), build, MaxTries)
		got := w.ended(build)
		if err != nil || got.State != "failed" || !strings.Contains(got.Error, want) || len(got.Error) > 1000 {
			t.Errorf("%s: %+v, %v; want it failed because of %q", tag, got, err, want)
		}
		if tag == "stolen" && !strings.Contains(got.Error, "correct signer in components/it.toml") {
			t.Errorf("%s: %s, want it to name the key to correct", tag, got.Error)
		}
	}
	if n := w.count("select count(*) from runner_jobs"); n != 0 {
		t.Errorf("%d jobs were made of what is no plugin", n)
	}
}
