package past

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Remediations is `berth installs remediations`.
func Remediations(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "remediations INSTALL", Short: "List what the runner did by itself about unhealthy checks", Args: command.Exactly("INSTALL"),
		Long: `Lists the remediations of an install, newest first: which check was unhealthy, which action the
runner ran, how often, and what came of it. needs_attention means that no attempt helped and
a person has to look. The logs of the attempts are among the runs of the action:
berth actions runs INSTALL.`,
	}
	var open bool
	var state string
	cmd.Flags().BoolVar(&open, "open", false, "only those that have not ended")
	cmd.Flags().StringVar(&state, "state", "", "only those in this state: waiting, running, helped, recovered, needs_attention, dropped")
	limit := command.LimitFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		which := ctlapi.ListRemediationsParams{}
		if open {
			which.Open = &open
		}
		if state != "" {
			which.State = new(ctlapi.RemediationState(state))
		}
		items, err := client.Remediations(ctx, *limit, args[0], which)
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.Remediation(c.Now()))
	})
	return cmd
}

// Open prints the remediations of an install that have not ended, below its checks.
func Open(ctx context.Context, c *command.CLI, client *api.Client, install string) error {
	open := true
	items, err := client.Remediations(ctx, 0, install, ctlapi.ListRemediationsParams{Open: &open})
	if err != nil || len(items) == 0 {
		return err
	}
	output.Println(c.Out)
	return command.PrintList(c, items, table.Remediation(c.Now()))
}
