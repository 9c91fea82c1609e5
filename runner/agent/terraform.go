package agent

import (
	"context"
	"time"

	"github.com/berth-dev/berth/pkg/tfprogram"
)

// fetchTimeout is for 30 MB over a slow line. Nothing else waits at the start.
const fetchTimeout = 3 * time.Minute

// provideTerraform fetches Terraform where that is wanted. An agent that cannot
// have it works all the same: charts and scripts need none, and jobs that do
// are refused with the reason. The next start tries again.
func (a *agent) provideTerraform(ctx context.Context) {
	if a.cfg.Terraform != TerraformFetch {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var err error
	if a.cfg.Terraform, err = a.cfg.TerraformSource.Terraform(ctx, a.dir.Tools()); err != nil {
		a.cfg.Log.ErrorContext(ctx, "terraform could not be fetched; jobs that need it are refused", "version", tfprogram.Version, "err", err)
	}
}
