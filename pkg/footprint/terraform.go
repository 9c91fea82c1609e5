package footprint

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/policy"
)

// resourceChange is what is read of a plan of Terraform. Each resource of the state is one,
// also when nothing happens to it.
type resourceChange struct {
	Address  string `json:"address"`
	Mode     string `json:"mode"`
	Type     string `json:"type"`
	Provider string `json:"provider_name"`
	Change   struct {
		Actions         []string        `json:"actions"`
		Before          json.RawMessage `json:"before"`
		After           json.RawMessage `json:"after"`
		AfterUnknown    json.RawMessage `json:"after_unknown"`
		BeforeSensitive json.RawMessage `json:"before_sensitive"`
		AfterSensitive  json.RawMessage `json:"after_sensitive"`
	} `json:"change"`
}

// readPlan takes in a plan of Terraform: what the state has, and what it will have.
func readPlan(raw []byte, before, after *facts) {
	var plan struct {
		ResourceChanges []resourceChange `json:"resource_changes"`
	}
	if json.Unmarshal(raw, &plan) != nil {
		return
	}
	for _, rc := range plan.ResourceChanges {
		if rc.Mode != "managed" {
			continue
		}
		if is(rc.Change.Before) {
			before.uses(rc, everyAction)
			before.resource(resource{facts: before, by: rc.Address, kind: rc.Type, values: rc.Change.Before, sensitive: rc.Change.BeforeSensitive})
		}
		after.uses(rc, rc.Change.Actions)
		if is(rc.Change.After) {
			after.resource(resource{
				facts: after, by: rc.Address, kind: rc.Type, values: rc.Change.After, sensitive: rc.Change.AfterSensitive, unknown: rc.Change.AfterUnknown,
			})
		}
	}
}

func is(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// everyAction is what a resource that is there has needed, or will: nothing of that is new.
var everyAction = []string{"create", "read", "update", "delete"}

// typeUse is what a type of resource needs.
type typeUse struct {
	provider, by string
	actions      []string
}

// uses takes in what doing something with a resource needs.
func (f *facts) uses(rc resourceChange, doing []string) {
	if needsNoRights(rc.Provider) {
		return
	}
	o, known := Clouds()[rc.Type]
	use := f.actions[rc.Type]
	if use.by == "" {
		use.provider, use.by = o.Provider, rc.Address
	}
	did := false
	for _, what := range doing {
		switch what {
		case "create":
			use.actions = append(use.actions, o.Create...)
		case "update":
			use.actions = append(use.actions, o.Update...)
		case "delete":
			use.actions = append(use.actions, o.Delete...)
		case "read":
		default: // no-op, forget
			continue
		}
		use.actions = append(use.actions, o.Read...)
		did = true
	}
	switch {
	case !did:
	case !known:
		f.cannotTell("what "+rc.Type+" of "+cmp.Or(rc.Provider, "an unnamed provider")+" needs", rc.Address)
	case len(f.actions) < maxFacts:
		use.actions = union(use.actions, nil)
		f.actions[rc.Type] = use
	}
}

// newActions are those of types that the component did not have, as far as no type that it
// had needs them too.
func (f *facts) newActions(before *facts) []CloudActions {
	had := map[string]bool{}
	for _, use := range before.actions {
		for _, action := range use.actions {
			had[action] = true
		}
	}
	var list []CloudActions
	for _, name := range keysOf(f.actions) {
		if _, there := before.actions[name]; there {
			continue
		}
		use := f.actions[name]
		fresh := slices.DeleteFunc(slices.Clone(use.actions), func(action string) bool { return had[action] })
		if len(fresh) > 0 {
			list = append(list, CloudActions{Provider: use.provider, Type: name, By: use.by, Actions: fresh})
		}
	}
	slices.SortStableFunc(list, func(a, b CloudActions) int { return falseFirst(!widens(a.Actions), !widens(b.Actions)) })
	return list
}

func widens(actions []string) bool {
	return slices.ContainsFunc(actions, func(action string) bool { return widening[strings.ToLower(action)] })
}

// resource is one resource as it is or will be.
type resource struct {
	*facts
	by, kind                   string
	values, sensitive, unknown json.RawMessage
	read, secret, later        any // the same, once they are read
}

// resource takes in what the values of a resource say, for the types that say something.
func (f *facts) resource(r resource) {
	look := looks[r.kind]
	if look == nil {
		look = lookByName(r.kind)
	}
	if look == nil {
		return
	}
	r.secret, r.later = decode(r.sensitive), decode(r.unknown)
	r.read = without(decode(r.values), r.secret)
	look(r)
}

// without takes out what a mask of Terraform marks as sensitive.
func without(v, mask any) any {
	switch mask := mask.(type) {
	case bool:
		if mask {
			return nil
		}
	case map[string]any:
		if m, ok := v.(map[string]any); ok {
			for key, sub := range mask {
				if _, there := m[key]; there {
					m[key] = without(m[key], sub)
				}
			}
		}
	case []any:
		if l, ok := v.([]any); ok {
			for i := range min(len(l), len(mask)) {
				l[i] = without(l[i], mask[i])
			}
		}
	}
	return v
}

func (r resource) all() map[string]any {
	m, _ := r.read.(map[string]any)
	return m
}

func (r resource) text(key string) string { return text(r.all(), key) }
func (r resource) is(key string) bool     { return r.all()[key] == true }

// blocks are the nested blocks of a name.
func (r resource) blocks(key string) []map[string]any { return children(r.all(), key) }

// telling is the text of a field that has to be known to say what a resource gives. When it
// is not, that is said.
func (r resource) telling(key string) string {
	if marked(r.secret, key) {
		r.cannotTell(key+" of "+r.by+", which is sensitive", r.by)
		return ""
	}
	if marked(r.later, key) {
		r.cannotTell(key+" of "+r.by+", which is only known at the apply", r.by)
		return ""
	}
	return r.text(key)
}

func marked(mask any, key string) bool {
	m, _ := mask.(map[string]any)
	return mask == true || m[key] == true
}

// readPreview takes in a preview of Pulumi. It lists only what happens; its types are not
// those of Terraform.
func readPreview(raw []byte, before, after *facts) {
	type state struct {
		Type string `json:"type"`
	}
	var preview struct {
		Steps []struct {
			Op       string `json:"op"`
			URN      string `json:"urn"`
			OldState *state `json:"oldState"`
			NewState *state `json:"newState"`
		} `json:"steps"`
	}
	if json.Unmarshal(raw, &preview) != nil {
		return
	}
	say := func(f *facts, s *state, urn string) {
		if s != nil && !strings.HasPrefix(s.Type, "pulumi:") && !strings.HasPrefix(s.Type, "random:") {
			f.cannotTell("what "+s.Type+" of Pulumi needs", urn)
		}
	}
	for _, step := range preview.Steps {
		say(before, step.OldState, step.URN)
		say(after, step.NewState, step.URN)
	}
}

// readChanges takes in what a plugin shows of its plan.
func readChanges(d policy.Document, after *facts) {
	var body policy.Changes
	if json.Unmarshal(d.Body, &body) == nil && len(body.Changes) > 0 {
		after.cannotTell("what the plugin "+body.Type+" needs", d.Name)
	}
}
