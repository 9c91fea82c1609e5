package enrolcode_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/enrolcode"
)

// FuzzParse reads any text as a code: without a panic, and what it reads says the
// same when it is written again. No error repeats what it was given.
func FuzzParse(f *testing.F) {
	text, err := code().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add("\n  " + text[:40] + "\r\n" + text[40:])
	f.Add(text[:len(text)-3])
	f.Fuzz(func(t *testing.T, text string) {
		c, err := enrolcode.Parse(text)
		if err != nil {
			if len(text) > 24 && strings.Contains(err.Error(), text) {
				t.Fatalf("the error repeats the code: %v", err)
			}
			return
		}
		again, err := c.Encode()
		if err != nil {
			t.Fatalf("read, and cannot be written: %v", err)
		}
		if back, err := enrolcode.Parse(again); err != nil || back.Digest() != c.Digest() {
			t.Fatalf("written again it is another: %v", err)
		}
	})
}
