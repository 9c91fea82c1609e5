package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/runnerversions"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// runnersUpdate has a runner run another version of itself.
func (c *cli) runnersUpdate() *cobra.Command {
	var how watching
	var to string
	cmd := &cobra.Command{
		Use: "update INSTALL", Short: "Let an install's runner run another version of itself", Args: command.Exactly("INSTALL"),
		Long: `Plans the update, and asks as for any change. The runner takes only a release that the
customer's pinned release key signed, and goes back to an older version only if it ran that
before. It tries the new version out: one that cannot take work within 60 s ends, the
version before runs again, and the change has failed. Engines that run go on meanwhile.

INSTALL may also be the id of its runner. A runner in a cluster does not update itself:
apply the newer manifest there.`,
	}
	cmd.Flags().StringVar(&to, "to", "", "the version, as `berth runners versions list` shows it")
	how.planFlag(cmd, "updated")
	how.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if to == "" {
			return usage.Errorf("name the version with --to; `berth runners versions list` shows those on offer")
		}
		install := args[0]
		if strings.HasPrefix(install, "rnr_") {
			resp, err := client.GetRunnerWithResponse(ctx, install)
			if err != nil {
				return err
			}
			runner, err := api.Body(resp.JSON200)
			if err != nil {
				return err
			}
			if runner.Install == nil {
				return usage.Errorf("runner %s is of no install: Berth's own Build Runner is updated with Berth", install)
			}
			install = runner.Install.ID
		}
		return c.start(ctx, client, launch{install, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindRunnerUpdate, RunnerVersion: to}, how})
	})
	return cmd
}

// runnersVersions are the versions of the runner that the org offers.
func (c *cli) runnersVersions() *cobra.Command {
	list := &cobra.Command{Use: "list", Short: "List the runner versions on offer, newest first", Args: command.Exactly()}
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		resp, err := client.ListRunnerVersionsWithResponse(ctx)
		if err != nil {
			return err
		}
		page, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, page.Items, table.RunnerVersion(c.Now()))
	})
	var files runnerversions.Files
	add := &cobra.Command{
		Use: "add ARCHIVE", Short: "Offer a version of the runner", Args: command.Exactly("ARCHIVE"),
		Long: `Pushes the runner's archive of a release for one platform, with the signed list of the
release, to the org's registry, and offers it to all installs. Nothing is updated by that.
Each runner checks the signature with the release key that its customer pinned; --key
checks it here too, before anything is sent.`,
	}
	add.Flags().StringVar(&files.List, "list", "", "the signed list of the release (default: release.json next to the archive)")
	add.Flags().StringVar(&files.Key, "key", "", "file of the release's public key, to check the signature before")
	add.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		files.Archive = args[0]
		added, err := runnerversions.Offer(ctx, client, files)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *added, table.RunnerVersion(c.Now()))
	})
	remove := &cobra.Command{
		Use: "remove VERSION", Short: "Withdraw a version of the runner", Args: command.Exactly("VERSION"),
		Long: `No update to it can be planned any more. Runners that run it keep running it.`,
	}
	remove.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if _, err := client.RemoveRunnerVersionWithResponse(ctx, args[0]); err != nil {
			return err
		}
		_, err := output.Printf(c.Out, "removed runner version %s\n", args[0])
		return err
	})
	return command.Noun("versions", "version", "The runner versions on offer to installs", list, add, remove)
}
