package logship_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/logship"
)

// shipUntil ships until the other side has a number of lines, and closes the
// spool as an agent that dies does.
func shipUntil(t *testing.T, s *logship.Spool, to *stream, lines int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond}.Run(ctx) }()
	to.wait(t, lines)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// replace moves a spool away, as the agent does with a damaged one, and makes a
// new one in its place.
func replace(t *testing.T, dir string) *logship.Spool {
	t.Helper()
	pos, _ := logship.LastPosition(dir)
	if err := os.Rename(dir, dir+".evidence"); err != nil {
		t.Fatal(err)
	}
	s, err := logship.ReplaceSpool(dir, logship.Options{}, "lines are missing here", pos)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// What the new spool of a stream holds comes behind what is there already, and
// says at its start that lines are missing.
func TestReplacedSpoolGoesOnBehindWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	s, to := openSpool(t, dir), newStream()
	appendLines(t, s, 1, 5)
	shipUntil(t, s, to, 5)

	s = replace(t, dir)
	if got := s.Position().Stdout; got != 5 {
		t.Errorf("the engine's output is read on from %d, want 5", got)
	}
	appendLines(t, s, 6, 7)
	if err := s.Close(); err != nil { // astray is remembered
		t.Fatal(err)
	}
	s = openSpool(t, dir)
	appendLines(t, s, 8, 8)
	finish(t, s, to)
	want := []string{"line 1", "line 2", "line 3", "line 4", "line 5", "lines are missing here", "line 6", "line 7", "line 8"}
	if diff := cmp.Diff(want, to.texts()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if !to.records[5].Lost {
		t.Error("the line is not marked as one for lost lines")
	}
	if left, _ := filepath.Glob(dir + ".[as][se]t*"); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// Nothing was sent before: the numbers are right, and stay so.
func TestReplacedSpoolOfAnEmptyStream(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	s, to := openSpool(t, dir), newStream()
	appendLines(t, s, 1, 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = replace(t, dir)
	appendLines(t, s, 3, 3)
	shipUntil(t, s, to, 2)
	if s = openSpool(t, dir); s.Position().Astray {
		t.Error("the spool is still astray")
	}
	finish(t, s, to)
	if diff := cmp.Diff([]string{"lines are missing here", "line 3"}, to.texts()); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

// A spool that opens, but was cut where lines had been sent: the others still
// arrive, behind a line that says so.
func TestCutSpoolSettles(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	s, to := openSpool(t, dir), newStream()
	appendLines(t, s, 1, 5)
	shipUntil(t, s, to, 5)
	file := onlySegment(t, dir)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	copy(raw[len(raw)/2:], "garbage")
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	s = openSpool(t, dir)
	appendLines(t, s, 9, 9)
	finish(t, s, to)
	texts := to.texts()
	if !slices.Contains(texts, "line 9") || !strings.Contains(texts[5], "damaged") || !to.records[5].Lost {
		t.Errorf("lines = %q, want line 9 behind a line that says that the spool was damaged", texts)
	}
}

// The machine may die at any moment while a spool settles.
func TestSettlingSurvivesACrash(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(t *testing.T, dir string){
		"while it is written again": func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir+".settling", "half"), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"between the renames": func(t *testing.T, dir string) {
			if err := os.CopyFS(dir+".settling", os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir, dir+".astray"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "spool")
			s := openSpool(t, dir)
			appendLines(t, s, 1, 3)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			crash(t, dir)
			wantLines(t, ship(t, openSpool(t, dir)).texts(), 3)
			if left, _ := filepath.Glob(dir + ".*"); len(left) > 0 {
				t.Errorf("left over: %v", left)
			}
		})
	}
}
