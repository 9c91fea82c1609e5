package stateproxy

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Document is the part of a Terraform state, version 4, that the proxy reads.
type Document struct {
	Serial  int64  `json:"serial"`
	Lineage string `json:"lineage"`
	Outputs map[string]struct {
		Value     any  `json:"value"`
		Sensitive bool `json:"sensitive"`
	} `json:"outputs"`
	Resources []struct {
		Mode      string `json:"mode"`
		Type      string `json:"type"`
		Instances []struct {
			Attributes map[string]any `json:"attributes"`
			Sensitive  []any          `json:"sensitive_attributes"`
		} `json:"instances"`
	} `json:"resources"`
}

// Open opens a state that the control plane sent as that of the resource.
func Open(keys datadir.Keys, runner datadir.Runner, resource string, state runnerapi.State) ([]byte, Document, error) {
	return OpenWith(keys.Open, datadir.StatePurpose(runner, resource, state.Lineage, state.Serial), state.Body)
}

// OpenWith opens a state for its purpose. Lineage and serial are those that it was
// sealed for, and those that Terraform wrote into it.
func OpenWith(open seal.Opener, purpose seal.Purpose, sealed []byte) ([]byte, Document, error) {
	body, err := open(purpose, sealed)
	if err != nil {
		return nil, Document{}, err
	}
	d, err := parse(body)
	if err != nil {
		return nil, d, err
	}
	if d.Lineage != purpose.Lineage || d.Serial != purpose.Serial {
		return nil, d, fmt.Errorf("%w: Terraform wrote lineage %q serial %d, and it came as lineage %q serial %d",
			seal.ErrOtherPurpose, d.Lineage, d.Serial, purpose.Lineage, purpose.Serial)
	}
	return body, d, nil
}

func parse(body []byte) (Document, error) {
	var d Document
	if err := json.Unmarshal(body, &d); err != nil {
		// The cause could quote the state.
		return d, fmt.Errorf("terraform state is not JSON of a known form")
	}
	return d, nil
}

// secrets calls learn with each value that the state itself marks as sensitive.
func (d Document) secrets(learn func(value any)) {
	for _, out := range d.Outputs {
		if out.Sensitive {
			learn(out.Value)
		}
	}
	for _, r := range d.Resources {
		for _, instance := range r.Instances {
			for _, path := range instance.Sensitive {
				if value, ok := follow(instance.Attributes, path); ok {
					learn(value)
				}
			}
		}
	}
}

// follow walks a path as the state writes them: a list of steps, each
// {"type": "get_attr", "value": name} or {"type": "index", "value": {"value": key}}.
func follow(node any, path any) (any, bool) {
	steps, ok := path.([]any)
	if !ok {
		return nil, false
	}
	for _, step := range steps {
		s, _ := step.(map[string]any)
		key := s["value"]
		if inner, ok := key.(map[string]any); ok {
			key = inner["value"]
		}
		switch at := node.(type) {
		case map[string]any:
			name, _ := key.(string)
			if node, ok = at[name]; !ok {
				return nil, false
			}
		case []any:
			i, isNumber := key.(float64)
			if !isNumber || i < 0 || int(i) >= len(at) {
				return nil, false
			}
			node = at[int(i)]
		default:
			return node, true // the whole of what cannot be entered is sensitive
		}
	}
	return node, true
}

// counts are how many managed resources there are of each type.
func (d Document) counts() map[string]int {
	counts := map[string]int{}
	for _, r := range d.Resources {
		if r.Mode == "managed" {
			counts[r.Type] += len(r.Instances)
		}
	}
	return counts
}

// Digest tells two states apart without telling what is in them.
func Digest(salt, body []byte) string {
	mac := hmac.New(sha256.New, salt)
	mac.Write(body)
	return "sha256:" + hex.EncodeToString(mac.Sum(nil))
}
