package logship

import (
	"bytes"
	"time"
	"unicode/utf8"
)

// A Redactor replaces secrets in raw output before anything of it is stored.
type Redactor interface {
	// Bytes returns raw with every secret in it replaced. It must not keep
	// raw, and may return it.
	Bytes(raw []byte) []byte
	// Hold returns how many bytes at the end of raw may be the beginning of a
	// secret that goes on behind them.
	Hold(raw []byte) int
}

// RedactFunc is a Redactor for secrets that lie within one line.
type RedactFunc func(raw []byte) []byte

// Bytes calls f.
func (f RedactFunc) Bytes(raw []byte) []byte { return f(raw) }

// Hold is 0: nothing is held back.
func (f RedactFunc) Hold([]byte) int { return 0 }

// cut decides how much of raw, the output from the present offset on, is taken
// now: whole lines, and only up to where no secret can have begun that goes on
// behind them. When the window is full without such a place, part of a line is
// taken; when the output has ended, everything.
func cut(raw []byte, hold func([]byte) int, full, ended bool) int {
	if ended {
		return len(raw)
	}
	for limit := len(raw); limit > 0; {
		end := bytes.LastIndexByte(raw[:limit], '\n') + 1
		if end == 0 {
			break
		}
		held := hold(raw[:end])
		if held <= 0 {
			return end
		}
		limit = end - min(held, end)
	}
	if !full {
		return 0
	}
	part := len(raw) - min(hold(raw), len(raw))
	if part == 0 {
		part = len(raw) // a secret longer than the window: go on rather than hang
	}
	return runeEnd(raw, part)
}

// split makes records of taken output. If it does not end in a line end and the
// output goes on, its last record says that it continues.
func split(taken []byte, source Source, at time.Time, ended bool) []Record {
	taken = bytes.ToValidUTF8(taken, []byte(string(utf8.RuneError)))
	var records []Record
	for len(taken) > 0 {
		line, rest, whole := bytes.Cut(taken, []byte{'\n'})
		if whole {
			line = bytes.TrimSuffix(line, []byte{'\r'})
		}
		for len(line) > MaxText {
			n := runeEnd(line, MaxText)
			records = append(records, Record{Time: at, Source: source, Text: string(line[:n]), Continues: true})
			line = line[n:]
		}
		records = append(records, Record{Time: at, Source: source, Text: string(line), Continues: !whole && !ended})
		taken = rest
	}
	return records
}

// runeEnd is limit, or a little less where b would be split inside a character.
func runeEnd(b []byte, limit int) int {
	for back := 1; back < utf8.UTFMax && back < limit; back++ {
		if tail := b[limit-back : limit]; utf8.RuneStart(tail[0]) {
			if utf8.FullRune(tail) {
				return limit
			}
			return limit - back
		}
	}
	return limit
}
