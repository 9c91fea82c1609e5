package kyverno

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/berth-dev/berth/runner/policy/rule"
)

// part is one YAML document of a file.
type part struct {
	line  int // of its first line in the file
	text  string
	names []string
}

// split cuts a file into its documents, as Kyverno does. Those without content are left out.
func split(text string) []part {
	var parts []part
	current := part{line: 1}
	var b strings.Builder
	end := func(next int) {
		if current.text = b.String(); !empty(current.text) {
			parts = append(parts, current)
		}
		b.Reset()
		current = part{line: next}
	}
	n := 0
	for line := range strings.Lines(text) {
		n++
		if rest, found := strings.CutPrefix(line, "---"); found && strings.TrimSpace(rest) == "" {
			end(n + 1)
			continue
		}
		b.WriteString(line)
	}
	end(n + 1)
	return parts
}

func empty(text string) bool {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			return false
		}
	}
	return true
}

var (
	yamlLine  = regexp.MustCompile(`\bline (\d+)\b`)
	fieldPath = regexp.MustCompile(`\b((?:spec|metadata|apiVersion|kind)(?:[.\[][\w./\]\[-]*)?)`)
	// compileNoise stands before what the compiler of CEL found.
	compileNoise = regexp.MustCompile(`failed to compile policy \S+ \(\[<nil>: , `)
	celLine      = regexp.MustCompile(`<input>:\d+:\d+: `)
)

// problem finds the line that an error is about, as far as it says.
func (p part) problem(err error) rule.Problem {
	text := plain(err)
	if m := yamlLine.FindStringSubmatch(text); m != nil && strings.Contains(text, "yaml") {
		if n, convErr := strconv.Atoi(m[1]); convErr == nil {
			return rule.Problem{Line: p.line + max(n, 1) - 1, Text: text}
		}
	}
	line := p.first()
	var root yaml.Node
	if yaml.Unmarshal([]byte(p.text), &root) == nil && len(root.Content) > 0 {
		for _, path := range paths(err, text) {
			if at := find(root.Content[0], path); at > 0 {
				line = p.line + at - 1
				break
			}
		}
	}
	return rule.Problem{Line: line, Text: text}
}

// first is the line of the document's first content.
func (p part) first() int {
	n := p.line
	for line := range strings.Lines(p.text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			break
		}
		n++
	}
	return n
}

// paths are the fields that an error names, those of the error's own kind first.
func paths(err error, text string) []string {
	var out []string
	var fieldErr *field.Error
	if errors.As(err, &fieldErr) && fieldErr.Field != "" && fieldErr.Field != "<nil>" {
		out = append(out, fieldErr.Field)
	}
	for _, m := range fieldPath.FindAllString(text, -1) {
		out = append(out, strings.TrimRight(m, ".-/["))
	}
	return out
}

// find is the line of a field in a document, 0 where there is none. A path that leads further
// than the document gives the last that is there.
func find(node *yaml.Node, path string) int {
	path = strings.NewReplacer("[", ".", "]", "").Replace(path)
	line := 0
	for _, step := range strings.Split(path, ".") {
		next := child(node, step)
		if next == nil {
			return line
		}
		node, line = next.value, next.line
	}
	return line
}

type found struct {
	value *yaml.Node
	line  int
}

func child(node *yaml.Node, step string) *found {
	switch node.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			if node.Content[i].Value == step {
				return &found{node.Content[i+1], node.Content[i].Line}
			}
		}
	case yaml.SequenceNode:
		if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(node.Content) {
			return &found{node.Content[n], node.Content[n].Line}
		}
	}
	return nil
}

// plain takes out of an error what only Kyverno's own code means.
func plain(err error) string {
	text := err.Error()
	for _, noise := range []string{
		"failed to load file policy.yaml: ", "failed to parse document ", "failed to validate resource ", "Internal error: ",
		"validating policy compiler 1.0 error: failed to compile policy", "failed to convert", "(<nil>)",
	} {
		text = strings.ReplaceAll(text, noise, "")
	}
	text = compileNoise.ReplaceAllString(text, "")
	text = celLine.ReplaceAllString(text, "")
	text = strings.Join(strings.Fields(text), " ")
	if strings.HasPrefix(text, "(") && strings.HasSuffix(text, ")") {
		text = text[1 : len(text)-1]
	}
	return strings.Trim(strings.TrimSuffix(strings.TrimSpace(text), "])"), " ,:")
}
