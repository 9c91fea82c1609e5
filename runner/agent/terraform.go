package agent

import (
	"context"

	"github.com/berth-dev/berth/pkg/tfprogram"
	"github.com/berth-dev/berth/runner/agent/egress"
	"github.com/berth-dev/berth/runner/agent/toolchain"
)

// provideTerraform opens the versions of Terraform and OpenTofu that jobs choose from. Where that is
// wanted, one is fetched first: an agent that cannot have it works all the same, since
// charts and scripts need none, and each job looks again.
func (a *agent) provideTerraform(ctx context.Context) {
	cfg := toolchain.Config{
		Named: a.cfg.Terraform, Mirror: a.cfg.TerraformMirror, Downloads: a.cfg.TerraformDownloads == DownloadsAllow,
		SameMinor: a.cfg.TerraformMatch == MatchMinor, SearchPath: a.cfg.SearchPath, Dir: a.dir.Tools(),
		Copy: a.cfg.Engines == EnginesJobs, Key: a.cfg.TerraformKey,
		Client: a.ledger.ClientOf(toolchain.Client(), egress.Tools, "HTTP GET").HTTP(),
	}
	if cfg.Named == TerraformFetch {
		cfg.Named = ""
		var err error
		if cfg.Named, err = toolchain.New(cfg, a.digests).For(ctx, tfprogram.Version); err != nil {
			a.cfg.Log.ErrorContext(ctx, "terraform could not be fetched; each job that needs it tries again", "version", tfprogram.Version, "err", err)
		}
		a.cfg.Terraform = cfg.Named
	}
	tofu := toolchain.OpenTofu{Named: a.cfg.OpenTofu, Mirror: a.cfg.OpenTofuMirror, Key: a.cfg.TerraformKey}
	a.terraforms = toolchain.NewTools(cfg, tofu, a.digests)
}
