package apps

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/schemas"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// apps is the noun: its verbs share what all commands share.
type apps struct{ *command.CLI }

// Command is the noun apps.
func Command(shared *command.CLI) *cobra.Command {
	c := apps{shared}
	list := &cobra.Command{Use: "list", Short: "List apps", Args: command.Exactly()}
	limit := command.LimitFlag(list)
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Apps(ctx, *limit)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.App(c.Now()))
	})
	show := &cobra.Command{Use: "show APP", Short: "Show an app", Args: command.Exactly("APP")}
	show.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetAppWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		app, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *app, table.App(c.Now()))
	})
	var displayName, description string
	create := &cobra.Command{Use: "create NAME", Short: "Create an empty app (berth sync does this too)", Args: command.Exactly("NAME")}
	create.Flags().StringVar(&displayName, "display-name", "", "name to show to people")
	create.Flags().StringVar(&description, "description", "", "what the app does")
	create.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := usage.Nameable("an app", args[0]); err != nil {
			return err
		}
		resp, err := client.CreateAppWithResponse(ctx, &ctlapi.CreateAppParams{},
			ctlapi.AppRequest{Name: args[0], DisplayName: api.Optional(displayName), Description: api.Optional(description)})
		if err != nil {
			return err
		}
		app, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *app, table.App(c.Now()))
	})
	var confirm string
	remove := &cobra.Command{
		Use: "delete APP", Short: "Delete an app that has no installs", Args: command.Exactly("APP"),
	}
	command.ConfirmFlag(remove, &confirm, "app")
	remove.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.deleteApp(ctx, client, args[0], confirm)
	})
	return command.Noun("apps", "app", "What you ship to customers", list, show, create, remove,
		c.initCommand(), c.validateCommand(), c.lintCommand(), c.fmtCommand(), c.graphCommand(), c.renderCommand(), schemas.Command(schemas.Doors{Args: command.Exactly("[KIND]"), Out: c.Out, Err: c.Err, Format: c.Format}),
		c.variablesCommand(), c.permissionsCommand())
}

func (c apps) deleteApp(ctx context.Context, client *api.Client, ref, confirm string) error {
	found, err := client.GetAppWithResponse(ctx, ref)
	if err != nil {
		return err
	}
	app, err := api.Body(found.JSON200)
	if err != nil {
		return err
	}
	d := command.Deed{What: "deleting app " + app.Name, Name: app.Name, Goes: []string{"its configs, releases and variables"}}
	if err := c.Confirm(ctx, confirm, d); err != nil {
		return err
	}
	if _, err := client.DeleteAppWithResponse(ctx, app.ID, &ctlapi.DeleteAppParams{Confirm: &d.Name}); err != nil {
		return err
	}
	_, err = output.Printf(c.Out, "deleted app %s\n", app.Name)
	return err
}
