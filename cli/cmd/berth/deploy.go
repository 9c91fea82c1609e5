package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) deployCommand() *cobra.Command {
	var how watching
	var to, confirm string
	var sandbox bool
	cmd := &cobra.Command{
		Use:   "deploy INSTALL[/COMPONENT] [COMPONENT]...",
		Short: "Deploy a release to an install",
		Long: `Brings all components of an install, or only the ones you name, to a release: the
newest, or the one you choose with --to. Berth plans each change and shows it before
making it. It leaves alone what is already up to date, and the sandbox unless you name it:
--sandbox deploys the sandbox, alone or before the components you name.

A deploy that removes a component, because it was switched off, shows what goes and
asks for the install's name; --confirm gives it in a script.`,
		Example: "  berth deploy acme --watch\n  berth deploy acme/api --to 4\n  berth deploy acme --sandbox\n  berth deploy acme --plan",
		Args:    cobra.ArbitraryArgs,
	}
	cmd.Flags().StringVar(&to, "to", "", "release, by number or id (default: the newest)")
	how.planFlag(cmd, "changed")
	confirmFlag(cmd, &confirm, "install")
	cmd.Flags().BoolVar(&sandbox, "sandbox", false, "deploy the sandbox, and no component but those you name")
	how.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s needs INSTALL; see %s --help", cmd.CommandPath(), cmd.CommandPath())
		}
		install, components := deployTarget(args)
		if sandbox {
			components = append(components, "sandbox")
		}
		return c.call(func(ctx context.Context, client *api.Client, _ []string) error {
			return c.start(ctx, client, launch{install, ctlapi.WorkflowRequest{
				Kind: ctlapi.WorkflowKindDeploy, Release: optional(to), Components: components, Confirm: confirm,
			}, how})
		})(cmd, args)
	}
	return cmd
}

// deployTarget reads acme, acme/api, and acme api db.
func deployTarget(args []string) (install string, components []string) {
	install, component, found := strings.Cut(args[0], "/")
	if found && component != "" {
		components = append(components, component)
	}
	return install, append(components, args[1:]...)
}

func (c *cli) rollbackCommand() *cobra.Command {
	var how watching
	var to, confirm string
	cmd := &cobra.Command{
		Use:     "rollback INSTALL --to RELEASE",
		Short:   "Deploy an older release again",
		Long:    "A rollback is a deploy of an older release: Berth plans it, shows it and asks, as always.",
		Example: "  berth rollback acme --to 3 --plan\n  berth rollback acme --to 3 --watch",
		Args:    exactly("INSTALL"),
	}
	cmd.Flags().StringVar(&to, "to", "", "release, by number or id; berth releases list shows them")
	_ = cmd.MarkFlagRequired("to")
	confirmFlag(cmd, &confirm, "install")
	how.planFlag(cmd, "changed")
	how.flags(cmd)
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.start(ctx, client, launch{args[0], ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, Release: &to, Confirm: confirm}, how})
	})
	return cmd
}

func (c *cli) retryCommand() *cobra.Command {
	var how watching
	cmd := &cobra.Command{
		Use:   "retry STEP | WORKFLOW | INSTALL",
		Short: "Try a failed step again",
		Long: `Plans the failed step again and continues from there; an approval still counts if the
effect is the same. If you name a workflow, or an install and so its newest workflow,
Berth retries all its failed steps.`,
		Args: exactly("STEP, WORKFLOW or INSTALL"),
	}
	how.flags(cmd)
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		steps, err := follow.ToRetry(ctx, client, args[0])
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
