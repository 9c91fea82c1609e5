package job

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// manifestOutput is the output of a chart that holds what was rendered. It is
// sealed as a whole, since values reach it; but most of it is no secret, and
// each line of it taken out of texts would leave plans and logs unreadable.
const manifestOutput = "manifest"

// learnOutput gives learn what is secret in a sensitive output of this job.
func (j *job) learnOutput(name string, value json.RawMessage, learn func(any)) {
	var text string
	if name == manifestOutput && j.spec.Kind == jobspec.KindHelmChart && json.Unmarshal(value, &text) == nil {
		if secrets, ok := secretsOf(text); ok {
			learnAll(secrets, learn)
			return
		}
	}
	learn(value)
}

// isManifest reports whether the leaf at path of an install's tree is the
// manifest of a chart. Only charts have a release next to it.
func isManifest(tree any, path []string) bool {
	if len(path) != 4 || path[0] != "components" || path[2] != "outputs" || path[3] != manifestOutput {
		return false
	}
	at := tree
	for _, key := range path[:3] {
		m, _ := at.(map[string]any)
		at = m[key]
	}
	outputs, _ := at.(map[string]any)
	_, ok := outputs["release"]
	return ok
}

// learnLeaf gives learn what is secret in an opened leaf of an install's tree.
func learnLeaf(tree any, path []string, value any, learn func(any)) {
	if text, ok := value.(string); ok && isManifest(tree, path) {
		if secrets, ok := secretsOf(text); ok {
			learnAll(secrets, learn)
			return
		}
	}
	learn(value)
}

func learnAll(texts []string, learn func(any)) {
	for _, text := range texts {
		learn(text)
	}
}

// secretsOf lists the values of the Secrets in a manifest, sorted: as they are
// written, and decoded if that is text. ok is false for anything else than
// Kubernetes objects, of which nothing can be said.
func secretsOf(manifest string) (values []string, ok bool) {
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
		walkText(value, func(text string) {
			*values = append(*values, text)
			if plain, err := base64.StdEncoding.DecodeString(text); err == nil && key == "data" && utf8.Valid(plain) {
				*values = append(*values, string(plain))
			}
		})
	}
	return true
}
