package providers

import (
	"context"
	"log/slog"
	"os"

	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/mirrors"
)

// lockFile is where the lock file of a job's artifact is in the job's folder, plugins
// where its engine puts what it downloads.
const (
	lockFile = "in/artifact/.terraform.lock.hcl"
	plugins  = "work/plugins"
	maxLock  = 1 << 20 // bytes; one with hundreds of providers has a few hundred kilobytes
)

// GiveJob makes what a job may use of the cache, by the engine's folder. A nil cache, and
// one that cannot be used, give nothing.
func (c *Cache) GiveJob(folder string, log *slog.Logger) Given {
	if c == nil {
		return Given{}
	}
	locked, err := lockOf(folder)
	var g Given
	if err == nil {
		g, err = c.Give(locked)
	}
	if len(g.Damaged) > 0 {
		log.Error("providers in the cache were changed on disk and are fetched again", "providers", g.Damaged)
	}
	if err != nil {
		log.Warn("the cache of providers is not used", "err", err)
		return Given{Damaged: g.Damaged}
	}
	return g
}

// Shown are directories that an engine has to see, read-only, if it uses the cache: all of
// it, since engines are made ready before it is known what their lock file names.
func (c *Cache) Shown(uses bool) []string {
	if c == nil || !uses || os.MkdirAll(c.Dir, 0o755) != nil { // without it, it is not used
		return nil
	}
	return []string{c.Dir}
}

// TakeJob keeps what the engine of a job has downloaded, by its folder.
func (c *Cache) TakeJob(ctx context.Context, folder string, log *slog.Logger) {
	if c == nil {
		return
	}
	locked, err := lockOf(folder)
	if err != nil || len(locked) == 0 {
		return
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return
	}
	defer func() { _ = root.Close() }()
	downloaded, err := root.OpenRoot(plugins)
	if err != nil {
		return // there is none
	}
	defer func() { _ = downloaded.Close() }()
	kept, err := c.Take(ctx, downloaded, locked)
	if err != nil {
		log.WarnContext(ctx, "not all providers are kept", "err", err)
	}
	if len(kept) > 0 {
		log.InfoContext(ctx, "providers are kept for other jobs", "providers", kept)
	}
}

// Env is the variable by which Terraform finds the view.
func (g Given) Env() []string {
	if g.View == "" {
		return nil
	}
	return []string{mirrors.Cache + "=" + g.View}
}

func lockOf(folder string) ([]Locked, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	raw, _, err := datadir.ReadRegular(root, lockFile, maxLock)
	return ReadLock(raw), err
}
