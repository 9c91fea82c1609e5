package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) releasesCommand() *cobra.Command {
	list := &cobra.Command{Use: "list APP", Short: "List the releases of an app", Args: exactly("APP")}
	limit := limitFlag(list)
	list.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		items, err := collect(*limit, func(limit int, after *string) ([]ctlapi.Release, string, error) {
			resp, err := client.ListReleasesWithResponse(ctx, args[0], &ctlapi.ListReleasesParams{Limit: &limit, After: after})
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
		return printList(c, items, c.releaseView())
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
		if err := printOne(c, *release, c.releaseView()); err != nil || c.forPrograms() {
			return err
		}
		if err := printList(c, release.Items, releaseItemView()); err != nil || release.Manifest == nil {
			return err
		}
		if _, err := output.Printf(c.out, "\nmanifest %s\n", release.Manifest.Digest); err != nil {
			return err
		}
		return printList(c, release.Manifest.Items, manifestItemView())
	})
	var config int
	var builds []string
	create := &cobra.Command{Use: "create APP", Short: "Make a release of chosen builds", Args: exactly("APP")}
	create.Flags().IntVar(&config, "config", 0, "number of the config (default: the newest)")
	create.Flags().StringSliceVar(&builds, "build", nil, "a build that stands in for the config's own")
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
		return printOne(c, *release, c.releaseView())
	})
	diff := c.diffCommand("release", "Show what differs between two releases of an app", "  berth releases diff hello@3 5\n  berth releases diff 3 5 -o json",
		func(ctx context.Context, client *api.Client, from, to string) (*ctlapi.Diff, error) {
			resp, err := client.DiffReleasesWithResponse(ctx, from, &ctlapi.DiffReleasesParams{To: to})
			if err != nil {
				return nil, err
			}
			return api.Body(resp.JSON200)
		})
	return noun("releases", "release", "Configs with the exact build of each component", list, show, create, diff)
}

func (c *cli) releaseView() output.View[ctlapi.Release] {
	return output.View[ctlapi.Release]{
		Name: func(r ctlapi.Release) string { return r.ID },
		None: "no releases yet: berth sync --wait makes one",
		Columns: []output.Column[ctlapi.Release]{
			{Head: "APP", Cell: func(r ctlapi.Release) string { return r.App.Name }},
			{Head: "NUMBER", Cell: func(r ctlapi.Release) string { return number(&ctlapi.NumberRef{Number: r.Number}) }},
			{Head: "CONFIG", Cell: func(r ctlapi.Release) string { return number(&r.Config) }},
			{Head: "MADE BY", Cell: func(r ctlapi.Release) string { return string(r.MadeBy) }},
			{Head: "AGE", Cell: func(r ctlapi.Release) string { return c.age(r.CreatedAt) }},
			{Head: "ID", Wide: true, Cell: func(r ctlapi.Release) string { return r.ID }},
			{Head: "DIGEST", Wide: true, Cell: func(r ctlapi.Release) string { return output.ShortDigest(r.Digest) }},
		},
	}
}

func manifestItemView() output.View[ctlapi.ManifestItem] {
	return output.View[ctlapi.ManifestItem]{
		Name: func(i ctlapi.ManifestItem) string { return i.Digest },
		None: "the release brings nothing",
		Columns: []output.Column[ctlapi.ManifestItem]{
			{Head: "BRINGS", Cell: func(i ctlapi.ManifestItem) string { return string(i.Kind) }},
			{Head: "NAME", Cell: func(i ctlapi.ManifestItem) string { return i.Name }},
			{Head: "DIGEST", Cell: func(i ctlapi.ManifestItem) string { return i.Digest }},
		},
	}
}

func releaseItemView() output.View[ctlapi.ReleaseItem] {
	return output.View[ctlapi.ReleaseItem]{
		Name: func(i ctlapi.ReleaseItem) string { return i.Component },
		Columns: []output.Column[ctlapi.ReleaseItem]{
			{Head: "COMPONENT", Cell: func(i ctlapi.ReleaseItem) string { return i.Component }},
			{Head: "TYPE", Cell: func(i ctlapi.ReleaseItem) string { return i.Type }},
			{Head: "ARTIFACT", Cell: func(i ctlapi.ReleaseItem) string { return output.ShortDigest(i.Artifact.Digest) }},
			{Head: "BUILD", Cell: func(i ctlapi.ReleaseItem) string { return i.BuildID }},
		},
	}
}
