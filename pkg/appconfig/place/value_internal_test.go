package place

import (
	"testing"
)

// FuzzDuration holds that what is read is written in a form that reads the same.
func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"5m", "1h30m", "90s", "-5m", "0", "1.5h", "1e3s", "9223372036854775807ns", "9999999h", "µs", "1 h", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var first, second Duration
		if first.UnmarshalText([]byte(text)) != nil {
			return
		}
		written, err := first.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		if err := second.UnmarshalText(written); err != nil || first != second {
			t.Fatalf("%q is %s, read again it is %s: %v", text, first, second, err)
		}
	})
}
