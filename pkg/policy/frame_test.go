package policy_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/policy"
)

func TestFrame(t *testing.T) {
	t.Parallel()
	var pipe bytes.Buffer
	for _, message := range []string{"", "one", strings.Repeat("x", 1000)} {
		if err := policy.WriteFrame(&pipe, message, 2000); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`""`, `"one"`, `"` + strings.Repeat("x", 1000) + `"`} {
		if got, err := policy.ReadFrame(&pipe, 2000); err != nil || string(got) != want {
			t.Errorf("got %.20q, %v, want %.20q", got, err, want)
		}
	}
	if _, err := policy.ReadFrame(&pipe, 2000); !errors.Is(err, io.EOF) {
		t.Errorf("behind the last: %v", err)
	}
	if err := policy.WriteFrame(&pipe, strings.Repeat("x", 3000), 2000); err == nil || pipe.Len() > 0 {
		t.Errorf("too long: %v, %d bytes written", err, pipe.Len())
	}
	for _, tc := range []struct{ name, bytes string }{
		{"half a head", "\x00\x00"}, {"half a message", "\x00\x00\x00\x09abc"}, {"a message that is too long", "\xff\xff\xff\xffabc"},
	} {
		if got, err := policy.ReadFrame(strings.NewReader(tc.bytes), 2000); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %q, %v", tc.name, got, err)
		}
	}
}

// FuzzReadFrame: no head makes it read more than it may, or take a part for the whole.
func FuzzReadFrame(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x03abc\x00\x00\x00\x00"))
	f.Add([]byte("\x7f\xff\xff\xff"))
	const most = 64
	f.Fuzz(func(t *testing.T, raw []byte) {
		from := bytes.NewReader(raw)
		for {
			before := from.Len()
			got, err := policy.ReadFrame(from, most)
			if err != nil {
				return
			}
			if len(got) > most || before-from.Len() != 4+len(got) {
				t.Fatalf("%d bytes taken for a message of %d", before-from.Len(), len(got))
			}
		}
	})
}
