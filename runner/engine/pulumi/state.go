package pulumi

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// document is what the agent keeps of a resource.
type document struct {
	Version   int               `json:"version"` // of the outer form
	Serial    int64             `json:"serial"`
	Lineage   string            `json:"lineage"`
	Outputs   map[string]output `json:"outputs"`
	Resources []counted         `json:"resources"`
	Pulumi    inner             `json:"pulumi"`
}

type output struct {
	Value     json.RawMessage `json:"value"`
	Sensitive bool            `json:"sensitive,omitempty"`
}

// counted is a resource as far as the agent counts it.
type counted struct {
	Mode      string     `json:"mode"`
	Type      string     `json:"type"`
	Instances []struct{} `json:"instances"`
}

type inner struct {
	Format int `json:"format"`
	// Passphrase and Salt encrypt the secrets of Deployment.
	Passphrase string `json:"passphrase"`
	Salt       string `json:"salt"`
	// Deployment is what `pulumi stack export` gives inside of its "deployment".
	Deployment json.RawMessage `json:"deployment,omitempty"`
}

const (
	outerVersion = 4
	innerFormat  = 1
)

// fresh is the document of a resource that was never applied.
func fresh() document {
	return document{Version: outerVersion, Lineage: random(), Pulumi: inner{Format: innerFormat, Passphrase: random() + random()}}
}

func random() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return hex.EncodeToString(b[:])
}

// parse reads a document. Its errors quote nothing of it.
func parse(body []byte) (document, error) {
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		return d, errors.New("the state is not JSON of a known form")
	}
	if d.Version != outerVersion || d.Pulumi.Format != innerFormat {
		return d, errors.New("the state is not one of Pulumi, or of a newer runner")
	}
	return d, nil
}

// next is the document after the command wrote a checkpoint.
func (d document) next(c checkpoint, outputs map[string]output) document {
	d.Serial++
	d.Pulumi.Deployment = c.Checkpoint.Latest
	d.Outputs = outputs
	d.Resources = []counted{}
	for _, r := range c.deployment().Resources {
		if r.Custom && !strings.HasPrefix(r.Type, "pulumi:") {
			d.Resources = append(d.Resources, counted{Mode: "managed", Type: r.Type, Instances: make([]struct{}, 1)})
		}
	}
	return d
}

// checkpoint is the file of a stack in a file:// backend, version 3.
type checkpoint struct {
	Version    int `json:"version"`
	Checkpoint struct {
		Latest json.RawMessage `json:"latest"`
	} `json:"checkpoint"`
}

// deployment is what is read of a deployment.
type deployment struct {
	Resources []resource  `json:"resources"`
	Pending   []operation `json:"pending_operations"`
}

type resource struct {
	URN     string                     `json:"urn"`
	Type    string                     `json:"type"`
	Custom  bool                       `json:"custom"`
	Outputs map[string]json.RawMessage `json:"outputs"`
}

type operation struct {
	Resource resource `json:"resource"`
	Type     string   `json:"type"` // creating, updating, deleting, reading
}

const (
	checkpointVersion = 3
	stackType         = "pulumi:pulumi:Stack"
)

func parseCheckpoint(raw []byte) (checkpoint, error) {
	var c checkpoint
	if err := json.Unmarshal(raw, &c); err != nil || c.Version != checkpointVersion {
		return c, fmt.Errorf("the checkpoint of pulumi is not of version %d", checkpointVersion)
	}
	return c, nil
}

func (c checkpoint) deployment() (d deployment) {
	_ = json.Unmarshal(c.Checkpoint.Latest, &d) // nothing in it: nothing is there
	return d
}

// outputs are those of the stack. known has their values in clear: secrets that it
// lacks are left out.
func (c checkpoint) outputs(known map[string]json.RawMessage) map[string]output {
	all := map[string]output{}
	for _, r := range c.deployment().Resources {
		if r.Type != stackType {
			continue
		}
		for name, value := range r.Outputs {
			secret := bytes.Contains(value, []byte(secretMark))
			if given, ok := known[name]; ok {
				value = given
			} else if secret {
				continue
			}
			all[name] = output{Value: value, Sensitive: secret}
		}
	}
	return all
}

// secretMark is the key and the value by which Pulumi marks an object that stands for
// a secret.
const secretMark = "1b47061264138c4ac30d75fd1eb44270"

// settle takes out of a deployment what an apply that was killed had begun. What it
// was creating may be there, unknown to the state; everything else is found out by
// the refresh that comes before each plan.
func settle(raw json.RawMessage) (clean json.RawMessage, creating []string, err error) {
	if len(raw) == 0 {
		return json.RawMessage("null"), nil, nil
	}
	var d deployment
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, nil, errors.New("the deployment in the state cannot be read")
	}
	if len(d.Pending) == 0 {
		return raw, nil, nil
	}
	for _, o := range d.Pending {
		if o.Type == "creating" {
			creating = append(creating, address(o.Resource.URN))
		}
	}
	slices.Sort(creating)
	var all map[string]json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, nil, errors.New("the deployment in the state cannot be read")
	}
	delete(all, "pending_operations")
	clean, err = json.Marshal(all)
	return clean, creating, err
}

// address is what people are shown of a URN: type and name, without the stack and
// the project, which are always the same.
func address(urn string) string {
	parts := strings.SplitN(urn, "::", 3)
	return parts[len(parts)-1]
}

func results(outputs map[string]output) jobspec.Outputs {
	all := jobspec.Outputs{}
	for name, o := range outputs {
		all[name] = jobspec.Output{Value: o.Value, Sensitive: o.Sensitive}
	}
	return all
}
