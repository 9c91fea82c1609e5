package guardrail

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// MaxDocuments is how many one plan may leave.
const MaxDocuments = 20_000

// kindOfDocument is "Kind.group" of an object, "" for other documents.
func kindOfDocument(d policy.Document) string {
	o := headOf(d)
	if group := o.group(); group != "" {
		return o.Kind + "." + group
	}
	return o.Kind
}

// head is what names an object.
type head struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

func (h head) group() string {
	group, _, found := bytes.Cut([]byte(h.APIVersion), []byte("/"))
	if !found {
		return ""
	}
	return string(group)
}

func headOf(d policy.Document) (h head) {
	if d.Form != policy.FormObject {
		return h
	}
	body := d.Body
	if d.Operation == policy.Delete {
		body = d.Old
	}
	_ = json.Unmarshal(body, &h) // one that is no object has no names
	return h
}

// shownPlan is what the canonical plan says that happens, as far as documents can be held to it.
type shownPlan struct {
	Changes []struct {
		Object struct {
			Group     string `json:"group"`
			Kind      string `json:"kind"`
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"object"`
		Action string `json:"action"`
	} `json:"changes"`
	Plan struct {
		ResourceChanges json.RawMessage `json:"resource_changes"`
		Steps           json.RawMessage `json:"steps"`
	} `json:"plan"`
}

// Doubts compares the documents of a plan with its canonical form, which people approve: a
// change that no document is about, or a document that says something else. Both come from
// the same engine, so that one which lies in both the same way is not found out here: its
// apply would do what it showed.
func Doubts(spec jobspec.Spec, canonical []byte, list []policy.Document) []string {
	if len(list) > MaxDocuments {
		return []string{fmt.Sprintf("the plan leaves %d documents, more than %d", len(list), MaxDocuments)}
	}
	for _, d := range list {
		if wrong := misplaced(spec, d); wrong != "" {
			return []string{wrong}
		}
	}
	var plan shownPlan
	if err := json.Unmarshal(canonical, &plan); err != nil {
		return []string{"the canonical plan cannot be read"}
	}
	switch spec.Kind {
	case jobspec.KindHelmChart, jobspec.KindKubernetesManifest, jobspec.KindSecretSync:
		return plan.objects(list)
	case jobspec.KindTerraformModule, jobspec.KindRehearsal:
		return one(list, policy.FormPlan, "resource_changes", plan.Plan.ResourceChanges)
	case jobspec.KindPulumi:
		return one(list, policy.FormPulumi, "steps", plan.Plan.Steps)
	case jobspec.KindPlugin:
		return one(list, policy.FormChanges, "", nil)
	case jobspec.KindContainerImage, jobspec.KindDockerBuild:
		if spec.Destroy {
			return nil
		}
		return one(list, policy.FormImage, "", nil)
	}
	return nil
}

// frame is what every document of a plan says of where it comes from.
func frame(spec jobspec.Spec) policy.Document {
	d := policy.Document{Of: string(spec.Kind)}
	if r := spec.Resource; r != nil {
		d.Sandbox = r.Kind == "sandbox"
		if r.Kind == "component" {
			d.Component = r.Name
		}
	}
	return d
}

const footprintName = "footprint of the plan"

// FootprintDocument is that of what a plan newly needs and exposes.
func FootprintDocument(spec jobspec.Spec, f footprint.Footprint) policy.Document {
	return footprintIn(frame(spec), f)
}

// FootprintOf is that of documents to try rules on, as if nothing had been there before.
func FootprintOf(list []policy.Document) policy.Document {
	var d policy.Document
	if len(list) > 0 {
		d.Of, d.Component, d.Sandbox = list[0].Of, list[0].Component, list[0].Sandbox
	}
	return footprintIn(d, footprint.Of(list, footprint.Known{}))
}

func footprintIn(d policy.Document, f footprint.Footprint) policy.Document {
	d.Form, d.Name, d.Body = policy.FormFootprint, footprintName, encode(f.Planned())
	return d
}

// misplaced says what is wrong with the frame of a document, "" for nothing.
func misplaced(spec jobspec.Spec, d policy.Document) string {
	want := frame(spec)
	if d.Of != want.Of || d.Component != want.Component || d.Sandbox != want.Sandbox || d.Name == "" {
		return fmt.Sprintf("document %q is not about what was planned", d.Name)
	}
	return ""
}

// one wants exactly one document of a form, whose field is as in the canonical plan.
func one(list []policy.Document, form policy.Form, field string, want json.RawMessage) []string {
	if len(list) != 1 || list[0].Form != form {
		return []string{fmt.Sprintf("the plan leaves no document of form %s, or others", form)}
	}
	if field == "" {
		return nil
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(list[0].Body, &body); err != nil {
		return []string{"document " + list[0].Name + " is no JSON object"}
	}
	if !sameJSON(body[field], want) {
		return []string{fmt.Sprintf("document %s has other %s than the plan that is shown", list[0].Name, field)}
	}
	return nil
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	decode := func(raw json.RawMessage) (v any, err error) {
		if len(raw) == 0 {
			return nil, nil
		}
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		err = d.Decode(&v)
		return v, err
	}
	x, errX := decode(a)
	y, errY := decode(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// objects wants a document for each object that changes, under its own name.
func (p shownPlan) objects(list []policy.Document) []string {
	type change struct{ group, kind, namespace, name, operation string }
	there := map[change]bool{}
	for _, d := range list {
		if d.Form != policy.FormObject {
			return []string{fmt.Sprintf("document %q is no object", d.Name)}
		}
		h := headOf(d)
		there[change{h.group(), h.Kind, h.Metadata.Namespace, h.Metadata.Name, string(d.Operation)}] = true
	}
	operations := map[string][]policy.Operation{
		"create": {policy.Create}, "update": {policy.Update}, "delete": {policy.Delete}, "replace": {policy.Delete, policy.Create},
	}
	var missing []string
	for _, c := range p.Changes {
		for _, o := range operations[c.Action] {
			want := change{c.Object.Group, c.Object.Kind, c.Object.Namespace, c.Object.Name, string(o)}
			if !there[want] {
				missing = append(missing, fmt.Sprintf("no document is about the %s of %s %s/%s", c.Action, c.Object.Kind, c.Object.Namespace, c.Object.Name))
			}
		}
	}
	return missing
}

// PlannedScripts are the documents of an action or an ad-hoc script, from the bytes that its
// plan pins and its apply runs.
func PlannedScripts(spec jobspec.Spec, pinned []byte, accepted bool) ([]policy.Document, error) {
	var p struct {
		Scripts []struct {
			Name    string            `json:"name"`
			Text    string            `json:"text"`
			EnvVars map[string]string `json:"env_vars"`
		} `json:"scripts"`
	}
	if err := json.Unmarshal(pinned, &p); err != nil {
		return nil, fmt.Errorf("the pinned scripts cannot be read")
	}
	var list []policy.Document
	for _, s := range p.Scripts {
		list = append(list, script(spec, policy.Script{Step: s.Name, Text: s.Text, Env: slices.Sorted(maps.Keys(s.EnvVars)), Accepted: accepted}))
	}
	return list, nil
}

// RunScripts are those of a run without a plan: a check, or a tick of the schedule.
func RunScripts(spec jobspec.Spec, accepted bool) []policy.Document {
	var list []policy.Document
	for i, s := range spec.Action.Steps {
		text, name := s.InlineContents, s.Name
		if text == "" {
			text = s.Command
		}
		if name == "" {
			name = fmt.Sprintf("step %d", i+1)
		}
		list = append(list, script(spec, policy.Script{Step: name, Text: text, Env: slices.Sorted(maps.Keys(s.EnvVars)), Accepted: accepted}))
	}
	return list
}

func script(spec jobspec.Spec, s policy.Script) policy.Document {
	s.Action, s.AdHoc, s.Role = spec.Action.Name, spec.Action.AdHoc, spec.Action.BreakGlassRole
	if s.Env == nil {
		s.Env = []string{}
	}
	return policy.Document{Form: policy.FormScript, Of: string(spec.Kind), Component: s.Action, Name: "script " + s.Action + "/" + s.Step, Body: encode(s)}
}

// ReleaseDocument is that of accepting a release. accepted are the scripts and plugins that
// were accepted before.
func ReleaseDocument(spec jobspec.Spec, accepted []scripts.Accepted) policy.Document {
	r := spec.Release
	known := map[string]bool{}
	for _, a := range accepted {
		known[a.Digest] = true
	}
	body := policy.Release{
		ID: r.ID, Number: r.Number, Forgets: spec.Destroy,
		Artifacts: []policy.ReleaseArtifact{}, Scripts: []policy.ReleaseScript{}, Plugins: []string{}, Grown: []policy.GrownPlugin{}, Roles: roleNames(r.Roles), Secrets: []string{},
	}
	for _, a := range r.Artifacts {
		body.Artifacts = append(body.Artifacts, policy.ReleaseArtifact(a))
	}
	for _, s := range r.Scripts {
		digest, err := s.Digest()
		if err == nil && known[digest] {
			continue
		}
		if s.Plugin != "" {
			body.Plugins = append(body.Plugins, s.Action.Name)
			if grown := scripts.Grown(accepted, s); len(grown) > 0 {
				body.Grown = append(body.Grown, policy.GrownPlugin{Plugin: s.Action.Name, Permissions: grown})
			}
			continue
		}
		texts := []string{}
		for _, step := range s.Action.Steps {
			if step.InlineContents != "" {
				texts = append(texts, step.InlineContents)
			} else {
				texts = append(texts, step.Command)
			}
		}
		body.Scripts = append(body.Scripts, policy.ReleaseScript{
			Name: s.Action.Name, Digest: digest, Texts: texts, Unattended: s.Unattended || len(s.Heals) > 0, ReadOnly: s.Action.ReadOnly, Role: cmp.Or(s.Action.BreakGlassRole, s.Role),
		})
	}
	for _, s := range r.Secrets {
		body.Secrets = append(body.Secrets, s.Name)
	}
	return policy.Document{Form: policy.FormRelease, Of: string(spec.Kind), Name: fmt.Sprintf("release %d", r.Number), Body: encode(body)}
}

func roleNames(list []customerrole.Role) []string {
	names := []string{}
	for _, r := range list {
		names = append(names, r.Written)
	}
	return names
}

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, booleans and numbers only
	}
	return raw
}

// Seen is how one side sees an image.
type Seen struct {
	Side policy.Side
	// Image is its name, "" for the one by which this install pulls it.
	Image    string
	Metadata policy.ImageMetadata
}

// ImageDocuments gives each document of an image once for each side; others stay.
func ImageDocuments(documents []policy.Document, sides []Seen) ([]policy.Document, error) {
	var out []policy.Document
	for _, d := range documents {
		if d.Form != policy.FormImage {
			out = append(out, d)
			continue
		}
		for _, seen := range sides {
			var body policy.Image
			err := json.Unmarshal(d.Body, &body)
			if err != nil {
				return nil, fmt.Errorf("document %s: %w", d.Name, err)
			}
			of := d
			of.Side, body.Metadata = seen.Side, seen.Metadata
			if seen.Image != "" {
				body.Image, of.Name = seen.Image, "image "+seen.Image
			}
			if of.Body, err = json.Marshal(body); err != nil {
				return nil, err
			}
			out = append(out, of)
		}
	}
	return out, nil
}
