// Package history reads what an install has been through.
package history

import (
	"slices"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Back is the release that a rollback goes to when none is named: the one before
// the release of the newest deploy that an install was brought to as a whole or in
// part. From is that newest one. Workflows are newest first. It is false when
// there is nothing to go back to.
func Back(workflows []ctlapi.Workflow) (from, to ctlapi.NumberRef, found bool) {
	brings := []ctlapi.WorkflowKind{ctlapi.WorkflowKindDeploy, ctlapi.WorkflowKindProvision, ctlapi.WorkflowKindReprovision, ctlapi.WorkflowKindReprovisionSandbox}
	for _, w := range workflows {
		if w.Release == nil || w.PlanOnly || !slices.Contains(brings, w.Kind) {
			continue
		}
		switch {
		case from.ID == "":
			from = *w.Release
		case w.State == ctlapi.WorkflowStateSucceeded && w.Release.Number < from.Number:
			return from, *w.Release, true
		}
	}
	return from, ctlapi.NumberRef{}, false
}
