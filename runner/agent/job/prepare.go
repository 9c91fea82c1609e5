package job

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/disk"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/registry"
)

// progressEvery is the least time between two lines about a transfer.
const progressEvery = 2 * time.Second

// prepare fills the engine's directory: kubeconfig, artifact, source, what an
// earlier change pinned, and last job.json with its leaves opened. It may be
// repeated on the same directory.
func (j *job) prepare(ctx context.Context) error {
	if err := j.dir.Renew(); err != nil {
		return err
	}
	if err := j.reachCluster(ctx); err != nil {
		return err
	}
	if err := j.bringPrevious(ctx); err != nil {
		return err
	}
	noValues, err := j.bringLive(ctx)
	if err != nil {
		return err
	}
	if a := j.spec.Artifact; a != nil {
		if err := j.untouched(ctx, *a); err != nil {
			return err
		}
		if err := j.bringArtifact(ctx, *a); err != nil {
			return fmt.Errorf("artifact: %w", err)
		}
	}
	if err := j.giveInit(); err != nil {
		return err
	}
	if j.spec.TerraformModule != nil && !j.deps.Engine.InPods {
		if j.providers = j.deps.Engine.Providers.GiveJob(j.dir.Engine(), j.log); len(j.providers.Damaged) > 0 {
			j.storedEvent(ctx, "changed providers in the cache were thrown away", strings.Join(j.providers.Damaged, ", "))
		}
	}
	if err := j.bringScripts(ctx); err != nil {
		return err
	}
	if s := j.spec.Source; s != nil && s.Archive != nil {
		if err := j.bringSource(ctx, *s.Archive); err != nil {
			return fmt.Errorf("source: %w", err)
		}
	}
	if err := j.giveBuild(ctx); err != nil {
		return err
	}
	spec, err := j.openState() // its artifact names leaves too
	if err != nil {
		return err
	}
	if spec.Operation == jobspec.OperationRun || spec.Operation == jobspec.OperationTick {
		if err := j.imageOfRun(spec); err != nil {
			return err
		}
	}
	spec.Fence = j.order.Fence
	if spec.Drift != nil {
		look := *spec.Drift
		look.NoValues = noValues // whatever the order says
		spec.Drift = &look
	}
	spec.DigestKey = nil
	if showsValues(spec) {
		spec.DigestKey = digestKey(j.deps.Keys.Salt, *spec.Resource)
		j.secrets.add(base64.StdEncoding.EncodeToString(spec.DigestKey), "key of digests")
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("job.json: %w", err)
	}
	return os.WriteFile(filepath.Join(j.dir.Engine(), "job.json"), raw, 0o600)
}

// untouched refuses to apply with an artifact that was changed in the own
// registry after its plan. The bytes could be fetched again by their digest, but
// somebody has written where only the agent writes: a new plan looks at
// everything again, and fixes it.
func (j *job) untouched(ctx context.Context, a jobspec.Artifact) error {
	if !j.mutates() {
		return nil
	}
	var corrupt *oci.CorruptError
	if err := j.deps.Trees.Verify(ctx, digest.Digest(a.Digest)); !errors.As(err, &corrupt) {
		return nil
	}
	r := refuse(jobspec.OutcomeRefused, "retry the step: it makes a new plan with the artifact as it was built",
		"artifact_digest: the artifact in the install's own registry is not what was approved: %s", oneLine(corrupt))
	r.result.Differs = []jobspec.Difference{{Field: "artifact_digest", Want: a.Digest, Got: oneLine(corrupt)}}
	return r
}

// bringArtifact makes sure that what is deployed is in the own registry. Engines
// get it unpacked; an image stays, for the kubelets.
func (j *job) bringArtifact(ctx context.Context, a jobspec.Artifact) error {
	if j.kind().Artifact != jobspec.ArtifactImage {
		return j.bring(ctx, a, j.dir.In("artifact"))
	}
	image, err := j.fetch(ctx, a)
	if err != nil {
		return err
	}
	if !j.spec.Destroy {
		if err := j.admitSigned(ctx, a, image); err != nil {
			return err
		}
	}
	return registry.Keep(ctx, j.deps.Layout, registry.Image{
		Repository: oci.RepositoryOf(j.spec.Resource.Name, j.spec.Resource.ID), Tag: j.spec.ImageTag(), Digest: image,
	})
}

// fetch makes sure that an artifact is in the own registry, whole.
func (j *job) fetch(ctx context.Context, a jobspec.Artifact) (digest.Digest, error) {
	want, err := digest.Parse(a.Digest)
	if err != nil {
		return "", fmt.Errorf("digest %q: %w", a.Digest, err)
	}
	if j.deps.Trees.Verify(ctx, want) != nil { // missing or damaged: fetch what is not right
		return want, j.pull(ctx, a.Repository, want)
	}
	return want, nil
}

