package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) deployCommand() *cobra.Command {
	var how watching
	var to string
	var plan bool
	cmd := &cobra.Command{
		Use:   "deploy INSTALL[/COMPONENT] [COMPONENT]...",
		Short: "Deploy a release to an install",
		Long: `Brings all components of an install, or only the ones you name, to a release: the
newest, or the one you choose with --to. Berth plans each change and shows it before
making it. It leaves alone what is already up to date.`,
		Example: "  berth deploy acme --watch\n  berth deploy acme/api --to 4\n  berth deploy acme --plan",
		Args:    cobra.ArbitraryArgs,
	}
	cmd.Flags().StringVar(&to, "to", "", "release, by number or id (default: the newest)")
	cmd.Flags().BoolVar(&plan, "plan", false, "only show what would change; exit code 2 if anything would")
	how.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("%s needs INSTALL; see %s --help", cmd.CommandPath(), cmd.CommandPath())
		}
		install, components := deployTarget(args)
		return c.call(func(ctx context.Context, client *api.Client, _ []string) error {
			how.watch = how.watch || plan
			return c.start(ctx, client, launch{install, ctlapi.WorkflowRequest{
				Kind: ctlapi.WorkflowKindDeploy, Release: optional(to), Components: components, PlanOnly: plan,
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
	var to string
	cmd := &cobra.Command{
		Use:     "rollback INSTALL --to RELEASE",
		Short:   "Deploy an older release again",
		Long:    "A rollback is a deploy of an older release: Berth plans it, shows it and asks, as always.",
		Example: "  berth rollback acme --to 3 --watch",
		Args:    exactly("INSTALL"),
	}
	cmd.Flags().StringVar(&to, "to", "", "release, by number or id; berth releases list shows them")
	_ = cmd.MarkFlagRequired("to")
	how.flags(cmd)
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.start(ctx, client, launch{args[0], ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, Release: &to}, how})
	})
	return cmd
}

func (c *cli) retryCommand() *cobra.Command {
	var how watching
	cmd := &cobra.Command{
		Use:   "retry STEP | WORKFLOW | INSTALL[/COMPONENT]",
		Short: "Try a failed step again",
		Long: `Plans the failed step again and continues from there; an approval still counts if the
effect is the same. If you name a workflow, or an install and so its newest workflow,
Berth retries all its failed steps, or those of the component you name.`,
		Example: "  berth retry acme/api --watch",
		Args:    exactly("STEP, WORKFLOW or INSTALL"),
	}
	how.flags(cmd)
	cmd.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		what, err := names.Book{Client: client}.Retry(ctx, args[0])
		if err != nil {
			return err
		}
		steps, err := follow.ToRetry(ctx, client, what)
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
