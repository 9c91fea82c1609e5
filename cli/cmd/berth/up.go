package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/contexts"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/remedy"
	"github.com/berth-dev/berth/cli/internal/toolchain"
	"github.com/berth-dev/berth/cli/internal/up"
	"github.com/berth-dev/berth/cli/internal/usage"
)

// localContext is the context that `berth up` writes.
const localContext = "local"

func (c *cli) upCommand() *cobra.Command {
	var detach, status bool
	var org, kubeconfig string
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start Berth on this machine",
		Long: `Starts Postgres, the four services and the runners of local installs as processes,
and keeps them running until Ctrl-C or berth down. Everything listens on loopback
only, and all data is in one folder: BERTH_DATA, else /var/lib/berth for root and
~/.local/share/berth for others.

Postgres is the one of DATABASE_URL (an administrator's address), else an own one,
started from the binaries in BERTH_PG_BIN, on PATH or in the distribution's folder.
The services listen on 8700 to 8703; BERTH_PORT is the first of four others.

With --kubeconfig, local installs work on a Kubernetes cluster: on the current
context of the file. Later starts remember it; the first one takes it from
KUBECONFIG when that names one file. An empty name forgets it.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			layout, err := localLayout()
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
			case detach && up.FromDetach() == nil:
				return c.upDetached(cmd.Context(), layout, start)
			}
			return c.upForeground(cmd.Context(), layout, start)
		},
	}
	cmd.Flags().BoolVarP(&detach, "detach", "d", false, "run in the background; return when it is ready")
	cmd.Flags().BoolVar(&status, "status", false, "only show what runs")
	cmd.Flags().StringVar(&org, "name", "local", "name of the org that the first start makes")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "the cluster that local installs work on, a file")
	cmd.MarkFlagsMutuallyExclusive("detach", "status")
	return cmd
}

// starting is what the flags say about a start.
type starting struct {
	org        string
	kubeconfig *string // nil when it was not given
}

func localLayout() (up.Layout, error) {
	dir, err := up.DefaultDir()
	if err != nil {
		return up.Layout{}, err
	}
	return up.LayoutAt(dir)
}

func (c *cli) upForeground(ctx context.Context, layout up.Layout, start starting) error {
	port, err := up.ParsePort(c.getenv("BERTH_PORT"))
	if err != nil {
		return err
	}
	say := func(line string) { output.Println(c.err, line) }
	ready := func(url string) { c.upReady(layout, url) }
	background := up.FromDetach()
	if background != nil {
		show := say
		say = func(line string) { show(line); background.Say(line) }
		ready = func(url string) { c.upReady(layout, url); background.Ready(url) }
	}
	err = up.Run(ctx, up.Config{
		Layout: layout, Port: port, Org: start.org, Kubeconfig: start.kubeconfig, DatabaseURL: c.getenv("DATABASE_URL"),
		Getenv: c.getenv, Environ: os.Environ(), Terraform: toolchain.OptionsFromEnv(), Say: say, Ready: ready,
	})
	if background != nil && err != nil {
		background.Failed(err.Error(), remedy.For(err))
	}
	return c.orRunning(err)
}

func (c *cli) upDetached(ctx context.Context, layout up.Layout, start starting) error {
	if s, err := up.AskStatus(ctx, layout); err == nil && s.Running {
		return c.orRunning(fmt.Errorf("%w: %s (data in %s)", up.ErrRunning, s.URL, s.Dir))
	}
	args := []string{"up", "--name", start.org}
	if start.kubeconfig != nil {
		args = append(args, "--kubeconfig", *start.kubeconfig)
	}
	url, err := up.Detach(ctx, layout, args, func(line string) { output.Println(c.err, line) })
	if err != nil {
		return err
	}
	c.upReady(layout, url)
	return nil
}

// orRunning makes a second `up` a success: what was asked for is there.
func (c *cli) orRunning(err error) error {
	if errors.Is(err, up.ErrRunning) {
		output.Println(c.err, err)
		return nil
	}
	return err
}

// upReady writes the context and says where everything is.
func (c *cli) upReady(layout up.Layout, url string) {
	note, err := c.writeLocalContext(layout, url)
	if err != nil {
		output.Printf(c.err, "! the context %q was not written: %v\n", localContext, err)
	}
	if note != "" {
		output.Println(c.err, "  "+note)
	}
	output.Printf(c.out, "%s\n", url)
}

func (c *cli) writeLocalContext(layout up.Layout, url string) (note string, err error) {
	path, err := contexts.Path(c.getenv)
	if err != nil {
		return "", err
	}
	file, err := contexts.Load(path)
	if err != nil {
		return "", err
	}
	file.Contexts[localContext] = contexts.Context{URL: url, TokenFile: layout.Token()}
	if file.Current == "" {
		file.Current = localContext
	}
	if file.Current != localContext {
		note = fmt.Sprintf("the context %q stays the current one; use --context local or berth context use local", file.Current)
	}
	return note, file.Save()
}

func (c *cli) upStatus(ctx context.Context, layout up.Layout) error {
	status, err := up.AskStatus(ctx, layout)
	if err != nil {
		return err
	}
	if c.forPrograms() {
		if err := printOne(c, status, output.View[up.Status]{Name: func(s up.Status) string { return s.URL }}); err != nil {
			return err
		}
		if !status.Healthy() {
			return outcome(exitFailed)
		}
		return nil
	}
	if !status.Running {
		output.Printf(c.out, "berth does not run (data folder %s)\n", status.Dir)
	} else {
		output.Printf(c.out, "%s  data in %s  supervisor pid %d\n", status.URL, status.Dir, status.PID)
	}
	for _, part := range status.Parts {
		mark, detail := "✓", fmt.Sprintf("pid %d", part.PID)
		if part.Restarts > 0 {
			detail += fmt.Sprintf(", restarted %d times, last: %s", part.Restarts, part.Last)
		}
		if !part.Ready {
			mark = "✗"
			detail += ", " + part.Why
			if part.Looping {
				detail += ", keeps ending: see " + part.Log
			}
			if part.LastLine != "" {
				detail += "\n    " + part.LastLine
			}
		}
		output.Printf(c.out, "%s %-22s %s\n", mark, part.Name, strings.TrimSpace(detail))
	}
	if err := up.EnoughSpace(status.Dir); err != nil {
		output.Printf(c.out, "! %-22s %v\n", "disk", err)
	}
	if !status.Healthy() {
		return outcome(exitFailed)
	}
	return nil
}
