package interpolate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template/parse"
)

// Error is a problem of a template, with its place in the source.
type Error struct {
	File    string // Options.File; "" when it was not given
	Line    int    // from 1; 0 when it is not known
	Column  int    // from 1, in bytes; 0 when it is not known
	Message string
	// Missing is the path of the key that is not in the state, such as
	// ".nuon.inputs.inputs.domain", when that is the problem.
	Missing string
	// Nearest is the sibling of the missing key with the most similar spelling,
	// "" when none is close. NearestPath is the whole path with it.
	Nearest     string
	NearestPath string
}

func (e *Error) Error() string {
	switch {
	case e.File != "" && e.Line > 0 && e.Column > 0:
		return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Message)
	case e.File != "" && e.Line > 0:
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	case e.File != "":
		return e.File + ": " + e.Message
	case e.Line > 0:
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return e.Message
}

// parseSource returns the trees of a template: its own, named rootName, and
// those of its {{define}} blocks.
func parseSource(src string) (map[string]*parse.Tree, error) {
	actions := scan(src)
	if err := check(src, actions); err != nil {
		return nil, err
	}
	masked, with, err := mask(src, actions)
	if err != nil {
		return nil, err
	}
	trees := map[string]*parse.Tree{}
	tree := parse.New(rootName)
	if _, err := tree.Parse(masked, "", "", trees, functionNames); err != nil {
		return nil, parseError(err, with)
	}
	if trees[rootName] == nil { // nothing but definitions, or nothing at all
		trees[rootName] = tree
	}
	if with != "" {
		unmask(trees, with)
	}
	return trees, nil
}

// rootName is the name of a template's own tree. It cannot be called.
const rootName = "template"

// unmask gives foreign actions their braces back.
func unmask(trees map[string]*parse.Tree, with string) {
	for _, tree := range trees {
		if tree.Root == nil {
			continue
		}
		walk(tree.Root, func(node parse.Node) {
			if text, ok := node.(*parse.TextNode); ok {
				text.Text = []byte(strings.ReplaceAll(string(text.Text), with, leftDelim))
			}
		})
	}
}

var (
	parseMessage    = regexp.MustCompile(`(?s)^template: [^:]*:(\d+)(?::\d+)?: (.*)$`)
	unknownFunction = regexp.MustCompile(`^function "([^"]*)" not defined`)
	unknownVariable = regexp.MustCompile(`^undefined variable "([^"]*)"`)
)

func parseError(err error, with string) error {
	m := parseMessage.FindStringSubmatch(err.Error())
	if m == nil {
		return &Error{Message: err.Error()}
	}
	e := &Error{Message: m[2]}
	e.Line, _ = strconv.Atoi(m[1])
	if with != "" {
		e.Message = strings.ReplaceAll(e.Message, with, leftDelim)
	}
	e.Message += hint(e.Message)
	return e
}

// hint says what to do where another language's action meets ours.
func hint(message string) string {
	name, near := "", ""
	if m := unknownFunction.FindStringSubmatch(message); m != nil {
		name = m[1]
		for _, d := range refused() {
			if d.name == name {
				return " in templates: " + d.why
			}
		}
		if near = nearestName(name, sortedKeys(functionNames)); near != "" {
			near = fmt.Sprintf("; the nearest is %q", near)
		}
	} else if m := unknownVariable.FindStringSubmatch(message); m != nil {
		name = m[1]
	}
	if name == "" || len(name) > 40 {
		return near
	}
	return near + fmt.Sprintf("; if %s belongs to another template language, write {{ `{{ %s }}` }}", name, name)
}
