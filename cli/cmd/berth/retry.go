package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) retryCommand() *cobra.Command {
	var how watching
	cmd := &cobra.Command{
		Use:   "retry STEP | WORKFLOW | INSTALL",
		Short: "Try a failed step again",
		Long: `Plans the failed step anew and goes on from there; an approval is kept when the effect
is the same. Of a workflow, or of the newest one of an install, all failed steps are
tried again.`,
		Args: exactly("STEP, WORKFLOW or INSTALL"),
	}
	how.flags(cmd)
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		steps, err := failedSteps(ctx, client, args[0])
		if err != nil {
			return err
		}
		var w *ctlapi.Workflow
		for _, step := range steps {
			resp, err := client.RetryStepWithResponse(ctx, step, &ctlapi.RetryStepParams{})
			if err != nil {
				return err
			}
			if w, err = api.Body(resp.JSON202); err != nil {
				return err
			}
		}
		return c.started(ctx, client, w, how)
	})
	return cmd
}

// failedSteps are the steps behind a step, a workflow or an install.
func failedSteps(ctx context.Context, client *api.Client, what string) ([]string, error) {
	if strings.HasPrefix(what, "stp_") {
		return []string{what}, nil
	}
	if !strings.HasPrefix(what, "wfl_") {
		newest, err := client.NewestWorkflow(ctx, what)
		if err != nil {
			return nil, err
		}
		what = newest.ID
	}
	w, err := client.Workflow(ctx, what)
	if err != nil {
		return nil, err
	}
	var failed []string
	for _, s := range w.Steps {
		if s.State == ctlapi.StepStateFailed {
			failed = append(failed, s.ID)
		}
	}
	if len(failed) == 0 {
		return nil, fmt.Errorf("no step of %s has failed: it is %s", w.ID, w.State)
	}
	return failed, nil
}
