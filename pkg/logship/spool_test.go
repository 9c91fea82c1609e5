package logship_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/logship"
)

func openSpool(t *testing.T, dir string) *logship.Spool {
	t.Helper()
	s, err := logship.OpenSpool(dir, logship.Options{MaxBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func record(text string) logship.Record {
	return logship.Record{Time: time.Unix(1, 0).UTC(), Source: logship.Stdout, Text: text}
}

// ship sends everything that a finished spool has to a new stream.
func ship(t *testing.T, s *logship.Spool) *stream {
	t.Helper()
	to := newStream()
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := (logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return to
}

func TestSpoolGoesOnAfterReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSpool(t, dir)
	for n := 1; n <= 3; n++ {
		if err := s.Append([]logship.Record{record(fmt.Sprintf("line %d", n))}, logship.Stdout, int64(n*7)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.NoteLateRedaction(); err != nil {
		t.Fatal(err)
	}
	want := s.Position()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = openSpool(t, dir)
	if diff := cmp.Diff(want, s.Position()); diff != "" {
		t.Errorf("position after reopen (-before +after):\n%s", diff)
	}
	if err := s.Append([]logship.Record{record("line 4")}, logship.Stdout, 28); err != nil {
		t.Fatal(err)
	}
	to := ship(t, s)
	wantLines(t, to.texts(), 4)
	if !to.end.LateRedaction {
		t.Error("late redaction was not said at the end")
	}
}

// A write that was cut short anywhere must leave the lines and the offset of
// the write before it.
func TestSpoolCutsOffATornBlock(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSpool(t, dir)
	if err := s.Append([]logship.Record{record("line 1")}, logship.Stdout, 7); err != nil {
		t.Fatal(err)
	}
	want := s.Position()
	file := onlySegment(t, dir)
	before := fileSize(t, file)
	if err := s.Append([]logship.Record{record("line 2")}, logship.Stdout, 14); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for size := before; size < int64(len(whole)); size++ {
		torn := t.TempDir()
		if err := os.WriteFile(filepath.Join(torn, filepath.Base(file)), whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		s := openSpool(t, torn)
		if diff := cmp.Diff(want, s.Position()); diff != "" {
			t.Fatalf("position with %d bytes (-want +got):\n%s", size, diff)
		}
		if err := s.Append([]logship.Record{record("line 2")}, logship.Stdout, 14); err != nil {
			t.Fatal(err)
		}
		wantLines(t, ship(t, s).texts(), 2)
	}
}

// A kill right after the next segment was created leaves an empty file.
func TestSpoolIgnoresAnEmptySegment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSpool(t, dir)
	if err := s.Append([]logship.Record{record("line 1")}, logship.Stdout, 7); err != nil {
		t.Fatal(err)
	}
	want := s.Position()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000002-000000.seg"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, openSpool(t, dir).Position()); diff != "" {
		t.Errorf("position (-want +got):\n%s", diff)
	}
}

func TestSpoolSaysWhatItDropped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSpool(t, dir)
	big := record(strings.Repeat("x", logship.MaxText))
	stored := 0
	for {
		err := s.Append([]logship.Record{big}, logship.Stdout, int64(stored+1))
		if errors.Is(err, logship.ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		stored++
	}
	if used := dirSize(t, dir); used > 4<<20 {
		t.Errorf("spool uses %d bytes, more than its 4 MiB", used)
	}
	for n := 1; n <= 10; n++ {
		if err := s.Drop(3, logship.Stdout, int64(stored+n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil { // the count outlives a restart
		t.Fatal(err)
	}
	s = openSpool(t, dir)
	if got, want := s.Position().Stdout, int64(stored+10); got != want {
		t.Errorf("offset: got %d, want %d", got, want)
	}

	to := ship(t, s)
	if len(to.records) != stored+1 {
		t.Fatalf("got %d records, want %d and one that says the loss", len(to.records), stored)
	}
	last := to.records[stored]
	if last.LostLines() != 30 || last.Source != logship.Agent {
		t.Errorf("last record: got %+v, want one of the agent for 30 lost lines", last)
	}
	if to.end.TotalLines != int64(stored+1) {
		t.Errorf("total lines: got %d, want %d", to.end.TotalLines, stored+1)
	}
}

func TestSpoolRefusesADamagedMiddle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openSpool(t, dir)
	for n := range 40 { // 2.5 MiB, three segments
		if err := s.Append([]logship.Record{record(strings.Repeat("x", logship.MaxText))}, logship.Stdout, int64(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(segments) != 3 {
		t.Fatalf("segments: got %v, %v; want 3", segments, err)
	}
	if err := os.Truncate(segments[1], fileSize(t, segments[1])-1); err != nil {
		t.Fatal(err)
	}
	if _, err := logship.OpenSpool(dir, logship.Options{}); err == nil || !strings.Contains(err.Error(), "does not continue") {
		t.Errorf("open a spool with a hole: got error %v", err)
	}
}

func onlySegment(t *testing.T, dir string) string {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(segments) != 1 {
		t.Fatalf("segments: got %v, %v; want one", segments, err)
	}
	return segments[0]
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func dirSize(t *testing.T, dir string) (size int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		size += fileSize(t, filepath.Join(dir, e.Name()))
	}
	return size
}

// A stream that was closed for good has its spool removed while the engine still
// writes: that fails nobody.
func TestRemovedSpoolDropsWhatComes(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	s, err := logship.OpenSpool(dir, logship.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Remark("before", time.Now()); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	if err := os.WriteFile(out, []byte("a line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	close(ended)
	for what, do := range map[string]func() error{
		"a remark":        func() error { return s.Remark("after", time.Now()) },
		"dropped lines":   func() error { return s.Drop(1, logship.Stderr, 5) },
		"late redaction":  s.NoteLateRedaction,
		"lines of a file": func() error { return logship.Tail{Spool: s, Path: out, Source: logship.Stdout}.Run(t.Context(), ended) },
	} {
		if err := do(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 2 {
		if err := errors.Join(s.Finish(), s.Close()); err != nil {
			t.Errorf("the end: %v", err)
		}
	}
	if got := s.Position(); got.Stdout != 7 || !got.Final {
		t.Errorf("position = %+v: the file was not read to its end", got)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there again: %v", err)
	}
}
