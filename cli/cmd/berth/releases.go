package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) releasesCommand() *cobra.Command {
	list := &cobra.Command{Use: "list APP", Short: "List the releases of an app", Args: exactly("APP")}
	limit := limitFlag(list)
	list.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		items, err := client.Releases(ctx, *limit, args[0])
		if err != nil {
			return err
		}
		return printList(c, items, table.Release(c.now()))
	})
	show := &cobra.Command{Use: "show RELEASE", Short: "Show a release by id, or by app and number as in hello@4", Args: exactly("RELEASE")}
	show.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetReleaseWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		release, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if err := printOne(c, *release, table.Release(c.now())); err != nil || c.forPrograms() {
			return err
		}
		if o := release.Origin; o != nil {
			output.Printf(c.out, "\n%s\nby %s, commit %s, author %s\n\n", cmp.Or(o.Message, "(no message)"), release.SyncedBy,
				cmp.Or(table.Commit(o), "unknown"), cmp.Or(o.Author, "unknown"))
		}
		if err := printList(c, release.Items, table.ReleaseItem()); err != nil || release.Manifest == nil {
			return err
		}
		if _, err := output.Printf(c.out, "\nmanifest %s\n", release.Manifest.Digest); err != nil {
			return err
		}
		return printList(c, release.Manifest.Items, table.ManifestItem())
	})
	var config int
	var builds []string
	create := &cobra.Command{Use: "create APP", Short: "Create a release from chosen builds", Args: exactly("APP")}
	create.Flags().IntVar(&config, "config", 0, "number of the config (default: the newest)")
	create.Flags().StringSliceVar(&builds, "build", nil, "a build to use instead of the config's own")
	create.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CreateReleaseWithResponse(ctx, args[0], &ctlapi.CreateReleaseParams{},
			ctlapi.ReleaseRequest{Config: optional(config), Builds: builds})
		if err != nil {
			return err
		}
		release, err := api.Body(resp.JSON201, resp.JSON200)
		if err != nil {
			return err
		}
		return printOne(c, *release, table.Release(c.now()))
	})
	diff := c.diffCommand("release", "Show what differs between two releases of an app",
		func(ctx context.Context, client *api.Client, from, to string) (*ctlapi.Diff, error) {
			resp, err := client.DiffReleasesWithResponse(ctx, from, &ctlapi.DiffReleasesParams{To: to})
			if err != nil {
				return nil, err
			}
			return api.Body(resp.JSON200)
		})
	return noun("releases", "release", "Configs, each with the exact builds of its components", list, show, create, diff)
}
