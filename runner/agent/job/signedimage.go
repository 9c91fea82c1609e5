package job

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/runner/agent/imagetrust"
)

// nameOfImage is what rules in trust.json call the image of a job. It is the control plane's
// word: one that it invents matches no rule, or one with a key that it does not have.
func (j *job) nameOfImage(a jobspec.Artifact) string {
	if work := j.spec.ContainerImage; work != nil && work.Image != "" {
		return work.Image
	}
	return a.Repository
}

// admitSigned refuses an image that is not signed as the customer's trust.json wants it. The
// image is in the own registry, and kubelets do not get it yet.
func (j *job) admitSigned(ctx context.Context, a jobspec.Artifact, image digest.Digest) error {
	trust, err := j.deps.Dir.LoadTrust()
	if err != nil {
		return err
	}
	name := j.nameOfImage(a)
	needed, err := imagetrust.For(trust.Images, name)
	if err == nil && needed.Free {
		return nil
	}
	if err == nil {
		if err = j.signedBy(ctx, needed, image); errors.Is(err, attest.ErrSignature) {
			// It may have been here before it was signed.
			if pullErr := j.pull(ctx, a.Repository, image); pullErr != nil && !errors.Is(pullErr, oci.ErrNotFound) {
				return pullErr
			}
			err = j.signedBy(ctx, needed, image)
		}
		if err != nil && !errors.Is(err, attest.ErrSignature) {
			return err
		}
	}
	if err == nil {
		j.remark("image " + name + " is signed by a key that the customer trusts for it")
		return nil
	}
	text := fmt.Sprintf("image %s@%s may not come into this install: %v", name, image, err)
	j.recordEvent(ctx, string(jobspec.OutcomeRefused), text)
	r := refuse(jobspec.OutcomeRefused, "sign the image with that key and build the component again, or ask the customer to change images in the runner's trust.json", "%s", text)
	r.result.Differs = []jobspec.Difference{{Field: "image_signature", Want: "one of a key in images of trust.json", Got: "none"}}
	return r
}

func (j *job) signedBy(ctx context.Context, needed imagetrust.Needed, image digest.Digest) error {
	root, err := os.OpenRoot(j.deps.Layout.Dir())
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	manifest, hung, err := oci.HangingIn(ctx, root, image)
	if err != nil {
		return err
	}
	return attest.Signed(needed.Keys, image, manifest, hung)
}
