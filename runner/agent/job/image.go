package job

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

// pushImage pushes the image that a build copied to the org's registry, as it
// is: under the digest that was asked for, and no other.
func (j *job) pushImage(ctx context.Context, result *jobspec.Result) error {
	want, err := digest.Parse(j.spec.Source.ImageDigest)
	if err != nil {
		return fmt.Errorf("image digest %q: %w", j.spec.Source.ImageDigest, err)
	}
	image, err := j.dir.openOut("out/image")
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the engine copied no image")
	}
	if err != nil {
		return fmt.Errorf("image of the engine: %w", err)
	}
	defer func() { _ = image.Close() }()
	to, err := j.deps.Registry.Remote(ctx, j.spec.Source.Push, runnerapi.RegistryActionPush)
	if err != nil {
		return fmt.Errorf("push image: %w", err)
	}
	var size int64
	err = j.insist(ctx, "the image", func() (err error) {
		size, err = to.PushFolder(ctx, image, want, oci.TransferOptions{Referrers: true})
		return err
	})
	if err != nil {
		return err
	}
	j.remark("pushed " + to.Repository + "@" + want.String())
	result.Artifact = &jobspec.BuiltArtifact{Repository: j.spec.Source.Push, Digest: want.String(), SizeBytes: size}
	return nil
}
