package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/local"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/remedy"
	"github.com/berth-dev/berth/cli/internal/toolchain"
	"github.com/berth-dev/berth/cli/internal/up"
	"github.com/berth-dev/berth/cli/internal/usage"
)

func (c *cli) upCommand() *cobra.Command {
	var detach, status, restart bool
	var org, kubeconfig string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start Berth on this machine",
		Long: `Starts Postgres, the four services and the runners of local installs as processes,
and keeps them running until Ctrl-C or berth down. Everything listens on loopback
only, and all data is in one folder: BERTH_DATA, or else /var/lib/berth for root and
~/.local/share/berth for everyone else.

When it runs already, that is all, unless its executables have been replaced since, by a
build or an upgrade: then it is stopped and started again. --restart leaves everything
else running: only the parts whose executables have been replaced are restarted.

If DATABASE_URL is set (to an administrator's connection), Berth uses that Postgres.
Otherwise it starts its own from the binaries in BERTH_PG_BIN, on PATH or in the
distribution's folder. The services listen on ports 8700 to 8703; to use four others,
set BERTH_PORT to the first.

With --kubeconfig, local installs use a Kubernetes cluster: the file's current context.
Later starts remember it. The first start uses KUBECONFIG if that names one file. An
empty name forgets the cluster.`,
		Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			layout, err := local.Layout()
			if err != nil {
				return err
			}
			if org != "" {
				if err := usage.Nameable("an org", org); err != nil {
					return err
				}
			}
			start := starting{org: org}
			if cmd.Flags().Changed("kubeconfig") {
				start.kubeconfig = &kubeconfig
			}
			switch {
			case status:
				return c.upStatus(cmd.Context(), layout)
			case restart:
				return c.upRestart(cmd.Context(), layout)
			case detach && up.FromDetach() == nil:
				return c.upDetached(cmd.Context(), layout, start)
			}
			return c.upForeground(cmd.Context(), layout, start)
		},
	}
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "run in the background; return when Berth is ready")
	cmd.Flags().BoolVar(&status, "status", false, "only show what is running")
	cmd.Flags().BoolVar(&restart, "restart", false, "restart only the parts whose executables have been replaced")
	cmd.Flags().StringVar(&org, "name", "local", "name of the org that the first start creates")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file of the cluster for local installs")
	cmd.MarkFlagsMutuallyExclusive("detach", "status", "restart")
	return cmd
}

// starting is what the flags say about a start.
type starting struct {
	org        string
	kubeconfig *string // nil when it was not given
}

func (c *cli) upForeground(ctx context.Context, layout up.Layout, start starting) error {
	port, err := up.ParsePort(c.Getenv("BERTH_PORT"))
	if err != nil {
		return err
	}
	say := func(line string) { output.Println(c.Err, line) }
	ready := func(url string) { c.upReady(layout, url, say) }
	background := up.FromDetach()
	if background != nil {
		show := say
		say = func(line string) { show(line); background.Say(line) }
		ready = func(url string) { c.upReady(layout, url, say); background.Ready(url) }
	}
	if _, err := up.StopOutdated(ctx, layout, func(line string) { output.Println(c.Err, line) }); err != nil {
		return err
	}
	err = up.Run(ctx, up.Config{
		Layout: layout, Port: port, Org: start.org, Kubeconfig: start.kubeconfig, DatabaseURL: c.Getenv("DATABASE_URL"),
		Getenv: c.Getenv, Environ: os.Environ(), Terraform: toolchain.OptionsFromEnv(), Say: say, Ready: ready,
	})
	if background != nil && err != nil {
		background.Failed(err.Error(), remedy.For(err))
	}
	return c.orRunning(ctx, layout, err)
}

func (c *cli) upDetached(ctx context.Context, layout up.Layout, start starting) error {
	s, err := up.StopOutdated(ctx, layout, func(line string) { output.Println(c.Err, line) })
	if err != nil {
		return err
	}
	if s.Running {
		return c.orRunning(ctx, layout, fmt.Errorf("%w: %s (data in %s)", up.ErrRunning, s.URL, s.Dir))
	}
	args := []string{"up", "--name", start.org}
	if start.kubeconfig != nil {
		args = append(args, "--kubeconfig", *start.kubeconfig)
	}
	url, err := up.Detach(ctx, layout, args, func(line string) { output.Println(c.Err, line) })
	if err != nil {
		return err
	}
	output.Printf(c.Out, "%s\n", url) // that process wrote the context, and said so
	return nil
}

// orRunning makes a second `up` a success: what was asked for is there. A context
// that was lost is written again; one that is there stays as it is.
func (c *cli) orRunning(ctx context.Context, layout up.Layout, err error) error {
	if !errors.Is(err, up.ErrRunning) {
		return err
	}
	output.Println(c.Err, err)
	if status, err := up.AskStatus(ctx, layout); err == nil && status.Running {
		if note := local.WriteMissingContext(c.Getenv, layout, status.URL); note != "" {
			output.Println(c.Err, note)
		}
	}
	return nil
}

// upReady writes the context and says where everything is.
func (c *cli) upReady(layout up.Layout, url string, say func(string)) {
	note, err := local.WriteContextOf(c.Getenv, layout, url)
	if err != nil {
		note = fmt.Sprintf("! cannot write the context %q: %v", local.Context, err)
	}
	if note != "" {
		say("  " + note)
	}
	say("  dashboard     " + url + "/ui/; berth ui logs your browser in")
	output.Printf(c.Out, "%s\n", url)
}

func (c *cli) upRestart(ctx context.Context, layout up.Layout) error {
	done, err := up.Restart(ctx, layout)
	if err != nil {
		return err
	}
	if c.ForPrograms() {
		return command.PrintOne(c.CLI, done, output.View[up.Restarted]{Name: func(r up.Restarted) string { return strings.Join(r.Parts, "\n") }})
	}
	if len(done.Parts) == 0 {
		output.Println(c.Out, "nothing to restart: no executable has been replaced")
	}
	for _, part := range done.Parts {
		output.Println(c.Out, "restarted", part)
	}
	return nil
}

func (c *cli) upStatus(ctx context.Context, layout up.Layout) error {
	status, err := up.AskStatus(ctx, layout)
	if err != nil {
		return err
	}
	if c.ForPrograms() {
		if err := command.PrintOne(c.CLI, status, output.View[up.Status]{Name: func(s up.Status) string { return s.URL }}); err != nil {
			return err
		}
	} else {
		for _, line := range local.StatusLines(status) {
			output.Println(c.Out, line)
		}
		if err := up.EnoughSpace(status.Dir); err != nil {
			output.Printf(c.Out, "! %-22s %v\n", "disk", err)
		}
	}
	if !status.Healthy() {
		return command.Outcome(command.ExitFailed)
	}
	return nil
}

func (c *cli) downCommand() *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop Berth on this machine",
		Long: `Stops everything that berth up started, process by process, and prints what it stopped.
The data stays, and the next berth up continues with it. --purge deletes the data folder
too: the database, the artifacts, and everything local installs keep in it.`,
		Args: command.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			layout, err := local.Layout()
			if err != nil {
				return err
			}
			return local.Down(c.Out, layout, purge)
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "also delete the data folder")
	return cmd
}
