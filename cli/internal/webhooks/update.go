package webhooks

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// goes is what deleting a webhook removes.
func goes(w ctlapi.Webhook) []string {
	lines := []string{"its secret, and what it sends to " + w.URL}
	if w.Pending > 0 {
		lines = append(lines, fmt.Sprintf("deliveries that wait: %d", w.Pending))
	}
	if w.Dead > 0 {
		lines = append(lines, fmt.Sprintf("dead deliveries, which could be replayed: %d", w.Dead))
	}
	return lines
}

// changes are the flags of `berth webhooks update`.
type changes struct {
	name, url                       string
	which                           filters
	enable, disable, rotate, retire bool
}

func update(c *command.CLI) *cobra.Command {
	var to changes
	cmd := &cobra.Command{
		Use: "update WEBHOOK", Short: "Change, enable or disable a webhook, or rotate its secret", Args: command.Exactly("WEBHOOK"),
		Long: `Changes what you name. A filter replaces the one before it; an empty one, such as
--kind "", removes it.

--rotate-secret prints a new secret on stdout, once. Deliveries then have a signature of
each of the two secrets. Give the new one to the receiver, then drop the older one with
--retire-secret. A webhook that is enabled again begins with what happens from then on;
send what it missed with berth webhooks replay.`,
	}
	f := cmd.Flags()
	f.StringVar(&to.name, "name", "", "the new name")
	f.StringVar(&to.url, "url", "", "where to send events from now on")
	to.which.flags(cmd)
	f.BoolVar(&to.enable, "enable", false, "send events again")
	f.BoolVar(&to.disable, "disable", false, "stop sending events, until it is enabled again")
	f.BoolVar(&to.rotate, "rotate-secret", false, "make a new secret and print it; the one before it signs too")
	f.BoolVar(&to.retire, "retire-secret", false, "drop the older of two secrets")
	cmd.MarkFlagsMutuallyExclusive("enable", "disable")
	cmd.MarkFlagsMutuallyExclusive("rotate-secret", "retire-secret")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		patch, err := to.patch(f.Changed)
		if err != nil {
			return err
		}
		if to.rotate {
			if err := showsSecret(c); err != nil {
				return err
			}
		}
		resp, err := client.UpdateWebhookWithResponse(ctx, args[0], patch)
		if err != nil {
			return err
		}
		webhook, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if to.rotate {
			return printSecret(c, *webhook, "this is the new secret of webhook %[1]s, which you see only now. The one before it signs too: give the new one to the receiver, then run berth webhooks update %[1]s --retire-secret\n")
		}
		return command.PrintOne(c, *webhook, table.Webhook(c.Now()))
	})
	return cmd
}

// patch is the request: only what was given on the command line.
func (to changes) patch(given func(flag string) bool) (ctlapi.WebhookPatch, error) {
	p := ctlapi.WebhookPatch{RotateSecret: api.Optional(to.rotate), RetireSecret: api.Optional(to.retire)}
	named := to.rotate || to.retire
	take := func(flag string, set func()) {
		if given(flag) {
			named = true
			set()
		}
	}
	take("name", func() { p.Name = &to.name })
	take("url", func() { p.URL = &to.url })
	take("kind", func() { p.Kinds = whole(to.which.kinds) })
	take("app", func() { p.Apps = whole(to.which.apps) })
	take("install", func() { p.Installs = whole(to.which.installs) })
	var err error
	take("label", func() {
		if p.Labels, err = usage.Pairs[ctlapi.Labels]("--label", to.which.labels); p.Labels == nil {
			p.Labels = &ctlapi.Labels{}
		}
	})
	if to.enable || to.disable {
		named, p.Enabled = true, &to.enable
	}
	if err == nil && !named {
		err = usage.Errorf("say what to change, such as --url, --kind, --disable or --rotate-secret")
	}
	return p, err
}

// whole is a list to send also when it is empty, which removes a filter.
func whole(values []string) *[]string {
	values = append([]string{}, values...)
	return &values
}

func replay(c *command.CLI) *cobra.Command {
	var delivery string
	var dead bool
	var after, upTo int64
	cmd := &cobra.Command{
		Use: "replay WEBHOOK", Short: "Send events to a webhook again", Args: command.Exactly("WEBHOOK"),
		Long: `Sends again one delivery, all that are dead, or a range of the org's stream that passes the
webhook's filters; at most 1000 events, oldest first. Events keep their ids, so a receiver
that drops the ids it has seen takes each once.`,
	}
	cmd.Flags().StringVar(&delivery, "delivery", "", "the id of one delivery (dlv_…)")
	cmd.Flags().BoolVar(&dead, "dead", false, "all deliveries that are dead")
	cmd.Flags().Int64Var(&after, "after", 0, "events with a higher number than this")
	cmd.Flags().Int64Var(&upTo, "up-to", 0, "the last number of the range (default: the newest)")
	cmd.MarkFlagsMutuallyExclusive("delivery", "dead", "after")
	cmd.MarkFlagsMutuallyExclusive("delivery", "dead", "up-to")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		body := ctlapi.WebhookReplay{Delivery: api.Optional(delivery), Dead: api.Optional(dead), UpTo: api.Optional(upTo)}
		if cmd.Flags().Changed("after") {
			body.After = &after
		}
		switch {
		case after < 0 || upTo < 0:
			return usage.Errorf("events are numbered from 1: --after and --up-to cannot be negative")
		case body == ctlapi.WebhookReplay{}:
			return usage.Errorf("say what to send again: --dead, --delivery ID, or --after NUMBER with or without --up-to NUMBER")
		}
		resp, err := client.ReplayWebhookWithResponse(ctx, args[0], &ctlapi.ReplayWebhookParams{}, body)
		if err != nil {
			return err
		}
		sent, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c, *sent, output.View[ctlapi.WebhookReplayed]{Name: func(r ctlapi.WebhookReplayed) string { return fmt.Sprint(r.Events) }})
		}
		_, err = output.Printf(c.Out, "sending %s to webhook %s; berth webhooks deliveries %[2]s shows what becomes of it\n", output.Plural(sent.Events, "event"), args[0])
		return err
	})
	return cmd
}
