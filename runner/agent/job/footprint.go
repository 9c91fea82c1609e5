package job

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/guardrail"
)

// footprint computes what a plan newly needs and exposes, from the documents of its case and
// from what its engine left in a folder. What of it is covered by an approval becomes one
// more document; what people are shown is returned, without secrets. It is nil for plans of
// which there is nothing to say: of scripts, images and releases, and of stand-ins.
func (j *job) footprint(of *policy.Case, folder string) (*footprint.Footprint, error) {
	kind := j.kind()
	if kind.ByAgent || kind.Artifact == jobspec.ArtifactImage || j.spec.Kind == jobspec.KindAction {
		return nil, nil
	}
	var known footprint.Known
	_, err := j.dir.ReadOutJSON(folder+footprint.KnownFile, maxPlan, &known)
	if j.spec.Kind == jobspec.KindRehearsal && len(known.After) == 0 {
		return nil, nil
	}
	f := footprint.Of(of.Documents, known)
	if err != nil || !slices.ContainsFunc(of.Documents, says) {
		f.Unknown = append(f.Unknown, footprint.Unknown{What: "what this plan needs, since its engine left nothing to read it from"})
	}
	of.Documents = append(of.Documents, guardrail.FootprintDocument(j.spec, f))

	raw, err := json.Marshal(j.secrets.set.Field(f))
	if err != nil {
		return nil, err
	}
	var shown footprint.Footprint
	if json.Unmarshal(raw, &shown) != nil {
		return nil, errors.New("footprint of the plan cannot be shown without a secret")
	}
	return &shown, nil
}

// says tells the documents that a footprint is made from.
func says(d policy.Document) bool {
	return slices.Contains([]policy.Form{policy.FormObject, policy.FormPlan, policy.FormPulumi, policy.FormChanges}, d.Form)
}
