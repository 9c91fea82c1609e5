// Package documents leaves what a plan is judged by: its documents, and the vendor's rules
// with their templates rendered. They are pinned with the plan: the same ones are judged
// before the apply. What the rules say is not the engine's business.
package documents

import (
	"fmt"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Of begins a document of the job's plan.
func Of(j *job.Job, form policy.Form, name string) policy.Document {
	d := policy.Document{Form: form, Of: string(j.Spec.Kind), Name: name}
	switch r := j.Spec.Resource; {
	case r == nil:
	case r.Kind == "component":
		d.Component = r.Name
	default:
		d.Sandbox = r.Kind == "sandbox"
	}
	return d
}

// With is Of with what will be as its body.
func With(j *job.Job, form policy.Form, name string, body any) (policy.Document, error) {
	d := Of(j, form, name)
	var err error
	if d.Body, err = job.Marshal(body); err != nil {
		return d, fmt.Errorf("document %s: %w", name, err)
	}
	return d, nil
}

// Leave writes the documents, and the rules that came with the order.
func Leave(j *job.Job, list []policy.Document) error {
	c := policy.Case{Documents: list}
	if list == nil {
		c.Documents = []policy.Document{}
	}
	for _, rules := range j.Spec.Policies {
		var err error
		if rules.Text, err = j.RenderFile("policy "+rules.Name, rules.File, rules.Text); err != nil {
			return err
		}
		c.Rules = append(c.Rules, rules)
	}
	return job.WriteJSON(j.Out("pinned", policy.PinnedCase), c)
}

// LeaveKnown writes what the engine knows for the plan's footprint besides the documents.
func LeaveKnown(j *job.Job, known footprint.Known) error {
	return job.WriteJSON(j.Out(footprint.KnownFile), known)
}
