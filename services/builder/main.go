// Command berth-builder turns sources into artifacts: it resolves them to
// commits and digests, decides what must be built, hands that to the org's
// Build Runner, and makes the release when the last build of a config is done.
// It owns the registry of all orgs and keeps the Build Runners alive. It has no
// API but the registry's.
package main

import (
	"context"
	"os"

	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/startup"
)

func main() {
	startup.Main("berth-builder", func(ctx context.Context) error {
		cfg, err := setting.Load[Config](os.Getenv)
		if err != nil {
			return err
		}
		return Run(ctx, cfg)
	})
}
