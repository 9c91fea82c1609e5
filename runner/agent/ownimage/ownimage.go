// Package ownimage decides which image the engine of an action is started in. All
// of it is pure; package job calls it, package enginepod makes the pod.
//
//	plan   runs nothing, in the runner's image; its engine renders the name into the
//	       canonical plan, whose digest is approved     ──▶ OfPlan ──▶ the agent's record
//	apply  what the plan pinned, if that is the name on record      ──▶ OfApply
//	run    a check without a plan: the agent renders it, each time  ──▶ OfRun
package ownimage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/stepimage"
)

const (
	// NoPods is why a runner refuses an action with an image.
	NoPods = "the action's steps run in an image, and this runner runs jobs as processes"
	// NoPodsRemedy is what to do about it.
	NoPodsRemedy = "use a runner in a cluster whose engines are Kubernetes Jobs: `berth-runner manifest` without `--engines process`; or take `image` out of the action"
)

// ErrDiffers says that the image to start is not the one that was planned.
var ErrDiffers = errors.New("the image is not the one of the plan")

// Asked says whether the job's steps run in an image.
func Asked(spec jobspec.Spec) bool { return spec.Action != nil && spec.Action.Image != "" }

// ErrNotAccepted says that the customer has not accepted the image of a check.
var ErrNotAccepted = errors.New("the image is not the one that was accepted with the check")

// OfRun renders the image of a job without a plan. The job's state has been opened.
// "" is for a job that asks for none. What the control plane says in the state is
// nobody's decision, so the digest is one that the script has, which was accepted.
func OfRun(spec jobspec.Spec, now time.Time) (string, error) {
	if !Asked(spec) {
		return "", nil
	}
	tree := map[string]any{}
	if len(spec.State) > 0 {
		d := json.NewDecoder(bytes.NewReader(spec.State))
		d.UseNumber()
		if err := d.Decode(&tree); err != nil {
			return "", errors.New("state of the job is not a JSON object")
		}
	}
	state := interpolate.NewState(tree).WithActionInputs(spec.Action.Inputs)
	image, err := interpolate.Render(spec.Action.Image, state, interpolate.Options{Now: now, File: spec.Action.File + ": image"})
	if err != nil {
		return "", err
	}
	if err := stepimage.Check(image); err != nil {
		return "", err
	}
	_, digest, _ := strings.Cut(image, "@")
	switch {
	case !interpolate.IsTemplate(spec.Action.Image):
		return image, nil
	case spec.Action.ImageDigest == "":
		return "", fmt.Errorf("%w: it has none that a release says; a check names an image by digest, or exactly one component's", ErrNotAccepted)
	case digest != spec.Action.ImageDigest:
		return "", fmt.Errorf("%w: that is %s, and this install has %s", ErrNotAccepted, spec.Action.ImageDigest, image)
	}
	return image, nil
}

// OfPlan reads the image out of what the engine of a plan left: the canonical
// plan, or what it pinned, which are of one form.
func OfPlan(spec jobspec.Spec, plan []byte) (string, error) {
	if spec.Action == nil {
		return "", nil
	}
	var p struct {
		Image string `json:"image"`
	}
	if err := json.Unmarshal(plan, &p); err != nil {
		return "", errors.New("the plan of the action is not what the job contract says")
	}
	switch {
	case !Asked(spec) && p.Image == "":
		return "", nil
	case !Asked(spec), p.Image == "":
		return "", fmt.Errorf("%w: the action asks for %q, and the plan has %q", ErrDiffers, spec.Action.Image, p.Image)
	}
	return p.Image, stepimage.Check(p.Image)
}

// OfApply is the image that an apply is started in: the one that was pinned, which
// must be the one on record, and that the approved plan has.
func OfApply(spec jobspec.Spec, recorded string, pinned []byte) (string, error) {
	image, err := OfPlan(spec, pinned)
	if err != nil {
		return "", err
	}
	if image != recorded {
		return "", fmt.Errorf("%w: %q is pinned, %q was planned", ErrDiffers, image, recorded)
	}
	return image, nil
}
