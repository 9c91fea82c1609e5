// Package image deploys a container image: the agent has brought it into the
// install's own registry before the plan, so nothing is left to change. What a
// plan gives are the outputs by which charts and manifests name it.
package image

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/engine/documents"
	"github.com/berth-dev/berth/runner/engine/job"
)

// image is the output of that name.
type image struct {
	// Repository is the name by which kubelets pull, without tag and digest.
	Repository string `json:"repository"`
	Tag        string `json:"tag"`
	Digest     string `json:"digest"`
	// Ref names exactly this image: repository and digest.
	Ref string `json:"ref"`
}

// Plan says where the image is.
func Plan(_ context.Context, j *job.Job) (jobspec.Result, error) {
	result := jobspec.Result{NoChange: true}
	registry := j.Env["BERTH_REGISTRY"]
	if registry == "" && !j.Spec.Destroy {
		return result, job.Failf("serve it with `berth-runner registry --data DIR --listen ADDRESS`, and give the runner --registry-address HOST:PORT (BERTH_REGISTRY_ADDRESS)",
			"%s: this runner has no registry that a cluster can pull from", j.Subject())
	}
	made := image{
		Repository: registry + "/" + oci.RepositoryOf(j.Spec.Resource.Name, j.Spec.Resource.ID),
		Tag:        j.Spec.ImageTag(), Digest: j.Spec.Artifact.Digest,
	}
	made.Ref = made.Repository + "@" + made.Digest
	outputs := jobspec.Outputs{}
	if !j.Spec.Destroy {
		value, err := job.Marshal(made)
		if err != nil {
			return result, err
		}
		outputs["image"] = jobspec.Output{Value: value}
	}
	for path, v := range map[string]any{
		j.Out("plan.canonical.json"): made,
		j.Out("plan.summary.json"):   jobspec.PlanSummary{NoChange: true, Text: summary(made, j.Spec.Destroy)},
		j.Out("inputs.json"):         map[string]any{},
		j.Out("outputs.json"):        outputs,
	} {
		if err := job.WriteJSON(path, v); err != nil {
			return result, err
		}
	}
	if err := leaveDocument(j, made); err != nil {
		return result, err
	}
	j.Logf("%s", summary(made, j.Spec.Destroy))
	return result, nil
}

// leaveDocument leaves the image as rules see it. What hangs on it in the vendor's registry
// was looked at by its build; the install's own registry holds the image alone.
func leaveDocument(j *job.Job, made image) error {
	if j.Spec.Destroy {
		return documents.Leave(j, nil)
	}
	d, err := documents.With(j, policy.FormImage, "image "+made.Repository, policy.Image{Image: made.Repository, Tag: made.Tag, Digest: made.Digest})
	if err != nil {
		return err
	}
	return documents.Leave(j, []policy.Document{d})
}

func summary(made image, destroy bool) string {
	if destroy {
		return "the image stays in the install's own registry"
	}
	return fmt.Sprintf("the image is %s (tag %q)", made.Ref, made.Tag)
}
