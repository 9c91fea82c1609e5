package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/ask"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/findings"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/installsync"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// declaring are the flags of installs sync.
type declaring struct {
	app                       string
	plan, autoApprove, strict bool
}

func (c *cli) installsSync() *cobra.Command {
	var s declaring
	cmd := &cobra.Command{
		Use:   "sync [FOLDER]",
		Short: "Apply the install files in installs/",
		Long: `Shows what it would do with each install of the app, asks, and does exactly that: all
of it or, if anything is wrong, nothing. It creates installs that do not exist, changes
those that differ, and leaves alone those that no file names.

Berth checks inputs and components against the last synced version of the app. It
provisions and deploys nothing, but prints the commands that do. It reports keys that
this version ignores, with file, line and column.`,
		Args: command.Exactly("[FOLDER]"),
	}
	cmd.Flags().StringVar(&s.app, "app", "", "name of the app (default: the folder's name)")
	cmd.Flags().BoolVar(&s.plan, "plan", false, "only show what would happen; exit code 2 if anything would")
	cmd.Flags().BoolVar(&s.autoApprove, "auto-approve", false, "do not ask")
	cmd.Flags().BoolVar(&s.strict, "strict", false, "treat warnings as errors")
	cmd.MarkFlagsMutuallyExclusive("plan", "auto-approve")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		folder := "."
		if len(args) > 0 {
			folder = args[0]
		}
		return c.syncInstalls(cmd.Context(), folder, s)
	}
	return cmd
}

// installsSynced is what programs get: the answer, and what was found in the files.
type installsSynced struct {
	ctlapi.InstallsResult
	Findings []place.Diagnostic `json:"findings"`
}

func (c *cli) syncInstalls(ctx context.Context, folder string, s declaring) error {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	declared, err := c.readInstalls(folder, abs, s.strict)
	if err != nil {
		return err
	}
	if s.app == "" {
		s.app = filepath.Base(abs)
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	put := func(params ctlapi.SyncInstallsParams) (*ctlapi.InstallsResult, error) {
		resp, err := client.SyncInstallsWithResponse(ctx, s.app, &params, declared.Request)
		if err != nil {
			return nil, located(err, declared)
		}
		return api.Body(resp.JSON200)
	}
	plan, err := put(ctlapi.SyncInstallsParams{DryRun: new(true)})
	if err != nil {
		return err
	}
	if s.plan || !installsync.Changes(plan.Items) {
		return c.showInstallsPlan(plan, declared, s.plan)
	}
	for _, line := range installsync.Lines(plan.Items, c.ColorOn(c.Err)) {
		output.Println(c.Err, line)
	}
	if !s.autoApprove {
		if err := c.agree(ctx, installsync.Summary(plan.Items, false)); err != nil {
			return err
		}
	}
	done, err := put(ctlapi.SyncInstallsParams{IfMatch: &plan.Version})
	if err != nil {
		return err
	}
	return c.showInstalls(done, declared, installsync.Summary(done.Items, true))
}

// agree asks whether to do what was just shown.
func (c *cli) agree(ctx context.Context, summary string) error {
	if !c.CanAsk() {
		return usage.Errorf("this is not a terminal, so berth cannot ask: use --auto-approve to do what it just showed")
	}
	answer, err := c.Ask(ctx, ask.AboutFiles(summary))
	if err != nil {
		return err
	}
	if answer != follow.Approve {
		output.Println(c.Err, "changed nothing")
		return command.Outcome(command.ExitWaits)
	}
	return nil
}

// readInstalls checks the folder. Everything that is wrong, and what is not
// carried out, is shown at once.
func (c *cli) readInstalls(folder, abs string, strict bool) (installsync.Declared, error) {
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return installsync.Declared{}, usage.Errorf("%s is not a folder: name the folder with the app's files", folder)
	}
	app, diagnostics := check.Format(os.DirFS(abs), appconfig.LoadOptions{AllowInvalidPolicies: true}) // a sync of the app decides on those
	var declared installsync.Declared
	if !place.HasErrors(diagnostics) {
		declared = installsync.Declare(app)
		diagnostics = place.Sort(append(diagnostics, declared.Findings...))
	}
	if strict {
		diagnostics = place.Strict(diagnostics)
	}
	for _, d := range diagnostics {
		output.Println(c.Err, d)
	}
	if place.HasErrors(diagnostics) {
		return declared, fmt.Errorf("cannot sync the installs of %s: %s", folder, findings.Errors(diagnostics))
	}
	return declared, nil
}

// located gives what the control plane refuses its place in the files.
func located(err error, declared installsync.Declared) error {
	var problem *api.Problem
	if errors.As(err, &problem) && problem.Errors != nil {
		faults := declared.Locate(*problem.Errors)
		problem.Errors = &faults
	}
	return err
}

// showInstallsPlan ends a sync that changes nothing: there is nothing to do, or
// only the plan was asked for.
func (c *cli) showInstallsPlan(plan *ctlapi.InstallsResult, declared installsync.Declared, planOnly bool) error {
	if !c.ForPrograms() {
		for _, line := range installsync.Lines(plan.Items, c.ColorOn(c.Out)) {
			output.Println(c.Out, line)
		}
	}
	if err := c.showInstalls(plan, declared, installsync.Summary(plan.Items, false)); err != nil {
		return err
	}
	if planOnly && installsync.Changes(plan.Items) {
		return command.Outcome(command.ExitChanges)
	}
	output.Println(c.Err, "nothing to do")
	return nil
}

func (c *cli) showInstalls(r *ctlapi.InstallsResult, declared installsync.Declared, summary string) error {
	if c.ForPrograms() {
		return command.PrintOne(c.CLI, installsSynced{*r, append([]place.Diagnostic{}, declared.Findings...)},
			output.View[installsSynced]{Name: func(s installsSynced) string { return s.App.Name }})
	}
	if _, err := output.Printf(c.Out, "installs of app %s: %s\n", r.App.Name, summary); err != nil {
		return err
	}
	for _, line := range installsync.Next(r.Items) {
		output.Println(c.Err, "next:", line)
	}
	return nil
}
