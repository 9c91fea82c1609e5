package interpolate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	// MaxSource is the longest template, in bytes.
	MaxSource = 4 << 20
	// maxCode is how many bytes of a template may stand inside actions: each
	// of them costs a hundred times as much memory once it is parsed.
	maxCode = 256 << 10
	// maxActions is how many {{ a template may have, other languages' included.
	maxActions = 50_000
	// maxNesting is how deep blocks ({{if}}, {{range}}, …) and parentheses may
	// nest. Each {{else if}} is a block inside the one before it.
	maxNesting = 100
)

// Literal is an action of another template language that stays as it is in a
// template of ours: Kyverno's {{ request.object.kind }} in a policy that also
// names the install.
type Literal struct {
	Text   string // as written, up to the closing braces where there are some
	Line   int    // from 1
	Column int    // from 1, in bytes
	// Dotless is set for {{nuon.install.id}}: without the dot in front it is
	// no path of ours, which nobody means. It deserves a warning.
	Dotless bool
}

// Literals lists the actions that rendering leaves as they are. A string that
// is no template stays as it is anyway, so there only the dotless ones count.
func Literals(src string) []Literal {
	var found []Literal
	ours := IsTemplate(src)
	for _, a := range scan(src) {
		dotless := a.foreign && a.dotless || !ours && dotlessMention.MatchString(a.text(src))
		if !dotless && (!ours || !a.foreign) {
			continue
		}
		l := Literal{Text: a.text(src), Dotless: dotless}
		l.Line, l.Column = place(src, a.start)
		found = append(found, l)
	}
	return found
}

// mention finds the roots of the tree in the code of an action. The root may
// stand after a variable ($r.nuon), and not inside another path (x.nuon).
var mention = regexp.MustCompile(`(?:^|[^\w\]$]|\$\w*)\.(?:nuon|berth|action\.inputs)\b`)

// roots are what every mention has in it.
var roots = []string{".nuon", ".berth", ".action.inputs"}

// dotlessMention finds a root that lacks its dot.
var dotlessMention = regexp.MustCompile(`^\{\{(?:[^}]*[^\w.\-/])?(?:nuon|berth)\.\w`)

// IsTemplate tells whether a config value is a template: one of its actions
// mentions .nuon, .berth or .action.inputs. Everything else is a literal, and
// what only has other languages' braces (Kyverno, GitHub Actions) is too.
func IsTemplate(s string) bool {
	if !strings.Contains(s, leftDelim) || !slices.ContainsFunc(roots, func(root string) bool { return strings.Contains(s, root) }) {
		return false // the common case, ten times as fast as looking for a mention
	}
	return slices.ContainsFunc(scan(s), func(a action) bool {
		return !a.foreign && mention.MatchString(s[a.start+len(leftDelim):a.end])
	})
}

const (
	leftDelim  = "{{"
	rightDelim = "}}"
)

// action is a part of a source that begins with {{.
type action struct {
	start, end int // end is behind the }}, or that of the source without one
	// foreign is set for another language's; it ends where the next one may
	// begin, since such languages nest their braces.
	foreign bool
	dotless bool
	// word and second are the first words of an action of ours.
	word, second string
	parens       int // how deep its parentheses nest
}

func (a action) text(src string) string {
	text := src[a.start:a.end]
	if !a.foreign {
		return text
	}
	if i := strings.Index(src[a.start:], rightDelim); i >= 0 {
		return src[a.start : a.start+i+len(rightDelim)]
	}
	return text
}

// scan finds the actions of a source as text/template's lexer does, and tells
// ours from other languages'. It stops behind maxActions.
func scan(src string) []action {
	var found []action
	for at := 0; len(found) <= maxActions; {
		i := strings.Index(src[at:], leftDelim)
		if i < 0 {
			return found
		}
		a := action{start: at + i}
		body := a.start + len(leftDelim)
		if foreign, dotless := isForeign(src[body:]); foreign {
			a.foreign, a.dotless, a.end = true, dotless, body
		} else {
			a.lex(src, body)
		}
		found = append(found, a)
		at = a.end
	}
	return found
}

var (
	keywords = []string{"if", "range", "with", "end", "else", "define", "template", "block", "break", "continue", "nil", "true", "false"}
	// kyvernoNames are the variables of Kyverno that make sense alone. Any
	// other lone word is more likely a misspelt function, so it is an error.
	kyvernoNames = []string{"@", "request", "element", "elementIndex", "images", "target", "serviceAccountName", "serviceAccountNamespace"}
)

// isForeign tells from its first name whether an action is another language's:
//
//   - a name with a dot, [ or ( directly behind it (request.object.kind,
//     github.ref, to_upper(…)), unless it is one of our functions with a dot
//   - a variable of Kyverno alone (element, serviceAccountName, @)
//
// Go's templates refuse all of these, so nothing that could work is taken from
// them. An action that mentions our root is ours, and its mistakes are errors.
func isForeign(body string) (foreign, dotless bool) {
	name, next := firstName(body)
	if name == "" || slices.Contains(keywords, name) {
		return false, false
	}
	_, ours := functionNames[name]
	switch {
	case strings.HasPrefix(next, "("), strings.HasPrefix(next, "["):
	case strings.HasPrefix(next, ".") && !ours:
	case slices.Contains(kyvernoNames, name) && !ours:
	default:
		return false, false
	}
	own := body
	if i := strings.Index(own, rightDelim); i >= 0 {
		own = own[:i]
	}
	if i := strings.Index(own, leftDelim); i >= 0 {
		own = own[:i]
	}
	return !mention.MatchString(own), (name == "nuon" || name == "berth") && strings.HasPrefix(next, ".")
}

