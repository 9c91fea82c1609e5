package past

import (
	"fmt"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Why says, in lines for people, what each check found that is not healthy: the objects with
// what they, their pods and the newest events say, and the change that they are of.
func Why(checks []ctlapi.Check) []string {
	var lines []string
	for _, c := range checks {
		newestBad := len(c.Recent) > 0 && (!c.Recent[0].Ok || api.Value(c.Recent[0].Unknown))
		if c.Verdict == ctlapi.HealthVerdictHealthy && !newestBad {
			continue
		}
		if c.Says == "" && len(c.Findings) == 0 {
			continue
		}
		head := c.Name
		if c.ChangeID != nil {
			head += ", last changed by " + *c.ChangeID
		}
		lines = append(lines, "", head)
		if len(c.Findings) == 0 {
			lines = append(lines, "  "+visible.Line(c.Says))
		}
		for _, f := range c.Findings {
			lines = append(lines, "  "+visible.Line(f.Object))
			for _, said := range []struct {
				what string
				text *string
			}{{"condition", f.Condition}, {"pods", f.Pod}, {"events", f.Event}} {
				if text := api.Value(said.text); text != "" {
					lines = append(lines, fmt.Sprintf("    %-9s  %s", said.what, visible.Line(text)))
				}
			}
		}
	}
	return lines
}
