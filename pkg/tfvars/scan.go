package tfvars

import (
	"strings"
	"unicode"
)

// tokenKind is what a piece of the language is.
type tokenKind int

const (
	tokenEnd  tokenKind = iota // nothing is left
	tokenLine                  // the end of a line
	tokenWord                  // a name or a number
	tokenText                  // a string with its quotes, or a heredoc's text between quotes
	tokenSign                  // any other single character
)

type token struct {
	kind    tokenKind
	text    string
	line    int
	heredoc bool // text is what stands between the markers
}

func (t token) isWord(text string) bool { return t.kind == tokenWord && t.text == text }
func (t token) isSign(text string) bool { return t.kind == tokenSign && t.text == text }

// isName tells whether it may be the name of a variable.
func (t token) isName() bool { return t.kind == tokenWord && isIdentifier(t.text) }

func (t token) opens() bool  { return t.kind == tokenSign && strings.ContainsAny(t.text, "{[(") }
func (t token) closes() bool { return t.kind == tokenSign && strings.ContainsAny(t.text, "}])") }

// unquoted is the text in one line, without quotes and escapes.
func (t token) unquoted() string {
	switch {
	case t.kind != tokenText:
		return t.text
	case t.heredoc:
		return strings.Join(strings.Fields(t.text), " ")
	}
	return unescaped.Replace(strings.TrimSuffix(strings.TrimPrefix(t.text, `"`), `"`))
}

// unescaped reads the escapes of a plain string.
var unescaped = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, " ", `\t`, " ", "$${", "${", "%%{", "%{")

// statement is the beginning of a line outside of braces.
type statement struct {
	first [2]token
	n     int // how many tokens there are
}

func (s *statement) add(t token) {
	if s.n < len(s.first) {
		s.first[s.n] = t
	}
	s.n++
}

// assigns tells whether the line is empty, or continues after its second token:
// name = value.
func (s *statement) assigns() bool { return s.n == 0 || s.n > len(s.first) }

const byteOrderMark = "\uFEFF"

// scanner takes a source apart. Comments and white space are left out.
type scanner struct {
	rest   string
	line   int
	broken bool // something had no end
}

func newScanner(source string) *scanner {
	return &scanner{rest: strings.TrimPrefix(source, byteOrderMark), line: 1}
}

func (s *scanner) next() token {
	for s.rest != "" {
		switch c := s.rest[0]; {
		case c == ' ' || c == '\t' || c == '\r':
			s.take(1)
		case c == '#' || strings.HasPrefix(s.rest, "//"):
			s.take(lineLength(s.rest))
		case strings.HasPrefix(s.rest, "/*"):
			n := strings.Index(s.rest[2:], "*/")
			if n < 0 {
				s.broken = true
				n = len(s.rest) - 4
			}
			s.take(n + 4)
		case c == '\n':
			return token{kind: tokenLine, line: s.line, text: s.take(1)}
		case c == '"':
			n, closed := stringLength(s.rest)
			s.broken = s.broken || !closed
			return token{kind: tokenText, line: s.line, text: s.take(n)}
		case strings.HasPrefix(s.rest, "<<"):
			if body, n, ok := s.heredoc(); ok {
				t := token{kind: tokenText, line: s.line, heredoc: true, text: body}
				s.take(n)
				return t
			}
			return token{kind: tokenSign, line: s.line, text: s.take(1)}
		case isWordByte(c):
			n := 1
			for n < len(s.rest) && (isWordByte(s.rest[n]) || s.rest[n] == '-') {
				n++
			}
			return token{kind: tokenWord, line: s.line, text: s.take(n)}
		default:
			return token{kind: tokenSign, line: s.line, text: s.take(1)}
		}
	}
	return token{kind: tokenEnd, line: s.line}
}

// take goes on by n bytes and returns them.
func (s *scanner) take(n int) string {
	n = min(n, len(s.rest))
	taken := s.rest[:n]
	s.line += strings.Count(taken, "\n")
	s.rest = s.rest[n:]
	return taken
}

// heredoc measures <<EOT … EOT up to the marker that ends it; not ok when it is
// none.
func (s *scanner) heredoc() (body string, n int, ok bool) {
	head := s.rest[:lineLength(s.rest)]
	marker := strings.TrimRight(strings.TrimPrefix(head[2:], "-"), " \t\r")
	if !isIdentifier(marker) || len(head) == len(s.rest) {
		return "", 0, false
	}
	start := len(head) + 1
	for n = start; n < len(s.rest); {
		length := lineLength(s.rest[n:])
		if strings.TrimSpace(s.rest[n:n+length]) == marker {
			return s.rest[start:n], n + length, true
		}
		n += length + 1
	}
	s.broken = true
	return s.rest[start:], len(s.rest), true
}

// lineLength measures what is left of a line, without its end.
func lineLength(s string) int {
	if n := strings.IndexByte(s, '\n'); n >= 0 {
		return n
	}
	return len(s)
}

// stringLength measures a quoted string. What stands in ${…} or %{…} may have
// strings of its own.
func stringLength(s string) (n int, closed bool) {
	var inside []byte // what is open: a string or braces
	for i := 0; i < len(s); i++ {
		inString := len(inside) > 0 && inside[len(inside)-1] == '"'
		switch c := s[i]; {
		case inString && c == '\\':
			i++
		case inString && c == '"', !inString && c == '}':
			if inside = inside[:max(len(inside)-1, 0)]; len(inside) == 0 {
				return i + 1, true
			}
		case inString && (strings.HasPrefix(s[i:], "$${") || strings.HasPrefix(s[i:], "%%{")):
			i += 2
		case inString && (strings.HasPrefix(s[i:], "${") || strings.HasPrefix(s[i:], "%{")):
			inside = append(inside, '{')
			i++
		case !inString && (c == '"' || c == '{'):
			inside = append(inside, c)
		}
	}
	return len(s), false
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// isIdentifier tells what may be the name of a variable.
func isIdentifier(name string) bool {
	for i, r := range name {
		if unicode.IsLetter(r) || r == '_' || i > 0 && (unicode.IsDigit(r) || r == '-' || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Mc, r)) {
			continue
		}
		return false
	}
	return name != ""
}
