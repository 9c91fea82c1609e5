package webhooks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

const (
	// testTimeout is longer than the control plane gives one attempt, 10 s.
	testTimeout = 20 * time.Second
	// testPause is between two looks at the deliveries.
	testPause = 200 * time.Millisecond
)

func deliveries(c *command.CLI) *cobra.Command {
	var state string
	cmd := &cobra.Command{
		Use: "deliveries WEBHOOK", Short: "List what became of each event that was sent to a webhook", Args: command.Exactly("WEBHOOK"),
		Long: `Lists deliveries, newest first, with the HTTP status of the last answer. -o wide also
shows the start of that answer. A dead delivery is not tried again until you replay it.`,
	}
	cmd.Flags().Var(usage.OneOf(&state, ctlapi.WebhookDeliveryStatePending, ctlapi.WebhookDeliveryStateDelivered, ctlapi.WebhookDeliveryStateDead), "state", "only in this state: pending, delivered or dead")
	limit := command.LimitFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		items, err := client.WebhookDeliveries(ctx, *limit, args[0], ctlapi.WebhookDeliveryState(state))
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.Delivery(c.Now()))
	})
	return cmd
}

// try is `berth webhooks test`.
func try(c *command.CLI) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "test WEBHOOK", Short: "Send a test event to a webhook and show whether it arrived", Args: command.Exactly("WEBHOOK"),
		Long: `Sends an event of the kind webhook.ping, signed as all others are, past the webhook's filters.
Waits for the first attempt and shows it. Exits with code 1 when the receiver did not take it;
Berth then tries again as it does with every event.`,
	}
	cmd.Flags().DurationVar(&timeout, "timeout", testTimeout, "how long to wait for the first attempt")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		before, err := client.WebhookDeliveries(ctx, api.PageSize, args[0], "")
		if err != nil {
			return err
		}
		if _, err := client.TestWebhookWithResponse(ctx, args[0], &ctlapi.TestWebhookParams{}); err != nil {
			return err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the test was sent, but not attempted within %s; see berth webhooks deliveries %s", timeout, args[0]))
		defer cancel()
		for {
			now, err := client.WebhookDeliveries(ctx, api.PageSize, args[0], "")
			if err != nil && ctx.Err() == nil {
				return err
			}
			if d := attempted(before, now); d != nil {
				if err := command.PrintOne(c, *d, table.Delivery(c.Now())); err != nil {
					return err
				}
				return arrived(args[0], *d)
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(testPause):
			}
		}
	})
	return cmd
}

// attempted is the first test that was attempted among the deliveries of now, newest
// first, and was not there before; nil when there is none yet. When several people
// test at once, it may be the test of another.
func attempted(before, now []ctlapi.WebhookDelivery) *ctlapi.WebhookDelivery {
	known := map[string]bool{}
	for _, d := range before {
		known[d.ID] = true
	}
	for i := len(now) - 1; i >= 0; i-- {
		if d := now[i]; d.Cause == ctlapi.WebhookDeliveryCauseTest && !known[d.ID] && d.Attempts > 0 && (d.State != ctlapi.WebhookDeliveryStatePending || d.Error != nil) {
			return &d
		}
	}
	return nil
}

// arrived is the error of a test that did not.
func arrived(webhook string, d ctlapi.WebhookDelivery) error {
	if d.State == ctlapi.WebhookDeliveryStateDelivered {
		return nil
	}
	why := errors.New(api.Value(d.Error))
	if d.State == ctlapi.WebhookDeliveryStatePending {
		return fmt.Errorf("webhook %s did not take the test; Berth tries again: %w", webhook, why)
	}
	return fmt.Errorf("webhook %s did not take the test: %w", webhook, why)
}
