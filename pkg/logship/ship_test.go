package logship_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/logship"
)

// appendLines appends the lines first to last, one block each.
func appendLines(t *testing.T, s *logship.Spool, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		if err := s.Append([]logship.Record{record(fmt.Sprintf("line %d", n))}, logship.Stdout, int64(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestShipperThroughOutagesAndLostReplies(t *testing.T) {
	t.Parallel()
	s, to := openSpool(t, t.TempDir()), newStream()
	to.fault = func(call int) (error, bool) {
		switch call % 3 {
		case 0:
			return errors.New("reply lost"), true
		case 1:
			return errors.New("away"), false
		}
		return nil, false
	}
	done := make(chan error, 1)
	go func() {
		done <- logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond}.Run(t.Context())
	}()
	for n := 1; n <= 50; n += 10 {
		appendLines(t, s, n, n+9)
		to.wait(t, n) // so that several batches are sent
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantLines(t, to.texts(), 50)
	if got := to.end.TotalLines; got != 50 {
		t.Errorf("total lines: got %d, want 50", got)
	}
}

// The end of a log does not wait for its interval.
func TestShipperSendsTheEndAtOnce(t *testing.T) {
	t.Parallel()
	s, to := openSpool(t, t.TempDir()), newStream()
	done := make(chan error, 1)
	go func() { done <- logship.Shipper{Spool: s, Sink: to, Interval: time.Hour}.Run(t.Context()) }()
	appendLines(t, s, 1, 1)
	to.wait(t, 1) // from here on the shipper collects for an hour
	appendLines(t, s, 2, 5)
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	wantLines(t, to.texts(), 5)
}

func TestShipperFreesWhatIsAcknowledged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, to := openSpool(t, dir), newStream()
	go func() {
		_ = logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond}.Run(t.Context())
	}()
	text := strings.Repeat("x", logship.MaxText)
	for n := 1; n <= 256; n++ { // 16 MiB through 4 MiB
		for {
			err := s.Append([]logship.Record{record(text)}, logship.Stdout, int64(n))
			if err == nil {
				break
			}
			if !errors.Is(err, logship.ErrFull) {
				t.Fatal(err)
			}
			to.wait(t, n-64) // 4 MiB are 64 such lines; there is room by then or soon
		}
	}
	to.wait(t, 256)
	if used := dirSize(t, dir); used > 4<<20 {
		t.Errorf("spool uses %d bytes, more than its 4 MiB", used)
	}
}

func TestShipperObeysTheOtherSide(t *testing.T) {
	t.Parallel()
	t.Run("it has more than we know", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		s, to := openSpool(t, dir), newStream()
		appendLines(t, s, 1, 5)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- logship.Shipper{Spool: s, Sink: to}.Run(ctx) }()
		to.wait(t, 5)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Fatalf("shipper ended with %v, want the cause of its context", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = openSpool(t, dir) // a restarted agent does not know what was acknowledged
		appendLines(t, s, 6, 8)
		finish(t, s, to)
		wantLines(t, to.texts(), 8)
	})
	t.Run("it forgot lines that we still have", func(t *testing.T) {
		t.Parallel()
		s, to := openSpool(t, t.TempDir()), newStream()
		appendLines(t, s, 1, 5)
		done := make(chan error, 1)
		go func() { done <- logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond}.Run(t.Context()) }()
		to.wait(t, 5)
		to.forget(t, 3)
		appendLines(t, s, 6, 8)
		if err := s.Finish(); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		wantLines(t, to.texts(), 8)
	})
	t.Run("it has other lines", func(t *testing.T) {
		t.Parallel()
		a, b, to := openSpool(t, t.TempDir()), openSpool(t, t.TempDir()), newStream()
		appendLines(t, a, 1, 3)
		finish(t, a, to)
		appendLines(t, b, 2, 5)
		if err := (logship.Shipper{Spool: b, Sink: to}).Run(t.Context()); !errors.Is(err, logship.ErrConflict) {
			t.Errorf("shipper of another history ended with %v, want ErrConflict", err)
		}
		wantLines(t, to.texts(), 3)
	})
	t.Run("the attempt was voided", func(t *testing.T) {
		t.Parallel()
		s, to := openSpool(t, t.TempDir()), newStream()
		to.fault = func(int) (error, bool) { return logship.ErrClosed, false }
		appendLines(t, s, 1, 1)
		if err := (logship.Shipper{Spool: s, Sink: to}).Run(t.Context()); !errors.Is(err, logship.ErrClosed) {
			t.Errorf("shipper ended with %v, want ErrClosed", err)
		}
	})
}

func finish(t *testing.T, s *logship.Spool, to *stream) {
	t.Helper()
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := (logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// spanning replaces one secret that has a line end inside.
type spanning string

func (s spanning) Bytes(raw []byte) []byte {
	return []byte(strings.ReplaceAll(string(raw), string(s), "***"))
}

func (s spanning) Hold(raw []byte) int {
	for n := min(len(s)-1, len(raw)); n > 0; n-- {
		if strings.HasSuffix(string(raw), string(s[:n])) {
			return n
		}
	}
	return 0
}

func TestTailRedactsAcrossWritesAndLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stdout")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	s, to, ended := openSpool(t, t.TempDir()), newStream(), make(chan struct{})
	tailed, shipped := make(chan error, 1), make(chan error, 1)
	go func() {
		tailed <- logship.Tail{Spool: s, Path: path, Source: logship.Stdout, Redact: spanning("BEGIN\nKEY")}.Run(t.Context(), ended)
	}()
	go func() { shipped <- logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond}.Run(t.Context()) }()

	write := func(text string) {
		t.Helper()
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("one\nBEGIN\n")
	to.wait(t, 1) // the first line is through, the beginning of the secret is held
	write("KEY end\ntwo\nlast BEG")
	to.wait(t, 3)
	close(ended)
	if err := <-tailed; err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := <-shipped; err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(to.texts(), "|"), "one|*** end|two|last BEG"; got != want {
		t.Errorf("lines: got %q, want %q", got, want)
	}
}

// Thousands of empty lines make frames that are larger than a block.
func TestTailTakesManyShortLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stdout")
	if err := os.WriteFile(path, []byte(strings.Repeat("\n", 300_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := logship.OpenSpool(t.TempDir(), logship.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	close(ended)
	if err := (logship.Tail{Spool: s, Path: path, Source: logship.Stdout}).Run(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	if got := len(ship(t, s).records); got != 300_000 {
		t.Errorf("got %d lines, want 300000", got)
	}
}

func TestTailDropsOnlyAfterItWaited(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "stdout")
	line := strings.Repeat("x", 1023) + "\n"
	if err := os.WriteFile(path, []byte(strings.Repeat(line, 6<<10)), 0o600); err != nil { // 6 MiB
		t.Fatal(err)
	}
	s, ended := openSpool(t, t.TempDir()), make(chan struct{}) // 4 MiB
	close(ended)
	tail := logship.Tail{Spool: s, Path: path, Source: logship.Stdout, FullWait: time.Millisecond}
	if err := tail.Run(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	to := ship(t, s)
	lost := to.records[len(to.records)-1].LostLines()
	if lost == 0 || int64(len(to.records))-1+lost != 6<<10 {
		t.Errorf("got %d lines and %d said to be lost, want %d together", len(to.records)-1, lost, 6<<10)
	}
}
