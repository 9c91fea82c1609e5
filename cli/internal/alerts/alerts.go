// Package alerts is `berth alerts` and `berth incidents`: what is wrong with installs.
// The control plane opens and closes them; package services/ctl-api/internal/alerts
// has the rules.
package alerts

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/cli/internal/when"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Command is `berth alerts`.
func Command(c *command.CLI) *cobra.Command {
	return command.Noun("alerts", "alert", "What is wrong with installs", list(c), show(c), acknowledge(c), mute(c), mutes(c), unmute(c))
}

func list(c *command.CLI) *cobra.Command {
	var install, severity string
	var kinds, states []string
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List open alerts", Args: command.Exactly(),
		Long: `Lists open alerts, newest first. An alert opens once when something is wrong with an install,
and closes by itself when all has been well for a while. Alarms are different: something
odd happened to a runner's identity, key or chain, and only a person settles it (berth alarms).`,
	}
	limit := command.LimitFlag(cmd)
	f := cmd.Flags()
	f.StringVar(&install, "install", "", "only alerts of this install")
	f.StringSliceVar(&kinds, "kind", nil, "only these kinds, such as unhealthy or runner_silent")
	f.StringVar(&severity, "severity", "", "only this severity: critical or warning")
	f.StringSliceVar(&states, "state", nil, "only these states: held (nobody is told yet), open, closed")
	f.BoolVar(&all, "all", false, "alerts in all states")
	cmd.MarkFlagsMutuallyExclusive("state", "all")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		which := ctlapi.ListAlertsParams{Install: api.Optional(install), Severity: api.Optional(ctlapi.AlertSeverity(severity))}
		if len(kinds) > 0 {
			which.Kind = new(typed[ctlapi.AlertKind](kinds))
		}
		if all {
			states = []string{string(ctlapi.AlertStateHeld), string(ctlapi.AlertStateOpen), string(ctlapi.AlertStateClosed)}
		}
		if len(states) > 0 {
			which.State = new(typed[ctlapi.AlertState](states))
		}
		items, err := client.Alerts(ctx, *limit, which)
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.Alert(c.Now(), len(states) > 0))
	})
	return cmd
}

// typed are words of a flag as the API has them, which refuses those that it does not know.
func typed[T ~string](words []string) (out []T) {
	for _, word := range words {
		out = append(out, T(word))
	}
	return out
}

func show(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "show ALERT", Short: "Show an alert", Args: command.Exactly("ALERT")}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetAlertWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		return printOne(c, resp.JSON200)
	})
	return cmd
}

func acknowledge(c *command.CLI) *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use: "ack ALERT --note TEXT", Aliases: []string{"acknowledge"}, Short: "Say that you are at it", Args: command.Exactly("ALERT"),
		Long: "Tells the others who is at it. The alert stays open until the trouble is over, and then closes by\nitself. The org's chain records your name and your note.",
	}
	cmd.Flags().StringVar(&note, "note", "", "what is being done about it")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if note == "" {
			return usage.Errorf("say what is being done about it, with --note TEXT")
		}
		resp, err := client.AcknowledgeAlertWithResponse(ctx, args[0], &ctlapi.AcknowledgeAlertParams{}, ctlapi.AlertAcknowledgement{Note: note})
		if err != nil {
			return err
		}
		return printOne(c, resp.JSON200)
	})
	return cmd
}

func printOne(c *command.CLI, answered *ctlapi.Alert) error {
	alert, err := api.Body(answered)
	if err != nil {
		return err
	}
	return command.PrintOne(c, *alert, table.Alert(c.Now(), true))
}

