package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/fleet"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) runnersCommand() *cobra.Command {
	var install string
	list := &cobra.Command{Use: "list", Short: "List runners", Args: command.Exactly()}
	limit := command.LimitFlag(list)
	list.Flags().StringVar(&install, "install", "", "only for this install")
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		items, err := client.Runners(ctx, *limit, install)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Runner(c.Now()))
	})
	show := &cobra.Command{Use: "show RUNNER", Short: "Show a runner", Args: command.Exactly("RUNNER")}
	show.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetRunnerWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		runner, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *runner, table.Runner(c.Now()))
	})
	revoke := &cobra.Command{Use: "revoke RUNNER", Short: "End a runner's sessions and block its identity for good", Args: command.Exactly("RUNNER")}
	revoke.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.RevokeRunnerWithResponse(ctx, args[0], &ctlapi.RevokeRunnerParams{})
		if err != nil {
			return err
		}
		runner, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *runner, table.Runner(c.Now()))
	})
	return command.Noun("runners", "runner", "The programs that carry out changes for customers", list, show, fleet.Jobs(c.CLI), revoke, c.runnersReplace(),
		c.runnersUpdate(), c.runnersVersions())
}

func (c *cli) runnersReplace() *cobra.Command {
	cmd := &cobra.Command{
		Use: "replace INSTALL", Short: "Create a secret that lets another machine become an install's runner", Args: command.Exactly("INSTALL"),
		Long: `Prints a single-use secret, once. The machine that enrols with it replaces the current
runner, and Berth blocks that one; whatever it was doing counts as uncertain. By creating
the secret, you agree to that.`,
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.CreateEnrolmentWithResponse(ctx, args[0], &ctlapi.CreateEnrolmentParams{}, ctlapi.EnrolmentRequest{Replaces: true})
		if err != nil {
			return err
		}
		secret, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c.CLI, *secret, output.View[ctlapi.EnrolmentSecret]{Name: func(s ctlapi.EnrolmentSecret) string { return s.ID }})
		}
		output.Printf(c.Err, "enrolment %s of runner %s, valid until %s; this is the only time you see the secret:\n", secret.ID, secret.RunnerID,
			secret.ExpiresAt.Local().Format("2006-01-02 15:04"))
		_, err = output.Println(c.Out, secret.Secret)
		return err
	})
	return cmd
}
