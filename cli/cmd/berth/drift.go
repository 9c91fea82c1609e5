package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/drift"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// lookWait is how long --now waits for the runner when --timeout says nothing.
const lookWait = 2 * time.Minute

func (c *cli) installsDrift() *cobra.Command {
	var how watching
	var now, reconcile bool
	cmd := &cobra.Command{
		Use: "drift INSTALL [COMPONENT|sandbox]", Short: "Show how an install differs from what was deployed, and who did it",
		Args: cobra.RangeArgs(1, 2),
		Long: `Shows what the runner's last look found. Drift is a difference that a person made, or that
nothing explains, and that no rule accepts; defaults, and what other controllers own, are
none. Two looks that find the same make it drift, one when an object is gone or too many.

--now has the runner look first, which changes nothing. A look at a Terraform module is a
plan that nobody applies: give it time by --timeout.

--reconcile deploys what is live of one component, or of the sandbox, again: the plan shows
what it takes back, and needs the same approval as any deploy.`,
	}
	cmd.Flags().BoolVar(&now, "now", false, "have the runner look first")
	cmd.Flags().BoolVar(&reconcile, "reconcile", false, "deploy the live release of the component, or of the sandbox, again")
	how.planFlag(cmd, "put back, with --reconcile")
	how.startFlags(cmd)
	cmd.MarkFlagsMutuallyExclusive("now", "reconcile")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		look := drift.Look{Install: args[0], Now: now, Wait: lookWait}
		if len(args) > 1 {
			look.Component = args[1]
		}
		if how.timeout > 0 {
			look.Wait = how.timeout
		}
		if !reconcile {
			if how.watch || how.autoApprove || how.plan || how.onFailure != "" {
				return usage.Errorf("--watch, --auto-approve, --plan and --on-failure are for --reconcile")
			}
			return look.Show(ctx, c.CLI, client)
		}
		if look.Component == "" {
			return usage.Errorf("--reconcile needs a component, or sandbox: berth installs drift %s COMPONENT --reconcile", args[0])
		}
		release, err := liveRelease(ctx, client, look.Install, look.Component)
		if err != nil {
			return err
		}
		return c.start(ctx, client, launch{install: look.Install, how: how, request: ctlapi.WorkflowRequest{
			Kind: ctlapi.WorkflowKindDeploy, Release: &release, Components: []string{look.Component},
		}})
	})
	return cmd
}

// liveRelease is the release that a component of an install stands on.
func liveRelease(ctx context.Context, client *api.Client, install, component string) (string, error) {
	resp, err := client.GetResourceWithResponse(ctx, install, component)
	if err != nil {
		return "", err
	}
	resource, err := api.Body(resp.JSON200)
	if err != nil {
		return "", err
	}
	if resource.LiveRelease == nil {
		return "", fmt.Errorf("nothing of %s is live in %s: berth deploy %s %s", component, install, install, component)
	}
	return strconv.Itoa(resource.LiveRelease.Number), nil
}
