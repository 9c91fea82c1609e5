package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) configsCommand() *cobra.Command {
	list := &cobra.Command{Use: "list APP", Short: "List the configs of an app", Args: exactly("APP")}
	limit := limitFlag(list)
	list.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		items, err := collect(*limit, func(limit int, after *string) ([]ctlapi.Config, string, error) {
			resp, err := client.ListConfigsWithResponse(ctx, args[0], &ctlapi.ListConfigsParams{Limit: &limit, After: after})
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
		return printList(c, items, c.configView())
	})
	show := &cobra.Command{Use: "show CONFIG", Short: "Show a config by id, or by app and number as in hello@3", Args: exactly("CONFIG")}
	show.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetConfigWithResponse(ctx, args[0], &ctlapi.GetConfigParams{})
		if err != nil {
			return err
		}
		config, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if err := printOne(c, *config, c.configView()); err != nil || c.forPrograms() {
			return err
		}
		return printList(c, config.Items, configItemView())
	})
	diff := c.diffCommand("config", "Show what differs between two configs of an app", "  berth configs diff hello@3 5\n  berth configs diff 3 5 -o json",
		func(ctx context.Context, client *api.Client, from, to string) (*ctlapi.Diff, error) {
			resp, err := client.DiffConfigsWithResponse(ctx, from, &ctlapi.DiffConfigsParams{To: to})
			if err != nil {
				return nil, err
			}
			return api.Body(resp.JSON200)
		})
	return noun("configs", "config", "Numbered versions of an app folder", list, show, diff)
}

func (c *cli) configView() output.View[ctlapi.Config] {
	return output.View[ctlapi.Config]{
		Name: func(x ctlapi.Config) string { return x.ID },
		None: "no configs yet: berth sync makes one",
		Columns: []output.Column[ctlapi.Config]{
			{Head: "APP", Cell: func(x ctlapi.Config) string { return x.App.Name }},
			{Head: "NUMBER", Cell: func(x ctlapi.Config) string { return number(&ctlapi.NumberRef{Number: x.Number}) }},
			{Head: "STATE", Cell: func(x ctlapi.Config) string { return string(x.State) }},
			{Head: "RELEASE", Cell: func(x ctlapi.Config) string { return number(x.Release) }},
			{Head: "AGE", Cell: func(x ctlapi.Config) string { return c.age(x.CreatedAt) }},
			{Head: "BY", Cell: func(x ctlapi.Config) string { return x.CreatedBy }},
			{Head: "ID", Wide: true, Cell: func(x ctlapi.Config) string { return x.ID }},
			{Head: "DIGEST", Wide: true, Cell: func(x ctlapi.Config) string { return output.ShortDigest(x.Digest) }},
		},
	}
}

func configItemView() output.View[ctlapi.ConfigItem] {
	return output.View[ctlapi.ConfigItem]{
		Name: func(i ctlapi.ConfigItem) string { return i.Component },
		Columns: []output.Column[ctlapi.ConfigItem]{
			{Head: "COMPONENT", Cell: func(i ctlapi.ConfigItem) string { return i.Component }},
			{Head: "TYPE", Cell: func(i ctlapi.ConfigItem) string { return i.Type }},
			{Head: "NEEDS", Cell: func(i ctlapi.ConfigItem) string { return strings.Join(i.Dependencies, ", ") }},
			{Head: "BUILD", Cell: func(i ctlapi.ConfigItem) string { return string(i.BuildState) }},
			{Head: "BUILD ID", Cell: func(i ctlapi.ConfigItem) string { return i.BuildID }},
			{Head: "SOURCE", Wide: true, Cell: func(i ctlapi.ConfigItem) string { return sourceText(value(i.Source)) }},
		},
	}
}

// sourceText says where a component is built from: "git acme/app//infra main",
// "local sha256:…", and what that stands in for.
func sourceText(s ctlapi.BuildSource) string {
	repo := strings.TrimSpace(value(s.Repo) + " " + value(s.Ref))
	if dir := value(s.Directory); dir != "" && dir != "." {
		repo = strings.TrimSpace(value(s.Repo) + "//" + dir + " " + value(s.Ref))
	}
	switch {
	case value(s.Digest) != "" && repo != "":
		return "local " + output.ShortDigest(*s.Digest) + " for " + repo
	case value(s.Digest) != "":
		return "local " + output.ShortDigest(*s.Digest)
	}
	return strings.TrimSpace(string(s.Kind) + " " + repo)
}
