package tfvars

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Problem is the first thing in a file that keeps Terraform from reading it.
type Problem struct {
	Line    int // from 1
	Message string
}

// Broken tells what is wrong with a file of Terraform's own language, nil when
// nothing is found: brackets without their other half, and strings, heredocs and
// comments without an end. Terraform finds more.
func Broken(source string) *Problem {
	return broken(source, func(token, int) *Problem { return nil })
}

// BrokenValues is Broken for a file of values, each line of which gives one; such
// a file may be JSON, which begins with a brace.
func BrokenValues(source string) *Problem {
	if strings.HasPrefix(strings.TrimSpace(source), "{") {
		return BrokenJSON(source)
	}
	var head statement
	line := 0
	return broken(source, func(t token, depth int) *Problem {
		if t.kind == tokenLine || t.kind == tokenEnd {
			ended := head
			if depth == 0 {
				head = statement{}
			}
			if depth == 0 && !ended.assigns() {
				return &Problem{line, "is not of the form name = value"}
			}
			return nil
		}
		if head.n == 0 {
			line = t.line
		}
		head.add(t)
		if head.n == 1 && !t.isName() || head.n == 2 && !t.isSign("=") {
			return &Problem{t.line, "is not of the form name = value"}
		}
		return nil
	})
}

// BrokenJSON is Broken for the JSON forms of the language.
func BrokenJSON(source string) *Problem {
	var object map[string]json.RawMessage
	d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(source, byteOrderMark)))
	if err := d.Decode(&object); err != nil {
		return &Problem{strings.Count(source[:min(int(d.InputOffset()), len(source))], "\n") + 1, "is no JSON object"}
	}
	return nil
}

// broken scans a file and shows each token to look, with how many brackets are
// open in front of it.
func broken(source string, look func(t token, depth int) *Problem) *Problem {
	s := newScanner(source)
	var open []token
	for {
		t := s.next()
		switch {
		case s.broken:
			return &Problem{t.line, "has a string, a heredoc or a comment that does not end"}
		case t.kind == tokenText && !t.heredoc && strings.Contains(t.text, "\n") && !strings.Contains(t.text, "${") && !strings.Contains(t.text, "%{"):
			return &Problem{max(s.line-strings.Count(t.text, "\n"), 1), "has a string that does not end in its line"}
		}
		if p := look(t, len(open)); p != nil {
			return p
		}
		switch {
		case t.kind == tokenEnd && len(open) > 0:
			last := open[len(open)-1]
			return &Problem{last.line, fmt.Sprintf("has a %q that is not closed", last.text)}
		case t.kind == tokenEnd:
			return nil
		case t.opens():
			open = append(open, t)
		case t.closes():
			if len(open) == 0 || !matches(open[len(open)-1].text, t.text) {
				return &Problem{t.line, fmt.Sprintf("has a %q that closes nothing", t.text)}
			}
			open = open[:len(open)-1]
		}
	}
}

func matches(opened, closed string) bool {
	return strings.Index("{[(", opened) == strings.Index("}])", closed)
}
