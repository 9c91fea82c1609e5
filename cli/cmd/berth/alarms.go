package main

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

func (c *cli) alarmsCommand() *cobra.Command {
	var install, reason string
	var all bool
	list := &cobra.Command{
		Use: "list", Short: "List open alarms", Args: command.Exactly(),
		Long: `Lists open alarms: something odd happened to a runner's identity, key or chain, or to a webhook,
and stays an alarm until a person settles it. What is wrong with an install, and closes by
itself, is an alert (berth alerts).`,
	}
	limit := command.LimitFlag(list)
	list.Flags().StringVar(&install, "install", "", "only for this install")
	list.Flags().BoolVar(&all, "all", false, "also show acknowledged alarms")
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Alarms(ctx, *limit, ctlapi.ListAlarmsParams{Install: api.Optional(install), Acknowledged: api.Optional(all)})
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Alarm(c.Now(), all))
	})
	acknowledge := &cobra.Command{
		Use: "acknowledge ALARM", Short: "Acknowledge an alarm and say why it is settled", Args: command.Exactly("ALARM"),
		Long: `Settles an alarm. The org's chain records your name and your reason. If the same thing
happens again, Berth raises a new alarm.`,
	}
	acknowledge.Flags().StringVar(&reason, "reason", "", "why it is settled")
	acknowledge.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if reason == "" {
			return usage.Errorf("say why the alarm is settled, with --reason TEXT")
		}
		resp, err := client.AcknowledgeAlarmWithResponse(ctx, args[0], &ctlapi.AcknowledgeAlarmParams{}, ctlapi.AlarmAcknowledgement{Reason: reason})
		if err != nil {
			return err
		}
		alarm, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *alarm, table.Alarm(c.Now(), true))
	})
	return command.Noun("alarms", "alarm", "Problems that someone has to look at", list, acknowledge)
}

// printAlarms names the open alarms of an install under what is shown of it.
func (c *cli) printAlarms(ctx context.Context, client *api.Client, install ctlapi.Install) error {
	if install.OpenAlarms == 0 {
		return nil
	}
	items, err := client.Alarms(ctx, 0, ctlapi.ListAlarmsParams{Install: &install.ID})
	if err != nil {
		return err
	}
	for _, a := range items {
		output.Printf(c.Out, "! alarm %s, %s ago: %s (%s)\n    %s\n    berth alarms acknowledge %s --reason TEXT\n", a.Kind, c.Age(a.CreatedAt), a.Cause, a.About, a.Remedy, a.ID)
	}
	return nil
}
