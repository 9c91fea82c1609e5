package job

import (
	"encoding/json"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/manifestsecrets"
)

// manifestOutput is the output of a chart that holds what was rendered. It is
// sealed as a whole, since values reach it; but most of it is no secret, and
// each line of it taken out of texts would leave plans and logs unreadable.
const manifestOutput = "manifest"

// learnOutput gives learn what is secret in a sensitive output of this job.
func (j *job) learnOutput(name string, value json.RawMessage, learn func(any)) {
	var text string
	if name == manifestOutput && j.spec.Kind == jobspec.KindHelmChart && json.Unmarshal(value, &text) == nil {
		if secrets, ok := manifestsecrets.Of(text); ok {
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
		if secrets, ok := manifestsecrets.Of(text); ok {
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
