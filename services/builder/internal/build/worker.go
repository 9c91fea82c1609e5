package build

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/depot"
	"github.com/berth-dev/berth/services/builder/internal/orders"
	"github.com/berth-dev/berth/services/builder/internal/source"
	"github.com/berth-dev/berth/services/internal/fault"
)

// maxSteps ends a worker that goes in circles: a build needs a dozen steps, and
// some more when artifacts were lost.
const maxSteps = 50

// MaxTries is how often trouble that may pass is tried, by River, with growing
// pauses: about a minute in all.
const MaxTries = 9

// Resolver finds commits, reads those on disk, downloads charts and opens images:
// *source.Resolver.
type Resolver interface {
	Resolve(ctx context.Context, s source.Source) (source.Commit, error)
	Export(ctx context.Context, c source.Commit, directory, dest string) error
	Download(ctx context.Context, s source.Source, c source.Commit, dest string) error
	// Fetch unpacks the artifact of a source of kind oci.
	Fetch(ctx context.Context, s source.Source, digest, dest string) error
	// Image is the way to an image, and whether builder has a key for it.
	Image(s source.Source) (from oci.Remote, private bool, err error)
	ExplainCopy(err error, s source.Source) error
}

// Registry is the builder's own way into it: *depot.Depot.
type Registry interface {
	Has(ctx context.Context, orgID, repository, digest string) (bool, error)
	PushArchive(ctx context.Context, orgID, blob string) (jobspec.Artifact, error)
	PushDirectory(ctx context.Context, orgID string, fill func(dir string) error) (jobspec.Artifact, error)
	// CopyImage copies an image into a repository and returns its size in bytes.
	CopyImage(ctx context.Context, orgID string, from oci.Remote, to jobspec.Artifact) (int64, error)
}

// Runners keeps one Build Runner per org alive: *fleet.Fleet, *pods.Fleet.
type Runners interface {
	// Ensure returns the id of the org's Build Runner, made at the first time, and
	// whether the machine that enrolled last is there. When it is not, the build is
	// woken as the next one enrols.
	Ensure(ctx context.Context, orgID string) (runnerID string, ready bool, err error)
}

// Worker advances builds. It is safe for concurrent use.
type Worker struct {
	Store    *database.Store
	Resolver Resolver
	Registry Registry
	Runners  Runners
	// Keys sign the orders for builds.
	Keys *orders.Keys
	// Caches: builds of images leave what they made for the next ones.
	Caches bool
	Log    *slog.Logger
}

// ErrTryAgain means: the build is not finished, nobody will wake it, and it
// shows why.
var ErrTryAgain = errors.New("build will be tried again")

// Advance does what can be done now for a build. try counts from 1 and says how
// often it was tried in vain before. A build that does not exist is none.
func (w *Worker) Advance(ctx context.Context, buildID string, try int) error {
	var org string
	err := w.Store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		org, err = tx.BuilderOrgOf(ctx, buildID)
		return err
	})
	if err != nil || org == "" {
		return err
	}
	t := task{org: org, buildID: buildID, try: try}
	var facts Facts
	for range maxSteps {
		s, d, err := w.step(ctx, t, facts)
		if err != nil {
			return fmt.Errorf("advance build %s: %w", buildID, err)
		}
		switch d.Act {
		case Wait, Done:
			return nil
		case Note:
			return fmt.Errorf("build %s: %w: %s", buildID, ErrTryAgain, d.Error)
		case Resolve, Look, Stage, Copy, StartRunner:
			if facts, err = w.lookOutside(ctx, s, d); err != nil {
				return fmt.Errorf("advance build %s: %w", buildID, err)
			}
		}
	}
	return fmt.Errorf("build %s does not come to an end", buildID)
}

// task is a build that is advanced.
type task struct {
	org, buildID string
	try          int
}

// step takes one decision and, when it writes, does it in the same transaction.
func (w *Worker) step(ctx context.Context, t task, facts Facts) (s State, d Decision, err error) {
	err = w.Store.Tx(ctx, t.org, func(ctx context.Context, tx *database.Tx) error {
		if s, err = load(ctx, tx, t.buildID); err != nil {
			return err
		}
		s.Facts, s.Try, s.LastTry = facts, t.try, t.try >= MaxTries
		s.Private, s.Build.KeepCache = w.private(s.Build), w.Caches
		d = Next(s)
		return w.write(ctx, tx, s, d)
	})
	if err == nil {
		w.Log.DebugContext(ctx, "build step", "org_id", t.org, "build_id", t.buildID, "act", d.Act)
	}
	return s, d, err
}

// lookOutside does a decision that writes nothing and returns what is known
// then.
func (w *Worker) lookOutside(ctx context.Context, s State, d Decision) (Facts, error) {
	facts, b := s.Facts, s.Build
	switch d.Act {
	case Resolve:
		src := b.Source
		if b.Commit != "" {
			src.Ref = b.Commit // resolved before; the branch may have moved since
		}
		commit, err := w.Resolver.Resolve(ctx, src)
		facts.Commit = commit
		return facts.orTrouble(err, b)
	case Look:
		there, err := w.Registry.Has(ctx, b.OrgID, d.Artifact.Repository, d.Artifact.Digest)
		if err != nil {
			return facts, err
		}
		known := maps.Clone(facts.There)
		if known == nil {
			known = map[string]bool{}
		}
		known[d.Artifact.Digest] = there
		facts.There = known
	case Stage:
		archive, err := w.stage(ctx, s)
		if err == nil {
			facts.Archive = &archive
		}
		return facts.orTrouble(err, b)
	case Copy:
		copied, err := w.copyImage(ctx, b)
		if err == nil {
			facts.Copied = &copied
		}
		return facts.orTrouble(err, b)
	case StartRunner:
		var err error
		if facts.RunnerID, facts.RunnerReady, err = w.Runners.Ensure(ctx, b.OrgID); err != nil {
			return facts, err
		}
	}
	return facts, nil
}

// stage pushes what travels as an archive.
func (w *Worker) stage(ctx context.Context, s State) (jobspec.Artifact, error) {
	b := s.Build
	if b.Source.Kind == source.KindLocal {
		return w.Registry.PushArchive(ctx, b.OrgID, b.Source.Digest)
	}
	return w.Registry.PushDirectory(ctx, b.OrgID, func(dir string) error {
		switch b.Source.Kind {
		case source.KindChart:
			return w.Resolver.Download(ctx, b.Source, s.Facts.Commit, dir)
		case source.KindOCI:
			return w.fetchPlugin(ctx, b, dir)
		}
		return w.Resolver.Export(ctx, s.Facts.Commit, b.Source.Directory, dir)
	})
}

// orTrouble tells what a vendor should see from what an operator should.
func (f Facts) orTrouble(err error, b Build) (Facts, error) {
	var unresolved *source.Error
	var bad *depot.BadSource
	switch {
	case err == nil:
		return f, nil
	case errors.As(err, &unresolved):
		f.Trouble = &Trouble{Text: unresolved.Error(), Remedy: remedyOf(unresolved, b), Passing: unresolved.Transient, Slow: unresolved.Slow}
	case errors.As(err, &bad):
		f.Trouble = &Trouble{Text: bad.Error()}
	case errors.Is(err, fault.ErrNotFound):
		f.Trouble = &Trouble{Text: "the uploaded source is gone"}
	default:
		return f, err
	}
	return f, nil
}
