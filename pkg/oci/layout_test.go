package oci_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	orasoci "oras.land/oras-go/v2/content/oci"

	"github.com/berth-dev/berth/pkg/oci"
)

const planType = "application/vnd.berth.plan.v1"

func encode(t testing.TB, v any) []byte {
	t.Helper()
	return value(json.Marshal(v))(t)
}

func blobFile(l *oci.Layout, dgst digest.Digest) string {
	return filepath.Join(l.Dir(), "blobs", dgst.Algorithm().String(), dgst.Encoded())
}

func replaceBlob(t testing.TB, l *oci.Layout, dgst digest.Digest, data []byte) {
	t.Helper()
	must(t, os.Remove(blobFile(l, dgst)))
	must(t, os.WriteFile(blobFile(l, dgst), data, 0o600))
}

func TestBlobRoundTrip(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	dgst := value(l.PutBlob(t.Context(), planType, "plan.age", []byte("sealed")))(t)
	if again := value(l.PutBlob(t.Context(), planType, "plan.age", []byte("sealed")))(t); again != dgst {
		t.Errorf("the same blob: got %s, want %s", again, dgst)
	}
	name, data, err := value(oci.Open(l.Dir()))(t).GetBlob(t.Context(), planType, dgst)
	must(t, err)
	if name != "plan.age" || string(data) != "sealed" {
		t.Errorf("got %q %q", name, data)
	}
	if _, _, err := l.GetBlob(t.Context(), oci.KindSource.ArtifactType(), dgst); err == nil {
		t.Error("a plan was read as a source")
	}
	if _, _, err := l.GetBlob(t.Context(), planType, digest.FromString("nobody")); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("unknown digest: got %v, want ErrNotFound", err)
	}
	replaceBlob(t, l, digest.FromString("sealed"), []byte("forged"))
	if _, _, err := l.GetBlob(t.Context(), planType, dgst); err == nil {
		t.Error("a changed blob was read")
	}
}

func TestVerifyNamesWhatChanged(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	dgst := value(l.PutBlob(t.Context(), planType, "plan.age", []byte("sealed")))(t)
	must(t, l.Verify(t.Context(), dgst))

	layer := digest.FromString("sealed")
	bad := oci.BadBlob{Digest: layer, MediaType: "application/octet-stream", Title: "plan.age"}
	with := func(problem string) []oci.BadBlob {
		b := bad
		b.Problem = problem
		return []oci.BadBlob{b}
	}
	steps := []struct {
		name   string
		damage func()
		want   []oci.BadBlob
	}{
		{"same size", func() { replaceBlob(t, l, layer, []byte("forged")) }, with("is " + digest.FromString("forged").String() + " now")},
		{"other size", func() { replaceBlob(t, l, layer, []byte("seal")) }, with("has 4 bytes, not 6")},
		{"removed", func() { must(t, os.Remove(blobFile(l, layer))) }, with("is missing")},
	}
	for _, step := range steps {
		step.damage()
		err := l.Verify(t.Context(), dgst)
		var corrupt *oci.CorruptError
		if !errors.As(err, &corrupt) {
			t.Fatalf("%s: got %v, want a CorruptError", step.name, err)
		}
		if diff := cmp.Diff(&oci.CorruptError{Artifact: dgst, Blobs: step.want}, corrupt); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		for _, part := range []string{layer.String(), "plan.age"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not name %s", step.name, err, part)
			}
		}
	}

	replaceBlob(t, l, dgst, []byte("{}"))
	if err := l.Verify(t.Context(), dgst); err == nil || !strings.Contains(err.Error(), dgst.String()) {
		t.Errorf("changed manifest: got %v, want it named", err)
	}
	if err := l.Verify(t.Context(), digest.FromString("nobody")); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("unknown artifact: got %v, want ErrNotFound", err)
	}
}

func TestTags(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	put := func(body string) ocispec.Descriptor {
		dgst := value(l.PutBlob(t.Context(), planType, "p", []byte(body)))(t)
		return value(l.Resolve(t.Context(), dgst.String()))(t)
	}
	one, two := put("1"), put("2")
	must(t, l.Tag(t.Context(), one, "live"))
	must(t, l.Tag(t.Context(), one, "first"))
	must(t, l.Tag(t.Context(), two, "live"))
	for ref, want := range map[string]ocispec.Descriptor{"live": two, "first": one, one.Digest.String(): one} {
		if diff := cmp.Diff(want, value(l.Resolve(t.Context(), ref))(t)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", ref, diff)
		}
	}
	must(t, l.Untag(t.Context(), "live"))
	must(t, l.Untag(t.Context(), "live"))
	if _, err := l.Resolve(t.Context(), "live"); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("removed tag: got %v, want ErrNotFound", err)
	}
	if _, err := l.Resolve(t.Context(), two.Digest.String()); err != nil {
		t.Errorf("untagged artifact: %v", err)
	}
	if err := l.Tag(t.Context(), ocispec.Descriptor{Digest: digest.FromString("nobody")}, "x"); !errors.Is(err, oci.ErrNotFound) {
		t.Errorf("tag of nothing: got %v, want ErrNotFound", err)
	}
}

func TestDigestsNeverBecomeOtherPaths(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	for _, dgst := range []digest.Digest{"", "sha256:../../index.json", "../sha256:00", "sha256:" + digest.Digest(strings.Repeat("A", 64)), "md5:00"} {
		if l.Has(dgst) {
			t.Errorf("%q exists", dgst)
		}
		if _, err := l.Fetch(t.Context(), ocispec.Descriptor{Digest: dgst}); err == nil {
			t.Errorf("%q was opened", dgst)
		}
		if err := l.Push(t.Context(), ocispec.Descriptor{Digest: dgst}, strings.NewReader("")); err == nil {
			t.Errorf("%q was stored", dgst)
		}
	}
}

