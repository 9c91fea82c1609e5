package installs

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/rehearsal"
	"github.com/berth-dev/berth/services/internal/fault"
)

// checkRehearsal completes a rehearsal with the app's own platform, and refuses
// outputs that fit nothing of the app: ErrInvalid with code rehearsal_invalid.
func checkRehearsal(app *appconfig.App, r *rehearsal.Rehearsal) error {
	if r.Platform == "" {
		r.Platform = rehearsal.PlatformOf(app)
	}
	problems := slices.Concat(r.Given.Problems(app), r.Recorded.Problems(app))
	if len(problems) == 0 {
		return nil
	}
	return fault.With(fault.Newf(fault.ErrInvalid, "rehearsal: %s", strings.Join(problems, "; ")), fault.Code("rehearsal_invalid"))
}
