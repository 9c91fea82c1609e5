package fleetapi

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/plantree"
	"github.com/berth-dev/berth/services/internal/fault"
)

// GetPlanTree answers what a change would do as a tree.
func (h *Fleet) GetPlanTree(ctx context.Context, req apigen.GetPlanTreeRequestObject) (apigen.GetPlanTreeResponseObject, error) {
	var out apigen.PlanTree
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		c, err := tx.GetChange(ctx, req.Change)
		if err != nil {
			return missing(err, "there is no change %q", req.Change)
		}
		if len(c.Plan) == 0 {
			return fault.Newf(fault.ErrNotFound, "change %s has not been planned yet", c.ID)
		}
		var plan jobspec.PlanSummary
		if err := json.Unmarshal(c.Plan, &plan); err != nil {
			return fmt.Errorf("read plan of change %s: %w", c.ID, err)
		}
		n := plan.Counts()
		out = apigen.PlanTree{
			ChangeID: c.ID, NoChange: plan.NoChange, NotShownBytes: plan.NotShownBytes, Roots: planNodes(plantree.Of(plan.Objects)), Outputs: planNodes(plantree.Attributes(plan.Outputs)),
			Counts: apigen.PlanCounts{NoChange: n.NoChange, Create: n.Create, Update: n.Update, Replace: n.Replace, Delete: n.Delete, Run: n.Run, Outputs: n.Outputs, Other: n.Other},
		}
		return nil
	})
	return apigen.GetPlanTree200JSONResponse(out), err
}

func planNodes(nodes []*plantree.Node) []apigen.PlanNode {
	out := make([]apigen.PlanNode, 0, len(nodes))
	for _, n := range nodes {
		v := apigen.PlanNode{
			Kind: apigen.PlanNodeKind(n.Kind), Name: n.Name, Type: n.Type, Address: n.Address, Action: n.Action, Reason: n.Reason,
			Before: n.Before, After: n.After, Hidden: n.Hidden, KnownAfterApply: n.KnownAfterApply,
		}
		if len(n.Children) > 0 {
			v.Children = planNodes(n.Children)
		}
		out = append(out, v)
	}
	return out
}
