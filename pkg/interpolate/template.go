package interpolate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"text/template/parse"
)

const (
	// MaxSource is the longest template, in bytes.
	MaxSource = 4 << 20
	// maxNesting is how deep blocks ({{if}}, {{range}}, …) and calls of named
	// templates may nest.
	maxNesting = 100
)

// mention finds the roots of the tree: only a string that has one of them is a
// template. Other languages' braces (Kyverno, GitHub Actions) stay as they are.
var mention = regexp.MustCompile(`\.(nuon|berth|action\.inputs)\b`)

// IsTemplate tells whether a config value is a template: it has an action and
// mentions .nuon, .berth or .action.inputs. Everything else is a literal.
func IsTemplate(s string) bool {
	i := strings.Index(s, "{{")
	return i >= 0 && mention.MatchString(s[i:])
}

// Error is a problem of a template, with its place in the source.
type Error struct {
	Line    int // from 1; 0 when it is not known
	Column  int // from 1, in bytes; 0 when it is not known
	Message string
	// Missing is the path of the key that is not in the state, such as
	// ".nuon.inputs.inputs.domain", when that is the problem.
	Missing string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("line %d: %s", e.Line, e.Message)
	}
	return e.Message
}

// parseSource returns the trees of a template: its own, named "", and those of
// its {{define}} blocks.
func parseSource(src string) (map[string]*parse.Tree, error) {
	if len(src) > MaxSource {
		return nil, &Error{Message: fmt.Sprintf("the template is larger than %d MiB", MaxSource>>20)}
	}
	trees := map[string]*parse.Tree{}
	tree := parse.New(rootName)
	if _, err := tree.Parse(src, "", "", trees, functionNames); err != nil {
		return nil, parseError(err)
	}
	if trees[rootName] == nil { // nothing but definitions, or nothing at all
		trees[rootName] = tree
	}
	if err := checkNesting(trees); err != nil {
		return nil, err
	}
	return trees, nil
}

// rootName is the name of a template's own tree. It cannot be called.
const rootName = "template"

var parseMessage = regexp.MustCompile(`(?s)^template: [^:]*:(\d+)(?::\d+)?: (.*)$`)

func parseError(err error) error {
	m := parseMessage.FindStringSubmatch(err.Error())
	if m == nil {
		return &Error{Message: err.Error()}
	}
	line, _ := strconv.Atoi(m[1])
	return &Error{Line: line, Message: m[2]}
}

// checkNesting refuses templates that nest too deep or call themselves.
func checkNesting(trees map[string]*parse.Tree) error {
	n := nesting{trees: trees, heights: map[string]int{}}
	for name := range trees {
		if _, err := n.ofTemplate(name, 0); err != nil {
			return err
		}
	}
	return nil
}

// nesting computes how deep each tree nests, calls included, once per tree.
type nesting struct {
	trees   map[string]*parse.Tree
	heights map[string]int // inProgress while it is being computed
}

const inProgress = -1

func (n nesting) ofTemplate(name string, line int) (int, error) {
	tree := n.trees[name]
	if tree == nil || tree.Root == nil {
		return 0, nil
	}
	height, known := n.heights[name]
	if known && height == inProgress {
		return 0, &Error{Line: line, Message: fmt.Sprintf("template %q calls itself", name)}
	}
	if known {
		return height, nil
	}
	n.heights[name] = inProgress
	height, err := n.ofNode(tree.Root, 0)
	n.heights[name] = height
	return height, err
}

func (n nesting) ofNode(node parse.Node, depth int) (int, error) {
	height := 0
	if call, ok := node.(*parse.TemplateNode); ok {
		h, err := n.ofTemplate(call.Name, call.Line)
		if err != nil {
			return 0, err
		}
		height = h + 1
	}
	for _, child := range blocks(node) {
		h, err := n.ofNode(child, depth+1)
		if err != nil {
			return 0, err
		}
		height = max(height, h+1)
	}
	if depth+height > 2*maxNesting { // a block is two nodes deep: itself and its list
		return 0, &Error{Message: fmt.Sprintf("blocks nest deeper than %d", maxNesting)}
	}
	return height, nil
}

// blocks returns the nodes directly inside a node that can hold blocks.
func blocks(node parse.Node) []parse.Node {
	var branch *parse.BranchNode
	switch n := node.(type) {
	case *parse.ListNode:
		return n.Nodes
	case *parse.IfNode:
		branch = &n.BranchNode
	case *parse.RangeNode:
		branch = &n.BranchNode
	case *parse.WithNode:
		branch = &n.BranchNode
	default:
		return nil
	}
	inside := []parse.Node{branch.List}
	if branch.ElseList != nil {
		inside = append(inside, branch.ElseList)
	}
	return inside
}
