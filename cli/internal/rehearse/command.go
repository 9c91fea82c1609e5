package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/hosts"
	"github.com/berth-dev/berth/cli/internal/local"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Doors is what the command needs of the rest of the command line.
type Doors struct {
	// Call runs a command with a client of the chosen context.
	Call func(func(context.Context, *api.Client, []string) error) func(*cobra.Command, []string) error
	Args cobra.PositionalArgs // FOLDER
	// Format is how the output is wanted; programs get the report as JSON or YAML.
	Format   func() (output.Options, error)
	Out, Err io.Writer
	Now      func() time.Time
}

// run is one call of the command.
type run struct {
	Doors
	flags       Flags
	sync        sync.Options
	name, stack string
	report      string
	screen      *follow.Screen
	client      *api.Client
	inputs      map[string]string
	beganAt     time.Time
	folder      string
	own         bool // the app is one of rehearsals alone
	cluster     bool // local installs have one

	app     *appconfig.App      // as the folder has it
	changes stage.Changes       // what is left out of what is tried
	broken  map[stage.Part]bool // left out for a mistake in the folder
	lost    map[string]string   // addresses of files that could not be fetched, and why
	said    []place.Diagnostic  // warnings and notes about the folder
	// leftovers: a part that failed may have left something in the cluster.
	leftovers bool
	first     string // the name of the first install, once there is another
	toRemove  bool
	hosts     hosts.Hosts
	judged    map[stage.Part]Line
	install   *ctlapi.Install
	parts     []Span
}

// Command is berth rehearse.
func Command(d Doors) *cobra.Command {
	r := run{Doors: d}
	cmd := &cobra.Command{
		Use:   "rehearse FOLDER",
		Short: "Try an app that is written for a cloud on this machine, and report what it does",
		Long: `Syncs the app folder, makes a rehearsed install of it, provisions that, and writes one report:
what was real, what was mocked and what could not be planned, and why; every plan; images and
outbound hosts; the time of each part. Nothing asks: all changes of the install are approved.

What needs the cloud has stand-ins; the rest is really deployed. What cannot be reached or is not
supported yet is left out, said so, and has a stand-in too. Where Berth has no cluster (berth up
--kubeconfig gives it one), charts and manifests are rendered and checked.

The app gets "-rehearsal" behind its name, so that no release of the real one is made. The install
stays, to be looked at: berth installs deprovision or --remove removes it. Exit code 0 when the
report is whole and nothing failed, 1 when a part for which everything was at hand failed or the
folder is wrong.`,
		Example: "  berth rehearse ./my-app --report out.html\n  berth rehearse ./my-app --stack-output vpc_id=vpc-0123 --report out.md",
		Args:    d.Args,
	}
	f := cmd.Flags()
	f.StringVar(&r.report, "report", "", "write the report to this file; its ending says how: .html, .md or .json")
	f.StringVar(&r.name, "name", "", "name of the install (default: rehearsal-, the time and four digits)")
	f.StringVar(&r.stack, "stack", "local", "where the runner runs: local, or kubernetes for a cluster, in which you run what it prints")
	f.BoolVar(&r.toRemove, "remove", false, "deprovision the install at the end, and remove all that was deployed")
	f.StringVar(&r.sync.App, "app", "", "name of the app (default: the folder's name and -rehearsal)")
	f.StringArrayVar(&r.sync.SourceMap, "source-map", nil, "REPO[//DIR]=PATH: as of berth sync")
	f.StringVar(&r.sync.SourceMapFile, "source-map-file", "", "a file with such entries")
	f.StringToStringVarP(&r.inputs, "input", "i", nil, "an input of the app, name=value; one that is required and not given is made up")
	r.flags.AddOutputs(f)
	cmd.RunE = d.Call(func(ctx context.Context, client *api.Client, args []string) error {
		r.client, r.folder, r.beganAt, r.cluster = client, args[0], d.Now(), local.HasCluster()
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
	switch ctlapi.StackKind(r.stack) {
	case ctlapi.StackKindLocal:
	case ctlapi.StackKindKubernetes:
		r.cluster = true
	default:
		return usage.Errorf("--stack %s: a rehearsal needs no cloud; it runs in the stacks local and kubernetes", usage.Shortened(r.stack))
	}
	r.screen = &follow.Screen{W: r.Err}
	if err := r.read(ctx); err != nil {
		return err
	}
	last, ended := r.rounds(ctx)
	report, err := r.gather(ctx, last) // what is known when it ended early, too
	if err != nil {
		return errors.Join(ended, err)
	}
	if ended != nil {
		report.Findings = append(report.Findings, "the rehearsal ended early: "+ended.Error())
	}
	if r.toRemove && r.install != nil {
		ended = errors.Join(ended, r.remove(ctx))
		report.Spans = r.parts
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
	if err := r.tell(report); err != nil {
		return err
	}
	if ended != nil {
		return ended
	}
	if n := report.Totals[Failed]; n > 0 {
		return fmt.Errorf("%d parts of the rehearsal that are real failed", n)
	}
	return nil
}

// tell prints the totals, or all of the report for programs.
func (r *run) tell(report Report) error {
	format, err := r.Format()
	if err != nil {
		return err
	}
	if len(format.Fields) > 0 || format.Format != output.Table && format.Format != output.Wide {
		return output.Program(r.Out, format, report)
	}
	_, err = output.Printf(r.Out, "%s: %s\n", report.Install, report.Total())
	return err
}
