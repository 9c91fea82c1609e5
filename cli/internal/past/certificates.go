package past

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Ending says, in lines for people, which certificates end soon or have ended, the next end
// first.
func Ending(checks []ctlapi.Check, now time.Time) []string {
	var soon []ctlapi.Certificate
	for _, check := range checks {
		for _, c := range check.Certificates {
			same := func(o ctlapi.Certificate) bool { return o.Place == c.Place && o.Fingerprint == c.Fingerprint }
			if c.Soon && !slices.ContainsFunc(soon, same) {
				soon = append(soon, c)
			}
		}
	}
	if len(soon) == 0 {
		return nil
	}
	slices.SortStableFunc(soon, func(a, b ctlapi.Certificate) int { return a.NotAfter.Compare(b.NotAfter) })
	lines := []string{""}
	for _, c := range soon {
		ends := "ends in " + follow.Duration(c.NotAfter.Sub(now))
		if !now.Before(c.NotAfter) {
			ends = "ended " + follow.Duration(now.Sub(c.NotAfter)) + " ago"
		}
		lines = append(lines, fmt.Sprintf("certificate for %s (%s) %s", visible.Line(c.Subject), visible.Line(c.Place), ends))
	}
	return lines
}
