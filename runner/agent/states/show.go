package states

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Masked stands for a sensitive value.
const Masked = jobspec.Sensitive

// Shown is a state as people see it.
type Shown struct {
	Lineage   string         `json:"lineage"`
	Serial    int64          `json:"serial"`
	Terraform string         `json:"terraform_version"`
	Outputs   map[string]any `json:"outputs"`
	Objects   []Object       `json:"objects"`
}

// Object is one instance of a resource, or of a data source.
type Object struct {
	Address    string         `json:"address"`
	Tainted    bool           `json:"tainted,omitempty"`
	Attributes map[string]any `json:"attributes"`
}

// document is the part of a state, version 4, that is shown.
type document struct {
	Version          int    `json:"version"`
	TerraformVersion string `json:"terraform_version"`
	Serial           int64  `json:"serial"`
	Lineage          string `json:"lineage"`
	Outputs          map[string]struct {
		Value     any  `json:"value"`
		Sensitive bool `json:"sensitive"`
	} `json:"outputs"`
	Resources []struct {
		Module    string `json:"module"`
		Mode      string `json:"mode"`
		Type      string `json:"type"`
		Name      string `json:"name"`
		Instances []struct {
			IndexKey            any            `json:"index_key"`
			Status              string         `json:"status"`
			Deposed             string         `json:"deposed"`
			Attributes          map[string]any `json:"attributes"`
			SensitiveAttributes []any          `json:"sensitive_attributes"`
		} `json:"instances"`
	} `json:"resources"`
}

// Show reads a state in clear. Unless reveal is set, whatever the state marks as
// sensitive is masked, and so is every other place that has the same text: providers
// copy secrets to attributes that they do not mark.
func Show(state []byte, reveal bool) (Shown, error) {
	var d document
	dec := json.NewDecoder(bytes.NewReader(state))
	dec.UseNumber()
	if err := dec.Decode(&d); err != nil || d.Version != 4 {
		// The cause could quote the state.
		return Shown{}, fmt.Errorf("the state is of no form that is known here (version %d)", d.Version)
	}
	m := masker{reveal: reveal, texts: map[string]bool{}}
	for _, o := range d.Outputs {
		if o.Sensitive {
			m.learn(o.Value)
		}
	}
	for _, r := range d.Resources {
		for _, i := range r.Instances {
			for _, path := range i.SensitiveAttributes {
				m.hide(i.Attributes, steps(path))
			}
		}
	}
	if err := withReleases(state, &d, reveal); err != nil {
		return Shown{}, err
	}
	s := Shown{Lineage: d.Lineage, Serial: d.Serial, Terraform: d.TerraformVersion, Outputs: map[string]any{}, Objects: []Object{}}
	for name, o := range d.Outputs {
		value := m.masked(o.Value)
		if o.Sensitive && !reveal {
			value = Masked
		}
		s.Outputs[name] = value
	}
	for _, r := range d.Resources {
		address := r.Type + "." + r.Name
		if r.Mode == "data" {
			address = "data." + address
		}
		if r.Module != "" {
			address = r.Module + "." + address
		}
		for _, i := range r.Instances {
			o := Object{Address: address, Tainted: i.Status == "tainted"}
			switch key := i.IndexKey.(type) {
			case string:
				o.Address += fmt.Sprintf("[%q]", key)
			case json.Number:
				o.Address += "[" + key.String() + "]"
			}
			if i.Deposed != "" {
				o.Address += " (deposed " + i.Deposed + ")"
			}
			o.Attributes, _ = m.masked(i.Attributes).(map[string]any)
			s.Objects = append(s.Objects, o)
		}
	}
	slices.SortFunc(s.Objects, func(a, b Object) int { return strings.Compare(a.Address, b.Address) })
	return s, nil
}

// minSecret is the shortest text that is also masked where nothing marks it: shorter
// ones are in too many places by chance.
const minSecret = 6

type masker struct {
	reveal bool
	texts  map[string]bool
}

// learn notes the texts of a sensitive value.
func (m *masker) learn(value any) {
	switch v := value.(type) {
	case string:
		if len(v) >= minSecret {
			m.texts[v] = true
		}
	case map[string]any:
		for _, inner := range v {
			m.learn(inner)
		}
	case []any:
		for _, inner := range v {
			m.learn(inner)
		}
	}
}

// hide masks what a path of a state leads to. One that leads to nothing in particular,
// such as an element of a set, masks all from there on.
func (m *masker) hide(at map[string]any, path []any) {
	if len(path) == 0 {
		for name, value := range at {
			m.learn(value)
			m.mask(at, name)
		}
		return
	}
	name, ok := path[0].(string)
	value, there := at[name]
	if !ok || !there {
		return
	}
	inner, isMap := value.(map[string]any)
	if len(path) > 1 && isMap {
		if _, ok := path[1].(string); ok {
			m.hide(inner, path[1:])
			return
		}
	}
	m.learn(value)
	m.mask(at, name)
}

func (m *masker) mask(at map[string]any, name string) {
	if !m.reveal && at[name] != nil {
		at[name] = Masked
	}
}

// steps are the names and positions of a path of a state.
func steps(path any) []any {
	list, _ := path.([]any)
	var all []any
	for _, step := range list {
		s, _ := step.(map[string]any)
		switch v := s["value"].(type) {
		case string:
			all = append(all, v)
		case map[string]any: // an index has a type too
			all = append(all, v["value"])
		default:
			all = append(all, v)
		}
	}
	return all
}

// masked is a value without the texts that are known to be sensitive.
func (m *masker) masked(value any) any {
	if m.reveal {
		return value
	}
	switch v := value.(type) {
	case string:
		if v == Masked {
			return v
		}
		for text := range m.texts {
			if strings.Contains(v, text) {
				return Masked
			}
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for _, name := range slices.Collect(maps.Keys(v)) {
			clean[name] = m.masked(v[name])
		}
		return clean
	case []any:
		clean := make([]any, len(v))
		for i := range v {
			clean[i] = m.masked(v[i])
		}
		return clean
	}
	return value
}
