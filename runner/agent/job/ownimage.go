package job

import (
	"errors"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/stepimage"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/ownimage"
)

// admitImage refuses an action that asks for an image where no pod can have it.
func (j *job) admitImage() error {
	if j.deps.Engine.InPods || !ownimage.Asked(j.spec) {
		return nil
	}
	return j.refuseScript(jobspec.Difference{Field: "action.image", Want: "engines in pods", Got: "engines as processes"}, ownimage.NoPods, ownimage.NoPodsRemedy)
}

// errSecretImage: the pod shows its image to everybody who sees pods.
var errSecretImage = errors.New("the name of the action's image has a secret in it, which everybody could read in the cluster")

// imageOfRun renders the image of a job that is not planned. The state of opened is
// in clear.
func (j *job) imageOfRun(opened jobspec.Spec) (err error) {
	if j.image, err = ownimage.OfRun(opened, j.deps.Now()); err == nil && j.secrets.shows([]byte(j.image)) {
		err = errSecretImage
	}
	if err != nil {
		remedy := stepimage.Remedy
		if errors.Is(err, ownimage.ErrNotAccepted) {
			remedy = "deploy the install with its image (`berth deploy INSTALL`)"
		}
		return j.refuseScript(jobspec.Difference{Field: "action.image", Want: opened.Action.ImageDigest, Got: err.Error()}, err.Error(), remedy)
	}
	return nil
}

// imageOfPlan is the image in what people approve.
func (j *job) imageOfPlan(plan []byte) (string, error) {
	image, err := ownimage.OfPlan(j.spec, plan)
	if err == nil && j.secrets.shows([]byte(image)) {
		err = errSecretImage
	}
	return image, err
}

// takeImage decides which image an apply is started in.
func (j *job) takeImage(planned order.Record) (err error) {
	if j.spec.Action == nil {
		return nil
	}
	pinned, _, err := j.dir.ReadOut("in/pinned/"+jobspec.PinnedAction, maxPlan)
	if err != nil {
		return err
	}
	if j.image, err = ownimage.OfApply(j.spec, planned.Image, pinned); err != nil {
		r := refuse(jobspec.OutcomeRefused, "plan the change again", "%v", err)
		r.result.Differs = []jobspec.Difference{{Field: "action.image", Want: planned.Image, Got: err.Error()}}
		return r
	}
	return nil
}
