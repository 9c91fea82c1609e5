package clearance

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Pause is `berth installs pause`.
func Pause(c *command.CLI) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "pause INSTALL --reason TEXT", Short: "Have no change of an install carried out", Args: command.Exactly("INSTALL"),
		Long: `Carries out no change of the install until you resume it. What runs already ends; plans,
checks and drift go on, and changes may be approved: they wait. This is your pause; the
customer has a switch of their own at the runner. For many installs: berth bulk pause.`,
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for those who wait")
	_ = cmd.MarkFlagRequired("reason") // it fails only for a flag that there is not
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.PauseInstallWithResponse(ctx, args[0], &ctlapi.PauseInstallParams{}, ctlapi.PauseRequest{Reason: reason})
		if err != nil {
			return err
		}
		return printInstall(c, resp.JSON200, "paused %s: no change is carried out; berth installs resume ends that\n")
	})
	return cmd
}

// Resume is `berth installs resume`.
func Resume(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{Use: "resume INSTALL", Short: "Resume a paused install; what waited moves at once", Args: command.Exactly("INSTALL")}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.ResumeInstallWithResponse(ctx, args[0], &ctlapi.ResumeInstallParams{})
		if err != nil {
			return err
		}
		return printInstall(c, resp.JSON200, "%s is not paused\n")
	})
	return cmd
}

func printInstall(c *command.CLI, answered *ctlapi.Install, say string) error {
	install, err := api.Body(answered)
	if err != nil {
		return err
	}
	if c.ForPrograms() {
		return command.PrintOne(c, *install, table.Install(c.Now()))
	}
	_, err = output.Printf(c.Out, say, install.Name)
	return err
}

// ApproveSeen approves the changes of an install that were shown, and says of each
// what became of it. refused is how many were not approved.
func ApproveSeen(ctx context.Context, client *api.Client, install string, shown []ctlapi.Change, note string) (items []ctlapi.DecidedChange, refused int, err error) {
	body := ctlapi.InstallDecisionsRequest{Note: note}
	for _, change := range shown {
		body.Changes = append(body.Changes, ctlapi.AlsoDecided{ChangeID: change.ID, EffectDigest: api.Value(change.EffectDigest)})
	}
	resp, err := client.DecideInstallWithResponse(ctx, install, &ctlapi.DecideInstallParams{}, body)
	if err != nil {
		return nil, 0, err
	}
	answered, err := api.Body(resp.JSON200)
	if err != nil {
		return nil, 0, err
	}
	for _, item := range answered.Items {
		if item.Outcome == ctlapi.DecidedChangeOutcomeRefused {
			refused++
		}
	}
	return answered.Items, refused, nil
}
