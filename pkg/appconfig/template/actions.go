package template

import (
	"regexp"
	"strings"

	"github.com/berth-dev/berth/pkg/interpolate"
)

// standIn takes the place of what a template puts out: part of no name.
const standIn = "\uE000"

// control begins an action that decides what comes out of the text around it.
var control = regexp.MustCompile(`^(?:if|else|range|with|end|define|template|block|break|continue)\b`)

// WithoutActions replaces each template action in a file of Terraform values,
// so that its names can be read. certain is false when actions decide which
// names there are, or in which lines they stand.
func WithoutActions(text string) (plain string, certain bool) {
	if !interpolate.IsTemplate(text) {
		return text, true
	}
	certain = true
	asJSON := strings.HasPrefix(strings.TrimSpace(text), "{") && !strings.HasPrefix(strings.TrimSpace(text), "{{")
	var b strings.Builder
	inText := false
	for text != "" {
		start := strings.Index(text, "{{")
		if start < 0 {
			break
		}
		length := actionLength(text[start:])
		if length < 0 {
			return b.String() + text, false // rendering says what is wrong
		}
		before, action := text[:start], text[start:start+length]
		text = text[start+length:]
		b.WriteString(before)
		inText = inText != (quotes(before)%2 == 1)
		code := strings.Trim(action[2:length-2], "- \t\r\n")
		if control.MatchString(code) || strings.Contains(action, "\n") {
			certain = false
		}
		switch {
		case strings.HasPrefix(code, "/*"), strings.HasPrefix(code, "$") && strings.Contains(code, "="):
		case asJSON && !inText:
			b.WriteByte('0') // a value, of whatever kind
		default:
			b.WriteString(standIn)
		}
	}
	b.WriteString(text)
	return b.String(), certain
}

// actionLength measures an action up to its closing braces; -1 when it has none.
func actionLength(s string) int {
	for i := 2; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "}}"):
			return i + 2
		case s[i] == '`':
			n := strings.IndexByte(s[i+1:], '`')
			if n < 0 {
				return -1
			}
			i += n + 1
		case s[i] == '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		}
	}
	return -1
}

// quotes counts the quotes that are no part of an escape.
func quotes(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			n++
		}
	}
	return n
}
