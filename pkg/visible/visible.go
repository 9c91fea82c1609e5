// Package visible makes text that somebody else wrote safe to show on a
// terminal: characters that steer it, reorder it or cannot be seen are written
// out, and nothing else is changed.
//
// A character is shown as its code point, ⟨U+001B⟩ for ESC, and a byte that is
// not UTF-8 as ⟨xFF⟩. Text and Line also write the bracket ⟨ itself that way,
// so what they return stands for one text only: whatever is between ⟨ and ⟩ was
// one character or byte, and everything else is as it was. A literal `\x1b` or
// `U+202E` stays what it is and cannot be mistaken for the character.
//
// A Writer is the last line: a program puts one around its standard output and
// error, so that no command can forget to do this. It leaves ⟨ alone, as the
// text may have been through Text before. The program's own colours and cursor
// movements pass it when they are made by Own.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// open begins what stands for a character, and is itself shown that way.
const open = '⟨'

// Text makes text of several lines visible: line feeds and tabs stay.
func Text(s string) string { return escape(s, func(r rune) bool { return r == open || Hidden(r) }) }

// Line makes text visible that must stay on one line: line feeds and tabs are
// shown too, so that a name cannot pass for another line of the output.
func Line(s string) string {
	return escape(s, func(r rune) bool { return r == open || r == '\n' || r == '\t' || Hidden(r) })
}

// Hidden tells whether a terminal would do something else with a character than
// show it: control characters other than line feed and tab, marks that change
// the direction of text, and everything that takes no room, such as zero-width
// characters, variation selectors and tags. A carriage return is one of them: it
// lets a line overwrite itself.
func Hidden(r rune) bool {
	switch {
	case r < ' ':
		return r != '\n' && r != '\t'
	case r < 0x7f:
		return false
	case r < 0xa0: // DEL and the control characters of ISO 8859
		return true
	case r >= 0xe0000 && r <= 0xe0fff: // tags and variation selectors, also those to come
		return true
	case r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe: // no characters
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// escape writes out the characters that show names, and bytes that are not
// UTF-8.
func escape(s string, show func(rune) bool) string {
	var out strings.Builder
	kept := 0 // where the part begins that is not written yet
	for i := 0; i < len(s); {
		r, size := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(s[i:])
		}
		invalid := r == utf8.RuneError && size == 1
		if invalid || show(r) {
			out.WriteString(s[kept:i])
			if invalid {
				fmt.Fprintf(&out, "⟨x%02X⟩", s[i])
			} else {
				fmt.Fprintf(&out, "⟨U+%04X⟩", r)
			}
			kept = i + size
		}
		i += size
	}
	if kept == 0 {
		return s
	}
	out.WriteString(s[kept:])
	return out.String()
}

// JSON escapes the hidden characters of encoded JSON as \u sequences, which
// mean the same to whatever reads it. Package json does so only for those that
// ASCII calls control characters.
func JSON(encoded []byte) []byte {
	text := string(encoded)
	var out strings.Builder
	kept := 0
	for i, r := range text {
		if !Hidden(r) {
			continue
		}
		out.WriteString(text[kept:i])
		out.WriteString(jsonEscape(r))
		kept = i + utf8.RuneLen(r)
	}
	if kept == 0 {
		return encoded
	}
	out.WriteString(text[kept:])
	return []byte(out.String())
}

func jsonEscape(r rune) string {
	const supplementary = 0x10000
	if r < supplementary {
		return fmt.Sprintf(`\u%04x`, r)
	}
	r -= supplementary
	return fmt.Sprintf(`\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
}
