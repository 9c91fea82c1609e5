package logship_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/logship"
)

// frames returns the frames of lines "line first" to "line last".
func frames(first, last int) []byte {
	var b []byte
	for n := first; n <= last; n++ {
		b = logship.AppendFrame(b, logship.Record{Time: time.Unix(int64(n), 5).UTC(), Source: logship.Stdout, Text: fmt.Sprintf("line %d", n)})
	}
	return b
}

// headAfter is the head of a stream that holds the lines 1 to last.
func headAfter(t *testing.T, last int) logship.Head {
	t.Helper()
	head, _, err := logship.Start().Advance(frames(1, last), 0)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

func TestDecide(t *testing.T) {
	t.Parallel()
	batch := func(first, last int) logship.Batch {
		return logship.Batch{FirstSeq: int64(first), PrevHash: headAfter(t, first-1).Hash, Frames: frames(first, last)}
	}
	other := func(b logship.Batch) logship.Batch {
		b.Frames = []byte(strings.Replace(string(b.Frames), "line", "lime", 1))
		return b
	}
	tests := []struct {
		name   string
		stored int
		batch  logship.Batch
		want   logship.Decision
	}{
		{"first lines", 0, batch(1, 3), logship.Decision{Verdict: logship.Extends, After: headAfter(t, 3), New: frames(1, 3)}},
		{"continues", 3, batch(4, 6), logship.Decision{Verdict: logship.Extends, After: headAfter(t, 6), New: frames(4, 6)}},
		{"overlap is trimmed", 3, batch(2, 6), logship.Decision{Verdict: logship.Extends, After: headAfter(t, 6), New: frames(4, 6)}},
		{"repeat up to the end", 6, batch(4, 6), logship.Decision{Verdict: logship.Duplicate, After: headAfter(t, 6)}},
		{"repeat of everything", 6, batch(1, 6), logship.Decision{Verdict: logship.Duplicate, After: headAfter(t, 6)}},
		{"repeat from inside", 9, batch(4, 6), logship.Decision{Verdict: logship.Inside, After: headAfter(t, 6)}},
		{"gap", 3, batch(5, 6), logship.Decision{Verdict: logship.Gap, After: headAfter(t, 6)}},
		{"other history before", 3, logship.Batch{FirstSeq: 4, PrevHash: headAfter(t, 2).Hash, Frames: frames(4, 4)}, logship.Decision{Verdict: logship.Conflict}},
		{"other line in the overlap", 3, other(batch(2, 6)), logship.Decision{Verdict: logship.Conflict}},
		{"other line in a repeat", 3, other(batch(2, 3)), logship.Decision{Verdict: logship.Conflict}},
		{"other line after the overlap is new", 1, batch(1, 2), logship.Decision{Verdict: logship.Extends, After: headAfter(t, 2), New: frames(2, 2)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := headAfter(t, tt.stored).Decide(tt.batch)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want.Verdict == logship.Conflict {
				got.After = logship.Head{} // where a conflict leads does not matter
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCutFrameRefusesWhatIsNoFrame(t *testing.T) {
	t.Parallel()
	good := frames(1, 1)
	edit := func(at int, to byte) []byte {
		b := append([]byte(nil), good...)
		b[at] = to
		return b
	}
	tests := []struct {
		name string
		in   []byte
	}{
		{"shorter than a header", good[:9]},
		{"text cut off", good[:len(good)-1]},
		{"text too long", edit(1, 0x02)},
		{"unknown source", edit(12, 9)},
		{"unknown flag", edit(13, 0x80)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := logship.CutFrame(tt.in); !errors.Is(err, logship.ErrFrame) {
				t.Errorf("got error %v, want ErrFrame", err)
			}
			if _, err := logship.Start().Decide(logship.Batch{FirstSeq: 1, Frames: tt.in}); !errors.Is(err, logship.ErrFrame) {
				t.Errorf("Decide: got error %v, want ErrFrame", err)
			}
		})
	}
}

func TestFrameKeepsTheRecord(t *testing.T) {
	t.Parallel()
	for _, want := range []logship.Record{
		{Time: time.Unix(1763630000, 123456789).UTC(), Source: logship.Stderr, Text: "grüße\x00"},
		{Time: time.Unix(0, 1).UTC(), Source: logship.Stdout, Text: "", Continues: true},
		{Time: time.Unix(7, 0).UTC(), Source: logship.Agent, Text: "1284 lines dropped: spool full", Lost: true},
	} {
		frame, rest, err := logship.CutFrame(logship.AppendFrame(nil, want))
		if err != nil || len(rest) != 0 {
			t.Fatalf("cut frame of %v: rest %d, error %v", want, len(rest), err)
		}
		if diff := cmp.Diff(want, logship.DecodeFrame(frame)); diff != "" {
			t.Errorf("record (-want +got):\n%s", diff)
		}
	}
	if got := (logship.Record{Lost: true, Text: "1284 lines dropped"}).LostLines(); got != 1284 {
		t.Errorf("lost lines: got %d, want 1284", got)
	}
}