func TestPushChecksContent(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"other bytes": "evil!", "shorter": "goo", "longer": "good!!"} {
		l := openLayout(t)
		desc := ocispec.Descriptor{MediaType: "text/plain", Digest: digest.FromString("good!"), Size: 5}
		if err := l.Push(t.Context(), desc, strings.NewReader(body)); err == nil || l.Has(desc.Digest) {
			t.Errorf("%s: stored under the digest of other content (%v)", name, err)
		}
		must(t, l.Push(t.Context(), desc, strings.NewReader("good!")))
		if _, err := os.Stat(filepath.Join(l.Dir(), "ingest", desc.Digest.Encoded()+".partial")); !os.IsNotExist(err) {
			t.Errorf("%s: partial content left behind: %v", name, err)
		}
	}
}

// Two who make the same artifact at the same time: the second finds the manifest
// there, and the first has not listed it yet.
func TestPushListsWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	l, dir := openLayout(t), t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "main.tf"), []byte("# the same"), 0o600))
	pack := func() ocispec.Descriptor {
		return value(oci.Pack(t.Context(), l, oci.PackInput{Kind: oci.KindTerraformModule, Dir: dir}))(t)
	}
	desc := pack()
	must(t, os.Remove(filepath.Join(l.Dir(), ocispec.ImageIndexFile)))
	again := pack()
	if again.Digest != desc.Digest {
		t.Fatalf("packed %s, then %s", desc.Digest, again.Digest)
	}
	if _, err := l.Resolve(t.Context(), desc.Digest.String()); err != nil {
		t.Errorf("what was packed twice is not found: %v", err)
	}
}

func TestGCKeepsWhatIsUsed(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	put := func(body string) digest.Digest {
		return value(l.PutBlob(t.Context(), planType, "p", []byte(body)))(t)
	}
	tagged, kept, dropped := put("tagged"), put("kept"), put("dropped")
	must(t, l.Tag(t.Context(), value(l.Resolve(t.Context(), tagged.String()))(t), "live"))

	if freed := value(l.GC(t.Context(), oci.GCOptions{MinAge: time.Hour}))(t); freed != 0 {
		t.Errorf("young artifacts: freed %d bytes, want 0", freed)
	}
	size := value(os.Stat(blobFile(l, dropped)))(t).Size() + int64(len("dropped"))
	freed := value(l.GC(t.Context(), oci.GCOptions{Keep: []digest.Digest{kept}}))(t)
	if freed != size {
		t.Errorf("freed %d bytes, want %d", freed, size)
	}
	for _, dgst := range []digest.Digest{tagged, kept} {
		must(t, l.Verify(t.Context(), dgst))
	}
	if err := l.Verify(t.Context(), dropped); !errors.Is(err, oci.ErrNotFound) || l.Has(dropped) {
		t.Errorf("dropped artifact: %v", err)
	}
	put("dropped")
}

func TestLayoutIsReadByOras(t *testing.T) {
	t.Parallel()
	l := openLayout(t)
	desc := value(oci.Pack(t.Context(), l, oci.PackInput{Kind: oci.KindSource, Dir: module.write(t)}))(t)
	must(t, l.Tag(t.Context(), desc, "v1"))
	other := value(orasoci.New(l.Dir()))(t)
	got := value(oras.Copy(t.Context(), other, "v1", openLayout(t), "v1", oras.DefaultCopyOptions))(t)
	if got.Digest != desc.Digest {
		t.Errorf("got %s, want %s", got.Digest, desc.Digest)
	}
}

// TestConcurrentWriters has goroutines and processes write the same and
// different artifacts and collect garbage at the same time.
func TestConcurrentWriters(t *testing.T) {
	t.Parallel()
	const processes, goroutines = 3, 4
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), layoutProcess+"="+dir, fmt.Sprintf("BERTH_TEST_WRITER=p%d", i))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %d: %v\n%s", i, err, out)
			}
		})
	}
	l := value(oci.Open(dir))(t)
	for i := range goroutines {
		wg.Go(func() {
			if err := writeArtifacts(t.Context(), l, fmt.Sprintf("g%d", i)); err != nil {
				t.Error(err)
			}
		})
	}
	for range 5 {
		if _, err := l.GC(t.Context(), oci.GCOptions{MinAge: time.Hour}); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	entries := value(l.Artifacts())(t)
	for _, desc := range entries {
		must(t, l.Verify(t.Context(), desc.Digest))
	}
	// Each writer has its own artifacts, and all have one in common.
	if want := (processes+goroutines)*artifactsPerWriter + artifactsPerWriter; len(entries) != want {
		t.Errorf("got %d artifacts, want %d: entries were lost", len(entries), want)
	}
}

const artifactsPerWriter = 5

func writeArtifacts(ctx context.Context, l *oci.Layout, writer string) error {
	for i := range artifactsPerWriter {
		for _, name := range []string{writer, "common"} {
			if _, err := l.PutBlob(ctx, planType, fmt.Sprintf("%s-%d", name, i), []byte(strings.Repeat(name, 10_000))); err != nil {
				return err
			}
		}
	}
	return nil
}

// layoutProcess has the folder that this process is to write to.
const layoutProcess = "BERTH_TEST_LAYOUT"

// TestMain lets the executable of the tests also be one of several processes
// that write to one layout.
func TestMain(m *testing.M) {
	dir := os.Getenv(layoutProcess)
	if dir == "" {
		os.Exit(m.Run())
	}
	l, err := oci.Open(dir)
	if err == nil {
		err = writeArtifacts(context.Background(), l, os.Getenv("BERTH_TEST_WRITER"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
