package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/apps"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/remedy"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// syncing are the flags of sync.
type syncing struct {
	sync.Options
	wait, plan bool
	confirm    string
	message    string
	watching   watching
}

func (c *cli) syncCommand() *cobra.Command {
	var s syncing
	cmd := &cobra.Command{
		Use:   "sync [FOLDER]",
		Short: "Build and release an app folder",
		Long: `Checks the app folder, uploads what the control plane does not have yet, and makes a
config from it. Berth builds the components that changed; when all builds are done, there
is a new release. The newest release is that of the folder you synced last: syncing the
same folder again changes nothing, and syncing an older one makes a new release of it.

Berth fetches whatever the folder uses from URLs and git repositories on this machine,
and records its digest in the config: new content makes a new config.

The release keeps a message (-m) and, when the folder is in a git repository, the commit
and its author; without -m the message is the subject of the commit.

--plan shows what would change: the config, the builds, the installs, and what the folder
no longer has. --source-map takes a git or chart repository that the config names from a
directory on this machine instead, and the config gets the directory's content.`,
		Args: command.Exactly("[FOLDER]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			folder := "."
			if len(args) > 0 {
				folder = args[0]
			}
			return c.sync(cmd.Context(), folder, s)
		},
	}
	cmd.Flags().StringVar(&s.App, "app", "", "name of the app (default: the folder's name)")
	cmd.Flags().StringVarP(&s.message, "message", "m", "", "what is new, for people (default: the subject of the git commit)")
	cmd.Flags().BoolVarP(&s.wait, "wait", "w", false, "follow the builds until there is a release")
	cmd.Flags().BoolVar(&s.wait, "watch", false, "the same as --wait")
	cmd.Flags().BoolVar(&s.plan, "plan", false, "only show what would happen; exit code 2 if anything would")
	cmd.Flags().BoolVar(&s.NoCreate, "no-create", false, "fail if the app does not exist, instead of creating it")
	cmd.Flags().BoolVar(&s.Prune, "prune", false, "remove components from the app that are no longer in the folder; asks for the app's name")
	command.ConfirmFlag(cmd, &s.confirm, "app")
	cmd.Flags().BoolVar(&s.Strict, "strict", false, "treat warnings as errors")
	apps.AllowPoliciesFlag(cmd, &s.AllowPolicies)
	cmd.Flags().StringArrayVar(&s.SourceMap, "source-map", nil, "REPO[//DIR]=PATH: use a local directory instead of a git repository, or of a chart repository (DIR is the chart); may be repeated")
	cmd.Flags().StringVar(&s.SourceMapFile, "source-map-file", "", "a file with such entries, one per line, with paths relative to the file")
	s.watching.timeoutFlag(cmd)
	cmd.MarkFlagsMutuallyExclusive("plan", "wait")
	return cmd
}

func (c *cli) sync(ctx context.Context, folder string, s syncing) error {
	s.Say = c.Err
	read, err := sync.Read(ctx, folder, s.Options)
	if err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	ctx, cancel := s.watching.within(ctx)
	defer cancel()
	if err := sync.Upload(ctx, client, read.Archives, c.Err); err != nil {
		return err
	}
	read.Request.Confirm = s.confirm
	read.Request.Origin = sync.Origin(ctx, folder, s.message)
	resp, err := client.SyncAppWithResponse(ctx, read.App, &ctlapi.SyncAppParams{DryRun: &s.plan}, read.Request)
	if goes, refused := api.Unconfirmed(err); refused {
		d := command.Deed{What: "the removal of components from app " + read.App, Name: read.App, Goes: goes}
		if err := c.Confirm(ctx, s.confirm, d); err != nil {
			return err
		}
		read.Request.Confirm = d.Name
		resp, err = client.SyncAppWithResponse(ctx, read.App, &ctlapi.SyncAppParams{}, read.Request)
	}
	if err != nil {
		return err
	}
	result, err := api.Body(resp.JSON201, resp.JSON200)
	if err != nil {
		return err
	}
	sync.TellWarnings(c.Err, result.Warnings, read.Shown)
	if s.plan {
		return c.showSyncPlan(result, s.Prune)
	}
	if !s.wait {
		if c.ForPrograms() {
			return command.PrintOne(c.CLI, *result, syncView())
		}
		_, err := output.Println(c.Out, sync.Line(result, nil))
		return err
	}
	return remedy.WhileFollowing(c.awaitRelease(ctx, client, result), "berth sync "+folder+" --wait")
}

func syncView() output.View[ctlapi.SyncResult] {
	return output.View[ctlapi.SyncResult]{Name: func(r ctlapi.SyncResult) string { return api.Value(r.Config).ID }}
}

// awaitRelease follows the builds of a config, and says what came of them.
func (c *cli) awaitRelease(ctx context.Context, client *api.Client, result *ctlapi.SyncResult) error {
	follower := sync.Follower{Client: client, Screen: c.screen(), Now: c.Now, Err: c.Err}
	if err := follower.Await(ctx, result); err != nil {
		return err
	}
	if c.ForPrograms() {
		return command.PrintOne(c.CLI, *result, syncView())
	}
	builds, err := sync.Builds(ctx, client, result)
	if err != nil {
		return err
	}
	_, err = output.Println(c.Out, sync.Line(result, builds))
	return err
}

// showSyncPlan tells what a sync would do; exit code 2 when that is anything.
func (c *cli) showSyncPlan(r *ctlapi.SyncResult, prune bool) error {
	if c.ForPrograms() {
		if err := command.PrintOne(c.CLI, *r, syncView()); err != nil {
			return err
		}
	} else if _, err := fmt.Fprint(c.Out, sync.PlanText(r, prune, c.ColorOn(c.Out))); err != nil {
		return err
	}
	if sync.WouldChange(r) {
		return command.Outcome(command.ExitChanges)
	}
	return nil
}