// bring is fetch, and gives the engine the artifact unpacked. Files that it shares
// with other jobs are root's: an engine with the agent's own user could change them.
func (j *job) bring(ctx context.Context, a jobspec.Artifact, dir string) error {
	want, err := j.fetch(ctx, a)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // of an earlier try
		return err
	}
	if iso := j.attempt.Isolation; os.Geteuid() == 0 && iso.UID != 0 {
		return j.deps.Trees.Share(ctx, want, dir)
	}
	return j.deps.Layout.Unpack(ctx, want, dir, oci.Limits{})
}

// bringSource is bring of what is built once, and not kept.
func (j *job) bringSource(ctx context.Context, a jobspec.Artifact) error {
	want, err := j.fetch(ctx, a)
	if err != nil {
		return err
	}
	return j.deps.Layout.Unpack(ctx, want, j.dir.In("source"), oci.Limits{})
}

func (j *job) pull(ctx context.Context, repository string, want digest.Digest) error {
	started, last := time.Now(), time.Now()
	var total int64
	// What hangs on an artifact comes along: signatures, provenance, SBOM. Of what a build
	// works from nothing is kept.
	opt := oci.TransferOptions{Referrers: j.spec.Operation != jobspec.OperationBuild, Progress: func(done, all int64) {
		total = all
		if time.Since(last) >= progressEvery {
			last = time.Now()
			j.remark(fmt.Sprintf("pulling %s: %s of %s", repository, disk.Size(done), disk.Size(all)))
		}
	}}
	for try := 0; ; try++ {
		from, err := j.deps.Registry.Remote(ctx, repository, runnerapi.RegistryActionPull)
		if err != nil {
			return err
		}
		err = from.Pull(ctx, want, j.deps.Layout, opt)
		switch {
		case err == nil:
			j.remark(fmt.Sprintf("pulled %s@%s, %s in %s", repository, want, disk.Size(total), time.Since(started).Round(time.Millisecond)))
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, oci.ErrNotFound) || try == 9:
			return err
		}
		j.remark("the registry does not answer, trying again: " + err.Error())
		if err := pause.For(ctx, control.Backoff(try)); err != nil {
			return err
		}
	}
}

// unpin opens what the plan of a change kept, and puts it into dir.
func (j *job) unpin(ctx context.Context, change string, sealed []byte, dir string) error {
	plain, err := j.deps.Keys.Open(j.pinnedPurpose(change), sealed)
	if err != nil {
		return fmt.Errorf("pinned plan: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := oci.UnpackArchive(ctx, bytes.NewReader(plain), dir, oci.Limits{}); err != nil {
		return fmt.Errorf("pinned plan: %w", err)
	}
	return nil
}

// pinned reads the sealed bytes that the plan of a change kept; nil when
// they are gone.
func (j *job) pinned(ctx context.Context, r *order.Record) []byte {
	if r == nil || r.Blob == "" {
		return nil
	}
	_, sealed, err := j.deps.Layout.GetBlob(ctx, oci.KindPlan.ArtifactType(), digest.Digest(r.Blob))
	if err != nil {
		j.log.WarnContext(ctx, "pinned plan is not readable", "err", err)
		return nil
	}
	return sealed
}

// measure finds out where the effect is to happen and digests the executables
// that it names.
func (j *job) measure() (order.Place, error) {
	p := order.Place{Target: j.attempt.Target}
	if p.Target == "" {
		p.Target = order.Target(j.spec.InstallID)
	}
	if j.kind().ByAgent {
		return p, nil
	}
	var err error
	if p.EngineDigest, err = j.deps.Digests.Of(j.deps.Engine.Path); err != nil {
		return p, fmt.Errorf("engine: %w", err)
	}
	if j.terraformGone != "" {
		p.TerraformDigest = j.terraformGone
	} else if path := j.terraform(); path != "" {
		if p.TerraformDigest, err = j.deps.Digests.Of(path); err != nil {
			return p, fmt.Errorf("terraform: %w", err)
		}
	}
	if path := j.deps.Engine.Pulumi; path != "" && j.spec.Kind == jobspec.KindPulumi {
		if p.PulumiDigest, err = j.deps.Digests.Of(path); err != nil {
			return p, fmt.Errorf("pulumi: %w", err)
		}
	}
	return p, nil
}

func digestOfPinned(sealed []byte) string {
	if sealed == nil {
		return ""
	}
	return capsule.DigestBytes(sealed)
}
