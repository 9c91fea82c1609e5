package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) releasesCommand() *cobra.Command {
	list := &cobra.Command{Use: "list APP", Short: "List the releases of an app", Args: command.Exactly("APP")}
	limit := command.LimitFlag(list)
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		items, err := client.Releases(ctx, *limit, args[0])
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Release(c.Now()))
	})
	show := &cobra.Command{Use: "show RELEASE", Short: "Show a release by id, or by app and number as in hello@4", Args: command.Exactly("RELEASE")}
	show.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetReleaseWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		release, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if err := command.PrintOne(c.CLI, *release, table.Release(c.Now())); err != nil || c.ForPrograms() {
			return err
		}
		if o := release.Origin; o != nil {
			output.Printf(c.Out, "\n%s\nby %s, commit %s, author %s\n\n", cmp.Or(o.Message, "(no message)"), release.SyncedBy,
				cmp.Or(table.Commit(o), "unknown"), cmp.Or(o.Author, "unknown"))
		}
		if err := command.PrintList(c.CLI, release.Items, table.ReleaseItem()); err != nil || release.Manifest == nil {
			return err
		}
		if _, err := output.Printf(c.Out, "\nmanifest %s\n", release.Manifest.Digest); err != nil {
			return err
		}
		if err := command.PrintList(c.CLI, release.Manifest.Items, table.ManifestItem()); err != nil {
			return err
		}
		if err := c.showStatements(release.Statements); err != nil {
			return err
		}
		return c.showRevocations(release.Revocations)
	})
	var config int
	var builds []string
	create := &cobra.Command{Use: "create APP", Short: "Create a release from chosen builds", Args: command.Exactly("APP")}
	create.Flags().IntVar(&config, "config", 0, "number of the config (default: the newest)")
	create.Flags().StringSliceVar(&builds, "build", nil, "a build to use instead of the config's own")
	create.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CreateReleaseWithResponse(ctx, args[0], &ctlapi.CreateReleaseParams{},
			ctlapi.ReleaseRequest{Config: api.Optional(config), Builds: builds})
		if err != nil {
			return err
		}
		release, err := api.Body(resp.JSON201, resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *release, table.Release(c.Now()))
	})
	diff := c.diffCommand("release", "Show what differs between two releases of an app",
		func(ctx context.Context, client *api.Client, from, to string) (*ctlapi.Diff, error) {
			resp, err := client.DiffReleasesWithResponse(ctx, from, &ctlapi.DiffReleasesParams{To: to})
			if err != nil {
				return nil, err
			}
			return api.Body(resp.JSON200)
		})
	return command.Noun("releases", "release", "Configs, each with the exact builds of its components", list, show, create, diff,
		c.signReleaseCommand(), c.revokeReleaseCommand(), c.releaseKeygenCommand(), c.rotateReleaseKeyCommand())
}
