package stateproxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/tfstate"
	"github.com/berth-dev/berth/runner/agent/states"
)

// summary is what the vendor learns of a state, as much as the customer lets it: without
// what the state marks as sensitive, and without the secrets of the attempt.
func (p *Proxy) summary(body []byte, d Document, sealed int) (map[string]any, error) {
	s := tfstate.Summary{Resources: d.counts(), Bytes: int64(sealed)}
	level := tfstate.Counts
	if shown, err := states.Show(body, false); err == nil && p.Tells != "" { // of another form, there is only the count
		level, s.Terraform, s.Outputs = p.Tells, shown.Terraform, shown.Outputs
		for _, o := range shown.Objects {
			s.Objects = append(s.Objects, tfstate.Object{Address: o.Address, Tainted: o.Tainted, Attributes: o.Attributes})
		}
	}
	raw, err := json.Marshal(s.Fit(level))
	if err != nil {
		return nil, fmt.Errorf("summary of the state: %w", err)
	}
	var tree map[string]any
	numbers := json.NewDecoder(bytes.NewReader(raw))
	numbers.UseNumber() // large ones stay as they are
	if err := numbers.Decode(&tree); err != nil {
		return nil, fmt.Errorf("summary of the state: %w", err)
	}
	if p.Redact == nil {
		return tree, nil
	}
	for _, name := range []string{"objects", "outputs"} {
		if part, ok := tree[name]; ok {
			tree[name] = p.Redact(part)
		}
	}
	return tree, nil
}

// told notes that the control plane has attributes of a state.
func (p *Proxy) told(write runnerapi.StateWrite) {
	if p.Told == nil || write.Summary == nil || (*write.Summary)["level"] != string(tfstate.Attributes) {
		return
	}
	raw, err := json.Marshal(write.Summary)
	if err != nil {
		return
	}
	sum := sha256.Sum256(raw)
	p.Told(write.Serial, len(raw), "sha256:"+hex.EncodeToString(sum[:]))
}
