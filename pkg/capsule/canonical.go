package capsule

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cyberphone/json-canonicalization/go/src/webpki.org/jsoncanonicalizer"
)

// ErrNotCanonical is wrapped by the errors of Canonical for values that have
// no exact canonical form.
var ErrNotCanonical = errors.New("no canonical JSON form")

// Canonical returns v as canonical JSON (RFC 8785): one value, one sequence of
// bytes. A []byte or json.RawMessage is taken as JSON text, anything else goes
// through encoding/json.
//
// What would be changed on the way is refused instead, because two different
// values with one digest could be swapped after an approval: numbers that a
// 64-bit float cannot hold (9007199254740993 and …992), text that is not
// UTF-8, lone surrogates, repeated keys. Use Exact on trees of others that may
// hold such numbers.
func Canonical(v any) ([]byte, error) {
	raw, err := jsonText(v)
	if err != nil {
		return nil, err
	}
	if err := checkText(raw); err != nil {
		return nil, err
	}
	if err := checkNumbers(raw); err != nil {
		return nil, err
	}
	// The module takes only objects and lists at the top; the list around v
	// makes scalars possible and is cut off again.
	out, err := jsoncanonicalizer.Transform(append(append([]byte("["), raw...), ']'))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotCanonical, err)
	}
	return out[1 : len(out)-1], nil
}

// DigestOf returns the digest of v's canonical form, "sha256:" and 64 hex
// digits. Equal digests mean equal values.
func DigestOf(v any) (string, error) {
	raw, err := Canonical(v)
	if err != nil {
		return "", err
	}
	return DigestBytes(raw), nil
}

// DigestBytes returns the digest of the bytes as they are, "sha256:" and 64
// hex digits: for plan files, scripts and other things that are not JSON.
func DigestBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// SaltedDigest returns the HMAC-SHA256 of data under salt, "hmac-sha256:" and
// 64 hex digits. The salt never leaves the customer's side: without it nobody
// can try guesses of a secret input against its digest.
func SaltedDigest(salt, data []byte) string {
	mac := hmac.New(sha256.New, salt)
	mac.Write(data)
	return "hmac-sha256:" + hex.EncodeToString(mac.Sum(nil))
}

func jsonText(v any) ([]byte, error) {
	var raw []byte
	switch t := v.(type) {
	case json.RawMessage:
		raw = t
	case []byte:
		raw = t
	default:
		var err error
		if raw, err = json.Marshal(v); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotCanonical, err)
		}
		// encoding/json writes bytes that are not UTF-8 as the escape
		// \ufffd and a real U+FFFD as itself, so the escape shows a loss.
		if hasEscape(raw, "ufffd") {
			return nil, fmt.Errorf("%w: text is not UTF-8", ErrNotCanonical)
		}
	}
	if !json.Valid(raw) {
		return nil, fmt.Errorf("%w: not JSON", ErrNotCanonical)
	}
	return raw, nil
}

// hasEscape reports whether raw contains the escape sequence \seq.
func hasEscape(raw []byte, seq string) bool {
	found := false
	eachEscape(raw, func(rest []byte) { found = found || strings.HasPrefix(string(rest[:min(len(rest), len(seq))]), seq) })
	return found
}

// eachEscape calls f with what follows each backslash that starts an escape.
func eachEscape(raw []byte, f func(rest []byte)) {
	for i := bytes.IndexByte(raw, '\\'); i >= 0; {
		f(raw[i+1:])
		next := bytes.IndexByte(raw[i+2:], '\\') // the character after a backslash is never one that starts
		if next < 0 {
			return
		}
		i += 2 + next
	}
}

// checkText refuses bytes that are not UTF-8 and surrogates without partner:
// both would be replaced by U+FFFD and then look equal.
func checkText(raw []byte) error {
	if !utf8.Valid(raw) {
		return fmt.Errorf("%w: text is not UTF-8", ErrNotCanonical)
	}
	var lone, low bool // low: the escape before was a high surrogate, this must be its partner
	eachEscape(raw, func(rest []byte) {
		switch {
		case low:
			low = false // checked together with the high one
		case isSurrogate(rest, "89ab"):
			low = len(rest) > 6 && rest[5] == '\\' && isSurrogate(rest[6:], "cdef")
			lone = lone || !low
		case isSurrogate(rest, "cdef"):
			lone = true
		}
	})
	if lone {
		return fmt.Errorf("%w: surrogate without its partner", ErrNotCanonical)
	}
	return nil
}

// isSurrogate reports whether rest starts with ud?.. where ? is one of third.
func isSurrogate(rest []byte, third string) bool {
	if len(rest) < 5 || rest[0] != 'u' || rest[1]|0x20 != 'd' {
		return false
	}
	c := rest[2]
	if c >= 'A' && c <= 'F' {
		c |= 0x20
	}
	return strings.IndexByte(third, c) >= 0
}

// checkNumbers refuses numbers that a 64-bit float changes. raw is valid JSON: a
// number is what begins with a digit or a minus outside of text.
func checkNumbers(raw []byte) error {
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '"':
			i = textEnd(raw, i)
		case c == '-' || '0' <= c && c <= '9':
			end := i + 1
			for end < len(raw) && strings.IndexByte("0123456789+-.eE", raw[end]) >= 0 {
				end++
			}
			if n := json.Number(raw[i:end]); !exact(n) {
				return fmt.Errorf("%w: the number %.40s is not exact as a 64-bit float", ErrNotCanonical, n)
			}
			i = end - 1
		}
	}
	return nil
}

// textEnd is where the text ends that begins at i, at its quote.
func textEnd(raw []byte, i int) int {
	for i++; i < len(raw) && raw[i] != '"'; i++ {
		if raw[i] == '\\' {
			i++
		}
	}
	return i
}
