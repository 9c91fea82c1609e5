package api

import (
	"context"
	"fmt"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// NewestWorkflow returns the newest workflow of an install, and an error when it
// has had none.
func (c *Client) NewestWorkflow(ctx context.Context, install string) (*ctlapi.Workflow, error) {
	one := 1
	resp, err := c.ListWorkflowsWithResponse(ctx, &ctlapi.ListWorkflowsParams{Install: &install, Limit: &one})
	if err != nil {
		return nil, err
	}
	page, err := Body(resp.JSON200)
	if err != nil {
		return nil, err
	}
	if len(page.Items) == 0 {
		return nil, fmt.Errorf("install %s has had no workflow yet", install)
	}
	return &page.Items[0], nil
}

// Change returns a change.
func (c *Client) Change(ctx context.Context, id string) (*ctlapi.Change, error) {
	resp, err := c.GetChangeWithResponse(ctx, id)
	if err != nil {
		return nil, err
	}
	return Body(resp.JSON200)
}

// Runs lists runs of actions, newest first, at most limit of them (0 for all); of
// one install and one action when they are named.
func (c *Client) Runs(ctx context.Context, limit int, install, action string) ([]ctlapi.ActionRun, error) {
	return Collect(limit, func(limit int, after *string) ([]ctlapi.ActionRun, string, error) {
		resp, err := c.ListActionRunsWithResponse(ctx, &ctlapi.ListActionRunsParams{
			Install: Optional(install), Action: Optional(action), Limit: &limit, After: after,
		})
		if err != nil {
			return nil, "", err
		}
		page, err := Body(resp.JSON200)
		if err != nil {
			return nil, "", err
		}
		return page.Items, page.Next, nil
	})
}
