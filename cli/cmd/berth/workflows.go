package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) workflowsCommand() *cobra.Command {
	var install, state string
	list := &cobra.Command{Use: "list", Short: "List workflows, newest first", Args: exactly()}
	limit := limitFlag(list)
	list.Flags().StringVar(&install, "install", "", "only of this install")
	list.Flags().Var(usage.OneOf(&state, ctlapi.WorkflowStateQueued, ctlapi.WorkflowStateRunning, ctlapi.WorkflowStateWaiting,
		ctlapi.WorkflowStateSucceeded, ctlapi.WorkflowStateFailed, ctlapi.WorkflowStateCancelled), "state", "only in this state: queued, running, waiting, succeeded, failed, cancelled")
	list.RunE = c.call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := collect(*limit, func(limit int, after *string) ([]ctlapi.Workflow, string, error) {
			resp, err := client.ListWorkflowsWithResponse(ctx, &ctlapi.ListWorkflowsParams{
				Install: optional(install), State: optional(ctlapi.WorkflowState(state)), Limit: &limit, After: after,
			})
			if err != nil {
				return nil, "", err
			}
			page, err := api.Body(resp.JSON200)
			if err != nil {
				return nil, "", err
			}
			return page.Items, page.Next, nil
		})
		if err != nil {
			return err
		}
		return printList(c, items, c.workflowView())
	})
	show := &cobra.Command{Use: "show WORKFLOW", Short: "Show a workflow with its steps", Args: exactly("WORKFLOW")}
	show.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetWorkflowWithResponse(ctx, args[0], &ctlapi.GetWorkflowParams{})
		if err != nil {
			return err
		}
		w, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return c.printWorkflow(w)
	})
	var how watching
	watch := &cobra.Command{Use: "watch WORKFLOW", Short: "Follow a workflow until it is finished or waits for a decision", Args: exactly("WORKFLOW")}
	watch.Flags().BoolVar(&how.autoApprove, "auto-approve", false, "approve each change as it was shown, without asking")
	how.timeoutFlag(watch)
	watch.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.watch(ctx, client, args[0], how)
	})
	cancel := &cobra.Command{Use: "cancel WORKFLOW", Short: "Start nothing more, and stop at the next safe point", Args: exactly("WORKFLOW")}
	cancel.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CancelWorkflowWithResponse(ctx, args[0], &ctlapi.CancelWorkflowParams{})
		if err != nil {
			return err
		}
		w, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		if follow.Finished(w.State) && w.State != ctlapi.WorkflowStateCancelled {
			output.Printf(c.err, "nothing to cancel: it has %s\n", w.State)
		}
		return c.printWorkflow(w)
	})
	return noun("workflows", "workflow", "What changes installs, step by step", list, show, watch, cancel)
}

// printWorkflow prints one, for people as a tree.
func (c *cli) printWorkflow(w *ctlapi.Workflow) error {
	if c.forPrograms() {
		return printOne(c, *w, c.workflowView())
	}
	screen := follow.Screen{W: c.out}
	screen.Print(follow.Tree(*w, c.now(), c.colorOn(c.out))...)
	return nil
}

func (c *cli) workflowView() output.View[ctlapi.Workflow] {
	return output.View[ctlapi.Workflow]{
		Name: func(w ctlapi.Workflow) string { return w.ID },
		None: "no workflows",
		Columns: []output.Column[ctlapi.Workflow]{
			{Head: "ID", Cell: func(w ctlapi.Workflow) string { return w.ID }},
			{Head: "INSTALL", Cell: func(w ctlapi.Workflow) string { return w.Install.Name }},
			{Head: "KIND", Cell: func(w ctlapi.Workflow) string {
				if w.PlanOnly {
					return "plan of " + string(w.Kind)
				}
				return string(w.Kind)
			}},
			{Head: "STATE", Cell: func(w ctlapi.Workflow) string { return string(w.State) }},
			{Head: "RELEASE", Cell: func(w ctlapi.Workflow) string { return number(w.Release) }},
			{Head: "WAITS FOR", Cell: func(w ctlapi.Workflow) string { return value(w.Wait).Reason }},
			{Head: "AGE", Cell: func(w ctlapi.Workflow) string { return c.age(w.CreatedAt) }},
			{Head: "BY", Wide: true, Cell: func(w ctlapi.Workflow) string { return w.CreatedBy }},
			{Head: "ERROR", Wide: true, Cell: func(w ctlapi.Workflow) string { return value(w.Error) }},
		},
	}
}
