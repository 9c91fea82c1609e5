package build

import (
	"context"
	"os"

	"github.com/berth-dev/berth/pkg/plugin"
	"github.com/berth-dev/berth/services/builder/internal/source"
)

// fetchPlugin brings a plugin from a registry, and refuses one that runners would
// refuse: not signed by the key that the component names, or of another type. A
// runner checks the same again before each job.
func (w *Worker) fetchPlugin(ctx context.Context, b Build, dir string) error {
	if err := w.Resolver.Fetch(ctx, b.Source, b.Source.Content(b.Commit), dir); err != nil {
		return err
	}
	signed, err := plugin.Verify(b.Signer, os.DirFS(dir))
	switch {
	case err != nil:
		e := source.Refuse("plugin %s@%s: %s", b.Source.Repo, b.Commit, err)
		e.Key = source.KeySigner
		return e
	case signed.Type != b.Type:
		e := source.Refuse("plugin %s@%s deploys components of type %q, this one is of type %q", b.Source.Repo, b.Commit, signed.Type, b.Type)
		e.Key = source.KeyOCI
		return e
	}
	return nil
}
