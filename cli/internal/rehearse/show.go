package rehearse

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Print lists what a rehearsed install has in the place of a cloud; nothing for a
// real install.
func Print(w io.Writer, install ctlapi.Install) error {
	r := install.Rehearsal
	if r == nil {
		return nil
	}
	of := ""
	if r.Platform != ctlapi.RehearsalPlatformNone {
		of = ", of an app for " + string(r.Platform)
	}
	if _, err := output.Printf(w, "\nthis is a rehearsal%s: never live, and never to become a real install\n", of); err != nil {
		return err
	}
	for _, source := range []ctlapi.RehearsalOutputSource{ctlapi.RehearsalOutputSourceGiven, ctlapi.RehearsalOutputSourceRecorded, ctlapi.RehearsalOutputSourceMadeUp} {
		var lines []string
		for _, o := range r.Outputs {
			if o.Source == source {
				lines = append(lines, fmt.Sprintf("  %s = %s", visible.Line(o.Path), visible.Line(string(o.Value))))
			}
		}
		if len(lines) == 0 {
			continue
		}
		slices.Sort(lines)
		if _, err := output.Printf(w, "%s:\n", strings.ReplaceAll(string(source), "_", " ")); err != nil {
			return err
		}
		for _, line := range lines {
			if _, err := output.Println(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}
