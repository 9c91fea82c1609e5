// Command berth-runner is the customer-side agent of Berth: it asks the control
// plane for work, checks each order by itself, and starts one engine per job.
// Its other subcommands are for the customer: the switch, the state of things,
// the record of what was done.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/buildkit/step"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Exit codes.
const (
	exitFailed     = 1
	exitBusy       = 3 // another agent is active on the data directory
	exitRevoked    = 4 // this runner is not wanted any more
	exitEnrolment  = 5 // the enrolment was refused
	exitSuperseded = 6 // another machine works as this runner
	exitDamaged    = 7 // a file that the runner cannot do without is damaged
	// 8 is exitUpdated: between versions of the runner, never seen from outside
	exitUsage = 64
)

func main() {
	if filepath.Base(os.Args[0]) == step.Name { // BuildKit takes it for runc
		os.Exit(step.Main(os.Args[1:]))
	}
	os.Exit(run(os.Args[1:]))
}

// run is main with an exit code. A first signal asks to end, a second one ends
// at once: engines are then left to the next agent.
func run(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := newRoot()
	root.SetArgs(args)
	return execute(ctx, root, os.Stdout, os.Stderr)
}

// execute runs the command line that root was given. What it writes is made visible on its way:
// names, reasons and records come from others, and nothing of them steers the
// terminal.
func execute(ctx context.Context, root *cobra.Command, stdout, stderr io.Writer) int {
	out, errs := visible.NewWriter(stdout), visible.NewWriter(stderr)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err != nil && !errors.As(err, new(watchedError)) && !errors.Is(err, errUpdated) { // those have said it themselves
		fmt.Fprintln(errs, "berth-runner: "+strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	_ = errors.Join(out.Flush(), errs.Flush()) // there is nobody to report it to
	return exitCode(err)
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func exitCode(err error) int {
	var usage usageError
	var engine engineError
	var watched watchedError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &engine):
		return engine.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errUpdated):
		return exitUpdated
	case errors.As(err, &watched):
		return watched.code
	case errors.Is(err, datadir.ErrBusy):
		return exitBusy
	case errors.Is(err, agent.ErrRevoked):
		return exitRevoked
	case errors.Is(err, agent.ErrEnrolment):
		return exitEnrolment
	case errors.Is(err, agent.ErrSuperseded):
		return exitSuperseded
	case errors.Is(err, agent.ErrDamaged):
		return exitDamaged
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	s := &settings{}
	root := &cobra.Command{
		Use:           "berth-runner",
		Short:         "The customer-side agent of Berth",
		Args:          noArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          s.runAgent,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.DisableDefaultCmd = true
	s.flags(root.PersistentFlags())
	root.AddCommand(
		s.runCommand(), s.statusCommand(), s.preflightCommand(), s.manifestCommand(), s.chainCommand(), s.scriptsCommand(), s.stateCommand(), s.secretsCommand(), s.rolesCommand(), s.guardrailsCommand(), s.registryCommand(), s.enginePodCommand(), buildkitdCommand(),
		s.drillCommand(),
		s.egressCommand(), s.evidenceCommand(), s.reviewCommand(), s.supportCommand(), s.changesCommand(), s.showCommand(), s.approveCommand(), s.denyCommand(), s.consentCommand(), s.consentKeyCommand(),
		s.recoveryCommand(), s.trustCommand(), s.replaceCommand(), s.resealCommand(),
		&cobra.Command{
			Use: "version", Short: "Show the version", Args: noArgs,
			Run: func(cmd *cobra.Command, _ []string) {
				fmt.Fprintln(cmd.OutOrStdout(), "berth-runner "+version.Get().String())
			},
		},
	)
	root.AddCommand(s.switchCommands()...)
	return root
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("unknown argument %q; see %s --help", args[0], cmd.CommandPath())}
	}
	return nil
}
