package kustomize

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// maxValues is how many values a file may have once its aliases are replaced by
// what they stand for, as kustomize does without a limit.
const maxValues = 200_000

// checkAliases refuses YAML whose aliases multiply, also where it stands in a
// value, as inline patches do. What is not YAML kustomize says itself.
func checkAliases(text string) error {
	if !strings.Contains(text, "&") || !strings.Contains(text, "*") {
		return nil
	}
	in := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc yaml.Node
		err := in.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return nil //nolint:nilerr // a text of a generator need not be YAML
		}
		if err := (&expansion{sizes: map[*yaml.Node]int{}}).check(&doc); err != nil {
			return err
		}
	}
}

// expansion counts values. The size of a node that is being counted is 0, so an
// alias to what it is in ends; kustomize refuses that.
type expansion struct{ sizes map[*yaml.Node]int }

func (e *expansion) check(n *yaml.Node) error {
	if e.size(n) > maxValues {
		return fmt.Errorf("its aliases stand for more than %d values", maxValues)
	}
	return e.inside(n)
}

func (e *expansion) size(n *yaml.Node) int {
	if n.Alias != nil {
		n = n.Alias
	}
	if known, ok := e.sizes[n]; ok {
		return known
	}
	e.sizes[n] = 0
	total := 1
	for _, below := range n.Content {
		total = min(total+e.size(below), maxValues+1)
	}
	e.sizes[n] = total
	return total
}

// inside checks YAML that is a value.
func (e *expansion) inside(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "*") {
		return checkAliases(n.Value)
	}
	for _, below := range n.Content {
		if err := e.inside(below); err != nil {
			return err
		}
	}
	return nil
}
