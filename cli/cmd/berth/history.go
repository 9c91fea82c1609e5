package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) outputsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "outputs INSTALL [COMPONENT]", Short: "Show the outputs of an install's sandbox and components",
		Long: "Shows sensitive values as (sealed).",
		Args: command.Exactly("INSTALL", "[COMPONENT]"),
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.ListResourcesWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if len(args) > 1 {
			if page.Items, err = names.OneOf(page.Items, args[0], args[1]); err != nil {
				return err
			}
		}
		outputs, err := table.Outputs(page.Items)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, outputs, table.Output())
	})
	return cmd
}

func (c *cli) diffOfInstall() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use: "diff INSTALL | RELEASE RELEASE", Short: "Show what a deploy would bring to an install, by its release",
		Long: `Compares the release that an install was last brought to with the newest one, or with the
one you choose with --to; or two releases, as berth releases diff does. It compares what
the releases say, without asking the runner: berth deploy --plan shows the effect. The
exit code is 2 if they differ.`,
		Args: command.Exactly("INSTALL or RELEASE", "[RELEASE]"),
	}
	cmd.Flags().StringVar(&to, "to", "", "release, by number or id (default: the newest)")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if len(args) > 1 {
			from, to, err := names.Both("", args[0], args[1])
			if err != nil {
				return err
			}
			return c.diffReleases(ctx, client, from, to)
		}
		book := names.Book{Client: client}
		install, err := book.Install(ctx, args[0])
		if err != nil {
			return err
		}
		if install.Release == nil {
			return fmt.Errorf("install %s has no release yet: berth deploy %s --plan shows what it gets", install.Name, install.Name)
		}
		wanted, err := book.ReleaseOrNewest(ctx, install.App.Name, to)
		if err != nil {
			return err
		}
		if wanted.ID == install.Release.ID && !c.ForPrograms() {
			_, err := output.Printf(c.Out, "install %s is at release %d already\n", install.Name, wanted.Number)
			return err
		}
		return c.diffReleases(ctx, client, install.Release.ID, wanted.ID)
	})
	return cmd
}

func (c *cli) diffReleases(ctx context.Context, client *api.Client, from, to string) error {
	resp, err := client.DiffReleasesWithResponse(ctx, from, &ctlapi.DiffReleasesParams{To: to})
	if err != nil {
		return err
	}
	diff, err := api.Body(resp.JSON200)
	if err != nil {
		return err
	}
	return c.showDiff("release", diff)
}
