package output_test

import (
	"testing"

	"github.com/berth-dev/berth/cli/internal/output"
)

func TestLogLinesCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext ✓":                        "plain\ttext ✓",
		"\x1b[32mgreen\x1b[0;1m ✓\x1b[38:5:1m": "green ✓",
		"\x1b[2J\x1b[Hcleared":                 "⟨U+001B⟩[2J⟨U+001B⟩[Hcleared",
		"\x1b]0;title\x07x":                    "⟨U+001B⟩]0;title⟨U+0007⟩x",
		"over\rwritten\x08\x7f":                "over⟨U+000D⟩written⟨U+0008⟩⟨U+007F⟩",
		"\x1b[":                                "⟨U+001B⟩[",
		"two\nlines":                           "two⟨U+000A⟩lines",
		"é\x1b[1;31mü\x1b[0m日本\u009b2J end":    "éü日本⟨U+009B⟩2J end",
	} {
		if got := output.Printable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
