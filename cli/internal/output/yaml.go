package output

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/visible"
)

// toYAML writes JSON as YAML in which hidden characters are escaped, so that it
// means the same and can be shown.
//
// The encoder leaves most of them as they are. It does put text with control
// characters into double quotes, and writes these as \xNN; so a hidden character
// goes in as a control character with its number behind it, and the two become
// one escape in what comes out. A random word between them keeps any text from
// looking like that by itself.
func toYAML(data []byte) ([]byte, error) {
	if !bytes.ContainsFunc(data, visible.Hidden) && !bytes.Contains(data, []byte(`\u`)) {
		return yaml.JSONToYAML(data)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	word := rand.Text()
	data, err := json.Marshal(mapText(tree, func(text string) string {
		var out strings.Builder
		for _, r := range text {
			if visible.Hidden(r) {
				fmt.Fprintf(&out, "\x01%s%08X", word, r)
			} else {
				out.WriteRune(r)
			}
		}
		return out.String()
	}))
	if err != nil {
		return nil, err
	}
	if data, err = yaml.JSONToYAML(data); err != nil {
		return nil, err
	}
	escaped := regexp.MustCompile(`\\x01` + word + `([0-9A-F]{8})`)
	return escaped.ReplaceAll(data, []byte(`\U$1`)), nil
}

// mapText replaces every text of a decoded JSON value, keys of objects too.
func mapText(v any, f func(string) string) any {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		for i, item := range v {
			v[i] = mapText(item, f)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[f(key)] = mapText(item, f)
		}
		return out
	}
	return v
}
