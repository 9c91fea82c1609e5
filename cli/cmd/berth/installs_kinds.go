package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) installsReprovision() *cobra.Command {
	var how watching
	var release, confirm string
	var sandbox, without bool
	cmd := &cobra.Command{
		Use: "reprovision INSTALL", Short: "Bring up the sandbox and all components again", Args: command.Exactly("INSTALL"),
		Long: `Plans the sandbox and all components again, with the release that the install has or the
one you choose with --to, and runs the app's actions for that. --sandbox does it for the
sandbox's sake: its own actions run around it, and the components follow, unless
--without-components leaves them alone.`,
	}
	cmd.Flags().StringVar(&release, "to", "", "release, by number or id (default: the install's own)")
	cmd.Flags().BoolVar(&sandbox, "sandbox", false, "reprovision the sandbox, then deploy all components")
	cmd.Flags().BoolVar(&without, "without-components", false, "with --sandbox: deploy no component")
	command.ConfirmFlag(cmd, &confirm, "install")
	how.planFlag(cmd, "changed")
	how.startFlags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		request := ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindReprovision, Release: api.Optional(release), Confirm: confirm, WithoutComponents: without}
		switch {
		case sandbox:
			request.Kind = ctlapi.WorkflowKindReprovisionSandbox
		case without:
			return usage.Errorf("--without-components needs --sandbox")
		}
		return c.start(ctx, client, launch{args[0], request, how})
	})
	return cmd
}

func (c *cli) installsTeardown() *cobra.Command {
	var how watching
	var confirm string
	var all, orphans, dependents bool
	cmd := &cobra.Command{
		Use: "teardown INSTALL [COMPONENT]...", Short: "Remove components from an install",
		Long: `Removes the components that you name, --all of them, or with --orphans those that a sync
took out of the app. The sandbox stays. A component that another one needs is refused, and
the others are named; --with-dependents removes them too, first.

Berth shows what goes, asks for the install's name, plans each removal and asks as always.
In a script, --confirm gives the name and --auto-approve approves the changes. The next
deploy of the whole install brings back what the app has: switch a component off to keep it
away.`,
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every component")
	cmd.Flags().BoolVar(&orphans, "orphans", false, "remove what is no longer part of the app, of those you name or all")
	cmd.Flags().BoolVar(&dependents, "with-dependents", false, "also remove what needs the components you name")
	how.planFlag(cmd, "removed")
	command.ConfirmFlag(cmd, &confirm, "install")
	how.startFlags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		request := ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindTeardown, Components: args[1:], WithDependents: dependents, Confirm: confirm}
		switch {
		case all && orphans:
			return usage.Errorf("--all and --orphans exclude each other")
		case all && len(args) > 1:
			return usage.Errorf("--all removes every component: name none")
		case all:
			request.Kind, request.Components = ctlapi.WorkflowKindTeardownAll, nil
		case orphans:
			request.Kind = ctlapi.WorkflowKindRemoveOrphans
		case len(args) == 1:
			return usage.Errorf("name the components to remove, or give --all or --orphans")
		}
		return c.start(ctx, client, launch{args[0], request, how})
	})
	return cmd
}

func (c *cli) installsDeprovision() *cobra.Command {
	var how watching
	var confirm string
	var sandbox, dependents bool
	cmd := &cobra.Command{
		Use: "deprovision INSTALL", Short: "Remove everything from an install, dependents first", Args: command.Exactly("INSTALL"),
		Long: `Shows what there is and asks for the install's name, also if the install approves all
changes by itself. Then Berth plans each removal and asks as always. In a script,
--confirm gives the name and --auto-approve approves the changes; neither does both.

--sandbox removes the sandbox alone, once no component stands on it; --with-dependents
removes the components first.`,
	}
	cmd.Flags().BoolVar(&sandbox, "sandbox", false, "remove the sandbox, with the app's actions for that")
	cmd.Flags().BoolVar(&dependents, "with-dependents", false, "with --sandbox: also remove the components that stand on it")
	how.planFlag(cmd, "removed")
	command.ConfirmFlag(cmd, &confirm, "install")
	how.startFlags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		l := launch{args[0], ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeprovision, Confirm: confirm, WithDependents: dependents}, how}
		switch {
		case sandbox: // what it removes depends on what stands there: the control plane says it
			l.request.Kind = ctlapi.WorkflowKindDeprovisionSandbox
			return c.start(ctx, client, l)
		case dependents:
			return usage.Errorf("--with-dependents needs --sandbox; without it everything is removed")
		}
		if !how.plan {
			goes, err := client.Made(ctx, l.install)
			if err != nil {
				return err
			}
			if err := c.confirmStart(ctx, client, &l, goes); err != nil {
				return err
			}
		}
		return c.start(ctx, client, l)
	})
	return cmd
}
