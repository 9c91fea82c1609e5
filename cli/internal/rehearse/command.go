package rehearse

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Doors is what the command needs of the rest of the command line.
type Doors struct {
	// Call runs a command with a client of the chosen context.
	Call     func(func(context.Context, *api.Client, []string) error) func(*cobra.Command, []string) error
	Args     cobra.PositionalArgs // FOLDER
	Out, Err io.Writer
	Now      func() time.Time
}

// run is one call of the command.
type run struct {
	Doors
	flags         Flags
	sync          sync.Options
	name, stack   string
	report        string
	screen        *follow.Screen
	client        *api.Client
	inputs        map[string]string
	beganAt       time.Time
	folder, appID string
}

// Command is berth rehearse.
func Command(d Doors) *cobra.Command {
	r := run{Doors: d}
	cmd := &cobra.Command{
		Use:   "rehearse FOLDER",
		Short: "Try an app that is written for a cloud on this machine, and report what it does",
		Long: `Syncs the app folder, makes a rehearsed install of it, provisions that, and writes one report:
what was real, what was mocked and what could not be planned, and why; every plan; images and
outbound hosts; the time of each step. Nothing asks: all changes of the install are approved.

What needs the cloud has stand-ins; the rest is really deployed. The install stays, to be looked
at: berth installs deprovision removes it. Exit code 1 when a part that is real failed.`,
		Example: "  berth rehearse ./my-app --report out.html\n  berth rehearse ./my-app --stack-output vpc_id=vpc-0123 --report out.md",
		Args:    d.Args,
	}
	f := cmd.Flags()
	f.StringVar(&r.report, "report", "", "write the report to this file; its ending says how: .html, .md or .json")
	f.StringVar(&r.name, "name", "", "name of the install (default: rehearsal- and the time)")
	f.StringVar(&r.stack, "stack", "local", "where the runner runs: local, or kubernetes")
	f.StringVar(&r.sync.App, "app", "", "name of the app (default: the folder's name)")
	f.StringArrayVar(&r.sync.SourceMap, "source-map", nil, "REPO[//DIR]=PATH: as of berth sync")
	f.StringVar(&r.sync.SourceMapFile, "source-map-file", "", "a file with such entries")
	f.StringToStringVarP(&r.inputs, "input", "i", nil, "an input of the app, name=value")
	r.flags.AddOutputs(f)
	cmd.RunE = d.Call(func(ctx context.Context, client *api.Client, args []string) error {
		r.client, r.folder, r.beganAt = client, args[0], d.Now()
		return r.do(ctx)
	})
	return cmd
}

func (r *run) do(ctx context.Context) error {
	if r.report != "" {
		if _, err := (Report{}).Format(r.report); err != nil {
			return err // before minutes of work
		}
	}
	if r.stack != string(ctlapi.StackKindLocal) {
		return usage.Errorf("--stack %s: a rehearsal in a cluster waits for the customer's code; use berth installs create --rehearse --stack %s", usage.Shortened(r.stack), usage.Shortened(r.stack))
	}
	r.screen = &follow.Screen{W: r.Err}
	released, err := r.release(ctx)
	if err != nil {
		return err
	}
	install, err := r.create(ctx, released)
	if err != nil {
		return err
	}
	follower := follow.Follower{Client: r.client, Screen: r.screen, Automatic: true, Now: r.Now,
		Ask: func(context.Context, ctlapi.Change) (follow.Answer, error) { return follow.Approve, nil }}
	done, err := follower.Run(ctx, api.Value(install.WorkflowID))
	if err != nil {
		return err
	}
	report, err := r.gather(ctx, done.ID, install.ID)
	if err != nil {
		return err
	}
	if r.report != "" {
		raw, err := report.Format(r.report)
		if err != nil {
			return err
		}
		if err := os.WriteFile(r.report, raw, 0o644); err != nil {
			return err
		}
	}
	if _, err := output.Printf(r.Out, "%s: %s\n", report.Install, report.Total()); err != nil {
		return err
	}
	if n := report.Totals[Failed]; n > 0 {
		return fmt.Errorf("%d parts of the rehearsal that are real failed", n)
	}
	return nil
}

