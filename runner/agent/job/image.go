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
	"github.com/berth-dev/berth/runner/agent/buildkit"
)

// giveBuild gives a build of an image what it needs of BuildKit, and one of a module the
// credentials of modules.
func (j *job) giveBuild(ctx context.Context) error {
	if j.spec.Source == nil {
		return nil
	}
	if j.spec.Kind == jobspec.KindTerraformModule {
		err := j.deps.Engine.BuildKit.GiveModules(j.spec.OrgID, j.dir.In("build"))
		j.learnBuild()
		if refusal, ok := errors.AsType[*buildkit.Refusal](err); ok {
			return refuse(jobspec.OutcomeFailed, refusal.Remedy, "%s", refusal.Message)
		}
		return err
	}
	if j.spec.Source.Docker == nil {
		return nil
	}
	env, err := j.deps.Engine.BuildKit.Give(ctx, j.spec.OrgID, j.dir.In("build"), j.spec.Source.Docker)
	j.learnBuild()
	if refusal, ok := errors.AsType[*buildkit.Refusal](err); ok {
		return refuse(jobspec.OutcomeFailed, refusal.Remedy, "%s", refusal.Message)
	}
	if j.buildKit = env; err != nil {
		return err
	}
	if line := j.deps.Engine.BuildKit.BringCache(ctx, j.cache(), j.dir.In("cache")); line != "" {
		j.remark(line)
	}
	return nil
}

// cache is where the layers of this image are kept from build to build. Only who
// may push sees it.
func (j *job) cache() buildkit.Kept {
	return buildkit.Kept{Org: j.spec.OrgID, Repository: j.spec.Source.Cache, Docker: j.spec.Source.Docker, Remote: func(ctx context.Context, repository string) (oci.Remote, error) {
		return j.deps.Registry.Remote(ctx, repository, runnerapi.RegistryActionPush)
	}}
}

// keepCache keeps the layers of this image for the next build, if it left any.
func (j *job) keepCache(ctx context.Context) {
	if j.spec.Source.Docker == nil || j.spec.Source.Cache == "" {
		return
	}
	root, err := j.dir.OpenOut("out/cache")
	if err != nil {
		return // BuildKit could not write it, and has said why
	}
	defer func() { _ = root.Close() }()
	j.remark(j.deps.Engine.BuildKit.KeepCache(ctx, j.cache(), root))
}

// learnBuild registers what a build was given that its log must not show.
func (j *job) learnBuild() {
	for _, value := range buildkit.Hidden(j.dir.In("build")) {
		j.learn(value, false)
	}
}

// pushImage pushes the image that a build left to the org's registry, as it is: one
// that was copied under the digest that was asked for, and no other. What refers to
// one that was made follows it.
func (j *job) pushImage(ctx context.Context, result *jobspec.Result) error {
	root, err := j.dir.OpenOut("out/image")
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("the engine left no image")
	}
	if err != nil {
		return fmt.Errorf("image of the engine: %w", err)
	}
	defer func() { _ = root.Close() }()
	images := []digest.Digest{digest.Digest(j.spec.Source.ImageDigest)}
	if j.spec.Kind == jobspec.KindDockerBuild {
		images, err = oci.Listed(root)
	} else {
		err = images[0].Validate()
	}
	if err != nil {
		return fmt.Errorf("image of the engine: %w", err)
	}
	if err := j.judgeBuild(ctx, root, images[0], result); err != nil {
		return err
	}
	to, err := j.deps.Registry.Remote(ctx, j.spec.Source.Push, runnerapi.RegistryActionPush)
	if err != nil {
		return fmt.Errorf("push image: %w", err)
	}
	sizes := make([]int64, len(images))
	for i, image := range images {
		err = j.insist(ctx, "the image", func() (err error) {
			sizes[i], err = to.PushFolder(ctx, root, image, oci.TransferOptions{Referrers: true})
			return err
		})
		if err != nil {
			return err
		}
		j.remark("pushed " + to.Repository + "@" + image.String())
	}
	j.keepCache(ctx)
	result.Artifact = &jobspec.BuiltArtifact{Repository: j.spec.Source.Push, Digest: images[0].String(), SizeBytes: sizes[0]}
	return nil
}
