package providers_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/runner/agent/providers"
)

const target = runtime.GOOS + "_" + runtime.GOARCH

// hashed is the hash of a package with one file, as lock files have it.
func hashed(name, content string) string {
	list := sha256.Sum256(fmt.Appendf(nil, "%x  %s\n", sha256.Sum256([]byte(content)), name))
	return "h1:" + base64.StdEncoding.EncodeToString(list[:])
}

func lockText(hash string) []byte {
	return []byte("# made by init\nprovider \"registry.test/acme/time\" {\n  version     = \"1.2.3\"\n  constraints = \"~> 1.0\"\n  hashes = [\n    \"" + hash + "\",\n    \"zh:00ff\",\n  ]\n}\n")
}

func TestReadLock(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"one", string(lockText(hashed("p", "x"))), "registry.test/acme/time 1.2.3 1"},
		{"hashes of archives only", strings.ReplaceAll(string(lockText("zh:aa")), "h1:", ""), ""},
		{"a way out by the address", strings.ReplaceAll(string(lockText(hashed("p", "x"))), "registry.test/acme/time", "../../etc"), ""},
		{"a way out by the version", strings.ReplaceAll(string(lockText(hashed("p", "x"))), "1.2.3", "1.2.3/../../.."), ""},
		{"a port", strings.ReplaceAll(string(lockText(hashed("p", "x"))), "registry.test", "registry.test:8443"), "registry.test:8443/acme/time 1.2.3 1"},
		{"no hash of that length", string(lockText("h1:AAAA")), ""},
		{"nothing", "", ""},
	} {
		var got []string
		for _, l := range providers.ReadLock([]byte(tc.text)) {
			got = append(got, fmt.Sprintf("%s %s %d", l.Source, l.Version, len(l.Hashes)))
		}
		if diff := cmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

type bench struct {
	*providers.Cache
	t   *testing.T
	now time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: time.Now()}
	b.Cache = &providers.Cache{Dir: filepath.Join(t.TempDir(), "providers"), MaxBytes: 1 << 20, Now: func() time.Time { return b.now }}
	return b
}