// firstName returns the name at the beginning of an action, and what follows.
func firstName(body string) (name, rest string) {
	body = strings.TrimLeft(untrimmed(body), space)
	if strings.HasPrefix(body, "@") {
		return "@", body[1:]
	}
	n := 0
	for n < len(body) && (isLetter(body[n]) || n > 0 && (body[n] >= '0' && body[n] <= '9' || body[n] == '-')) {
		n++
	}
	return body[:n], body[n:]
}

func isLetter(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

const space = " \t\r\n"

// untrimmed takes the "- " away that trims the text before an action.
func untrimmed(body string) string {
	if len(body) > 1 && body[0] == '-' && strings.IndexByte(space, body[1]) >= 0 {
		return body[2:]
	}
	return body
}

// lex finds the end of an action of ours: braces inside of comments and quotes
// do not count.
func (a *action) lex(src string, at int) {
	a.end = len(src)
	var rest string
	if a.word, rest = firstName(src[at:]); a.word == "else" {
		a.second, _ = firstName(rest)
	}
	if body := strings.TrimLeft(untrimmed(src[at:]), space); strings.HasPrefix(body, "/*") {
		i := strings.Index(body, "*/")
		if i < 0 {
			return
		}
		at = len(src) - len(body) + i
	}
	open := 0
	for ; at < len(src); at++ {
		switch c := src[at]; c {
		case '"', '\'', '`':
			n := quoted(src[at:])
			if n < 0 {
				return
			}
			at += n - 1
		case '(':
			open++
			a.parens = max(a.parens, open)
		case ')':
			open--
		case '}':
			if strings.HasPrefix(src[at:], rightDelim) {
				a.end = at + len(rightDelim)
				return
			}
		}
	}
}

// quoted returns the length of a quoted string at the beginning of s, -1 when
// it does not end.
func quoted(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1
		case s[i] == '\\' && s[0] != '`':
			i++
		}
	}
	return -1
}

// check holds the limits that have to be held before parsing.
func check(src string, actions []action) error {
	if len(src) > MaxSource {
		return errorf("the template is larger than %d MiB", MaxSource>>20)
	}
	if len(actions) > maxActions {
		return errorf("the template has more than %d actions", maxActions)
	}
	code := 0
	var open []int // for each open block, how many levels it stands for
	depth := 0
	for _, a := range actions {
		if a.foreign {
			continue
		}
		code += a.end - a.start
		switch a.word {
		case "if", "range", "with", "define", "block":
			open = append(open, 1)
			depth++
		case "else":
			if len(open) > 0 && (a.second == "if" || a.second == "with") {
				open[len(open)-1]++
				depth++
			}
		case "end":
			if len(open) > 0 {
				depth -= open[len(open)-1]
				open = open[:len(open)-1]
			}
		}
		line, column := 0, 0
		if code > maxCode || depth > maxNesting || a.parens > maxNesting {
			line, column = place(src, a.start)
		}
		switch {
		case code > maxCode:
			return &Error{Line: line, Column: column, Message: fmt.Sprintf("the template has more than %d KiB of code", maxCode>>10)}
		case depth > maxNesting:
			return &Error{Line: line, Column: column, Message: fmt.Sprintf("blocks nest deeper than %d", maxNesting)}
		case a.parens > maxNesting:
			return &Error{Line: line, Column: column, Message: fmt.Sprintf("parentheses nest deeper than %d", maxNesting)}
		}
	}
	return nil
}

// place tells where an offset is.
func place(src string, offset int) (line, column int) {
	before := src[:offset]
	return strings.Count(before, "\n") + 1, len(before) - strings.LastIndexByte(before, '\n')
}

// mask hides the braces of foreign actions from the parser behind two bytes
// that the source does not have, so that all offsets stay.
func mask(src string, actions []action) (masked, with string, err error) {
	if !slices.ContainsFunc(actions, func(a action) bool { return a.foreign }) {
		return src, "", nil
	}
	with = unused(src)
	if with == "" {
		return "", "", &Error{Message: "the template is not text"}
	}
	var b strings.Builder
	at := 0
	for _, a := range actions {
		if a.foreign {
			b.WriteString(src[at:a.start])
			b.WriteString(with)
			at = a.start + len(leftDelim)
		}
	}
	b.WriteString(src[at:])
	return b.String(), with, nil
}

// unused returns two bytes that stand nowhere in a text. UTF-8 has none of
// those that it looks at first.
func unused(src string) string {
	for b := 0xff; b >= 0xf5; b-- {
		for c := 0xff; c >= 0xf5; c-- {
			if pair := string([]byte{byte(b), byte(c)}); b != c && !strings.Contains(src, pair) {
				return pair
			}
		}
	}
	return ""
}
