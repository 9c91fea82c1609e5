package workflow

import (
	"cmp"
	"context"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/fault"
)

// refuseRole answers a request that names the role to run under: nothing can run
// under another identity than the runner's own yet, so it is not started at all.
// Errors: ErrInvalid with code unknown_role when the release declares no such role,
// else with code unsupported.
func refuseRole(ctx context.Context, tx *database.Tx, releaseID, name string) error {
	app := &appconfig.App{} // of an install that never had a release
	if releaseID != "" {
		var err error
		if app, err = releaseview.App(ctx, tx.Queries, releaseID); err != nil {
			return err
		}
	}
	found, near, all := check.FindRole(app, name)
	if found {
		return fault.With(fault.Newf(fault.ErrInvalid, "running under role %q is not supported yet by this version: the runner uses its own identity", name),
			fault.Code("unsupported"), fault.Remedy("start it without a role; this waits for roles and permissions"))
	}
	err := fault.With(fault.Newf(fault.ErrInvalid, "the release has no role %q; it has: %s", name, cmp.Or(strings.Join(all, ", "), "none")), fault.Code("unknown_role"))
	if near != "" {
		err = fault.With(err, fault.Remedy("did you mean %q?", near))
	}
	return err
}
