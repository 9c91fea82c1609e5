package job

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/order"
)

// footprint is what a plan newly needs and exposes, without secrets, from its documents and
// from what its engine knows besides. It is nil for plans of which there is nothing to say:
// of scripts, images and releases, and of stand-ins.
//
// A plan that follows a change of uncertain outcome, and is the same plan again, has the
// footprint of that one: what was done of it by then is as new as it was.
func (j *job) footprint(documents []policy.Document, effect capsule.Effect) (*footprint.Footprint, error) {
	kind := j.kind()
	if kind.ByAgent || kind.Artifact == jobspec.ArtifactImage || j.spec.Kind == jobspec.KindAction {
		return nil, nil
	}
	var known footprint.Known
	_, err := j.dir.ReadOutJSON("out/"+footprint.KnownFile, maxPlan, &known)
	if j.spec.Kind == jobspec.KindRehearsal && len(known.After) == 0 {
		return nil, nil
	}
	if j.spec.Continues != "" {
		var before order.Record
		found, err := datadir.ReadJSON(j.deps.Dir.Plan(j.spec.Continues), &before)
		if err != nil {
			return nil, err
		}
		if found && before.Footprint != nil && before.Effect.ResourceID == effect.ResourceID && before.Effect.PlanDigest == effect.PlanDigest {
			return before.Footprint, nil
		}
	}
	f := footprint.Of(documents, known)
	if err != nil || !slices.ContainsFunc(documents, says) {
		f.Unknown = append(f.Unknown, footprint.Unknown{What: "what this plan needs, since its engine left nothing to read it from"})
	}
	raw, err := json.Marshal(j.secrets.set.Field(f))
	if err != nil {
		return nil, err
	}
	var clean footprint.Footprint
	if json.Unmarshal(raw, &clean) != nil {
		return nil, errors.New("footprint of the plan cannot be shown without a secret")
	}
	return &clean, nil
}

// says tells the documents that a footprint is made from.
func says(d policy.Document) bool {
	return slices.Contains([]policy.Form{policy.FormObject, policy.FormPlan, policy.FormPulumi, policy.FormChanges}, d.Form)
}
