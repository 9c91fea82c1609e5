package build

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/attest"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/source"
)

// private tells whether the build is of an image that builder has a key for. It
// asks nobody.
func (w *Worker) private(b Build) bool {
	if b.Source.Kind != source.KindImage || b.SourceFault != "" {
		return false
	}
	_, private, err := w.Resolver.Image(b.Source)
	return err == nil && private
}

// watchInterval is how often a copy asks whether its build is still wanted.
const watchInterval = 2 * time.Second

// errNotWanted ends a copy: the build was cancelled, or another worker ended it.
var errNotWanted = errors.New("the build has ended")

// copyImage copies a private image into the repository of the build. Killed in the
// middle and begun again, it sends only the blobs that are missing.
func (w *Worker) copyImage(ctx context.Context, b Build) (Copied, error) {
	from, _, err := w.Resolver.Image(b.Source)
	if err != nil {
		return Copied{}, err
	}
	dgst, err := digest.Parse(b.Source.Content(b.Commit))
	if err != nil {
		return Copied{}, fmt.Errorf("digest of image: %w", err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, b.Timeout, context.DeadlineExceeded)
	defer cancel()
	wanted, stop := context.WithCancelCause(limited)
	done := make(chan struct{})
	go func() { defer close(done); w.watch(wanted, b, stop) }()
	defer func() { stop(nil); <-done }()

	to := jobspec.Artifact{Repository: repositoryOf(b), Digest: dgst.String()}
	w.Log.InfoContext(ctx, "private image is being copied", "org_id", b.OrgID, "build_id", b.ID, "component", b.Component)
	began := time.Now().UTC()
	if err := signedAs(wanted, b, from, dgst); err != nil && ctx.Err() == nil {
		return Copied{}, err
	}
	size, err := w.Registry.CopyImage(wanted, b.OrgID, from, to)
	switch {
	case err == nil:
		return Copied{
			Artifact:  jobspec.BuiltArtifact{Repository: to.Repository, Digest: to.Digest, SizeBytes: size},
			StartedAt: began, FinishedAt: time.Now().UTC(),
		}, nil
	case ctx.Err() != nil:
		return Copied{}, ctx.Err()
	case limited.Err() != nil:
		return Copied{}, source.Refuse("image %s was not copied within the build_timeout of %s", b.Source.Repo, b.Timeout)
	case errors.Is(context.Cause(wanted), errNotWanted):
		return Copied{}, source.Refuse("the copy of image %s was stopped", b.Source.Repo)
	}
	return Copied{}, w.Resolver.ExplainCopy(err, b.Source)
}

// watch stops the copy of a build that nobody wants any more.
func (w *Worker) watch(ctx context.Context, b Build, stop context.CancelCauseFunc) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		var s State
		err := w.Store.Tx(ctx, b.OrgID, func(ctx context.Context, tx *database.Tx) (err error) {
			s, err = load(ctx, tx, b.ID)
			return err
		})
		if err == nil && (s.Build.Status.Ended() || s.Build.CancelRequested) {
			stop(errNotWanted)
			return
		}
	}
}

// signedAs refuses a private image that the app's key has not signed, before it is copied.
func signedAs(ctx context.Context, b Build, from oci.Remote, image digest.Digest) error {
	if b.ImageKey == "" {
		return nil
	}
	key, err := attest.ParseKey(b.ImageKey)
	if err != nil {
		return source.Refuse("image_key: %s", err)
	}
	manifest, hung, err := from.Hanging(ctx, image)
	if err != nil {
		return err
	}
	if err := attest.Signed([]crypto.PublicKey{key}, image, manifest, hung); err != nil {
		return source.Refuse("image %s, which is %s, is not signed by image_key below [berth]: %s", b.Source.Repo, image, err)
	}
	return nil
}
