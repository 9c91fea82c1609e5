package interpolate

import "strings"

// Roots of a Reference.
const (
	RootTree   = "nuon"   // .nuon or .berth: the tree
	RootAction = "action" // .action: what the caller of an action gave
)

// Any stands in a path for an element that is only known when rendering.
const Any = "*"

// Reference is one part of the tree that a template reads.
type Reference struct {
	Kind Kind `json:"kind"`
	// Name is what is read of the kind, such as the component; "" when the
	// kind has none, when the reference is to the part as a whole, or when
	// the name is only known when rendering.
	Name string `json:"name,omitempty"`
	// Dynamic is set when the template computes the name or goes through all
	// of them: any component, any input.
	Dynamic bool `json:"dynamic,omitempty"`
	// Legacy is set for what is read through .nuon.install.
	Legacy bool `json:"legacy,omitempty"`

	Root string `json:"root"`
	// Path below the root with legacy aliases resolved, such as
	// ["components", "api", "outputs", "url"].
	Path   []string `json:"path"`
	Line   int      `json:"line"`   // in the source, from 1
	Column int      `json:"column"` // from 1, in bytes
}

func (r Reference) String() string {
	return "." + strings.Join(append([]string{r.Root}, r.Path...), ".")
}

// References lists everything that a template can read, found in its syntax
// tree: plain paths, index with constant keys, and what variables, with, range,
// named templates and pipelines make of them. All branches count. A reference
// covers what is below it: a template that hands a map to a function reads all
// of it. Where the template computes a name, the path has Any there or ends
// early, so nothing is missed; a string that is no template has no references.
func References(src string) ([]Reference, error) {
	if !IsTemplate(src) {
		return nil, nil
	}
	return ReferencesAlways(src)
}

// ReferencesAlways is References for text that is a template whatever it
// mentions.
func ReferencesAlways(src string) ([]Reference, error) {
	trees, err := parseSource(src)
	if err != nil {
		return nil, err
	}
	t := &tracer{src: src, trees: trees, seen: map[string]bool{}, calls: map[string]bool{}}
	root := value{paths: [][]string{{}}}
	t.scopes = []map[string]value{{"$": root}}
	t.node(trees[rootName].Root, root)
	t.recordHeld()
	if t.steps > maxSteps {
		return nil, &Error{Message: "the template is too complicated: what it reads cannot be found out"}
	}
	return t.found, nil
}
