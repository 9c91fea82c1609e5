package visible_test

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/visible"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, text, want string }{
		{"plain", "Grüße, 船 ✓ → …\n\tnext", "Grüße, 船 ✓ → …\n\tnext"},
		{"escape sequence", "\x1b[2J\x1b]0;title\x07", "⟨U+001B⟩[2J⟨U+001B⟩]0;title⟨U+0007⟩"},
		{"one-byte form of it", "\u009b2J", "⟨U+009B⟩2J"},
		{"carriage return", "rm -rf /\rls", "rm -rf /⟨U+000D⟩ls"},
		{"backspace, delete, NUL", "a\b\x7f\x00", "a⟨U+0008⟩⟨U+007F⟩⟨U+0000⟩"},
		{"override", "a\u202eb\u202c", "a⟨U+202E⟩b⟨U+202C⟩"},
		{"isolate and marks", "\u2066\u2069\u200e\u200f\u061c", "⟨U+2066⟩⟨U+2069⟩⟨U+200E⟩⟨U+200F⟩⟨U+061C⟩"},
		{"zero width", "a\u200b\u200c\u200d\u2060\ufeffb", "a⟨U+200B⟩⟨U+200C⟩⟨U+200D⟩⟨U+2060⟩⟨U+FEFF⟩b"},
		{"separators", "a\u2028b\u2029", "a⟨U+2028⟩b⟨U+2029⟩"},
		{"tags", "\U000e0001\U000e0041", "⟨U+E0001⟩⟨U+E0041⟩"},
		{"variation selectors", "⚠\ufe0f\U000e0100", "⚠⟨U+FE0F⟩⟨U+E0100⟩"},
		{"letters that take no room", "\u115f\u1160\u3164\uffa0\u034f", "⟨U+115F⟩⟨U+1160⟩⟨U+3164⟩⟨U+FFA0⟩⟨U+034F⟩"},
		{"not UTF-8", "a\xff\xe2\x82z", "a⟨xFF⟩⟨xE2⟩⟨x82⟩z"},
		{"the replacement character itself", "\ufffd", "\ufffd"},
		{"no character", "\ufdd0\uffff\U0010ffff", "⟨U+FDD0⟩⟨U+FFFF⟩⟨U+10FFFF⟩"},
		{"written out by hand", `\x1b ⟨U+202E⟩ U+202E`, `\x1b ⟨U+27E8⟩U+202E⟩ U+202E`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := visible.Text(tc.text); got != tc.want {
				t.Errorf("%q: got %q, want %q", tc.text, got, tc.want)
			}
			if got := visible.Line(tc.text); got != strings.NewReplacer("\n", "⟨U+000A⟩", "\t", "⟨U+0009⟩").Replace(tc.want) {
				t.Errorf("as a line: %q", got)
			}
		})
	}
}

// FuzzText: nothing hidden is left, and what is shown stands for one text only.
func FuzzText(f *testing.F) {
	f.Add("a\x1b[2J⟨U+202E⟩\u202e\xff\n")
	f.Add("⟨x⟩⟨U+⟩\\u202e")
	f.Fuzz(func(t *testing.T, text string) {
		shown := visible.Text(text)
		if i := strings.IndexFunc(shown, visible.Hidden); i >= 0 || !utf8.ValidString(shown) {
			t.Errorf("%q: hidden at %d of %q", text, i, shown)
		}
		if back := read(t, shown); back != text {
			t.Errorf("%q is shown as %q, which reads as %q", text, shown, back)
		}
		if line := visible.Line(text); strings.ContainsAny(line, "\n\t") || read(t, line) != text {
			t.Errorf("%q is shown as the line %q", text, line)
		}
	})
}

var shownCharacter = regexp.MustCompile(`⟨(?:U\+([0-9A-F]{4,6})|x([0-9A-F]{2}))⟩`)

// read is what a person who knows the rule reads.
func read(t *testing.T, shown string) string {
	t.Helper()
	return shownCharacter.ReplaceAllStringFunc(shown, func(s string) string {
		groups := shownCharacter.FindStringSubmatch(s)
		n, err := strconv.ParseUint(groups[1]+groups[2], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		if groups[1] != "" {
			return string(rune(n))
		}
		return string([]byte{byte(n)})
	})
}

func TestJSON(t *testing.T) {
	t.Parallel()
	in := map[string]string{"a\u202e": "x\u009b\u007f\u2028\U000e0041\n\x1b⟨"}
	encoded, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	got := visible.JSON(encoded)
	if want := `{"a\u202e":"x\u009b\u007f\u2028\udb40\udc41\n\u001b⟨"}`; string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back map[string]string
	if err := json.Unmarshal(got, &back); err != nil || !cmp.Equal(in, back) {
		t.Errorf("%v: read back as %q", err, back)
	}
}

func TestWriter(t *testing.T) {
	t.Parallel()
	text := "✓ \x1b[31mred\u202e\xff " + visible.Own("\x1b[32m") + "own" + visible.Own("\x1b[0m") + " ⟨U+202E⟩\nnext\t\r"
	want := "✓ ⟨U+001B⟩[31mred⟨U+202E⟩⟨xFF⟩ \x1b[32mown\x1b[0m ⟨U+202E⟩\nnext\t⟨U+000D⟩"
	for name, in := range map[string]io.Reader{"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text))} {
		var out bytes.Buffer
		w := visible.NewWriter(&out)
		if _, err := io.CopyBuffer(struct{ io.Writer }{w}, struct{ io.Reader }{in}, make([]byte, 512)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("%s: got %q, want %q", name, out.String(), want)
		}
	}
}

// What is cut in two and never completed is shown all the same.
func TestWriterFlush(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a\xe2\x82", "a\x1b", visible.Own("\x1b")[:9]} {
		var out bytes.Buffer
		w := visible.NewWriter(&out)
		_, _ = io.WriteString(w, text)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); read(t, got) != text || strings.ContainsFunc(got, visible.Hidden) {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func TestWriterReportsErrors(t *testing.T) {
	t.Parallel()
	r, pipe := io.Pipe()
	_ = r.Close()
	if _, err := visible.NewWriter(pipe).Write([]byte("x")); err == nil {
		t.Error("no error of a closed pipe")
	}
}

func TestRow(t *testing.T) {
	t.Parallel()
	if got, want := visible.Row(visible.Own("\x1b[2m")+"a\nb\t\x1b⟨"), visible.Own("\x1b[2m")+"a⟨U+000A⟩b\t⟨U+001B⟩⟨"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
