package dirwatch_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/runner/agent/dirwatch"
)

// Several follow the same directory, and one that ends takes nothing from the others. All
// share one instance of inotify, of which a user has few.
func TestWatch(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	follow := func(dir string) (<-chan struct{}, func()) {
		t.Helper()
		changed, end, err := dirwatch.Watch(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(end)
		return changed, end
	}
	one, endOne := follow(dir)
	two, _ := follow(dir)
	elsewhere, _ := follow(other)
	for range 200 {
		follow(t.TempDir())
	}
	hears := func(who string, changed <-chan struct{}) {
		t.Helper()
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s hears nothing", who)
		}
	}
	silent := func(who string, changed <-chan struct{}) {
		t.Helper()
		select {
		case <-changed:
			t.Errorf("%s hears of it", who)
		case <-time.After(50 * time.Millisecond):
		}
	}
	file := filepath.Join(dir, "file")
	write := func() {
		t.Helper()
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	write()
	hears("the first", one)
	hears("the second", two)
	silent("who follows another directory", elsewhere)
	endOne()
	endOne() // once is enough
	write()
	hears("the second, alone", two)
	silent("who ended", one)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	hears("the second, of a removal", two)
	again, _ := follow(dir)
	write()
	hears("one that came later", again)
	hears("the second", two)

	if n := instances(t); n != 1 {
		t.Errorf("%d instances of inotify, want 1", n)
	}
	if _, _, err := dirwatch.Watch(filepath.Join(dir, "gone")); err == nil {
		t.Error("a directory that is not there is followed")
	}
}

// instances counts those that this process has.
func instances(t *testing.T) (n int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range open {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.Contains(to, "inotify") {
			n++
		}
	}
	return n
}
