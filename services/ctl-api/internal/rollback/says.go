package rollback

import (
	"context"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Says tells people what a rollback brings back and what not, a line each.
func Says(r workflow.Rollback) []string {
	lines := []string{fmt.Sprintf("from release %d to %d, with the inputs of version %d", r.From.Number, r.To.Number, r.Inputs)}
	if len(r.Changed) > 0 {
		lines = append(lines, "inputs that get the value of then: "+strings.Join(r.Changed, ", "))
	}
	if len(r.Overrides) > 0 {
		lines = append(lines, "overrides as they were then: "+strings.Join(r.Overrides, ", "))
	}
	if len(r.Stays) > 0 {
		lines = append(lines, fmt.Sprintf("stays as it is, since release %d does not have it: %s", r.To.Number, strings.Join(r.Stays, ", ")))
	}
	return append(lines, "secrets and data do not go back: they stay as they are")
}

// View is what a workflow's answer has about rollbacks: what it goes back to, or the
// rollback that its failure offers; nil for neither.
func (f Finder) View(ctx context.Context, tx *database.Tx, w ctldb.Workflow) (*apigen.Rollback, error) {
	r, err := workflow.RollbackOf(w)
	if err != nil {
		return nil, err
	}
	command, forward := "", []string(nil)
	if r != nil && len(r.Components) > 0 {
		forward = []string{"the next deploy of the whole install takes " + strings.Join(r.Components, ", ") + " forward again: name components to leave it where it is"}
	}
	if r == nil {
		if r, command, err = f.Offer(ctx, tx, w); err != nil || r == nil {
			return nil, err
		}
	}
	return &apigen.Rollback{
		From: apigen.NumberRef{ID: r.From.ID, Number: int(r.From.Number)}, Release: apigen.NumberRef{ID: r.To.ID, Number: int(r.To.Number)},
		InputsVersion: int(r.Inputs), Inputs: r.Changed, Overrides: r.Overrides, Components: r.Components, Stays: r.Stays,
		Answers: optional.Of(r.Answers), ByItself: r.ByItself, Command: optional.Of(command), Says: append(Says(*r), forward...),
	}, nil
}

// Why says, of a workflow that failed, that the install can go back; nothing when it
// cannot.
func (f Finder) Why(ctx context.Context, tx *database.Tx, w ctldb.Workflow) ([]why.Reason, error) {
	offer, command, err := f.Offer(ctx, tx, w)
	if err != nil || offer == nil {
		return nil, err
	}
	return []why.Reason{{
		What: "rollback", ID: w.ID, Code: why.CodeRollback, Who: why.Operator, On: "operator", WokenBy: why.WakeRequest, Unblock: command,
		Reason: fmt.Sprintf("what failed can go back to release %d with the inputs of then; secrets and data stay as they are", offer.To.Number),
	}}, nil
}
