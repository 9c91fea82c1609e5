package rollback

import (
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/reversal"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
)

// mostReversed bounds the plans that are shown backwards too, in bytes of JSON: the
// answer has them twice.
const mostReversed = 1 << 20

// PlanView is a plan as it is answered: with what going back does, where the plan
// backwards is that. It has nothing that the plan as it was sent does not show.
func PlanView(raw json.RawMessage) (apigen.PlanSummary, error) {
	var view apigen.PlanSummary
	if err := json.Unmarshal(raw, &view); err != nil {
		return view, fmt.Errorf("read plan: %w", err)
	}
	if view.Reversal == nil || len(raw) > mostReversed {
		return view, nil
	}
	var plan jobspec.PlanSummary
	if err := json.Unmarshal(raw, &plan); err != nil {
		return view, fmt.Errorf("read plan: %w", err)
	}
	if !plan.Reversal.Backwards {
		return view, nil
	}
	for _, o := range reversal.Reverse(plan.Objects) {
		back := apigen.ObjectChange{Address: o.Address, Action: o.Action}
		for _, f := range o.Fields {
			back.Fields = append(back.Fields, apigen.FieldChange{Path: f.Path, Before: f.Before, After: f.After})
		}
		view.Reversal.Reverse = append(view.Reversal.Reverse, back)
	}
	return view, nil
}

// ClassOf is the class of a plan; nil when it has none.
func ClassOf(plan jobspec.PlanSummary) *apigen.ReversalClass {
	if plan.Reversal == nil {
		return nil
	}
	class := apigen.ReversalClass(reversal.Worse(plan.Reversal.Class, ""))
	return &class
}
