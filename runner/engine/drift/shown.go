package drift

import (
	"strings"
	"unicode/utf8"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/redact"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/engine/job"
	"github.com/berth-dev/berth/runner/engine/kube"
)

// Secrets say how secret values are shown. The zero value shows "(sensitive)".
type Secrets struct {
	// Known are values that are sensitive wherever they are: what the app marks
	// so. May be nil.
	Known *redact.Set
	// Hide hides all values: nobody knows which of them are secret.
	Hide bool
	Key  jobspec.DigestKey
}

const hidden = "(not shown)"

// lastApplied holds the whole object once more, written by kubectl apply.
const lastApplied = "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"

// holdsSecret tells whether a field of an object holds secret values.
func holdsSecret(ref kube.Ref, path string) bool {
	if !isSecret(ref) {
		return false
	}
	for _, begin := range []string{"data", "stringData", lastApplied} {
		if rest, ok := strings.CutPrefix(path, begin); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return path == "metadata.annotations" || path == "metadata" // as a whole, with lastApplied
}

// value is one as people may see it; "" for an absent one.
func (s Secrets) value(ref kube.Ref, path string, v any) string {
	if v == nil {
		return ""
	}
	data, err := job.Marshal(v)
	if err != nil {
		return jobspec.Sensitive // nothing that came as JSON gets here
	}
	if s.Hide {
		return hidden
	}
	if holdsSecret(ref, path) || s.Known != nil && string(s.Known.Bytes(data)) != string(data) {
		return s.Key.Show(data, ref.Address(), path)
	}
	return visible.Line(cut(string(data), maxValue))
}

// path is a path as people may see it: keys and values of lists are part of it.
func (s Secrets) path(path string) string {
	if s.Known != nil {
		path = s.Known.String(path)
	}
	return visible.Line(cut(path, maxPath))
}

// Text is text as people may see it where a value stands that is no object's of a cluster.
func Text(text string) string { return visible.Line(cut(text, maxValue)) }

// How much is shown, in bytes.
const maxValue, maxPath = 256, 1024

// cut shortens text at the end of a character.
func cut(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes] + "…"
}