// downloaded is what an engine has got.
func downloaded(t *testing.T, content string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	pkg := filepath.Join(dir, "registry.test/acme/time/1.2.3", target)
	if err := os.MkdirAll(pkg, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(pkg, "p"), []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// has returns what a job with this lock file finds in its view, "" for nothing.
func (b *bench) has(lock []byte) (content string, g providers.Given) {
	b.t.Helper()
	g, err := b.Give(providers.ReadLock(lock))
	if err != nil {
		b.t.Fatal(err)
	}
	raw, _ := os.ReadFile(filepath.Join(g.View, "registry.test/acme/time/1.2.3", target, "p"))
	return string(raw), g
}

// What one job downloads serves the next, and only those whose lock file names it. What
// somebody changed on disk serves nobody.
func TestCache(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lock, other := lockText(hashed("p", "good")), lockText(hashed("p", "other"))
	if got, _ := b.has(lock); got != "" {
		t.Errorf("before the first download there is %q", got)
	}
	kept, err := b.Take(t.Context(), downloaded(t, "good"), providers.ReadLock(lock))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v", kept, err)
	}
	got, given := b.has(lock)
	if got != "good" {
		t.Errorf("after it %q, %+v", got, given)
	}
	if got, _ := b.has(other); got != "" {
		t.Errorf("a lock file with another hash gets %q", got)
	}
	if kept, err := b.Take(t.Context(), downloaded(t, "good"), providers.ReadLock(lock)); err != nil || len(kept) != 0 {
		t.Errorf("the same again: %v, %v", kept, err)
	}

	// The attack: other bytes of the same size and times, under the hash.
	pkgs, err := filepath.Glob(filepath.Join(b.Dir, "packages", "*"))
	if err != nil || len(pkgs) != 1 {
		t.Fatal(pkgs, err)
	}
	file := filepath.Join(pkgs[0], "p")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file, []byte("evil"), 0o755), os.Chtimes(file, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	got, given = b.has(lock)
	if got != "" || len(given.Damaged) != 1 {
		t.Errorf("poisoned: the job gets %q, damaged %v", got, given.Damaged)
	}
	if kept, err := b.Take(t.Context(), downloaded(t, "good"), providers.ReadLock(lock)); err != nil || len(kept) != 1 {
		t.Errorf("fetched again: %v, %v", kept, err)
	}
	if got, _ := b.has(lock); got != "good" {
		t.Errorf("fetched again: %q", got)
	}
}

// What an engine puts in the place of a package is not kept unless it is that package:
// engines run the vendor's code.
func TestHostileDownloads(t *testing.T) {
	t.Parallel()
	lock := providers.ReadLock(lockText(hashed("p", "good")))
	pkg := filepath.Join("registry.test/acme/time/1.2.3", target)
	for name, spoil := range map[string]func(dir string) error{
		"other bytes":      func(dir string) error { return os.WriteFile(filepath.Join(dir, "p"), []byte("evil"), 0o755) },
		"one file more":    func(dir string) error { return os.WriteFile(filepath.Join(dir, "q"), nil, 0o755) },
		"a link to a file": func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "q")) },
		"a pipe":           func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "q"), 0o644) },
		"a link to a directory": func(dir string) error {
			return errors.Join(os.RemoveAll(dir), os.Symlink("/etc", dir))
		},
		"more than fits": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "q"), make([]byte, 2<<20), 0o755)
		},
	} {
		b, root := newBench(t), downloaded(t, "good")
		if err := spoil(filepath.Join(root.Name(), pkg)); err != nil {
			t.Fatal(err)
		}
		kept, _ := b.Take(t.Context(), root, lock)
		if left, _ := filepath.Glob(filepath.Join(b.Dir, "packages", "*")); len(kept) != 0 || len(left) != 0 {
			t.Errorf("%s: kept %v, %v", name, kept, left)
		}
		if half, _ := filepath.Glob(filepath.Join(b.Dir, ".stage-*")); len(half) != 0 {
			t.Errorf("%s left %v", name, half)
		}
	}
}

// Jobs at the same time take, use and prune the same package.
func TestConcurrentJobs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lock := lockText(hashed("p", "good"))
	var jobs sync.WaitGroup
	for range 8 {
		root := downloaded(t, "good")
		jobs.Go(func() {
			for range 5 {
				if _, err := b.Take(t.Context(), root, providers.ReadLock(lock)); err != nil {
					t.Error(err)
				}
				if got, _ := b.has(lock); got != "good" {
					t.Errorf("a job finds %q", got)
				}
				if err := b.Prune(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	jobs.Wait()
	if left, _ := filepath.Glob(filepath.Join(b.Dir, "packages", "*")); len(left) != 1 {
		t.Errorf("packages: %v", left)
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.MaxBytes = 10
	keep := func(content string) {
		t.Helper()
		if _, err := b.Take(t.Context(), downloaded(t, content), providers.ReadLock(lockText(hashed("p", content)))); err != nil {
			t.Fatal(err)
		}
	}
	there := func(want string) {
		t.Helper()
		if err := b.Prune(); err != nil {
			t.Fatal(err)
		}
		left, _ := filepath.Glob(filepath.Join(b.Dir, "packages", "*"))
		var contents []string
		for _, dir := range left {
			raw, _ := os.ReadFile(filepath.Join(dir, "p"))
			contents = append(contents, string(raw))
		}
		if len(contents) != len(strings.Fields(want)) || len(contents) == 1 && contents[0] != want {
			t.Errorf("there is %v, want %s", contents, want)
		}
	}
	keep("aaaaaa")
	b.now = b.now.Add(time.Hour)
	keep("bbbbbb")
	there("aaaaaa bbbbbb") // too much, but both may be in use
	b.now = b.now.Add(24*time.Hour - time.Minute)
	there("bbbbbb") // the one that was used the longest ago
	b.now = b.now.Add(providers.MaxAge)
	there("")
}
