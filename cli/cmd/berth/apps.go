package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/schemas"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) appsCommand() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List apps", Args: exactly()}
	limit := limitFlag(list)
	list.RunE = c.call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Apps(ctx, *limit)
		if err != nil {
			return err
		}
		return printList(c, items, table.App(c.now()))
	})
	show := &cobra.Command{Use: "show APP", Short: "Show an app", Args: exactly("APP")}
	show.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetAppWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		app, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return printOne(c, *app, table.App(c.now()))
	})
	var displayName, description string
	create := &cobra.Command{Use: "create NAME", Short: "Create an empty app (berth sync does this too)", Args: exactly("NAME")}
	create.Flags().StringVar(&displayName, "display-name", "", "name to show to people")
	create.Flags().StringVar(&description, "description", "", "what the app does")
	create.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := usage.Nameable("an app", args[0]); err != nil {
			return err
		}
		resp, err := client.CreateAppWithResponse(ctx, &ctlapi.CreateAppParams{},
			ctlapi.AppRequest{Name: args[0], DisplayName: optional(displayName), Description: optional(description)})
		if err != nil {
			return err
		}
		app, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		return printOne(c, *app, table.App(c.now()))
	})
	var confirm string
	remove := &cobra.Command{
		Use: "delete APP", Short: "Delete an app that has no installs", Args: exactly("APP"),
	}
	confirmFlag(remove, &confirm, "app")
	remove.RunE = c.call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.deleteApp(ctx, client, args[0], confirm)
	})
	return noun("apps", "app", "What you ship to customers", list, show, create, remove,
		c.appsInitCommand(), c.appsValidateCommand(), c.appsLintCommand(), c.appsFmtCommand(), c.appsGraphCommand(), c.appsRenderCommand(), schemas.Command(schemas.Doors{Args: exactly("[KIND]"), Out: c.out, Err: c.err, Format: c.format}),
		c.appsVariablesCommand(), c.appsPermissionsCommand())
}

func (c *cli) deleteApp(ctx context.Context, client *api.Client, ref, confirm string) error {
	found, err := client.GetAppWithResponse(ctx, ref)
	if err != nil {
		return err
	}
	app, err := api.Body(found.JSON200)
	if err != nil {
		return err
	}
	d := deed{what: "deleting app " + app.Name, name: app.Name, goes: []string{"its configs, releases and variables"}}
	if err := c.confirm(ctx, confirm, d); err != nil {
		return err
	}
	if _, err := client.DeleteAppWithResponse(ctx, app.ID, &ctlapi.DeleteAppParams{Confirm: &d.name}); err != nil {
		return err
	}
	_, err = output.Printf(c.out, "deleted app %s\n", app.Name)
	return err
}
