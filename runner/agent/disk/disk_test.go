package disk_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/runner/agent/disk"
)

func TestRoom(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	for _, tc := range []struct {
		name      string
		room      disk.Room
		low, full bool
		says      []string
	}{
		{name: "enough", room: disk.Room{Dir: "/data", Free: 300 * mib, Total: 1000 * mib, Least: 256 * mib}},
		{name: "little", room: disk.Room{Dir: "/data", Free: 200 * mib, Total: 1000 * mib, Least: 256 * mib}, low: true, says: []string{"disk full", "/data", "200.0 MiB", "256.0 MiB"}},
		{name: "none", room: disk.Room{Dir: "/data", Total: 1000 * mib, Least: 256 * mib}, low: true, full: true, says: []string{"disk full", "0 B of 1000.0 MiB"}},
		{name: "no more files", room: disk.Room{Dir: "/data", Free: 300 * mib, Total: 1000 * mib, Least: 256 * mib, CountsFiles: true, FilesFree: 3}, low: true, full: true, says: []string{"disk full", "3 more files"}},
		{name: "a quota", room: disk.Room{Dir: "/data", Free: 300 * mib, Total: 1000 * mib, Least: 256 * mib, Failed: syscall.EDQUOT.Error()}, low: true, full: true, says: []string{"disk full", syscall.EDQUOT.Error()}},
		{name: "read only", room: disk.Room{Dir: "/data", Free: 300 * mib, Total: 1000 * mib, Least: 256 * mib, Failed: syscall.EROFS.Error()}, low: true, full: true, says: []string{"cannot be written", syscall.EROFS.Error()}},
		{name: "not measured", room: disk.Room{}},
	} {
		if tc.room.Low() != tc.low || tc.room.Full() != tc.full {
			t.Errorf("%s: low %v, full %v; want %v, %v", tc.name, tc.room.Low(), tc.room.Full(), tc.low, tc.full)
		}
		if problem := tc.room.Problem(); (problem == "") == tc.low {
			t.Errorf("%s: problem %q", tc.name, problem)
		}
		for _, want := range tc.says {
			if !strings.Contains(tc.room.Problem(), want) {
				t.Errorf("%s: %q does not say %q", tc.name, tc.room.Problem(), want)
			}
		}
		if tc.name == "read only" && strings.Contains(tc.room.Problem(), "disk full") {
			t.Errorf("a read-only disk is called full: %q", tc.room.Problem())
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cause := fmt.Errorf("write x: %w", syscall.ENOSPC)
	err := disk.Explain(dir, 0, cause)
	if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "disk full") || !strings.Contains(err.Error(), dir) {
		t.Errorf("explained: %v", err)
	}
	if again := disk.Explain(dir, 0, fmt.Errorf("start: %w", err)); strings.Count(again.Error(), "disk full") != 1 {
		t.Errorf("explained twice: %v", again)
	}
	for _, other := range []error{nil, errors.New("x"), syscall.EACCES} {
		if got := disk.Explain(dir, 0, other); !errors.Is(got, other) || got != nil && got.Error() != other.Error() {
			t.Errorf("%v became %v", other, got)
		}
	}
}

// What must be written gets of the reserve, bit by bit, and the reserve is
// filled up again when there is room.
func TestInsistTakesOfTheReserve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	reserve := filepath.Join(dir, "reserve")
	g := disk.Open(dir, 1, slog.New(slog.DiscardHandler))
	whole := size(t, reserve)
	if whole == 0 {
		t.Fatal("nothing is reserved")
	}
	tries := 0
	err := g.Insist(func() error {
		if tries++; tries < 4 {
			return fmt.Errorf("write report: %w", syscall.ENOSPC)
		}
		return nil
	})
	left := size(t, reserve)
	if err != nil || tries != 4 || left >= whole || left == 0 {
		t.Errorf("err %v after %d tries, reserve from %d to %d bytes", err, tries, whole, left)
	}
	g.Look()
	if got := size(t, reserve); got != whole {
		t.Errorf("reserve has %d bytes again, want %d", got, whole)
	}
	err = g.Insist(func() error { return fmt.Errorf("write report: %w", syscall.ENOSPC) })
	var full *disk.Error
	if !errors.As(err, &full) || size(t, reserve) != 0 {
		t.Errorf("err = %v with %d bytes of reserve left", err, size(t, reserve))
	}
	if room, _ := g.Now(); !room.Low() {
		t.Error("after a failed write there is room")
	}
	if !g.WasLow(time.Now()) {
		t.Error("it was not full now")
	}
	if room := g.Look(); room.Low() {
		t.Errorf("a write that works again is not noticed: %s", room.Problem())
	}
	if g.WasLow(time.Now().Add(-time.Hour)) {
		t.Error("it was full an hour ago")
	}
}

// An error that says nothing of the disk comes back as it is and gives up
// nothing.
func TestInsistLeavesOtherErrorsAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := disk.Open(dir, 1, slog.New(slog.DiscardHandler))
	whole := size(t, filepath.Join(dir, "reserve"))
	other := errors.New("not of the disk")
	if err := g.Insist(func() error { return other }); !errors.Is(err, other) || size(t, filepath.Join(dir, "reserve")) != whole {
		t.Errorf("err = %v", err)
	}
	if room, _ := g.Now(); room.Low() {
		t.Errorf("it is called a problem of the disk: %s", room.Problem())
	}
	var none *disk.Guard
	if err := none.Insist(func() error { return other }); !errors.Is(err, other) || none.Look().Low() {
		t.Errorf("no guard: %v", err)
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