// release syncs the folder and waits for the release.
func (r *run) release(ctx context.Context) (*ctlapi.SyncResult, error) {
	r.sync.Say = r.Err
	read, err := sync.Read(ctx, r.folder, r.sync)
	if err != nil {
		return nil, err
	}
	if err := sync.Upload(ctx, r.client, read.Archives, r.Err); err != nil {
		return nil, err
	}
	read.Request.Origin = sync.Origin(ctx, r.folder, "")
	resp, err := r.client.SyncAppWithResponse(ctx, read.App, &ctlapi.SyncAppParams{}, read.Request)
	if err != nil {
		return nil, err
	}
	result, err := api.Body(resp.JSON201, resp.JSON200)
	if err != nil {
		return nil, err
	}
	r.appID = read.App
	return result, sync.Follower{Client: r.client, Screen: r.screen, Now: r.Now, Err: r.Err}.Await(ctx, result)
}

func (r *run) create(ctx context.Context, released *ctlapi.SyncResult) (*ctlapi.Install, error) {
	r.flags.Rehearse = true
	rehearsed, err := r.flags.Request(r.Err)
	if err != nil {
		return nil, err
	}
	if r.name == "" {
		r.name = "rehearsal-" + r.beganAt.UTC().Format("20060102-150405")
	}
	request := ctlapi.InstallRequest{
		Name: r.name, App: r.appID, Customer: r.name, CreateCustomer: true, Provision: true, ApproveAll: true, Rehearsal: rehearsed,
	}
	if released.Release != nil {
		request.Release = &released.Release.ID
	}
	if len(r.inputs) > 0 {
		values := ctlapi.InputValues{}
		for name, value := range r.inputs {
			values[name] = value
		}
		request.Inputs = &values
	}
	resp, err := r.client.CreateInstallWithResponse(ctx, &ctlapi.CreateInstallParams{}, request)
	if err != nil {
		return nil, err
	}
	return api.Body(resp.JSON201)
}

// gather reads what came of the provision.
func (r *run) gather(ctx context.Context, workflow, installID string) (Report, error) {
	install, err := r.client.Install(ctx, installID)
	if err != nil {
		return Report{}, err
	}
	resp, err := r.client.GetWorkflowWithResponse(ctx, workflow, &ctlapi.GetWorkflowParams{})
	if err != nil {
		return Report{}, err
	}
	w, err := api.Body(resp.JSON200)
	if err != nil {
		return Report{}, err
	}
	report := Report{App: install.App.Name, Install: install.Name, Totals: map[Verdict]int{}, Images: []string{}, Hosts: []string{}}
	if install.Rehearsal != nil {
		report.Platform, report.Outputs = install.Rehearsal.Platform, install.Rehearsal.Outputs
	}
	if w.Release != nil {
		report.Release = w.Release.Number
	}
	for _, step := range w.Steps {
		if !counts(step) {
			continue
		}
		var change *ctlapi.Change
		if step.Change != nil {
			resp, err := r.client.GetChangeWithResponse(ctx, step.Change.ID)
			if err != nil {
				return report, err
			}
			if change, err = api.Body(resp.JSON200); err != nil {
				return report, err
			}
		}
		line := judge(step, change)
		report.Totals[line.Verdict]++
		report.Lines = append(report.Lines, line)
	}
	folder, err := filepath.Abs(r.folder)
	if err != nil {
		return report, err
	}
	app, _ := check.Folder(os.DirFS(folder), appconfig.LoadOptions{}) // sync has checked it
	report.describe(app)
	report.Seconds = r.Now().Sub(r.beganAt).Seconds()
	return report, nil
}
