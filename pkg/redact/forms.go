package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// MinLen is the shortest form, in bytes, that is looked for in text. Shorter
// values ("true", "8080") would blank out innocent text and are replaced only
// by the name of their field: see Set.Field.
const MinLen = 8

// maxAllForms is the length up to which a secret is looked for in all forms.
// Longer ones (a whole key store) are looked for as they are, line by line and
// in base64: the automaton costs about 30 bytes per byte and form.
const maxAllForms = 64 << 10

// forms returns all spellings of a secret that are worth looking for, each at
// least MinLen long, without repetition.
func forms(secret []byte) [][]byte {
	seen := map[string]bool{}
	var out [][]byte
	add := func(form string) {
		if len(form) >= MinLen && !seen[form] {
			seen[form] = true
			out = append(out, []byte(form))
		}
	}
	if len(secret) < MinLen {
		return nil
	}
	for _, value := range parts(secret) {
		add(string(value))
		base64Forms(value, add)
		if len(value) > maxAllForms {
			continue
		}
		text := string(value)
		lower := hex.EncodeToString(value)
		add(lower)
		add(strings.ToUpper(lower))
		urlForms(text, add)
		jsonForms(text, add)
		shellForms(text, add)
		entityForms(text, add)
	}
	return out
}

// parts returns the secret, the secret without space around it (a file's last
// line feed is often dropped), with the other kind of line ends, and its lines.
func parts(secret []byte) [][]byte {
	out := [][]byte{secret}
	add := func(p []byte) {
		if len(p) < MinLen {
			return
		}
		for _, known := range out {
			if bytes.Equal(known, p) {
				return
			}
		}
		out = append(out, p)
	}
	trimmed := bytes.TrimSpace(secret)
	add(trimmed)
	if !bytes.ContainsAny(trimmed, "\r\n") {
		return out
	}
	unix := bytes.ReplaceAll(trimmed, []byte("\r\n"), []byte("\n"))
	add(unix)
	add(bytes.ReplaceAll(unix, []byte("\n"), []byte("\r\n")))
	seen := map[string]bool{}
	lines := bytes.Split(unix, []byte("\n"))
	for i, line := range lines {
		if opensBlock(line, lines[i+1:]) {
			continue
		}
		// Quadratic comparison is for the few parts above, not for lines.
		if line = bytes.TrimSpace(line); len(line) >= MinLen && !seen[string(line)] && !common(line) {
			seen[string(line)] = true
			out = append(out, line)
		}
	}
	return out
}

// common reports lines that are in every secret of a kind and hide nothing:
// the rulers of PEM.
func common(line []byte) bool {
	return bytes.HasPrefix(line, []byte("-----BEGIN ")) || bytes.HasPrefix(line, []byte("-----END "))
}

// blockKey is a key of YAML without a value, below 0 or more spaces.
var blockKey = regexp.MustCompile(`^ *[A-Za-z_][A-Za-z0-9_./-]*:$`)

// opensBlock reports whether a line of a configuration only names what stands
// below it, deeper or as a list. Such lines ("metrics:", "receivers:") hide
// nothing, and are words of many other texts.
func opensBlock(line []byte, below [][]byte) bool {
	if !blockKey.Match(line) {
		return false
	}
	for _, next := range below {
		if text := bytes.TrimLeft(next, " "); len(text) > 0 {
			deeper := (len(next) - len(text)) - (len(line) - len(bytes.TrimLeft(line, " ")))
			return deeper > 0 || deeper == 0 && bytes.HasPrefix(text, []byte("- "))
		}
	}
	return false
}

// base64Forms adds what a secret looks like inside the base64 of anything that
// contains it. Before it stand 0, 1 or 2 bytes of a group of three; only those
// characters are used that depend on nothing but the secret. The secret alone
// is added whole, and cut as tools cut it into lines.
func base64Forms(secret []byte, add func(string)) {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		whole := enc.EncodeToString(secret)
		add(whole)
		add(strings.TrimRight(whole, "="))
		for before := range 3 {
			bits := 8 * (before + len(secret))
			text := enc.EncodeToString(append(make([]byte, before), secret...))
			add(text[(8*before+5)/6 : bits/6])
		}
		for _, width := range []int{64, 76} {
			for rest := whole; len(whole) > width && rest != ""; {
				n := min(width, len(rest))
				add(rest[:n])
				rest = rest[n:]
			}
		}
	}
}

// urlForms adds the escapes of queries and paths, and the lower-case ones that
// other languages write.
func urlForms(text string, add func(string)) {
	for _, form := range []string{url.QueryEscape(text), url.PathEscape(text), strings.ReplaceAll(url.QueryEscape(text), "+", "%20")} {
		add(form)
		add(lowerEscapes(form))
	}
}

// lowerEscapes turns %2F into %2f.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

// jsonForms adds the insides of JSON strings, with and without HTML escapes,
// JSON inside JSON (a log line that quotes a document), and Go's quoting.
func jsonForms(text string, add func(string)) {
	for _, escapeHTML := range []bool{false, true} {
		once := jsonInside(text, escapeHTML)
		add(once)
		add(strings.ReplaceAll(once, "/", `\/`))
		add(jsonInside(once, escapeHTML))
	}
	for _, quoted := range []string{strconv.Quote(text), strconv.QuoteToASCII(text)} {
		add(quoted[1 : len(quoted)-1])
	}
}

func jsonInside(text string, escapeHTML bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(escapeHTML)
	if err := e.Encode(text); err != nil {
		return "" // a string always encodes
	}
	return string(b.Bytes()[1 : b.Len()-2]) // without the quotes and the line feed
}

// shellForms adds the insides of single and double quotes, and backslashes
// before all that is special.
func shellForms(text string, add func(string)) {
	add(strings.ReplaceAll(text, "'", `'\''`))
	add(strings.ReplaceAll(text, "'", `'"'"'`))
	add(backslashed(text, "\"\\$`"))
	add(backslashed(text, "\"\\$`!"))
	add(backslashed(text, " \t!\"#$&'()*,;<=>?[\\]^`{|}~"))
	add(backslashed(text, " \t!\"#$&'()*;<>?[\\]^`{|}~"))
}

func backslashed(text, special string) string {
	var b strings.Builder
	for i := range len(text) {
		if strings.IndexByte(special, text[i]) >= 0 {
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
