package build

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/reach"
	"github.com/berth-dev/berth/runner/engine/job"
)

const (
	// copyTries is how often a copy is tried; each goes on where the one before
	// broke off. With the pauses between it is about half a minute.
	copyTries = 5

	// copyPause is the first pause; each is twice the one before.
	copyPause = 2 * time.Second

	// copyProgress is the least time between two lines about a copy.
	copyProgress = 2 * time.Second
)

// ContainerImage copies an image as it is, for all its platforms and with the
// signatures and SBOMs that refer to it, from where somebody else keeps it.
func ContainerImage(ctx context.Context, j *job.Job) (jobspec.Result, error) {
	s := j.Spec.Source
	if s.Kind != "image" {
		return jobspec.Result{}, job.Refusef("run a newer runner", "a source of kind %q is none of an image", s.Kind)
	}
	from, err := oci.ImageRemote(s.Image)
	if err != nil {
		return jobspec.Result{}, job.Refusef("check image_url", "%v", err)
	}
	want, err := digest.Parse(s.ImageDigest)
	if err != nil {
		return jobspec.Result{}, job.Refusef("", "image_digest %q: %v", s.ImageDigest, err)
	}
	layout, err := oci.Open(j.Out("image"))
	if err != nil {
		return jobspec.Result{}, err
	}
	name := s.Image + ":" + s.Ref
	j.Logf("copying %s, which is %s", name, want)
	began := time.Now()
	size, err := copyImage(ctx, j, func(opt oci.TransferOptions) error { return from.Pull(ctx, want, layout, opt) })
	if err != nil {
		return jobspec.Result{}, explainCopy(j, want, err)
	}
	j.Logf("copied %s: %d bytes in %s", name, size, time.Since(began).Round(time.Millisecond))
	if err := from.AdoptInto(ctx, want, layout); err != nil {
		j.Logf("signatures that are a tag do not come along: %v", err)
	}
	return jobspec.Result{}, signedAs(ctx, j, want)
}

// signedAs refuses an image that the app's key has not signed.
func signedAs(ctx context.Context, j *job.Job, image digest.Digest) error {
	s := j.Spec.Source
	if s.ImageKey == "" {
		return nil
	}
	key, err := attest.ParseKey(s.ImageKey)
	if err != nil {
		return job.Wrongf(correct(j, "berth.image_key"), "image_key: %v", err)
	}
	root, err := os.OpenRoot(j.Out("image"))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	manifest, hung, err := oci.HangingIn(ctx, root, image)
	if err != nil {
		return err
	}
	if err := attest.Signed([]crypto.PublicKey{key}, image, manifest, hung); err != nil {
		return job.Failf("have it signed with that key, or correct image_key below [berth]", "image %s:%s, which is %s, is not signed by image_key: %v", s.Image, s.Ref, image, err)
	}
	j.Logf("image %s is signed by image_key", image)
	return nil
}

// copyImage pulls an image, again while its registry does not answer.
func copyImage(ctx context.Context, j *job.Job, pull func(oci.TransferOptions) error) (size int64, err error) {
	last := time.Now()
	opt := oci.TransferOptions{Referrers: true, Note: func(text string) { j.Logf("%s", text) }, Progress: func(done, total int64) {
		size = total
		if time.Since(last) >= copyProgress {
			last = time.Now()
			j.Logf("%d of %d bytes", done, total)
		}
	}}
	pause := copyPause
	for try := 1; ; try++ {
		err = pull(opt)
		_, lasting := reach.Why(err)
		if err == nil || ctx.Err() != nil || try == copyTries || lasting || errors.Is(err, oci.ErrNotFound) || oci.Denied(err) {
			return size, err
		}
		j.Logf("the registry does not answer, trying again: %v", err)
		select {
		case <-ctx.Done():
			return size, err
		case <-time.After(pause):
		}
		pause *= 2
	}
}

func explainCopy(j *job.Job, want digest.Digest, err error) error {
	name := j.Spec.Source.Image + ":" + j.Spec.Source.Ref
	switch {
	case errors.Is(err, oci.ErrNotFound):
		return job.Failf("sync again, for what its tag names now", "image %s is not there any more as %s: %v", name, want, err)
	case oci.Denied(err):
		return job.Failf(correct(j, "image_url")+": use an image that is public", "image %s is not given out without credentials: %v", name, err)
	}
	if why, _ := reach.Why(err); why != "" {
		return job.Failf(correct(j, "image_url")+", or let the Build Runner reach its registry", "the registry of image %s cannot be reached: %s", name, why)
	}
	return fmt.Errorf("copy image %s: %w", name, err)
}
