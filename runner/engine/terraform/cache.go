package terraform

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// pluginCache is Terraform's variable for its cache of providers.
const pluginCache = "TF_PLUGIN_CACHE_DIR"

// overlayCache makes a cache of the job's own that has every package of a shared
// one (HOST/NAMESPACE/TYPE/VERSION/TARGET), by symlinks. Terraform also writes to its cache, and the shared one is not
// the engine's to write: what one job brought would run in all others.
func overlayCache(own, shared string) error {
	if err := os.MkdirAll(own, 0o700); err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(shared, "*", "*", "*", "*", "*"))
	if err != nil {
		return err
	}
	for _, pkg := range packages {
		path, err := filepath.Rel(shared, pkg)
		if err != nil {
			return err
		}
		link := filepath.Join(own, path)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			return err
		}
		if err := os.Symlink(pkg, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
