package logship_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/logship"
)

const note = "[withheld]"

// customer switches lines off, and has those that stayed.
type customer struct {
	off  atomic.Bool
	mu   sync.Mutex
	kept strings.Builder
}

func (c *customer) withholding() *logship.Withholding {
	return &logship.Withholding{
		Off: c.off.Load, Keep: func(r logship.Record) bool { return r.Source == logship.Agent }, Note: note,
		Store: func(lines []byte) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.kept.Write(lines)
			return nil
		},
	}
}

func (c *customer) lines() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kept.String()
}

// lines are the texts of lines first to last.
func lines(first, last int) (texts []string) {
	for n := first; n <= last; n++ {
		texts = append(texts, fmt.Sprintf("line %d", n))
	}
	return texts
}

// The lines that had not left when they were switched off stay; a note is in their place,
// what the agent says goes on, and the log ends as it should. Whether a batch of theirs had
// arrived without an answer, only the other side knows.
func TestLinesInTheSpoolAreWithheld(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		// arrives: the batch that is tried when the switch is set comes there all the same.
		arrives bool
		// restart: another agent ships what is left.
		restart bool
		want    []string
		kept    []string
	}{
		{name: "while the other side is away", want: append(lines(1, 5), note, "remark"), kept: lines(6, 20)},
		{name: "when a batch has arrived and its answer is lost", arrives: true, want: append(lines(1, 20), note, "remark"), kept: lines(6, 20)},
		// The next agent does not know what has arrived, and keeps all of it back.
		{name: "by the next agent", restart: true, want: append(lines(1, 5), note, "remark"), kept: lines(1, 20)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "spool")
			s, to := openSpool(t, dir), newStream()
			c := &customer{}
			appendLines(t, s, 1, 5)
			var away atomic.Bool
			tried := make(chan struct{}, 1)
			to.fault = func(int) (error, bool) {
				if !away.Load() {
					return nil, false
				}
				select {
				case tried <- struct{}{}:
				default:
				}
				return errors.New("away"), tc.arrives
			}
			done := make(chan error, 1)
			if !tc.restart {
				go func() {
					done <- logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond, Withhold: c.withholding()}.Run(t.Context())
				}()
				to.wait(t, 5)
			} else {
				shipUntil(t, s, to, 5)
				s = openSpool(t, dir)
			}
			away.Store(!tc.restart)
			var records []logship.Record
			for _, text := range lines(6, 20) {
				records = append(records, record(text))
			}
			if err := s.Append(records, logship.Stdout, 20); err != nil { // one block: it leaves in one batch
				t.Fatal(err)
			}
			if !tc.restart {
				<-tried
			}
			c.off.Store(true)
			if err := s.Remark("remark", time.Now()); err != nil {
				t.Fatal(err)
			}
			if tc.restart {
				go func() {
					done <- logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond, Withhold: c.withholding()}.Run(t.Context())
				}()
			}
			away.Store(false)
			if err := s.Finish(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, to.texts()); diff != "" {
				t.Errorf("what left (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.Join(tc.kept, "\n")+"\n", c.lines()); diff != "" {
				t.Errorf("what stayed (-want +got):\n%s", diff)
			}
			if pos := s.Position(); pos.Stdout != 20 || !pos.Final || pos.Head.NextSeq != to.head.NextSeq || pos.Head.Hash != to.head.Hash || pos.Astray {
				t.Errorf("the spool stands at %+v, the stream at %+v", pos, to.head)
			}
		})
	}
}

// A spool of several segments, of which one line in the middle of a block was the last
// that left; switched on again, later lines leave.
func TestAFullSpoolIsWithheld(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "spool")
	s, to := openSpool(t, dir), newStream()
	c := &customer{}
	c.off.Store(true)
	big := strings.Repeat("x", logship.MaxText)
	for n := range 40 { // 2.5 MiB
		if err := s.Append([]logship.Record{record(big)}, logship.Stdout, int64(n+1)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() {
		done <- logship.Shipper{Spool: s, Sink: to, Interval: time.Microsecond, Withhold: c.withholding()}.Run(t.Context())
	}()
	to.wait(t, 1)
	c.off.Store(false)
	if err := s.Append([]logship.Record{record("after")}, logship.Stdout, 41); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{note, "after"}, to.texts()); diff != "" {
		t.Errorf("what left (-want +got):\n%s", diff)
	}
	if got := strings.Count(c.lines(), big+"\n"); got != 40 {
		t.Errorf("%d of 40 lines stayed", got)
	}
	if used := dirSize(t, dir); used > 1<<20 {
		t.Errorf("the spool uses %d bytes", used)
	}
}
