// Package manifestsecrets finds what is secret in a rendered manifest: the values of
// its Secrets. It is pure; who hides them is package job.
package manifestsecrets

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Of lists the values of the Secrets in a manifest, sorted: as they are
// written, and decoded if that is text. ok is false for anything else than
// Kubernetes objects, of which nothing can be said.
func Of(manifest string) (values []string, ok bool) {
	for _, doc := range documents(manifest) {
		data, err := yaml.YAMLToJSONStrict([]byte(doc))
		if err != nil {
			return nil, false
		}
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		var object any
		if err := d.Decode(&object); err != nil {
			return nil, false
		}
		if object == nil { // only comments
			continue
		}
		if !collectSecrets(object, &values) {
			return nil, false
		}
	}
	slices.Sort(values)
	return slices.Compact(values), true
}

// documents splits a stream of YAML. A line of three dashes inside of a text
// splits that too; its halves are not YAML of objects then.
func documents(stream string) []string {
	var docs []string
	var doc strings.Builder
	for line := range strings.Lines(stream) {
		if strings.HasPrefix(line, "---") {
			docs = append(docs, doc.String())
			doc.Reset()
			line = strings.TrimPrefix(line, "---")
		}
		doc.WriteString(line)
	}
	return append(docs, doc.String())
}

// collectSecrets adds the values of a Secret, or of those in a list. It reports
// whether the tree is an object of Kubernetes.
func collectSecrets(tree any, values *[]string) bool {
	object, _ := tree.(map[string]any)
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	if version == "" || kind == "" {
		return false
	}
	if items, ok := object["items"].([]any); ok && strings.HasSuffix(kind, "List") {
		return !slices.ContainsFunc(items, func(item any) bool { return !collectSecrets(item, values) })
	}
	if _, ok := object["metadata"].(map[string]any); !ok {
		return false
	}
	if kind != "Secret" {
		return true
	}
	for key, value := range object {
		switch key {
		case "apiVersion", "kind", "metadata", "type", "immutable":
			continue
		}
		Texts(value, func(text string) {
			*values = append(*values, text)
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil && key == "data" && utf8.Valid(plain) {
				*values = append(*values, string(plain))
			}
		})
	}
	return true
}

// Texts calls visit with each scalar of a JSON tree as text: one that was decoded, with
// numbers of any kind, or parts that were not.
func Texts(v any, visit func(string)) {
	switch node := v.(type) {
	case string:
		visit(node)
	case json.Number:
		visit(node.String())
	case map[string]any:
		for _, child := range node {
			Texts(child, visit)
		}
	case []any:
		for _, child := range node {
			Texts(child, visit)
		}
	case float64, int, int64:
		visit(fmt.Sprint(node))
	case json.RawMessage:
		d := json.NewDecoder(bytes.NewReader(node))
		d.UseNumber()
		var tree any
		if d.Decode(&tree) == nil {
			Texts(tree, visit)
		}
	}
}
