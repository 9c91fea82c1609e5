package trees

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/oci"
)

// place is a store with its registry, in the directory of an agent.
func place(t *testing.T, base string) *Store {
	t.Helper()
	layout, err := oci.Open(filepath.Join(base, "artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(filepath.Join(base, "trees"), layout)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(base, "jobs"), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *Store) base() string { return filepath.Dir(s.dir) }

// pack makes an artifact with a script, a symlink and main.tf.
func pack(t *testing.T, s *Store, main []byte) digest.Digest {
	t.Helper()
	dir := t.TempDir()
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "main.tf"), main, 0o600),
		os.MkdirAll(filepath.Join(dir, "sub", "deep"), 0o755),
		os.WriteFile(filepath.Join(dir, "sub", "deep", "run.sh"), []byte("#!/bin/sh\n"), 0o700),
		os.Symlink("deep/run.sh", filepath.Join(dir, "sub", "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	packed, err := oci.Pack(t.Context(), s.layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return packed.Digest
}

func share(t *testing.T, s *Store, artifact digest.Digest, job string) string {
	t.Helper()
	dir := filepath.Join(s.base(), "jobs", job)
	if err := s.Share(t.Context(), artifact, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func sameInode(t *testing.T, a, b string) bool {
	t.Helper()
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	if err := errors.Join(errX, errY); err != nil {
		t.Fatal(err)
	}
	return os.SameFile(x, y)
}

func TestJobsShareFilesThatNobodyWritesTo(t *testing.T) {
	t.Parallel()
	s := place(t, t.TempDir())
	artifact := pack(t, s, []byte("# nothing\n"))
	one, two := share(t, s, artifact, "one"), share(t, s, artifact, "two")
	var got []string
	err := filepath.WalkDir(two, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		name, _ := filepath.Rel(two, path)
		got = append(got, fmt.Sprintf("%s %s shared=%v", info.Mode(), name, Shared(entry)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"drwxr-xr-x . shared=false", "-r--r--r-- main.tf shared=true", "drwxr-xr-x sub shared=false",
		"drwxr-xr-x sub/deep shared=false", "-r-xr-xr-x sub/deep/run.sh shared=true", "Lrwxrwxrwx sub/link shared=false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !sameInode(t, one+"/main.tf", two+"/main.tf") || read(t, two+"/main.tf") != "# nothing\n" || read(t, two+"/sub/link") != "#!/bin/sh\n" {
		t.Error("the second job has other files than the first")
	}
	if err := os.RemoveAll(one); err != nil { // a job that is over takes nothing with it
		t.Fatal(err)
	}
	if three := share(t, s, artifact, "three"); !sameInode(t, two+"/main.tf", three+"/main.tf") {
		t.Error("it was unpacked again")
	}
}

// What is damaged or missing is found before a job reads it, and made again.
func TestDamageIsFound(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(file string) error{
		"rewritten, same size": func(file string) error { return os.WriteFile(file, []byte("# evil...\n"), 0o600) },
		"cut":                  func(file string) error { return os.Truncate(file, 3) },
		"missing":              os.Remove,
		"half of the tree":     func(file string) error { return os.RemoveAll(filepath.Dir(file) + "/sub") },
		"all of it":            func(file string) error { return os.RemoveAll(filepath.Dir(file)) },
		"made writable":        func(file string) error { return os.Chmod(file, 0o666) },
		"replaced": func(file string) error {
			return errors.Join(os.WriteFile(file+".new", []byte("# nothing\n"), 0o444), os.Rename(file+".new", file))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := place(t, t.TempDir())
			artifact := pack(t, s, []byte("# nothing\n"))
			share(t, s, artifact, "one")
			if err := damage(filepath.Join(s.trees[artifact].dir, "main.tf")); err != nil {
				t.Fatal(err)
			}
			two := share(t, s, artifact, "two")
			if got := read(t, two+"/main.tf") + read(t, two+"/sub/link"); got != "# nothing\n#!/bin/sh\n" {
				t.Errorf("a job reads %q", got)
			}
			if three := share(t, s, artifact, "three"); !sameInode(t, two+"/main.tf", three+"/main.tf") {
				t.Error("what was made again is not kept")
			}
			if kept, err := os.ReadDir(s.dir); err != nil || len(kept) != 1 {
				t.Errorf("%v, %v: the damaged tree stays", kept, err)
			}
		})
	}
}

// An agent that was killed in the middle leaves a part of a tree.
func TestNothingOfAnEarlierAgentIsUsed(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	s := place(t, base)
	artifact := pack(t, s, []byte("# nothing\n"))
	share(t, s, artifact, "one")
	if err := os.Mkdir(filepath.Join(s.dir, ".2-half"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(s.trees[artifact].dir, "main.tf")); err != nil {
		t.Fatal(err)
	}
	s = place(t, base)
	if kept, err := os.ReadDir(s.dir); err != nil || len(kept) != 0 {
		t.Errorf("%v, %v: want nothing", kept, err)
	}
	if two := share(t, s, artifact, "two"); read(t, two+"/main.tf") != "# nothing\n" {
		t.Error("a job reads something else")
	}
}

func TestTreesGoWithTheirArtifactsAndForOthers(t *testing.T) {
	t.Parallel()
	s := place(t, t.TempDir())
	first, second := pack(t, s, []byte("1")), pack(t, s, []byte("2"))
	share(t, s, first, "one")
	share(t, s, second, "two")
	if _, err := s.layout.GC(t.Context(), oci.GCOptions{Keep: []digest.Digest{second}}); err != nil {
		t.Fatal(err)
	}
	gone := s.trees[first].dir
	s.Prune()
	if _, err := os.Stat(gone); !os.IsNotExist(err) || s.trees[second] == nil {
		t.Errorf("%v: want only the artifact's tree that is gone removed", err)
	}
	s.limit = 1 // of bytes
	third := pack(t, s, []byte("3"))
	older := s.trees[second].dir
	share(t, s, third, "three")
	if _, err := os.Stat(older); !os.IsNotExist(err) {
		t.Errorf("%v: what was used least lately stays", err)
	}
	if read(t, s.base()+"/jobs/two/main.tf") != "2" {
		t.Error("a job lost its files")
	}
}

// A full disk costs what is kept, not the job.
func TestKeptTreesMakeRoom(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	if os.Geteuid() != 0 || exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=2m", "none", base).Run() != nil {
		t.Skip("needs root")
	}
	t.Cleanup(func() { _ = exec.Command("umount", base).Run() })
	s := place(t, base)
	var seed [32]byte
	large := make([]byte, 400<<10) // with its blob: 800 KiB
	_, _ = rand.NewChaCha8(seed).Read(large)
	first := pack(t, s, large)
	share(t, s, first, "one")
	if err := os.RemoveAll(filepath.Join(base, "jobs", "one")); err != nil {
		t.Fatal(err)
	}
	_, _ = rand.NewChaCha8([32]byte{1}).Read(large)
	second := pack(t, s, large)
	if err := os.WriteFile(filepath.Join(base, "filler"), make([]byte, 550<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	if two := share(t, s, second, "two"); !bytes.Equal([]byte(read(t, two+"/main.tf")), large) {
		t.Error("the job reads something else")
	}
	if s.trees[first] != nil {
		t.Error("the disk was full, and what nobody used stays")
	}
}

// Verify hashes once, and again when a blob is another file or was written to, also
// with the same size and time.
func TestVerify(t *testing.T) {
	t.Parallel()
	s := place(t, t.TempDir())
	artifact := pack(t, s, []byte("# nothing\n"))
	for deadline := time.Now().Add(time.Minute); len(s.proofs) == 0; time.Sleep(settled / 5) { // until a later write would show
		if err := s.Verify(t.Context(), artifact); err != nil || time.Now().After(deadline) {
			t.Fatal("it is never remembered", err)
		}
	}
	if !s.unchanged(s.proofs[artifact]) || len(s.proofs[artifact]) != 3 {
		t.Errorf("want manifest, config and layer as they are: %v", s.proofs)
	}
	a, err := oci.Inspect(t.Context(), s.layout, artifact)
	if err != nil {
		t.Fatal(err)
	}
	layer := filepath.Join(s.base(), "artifacts", "blobs", "sha256", a.Layers[0].Digest.Encoded())
	before, err := os.Stat(layer)
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte(read(t, layer))
	raw[len(raw)/2] ^= 1
	if err := errors.Join(os.Chmod(layer, 0o600), os.WriteFile(layer, raw, 0o600), os.Chmod(layer, before.Mode()), os.Chtimes(layer, before.ModTime(), before.ModTime())); err != nil {
		t.Fatal(err)
	}
	var corrupt *oci.CorruptError
	if err := s.Verify(t.Context(), artifact); !errors.As(err, &corrupt) {
		t.Errorf("a changed layer: %v", err)
	}
	if err := os.Remove(layer); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(t.Context(), artifact); !errors.As(err, &corrupt) {
		t.Errorf("a missing layer: %v", err)
	}
}

func TestManyJobsAtOnce(t *testing.T) {
	t.Parallel()
	s := place(t, t.TempDir())
	s.limit = 1
	artifacts := []digest.Digest{pack(t, s, []byte("0")), pack(t, s, []byte("1"))}
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			artifact := artifacts[n%2]
			if err := s.Verify(t.Context(), artifact); err != nil {
				t.Error(err)
			}
			dir := filepath.Join(s.base(), "jobs", fmt.Sprint(n))
			if err := s.Share(t.Context(), artifact, dir); err != nil {
				t.Error(err)
				return
			}
			if raw, err := os.ReadFile(dir + "/main.tf"); err != nil || string(raw) != fmt.Sprint(n%2) {
				t.Errorf("job %d reads %q, %v", n, raw, err)
			}
			if n%5 == 0 {
				s.Prune()
			}
			if n%7 == 0 { // a tree that others link is damaged
				held := s.hold(artifact)
				held.mu.Lock()
				if held.dir != "" {
					_ = os.Remove(filepath.Join(held.dir, "main.tf"))
				}
				held.mu.Unlock()
				s.release(held)
			}
		})
	}
	all.Wait()
}
