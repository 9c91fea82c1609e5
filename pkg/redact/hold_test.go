package redact_test

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/pkg/redact"
)

// A Set redacts what a log shipper tails.
var _ logship.Redactor = (*redact.Set)(nil)

func TestHold(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		set  *redact.Set
		in   string
		want string // what is held
	}{
		{"no secrets", redact.New(), "anything", ""},
		{"empty text", named("pw", "swordfish"), "", ""},
		{"nothing begins", named("pw", "swordfish"), "a complete line\n", ""},
		{"beginning at the end", named("pw", "swordfish"), "pw=swordfis", "swordfis"},
		{"beginning in the middle", named("pw", "swordfish"), "swordfis, no", ""},
		{"all of it", named("pw", "swordfish"), "pw=swordfish", ""},
		{"all of it, and a beginning", named("pw", "swordfish"), "swordfishsword", "sword"},
		{"all of a shorter one that begins a longer", named("short", "hunter22", "long", "hunter22-and-more"), "pw=hunter22", "hunter22"},
		{"complete, and its end begins another", named("a", "abcdefgh", "b", "efghijklm"), "x abcdefgh", "abcdefgh"},
		{"complete ones in a row, the last overlapped", named("a", "abcdefgh", "b", "efghijkl", "c", "ijklmnop"), "x abcdefghijkl", "abcdefghijkl"},
		{"overlaps itself", named("", "aaaaaaaa"), "b" + strings.Repeat("a", 20), strings.Repeat("a", 20)},
		{"several lines, the first is complete", named("pem", "first line\nsecond line"), "x\nfirst line\n", "first line\n"},
		{"beginning of base64", named("pw", "swordfish!"), "Authorization: c3dvcmRm", "c3dvcmRm"},
		{"beginning of hex", named("pw", "swordfish"), "73776f72", "73776f72"},
		{"too short to be looked for", named("pw", "true"), "tru", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.in[len(tt.in)-tt.set.Hold([]byte(tt.in)):]; got != tt.want {
				t.Errorf("of %q held %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// held streams text through a window of its own, as a caller of Hold does. It
// cuts where it may, and sometimes further in front.
func held(set *redact.Set, text string, r *rand.Rand) string {
	var out strings.Builder
	var window []byte
	for rest := text; rest != ""; {
		n := 1 + r.IntN(min(len(rest), 1+r.IntN(40)))
		window, rest = append(window, rest[:n]...), rest[n:]
		end := len(window) - set.Hold(window)
		if end > 0 && r.IntN(3) == 0 {
			end = r.IntN(end)
			end -= set.Hold(window[:end])
		}
		out.Write(set.Bytes(window[:end]))
		window = window[end:]
	}
	out.Write(set.Bytes(window))
	return out.String()
}

func TestHoldLetsNoSecretThroughWhateverTheWindow(t *testing.T) {
	t.Parallel()
	set := redact.New()
	var text strings.Builder
	for i, secret := range secrets {
		set.Add([]byte(secret), "s"+strconv.Itoa(i))
		for _, spelling := range spellings(secret) {
			text.WriteString("words between " + spelling + spelling[:len(spelling)/2] + "\n")
		}
	}
	want := plain(set.String(text.String()))
	for seed := range uint64(200) {
		got := plain(held(set, text.String(), rand.New(rand.NewPCG(seed, 3))))
		// A window may end between two stretches that touch, never inside one.
		if joined(got) != joined(want) {
			t.Fatalf("seed %d: got %q, want %q", seed, got, want)
		}
	}
}

// joined makes replacements that touch one.
func joined(s string) string {
	for strings.Contains(s, "(redacted)(redacted)") {
		s = strings.ReplaceAll(s, "(redacted)(redacted)", "(redacted)")
	}
	return s
}
