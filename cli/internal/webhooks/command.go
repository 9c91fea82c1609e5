// Package webhooks is `berth webhooks`: the addresses that get an org's events, and
// what became of each delivery. The control plane sends and retries; package
// services/ctl-api/internal/webhooks has the rules.
package webhooks

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Command is `berth webhooks`.
func Command(c *command.CLI) *cobra.Command {
	return command.Noun("webhooks", "webhook", "Send the org's events to addresses of yours",
		list(c), create(c), show(c), update(c), remove(c), deliveries(c), replay(c), try(c))
}

func list(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List webhooks", Args: command.Exactly()}
	limit := command.LimitFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Webhooks(ctx, *limit)
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.Webhook(c.Now()))
	})
	return cmd
}

func show(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "show WEBHOOK", Short: "Show a webhook, and how many deliveries wait or are dead", Args: command.Exactly("WEBHOOK"),
		Long: "Shows a webhook, by name or id. Nobody can read its secret again: if you lost it, make a new\none with berth webhooks update WEBHOOK --rotate-secret.",
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetWebhookWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		webhook, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c, *webhook, table.Webhook(c.Now()))
	})
	return cmd
}

// filters are the flags that say which events a webhook gets.
type filters struct{ kinds, apps, installs, labels []string }

func (f *filters) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.kinds, "kind", nil, "only events of this kind, such as workflow.failed or change.*")
	cmd.Flags().StringSliceVar(&f.apps, "app", nil, "only events of this app and its installs")
	cmd.Flags().StringSliceVar(&f.installs, "install", nil, "only events of this install")
	cmd.Flags().StringSliceVarP(&f.labels, "label", "l", nil, "only events of installs with this label, key=value")
}

func create(c *command.CLI) *cobra.Command {
	var url string
	var which filters
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a webhook and print its secret, once", Args: command.Exactly("NAME"),
		Long: `Sends every event from now on to --url, as a signed CloudEvent. An event has to pass all
filters that you set; give one several times, or with commas, to allow several values.

Prints the secret that signs deliveries on stdout, and nothing else. Put it where the
receiver keeps its secrets: berth webhooks create pager --url URL > pager.secret`,
	}
	cmd.Flags().StringVar(&url, "url", "", "where to send events: an https address on the public internet, unless the operator allows others")
	_ = cmd.MarkFlagRequired("url") // it fails only for a flag that there is not
	which.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := usage.Nameable("a webhook", args[0]); err != nil {
			return err
		}
		labels, err := usage.Pairs[ctlapi.Labels]("--label", which.labels)
		if err != nil {
			return err
		}
		if err := showsSecret(c); err != nil {
			return err
		}
		resp, err := client.CreateWebhookWithResponse(ctx, &ctlapi.CreateWebhookParams{}, ctlapi.WebhookRequest{
			Name: args[0], URL: url, Kinds: some(which.kinds), Apps: some(which.apps), Installs: some(which.installs), Labels: labels,
		})
		if err != nil {
			return err
		}
		webhook, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		return printSecret(c, *webhook, "created webhook %s; give this secret to the receiver, which verifies deliveries with it. This is the only time you see it:\n")
	})
	return cmd
}

// some is a list to send, nil for none.
func some(values []string) *[]string {
	if len(values) == 0 {
		return nil
	}
	return &values
}

// showsSecret refuses an output that leaves out the secret, before there is one.
func showsSecret(c *command.CLI) error {
	format, err := c.Format()
	if err != nil {
		return err
	}
	if format.Format == output.Name {
		return usage.Errorf("-o name leaves out the secret, which is shown this once; use -o json, or no -o to print only the secret")
	}
	for _, field := range format.Fields {
		if field == "secret" {
			return nil
		}
	}
	if len(format.Fields) > 0 {
		return usage.Errorf("--json %s leaves out the secret, which is shown this once; add the field secret", c.JSONFlag)
	}
	return nil
}

// printSecret prints the new secret of a webhook; say, with its name, is what to do
// with it.
func printSecret(c *command.CLI, w ctlapi.Webhook, say string) error {
	if c.ForPrograms() {
		return command.PrintOne(c, w, table.Webhook(c.Now()))
	}
	output.Printf(c.Err, say, w.Name)
	_, err := output.Println(c.Out, api.Value(w.Secret))
	return err
}

func remove(c *command.CLI) *cobra.Command {
	var confirm string
	cmd := &cobra.Command{
		Use: "delete WEBHOOK", Short: "Delete a webhook", Args: command.Exactly("WEBHOOK"),
		Long: `Deletes a webhook and its secret. What waits to be delivered is not sent. To stop it for
a while, use berth webhooks update WEBHOOK --disable.`,
	}
	command.ConfirmFlag(cmd, &confirm, "webhook")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetWebhookWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		webhook, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if err := c.Confirm(ctx, confirm, command.Deed{What: "deleting webhook " + webhook.Name, Name: webhook.Name, Goes: goes(*webhook)}); err != nil {
			return err
		}
		if _, err := client.DeleteWebhookWithResponse(ctx, webhook.ID); err != nil {
			return err
		}
		_, err = output.Printf(c.Out, "deleted webhook %s\n", webhook.Name)
		return err
	})
	return cmd
}