func mute(c *command.CLI) *cobra.Command {
	var install, kind, until, reason string
	var length time.Duration
	cmd := &cobra.Command{
		Use: "mute [ALERT] --reason TEXT", Short: "Hold alerts back until a time", Args: command.Exactly("[ALERT]"),
		Long: `Holds back what an alert is about, all alerts of an install, a kind, or a kind in an install,
for at most 30 days. What begins in that time calls nobody. If it is still wrong when the mute
ends, the alert opens then. An alert that is open stays open.`,
	}
	f := cmd.Flags()
	f.StringVar(&install, "install", "", "alerts of this install")
	f.StringVar(&kind, "kind", "", "alerts of this kind, in all installs without --install")
	f.StringVar(&reason, "reason", "", "why, for the others")
	f.StringVar(&until, "until", "", "when it ends, such as 2026-12-01T06:00:00Z")
	f.DurationVar(&length, "for", 0, "how long it lasts, such as 4h")
	_ = cmd.MarkFlagRequired("reason") // it fails only for a flag that there is not
	cmd.MarkFlagsMutuallyExclusive("until", "for")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		ends, err := when.Point("--until", until, c.Now())
		switch {
		case err != nil:
			return err
		case ends == nil && length <= 0:
			return usage.Errorf("say when the mute ends: --until or --for")
		case ends == nil:
			ends = new(c.Now().Add(length).Truncate(time.Second))
		}
		wish := ctlapi.AlertMuteRequest{Install: api.Optional(install), Kind: api.Optional(ctlapi.AlertKind(kind)), Reason: reason, Until: ends.UTC()}
		if len(args) > 0 {
			wish.Alert = &args[0]
		}
		resp, err := client.CreateAlertMuteWithResponse(ctx, &ctlapi.CreateAlertMuteParams{}, wish)
		if err != nil {
			return err
		}
		made, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		return command.PrintOne(c, *made, table.AlertMute(false))
	})
	return cmd
}

func mutes(c *command.CLI) *cobra.Command {
	var all bool
	cmd := &cobra.Command{Use: "mutes", Short: "List mutes that are in force", Args: command.Exactly()}
	limit := command.LimitFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "also mutes that are over")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.AlertMutes(ctx, *limit, ctlapi.ListAlertMutesParams{Past: api.Optional(all)})
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.AlertMute(all))
	})
	return cmd
}

func unmute(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "unmute MUTE", Short: "End a mute before its time", Args: command.Exactly("MUTE"),
		Long: "Ends a mute, by its id (berth alerts mutes). What it held back, and is still wrong, opens within\nseconds.",
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if _, err := client.DeleteAlertMuteWithResponse(ctx, args[0], &ctlapi.DeleteAlertMuteParams{}); err != nil {
			return err
		}
		_, err := output.Printf(c.Out, "ended mute %s\n", args[0])
		return err
	})
	return cmd
}

// Incidents is `berth incidents`.
func Incidents(c *command.CLI) *cobra.Command {
	return command.Noun("incidents", "incident", "The same thing wrong with several installs", listIncidents(c), showIncident(c))
}

func listIncidents(c *command.CLI) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "list", Short: "List open incidents", Args: command.Exactly(),
		Long: "Lists open incidents: alerts of one kind in several installs, about one component with one release or\nabout one version of the runner. People are told of an incident once.",
	}
	limit := command.LimitFlag(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "also closed incidents")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		which := ctlapi.ListIncidentsParams{}
		if !all {
			which.Open = new(true)
		}
		items, err := client.Incidents(ctx, *limit, which)
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.Incident(c.Now(), all))
	})
	return cmd
}

func showIncident(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "show INCIDENT", Short: "Show an incident with its alerts", Args: command.Exactly("INCIDENT")}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetIncidentWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		found, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c, *found, table.IncidentDetail())
		}
		if err := command.PrintOne(c, found.Incident, table.Incident(c.Now(), true)); err != nil {
			return err
		}
		output.Println(c.Out)
		return command.PrintList(c, found.Alerts, table.Alert(c.Now(), true))
	})
	return cmd
}

// Print names the open alerts of an install under what is shown of it.
func Print(ctx context.Context, c *command.CLI, client *api.Client, install ctlapi.Install) error {
	if install.OpenAlerts == 0 {
		return nil
	}
	items, err := client.Alerts(ctx, 0, ctlapi.ListAlertsParams{Install: &install.ID})
	if err != nil {
		return err
	}
	slices.Reverse(items)
	for _, a := range items {
		next := fmt.Sprintf("berth alerts ack %s --note TEXT", a.ID)
		if a.AcknowledgedBy != nil {
			next = fmt.Sprintf("%s is at it: %s", *a.AcknowledgedBy, api.Value(a.Note))
		}
		if _, err := output.Printf(c.Out, "! alert %s, %s ago: %s\n    %s\n", a.Kind, c.Age(a.Since), a.Text, next); err != nil {
			return err
		}
	}
	return nil
}
