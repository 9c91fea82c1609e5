package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// scriptsCommand shows the customer which vendor scripts this runner may run.
func (s *settings) scriptsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "scripts", Short: "List the vendor's scripts that this runner may run", Args: noArgs,
		Long: `Lists the scripts that came with an accepted release. The runner runs no other
script by itself or by an order; a change that needs a decision runs what was shown
with it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := s.accepted()
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), list)
			}
			return listScripts(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with the texts")
	cmd.AddCommand(&cobra.Command{
		Use: "show DIGEST", Short: "Show an accepted script: its text, its schedule, where it comes from",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("one digest is needed, or its beginning; see %s --help", cmd.CommandPath())}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := s.accepted()
			if err != nil {
				return err
			}
			found, err := pickScript(list, args[0])
			if err != nil {
				return err
			}
			showScript(cmd.OutOrStdout(), found)
			return nil
		},
	})
	return cmd
}

func (s *settings) accepted() ([]scripts.Accepted, error) {
	dir, err := s.dir()
	if err != nil {
		return nil, err
	}
	set, err := scripts.Open(dir.Scripts())
	if err != nil {
		return nil, err
	}
	return set.List(), nil
}

func listScripts(to io.Writer, list []scripts.Accepted) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(to, "no scripts are accepted: this runner runs none by itself")
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tRUNS\tSCHEDULE\tRELEASE\tSINCE\tDIGEST")
	for _, a := range list {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", visible.Line(a.Script.Action.Name), runsAs(a), or(visible.Line(a.Script.Cron), "-"), a.Release, a.Since.Format(time.RFC3339), a.Digest)
	}
	return w.Flush()
}

func runsAs(a scripts.Accepted) string {
	switch {
	case a.Script.HealthCheck:
		return "as a check"
	case a.Script.Action.ReadOnly:
		return "only reads"
	case len(a.Script.Heals) > 0 && a.Script.Unattended:
		return "by itself, on its schedule and to heal"
	case len(a.Script.Heals) > 0:
		return "by itself, to heal"
	case a.Script.Unattended:
		return "by itself, on its schedule"
	}
	return "with a decision"
}

// pickScript finds a script by its digest or the beginning of one.
func pickScript(list []scripts.Accepted, digest string) (scripts.Accepted, error) {
	var found []scripts.Accepted
	for _, a := range list {
		if strings.HasPrefix(a.Digest, digest) || strings.HasPrefix(strings.TrimPrefix(a.Digest, "sha256:"), digest) {
			found = append(found, a)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return scripts.Accepted{}, fmt.Errorf("no accepted script has the digest %s; `berth-runner scripts` lists them", digest)
	}
	return scripts.Accepted{}, fmt.Errorf("%d accepted scripts begin with %s: give more of the digest", len(found), digest)
}

func showScript(to io.Writer, a scripts.Accepted) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(name, format string, args ...any) { fmt.Fprintf(w, name+"\t"+format+"\n", args...) }
	line("name", "%s", visible.Line(a.Script.Action.Name))
	line("digest", "%s", a.Digest)
	line("runs", "%s", runsAs(a))
	line("schedule", "%s", or(visible.Line(a.Script.Cron), "none"))
	for _, h := range a.Script.Heals {
		line("heals", "%s", visible.Line(h.String()))
	}
	line("role", "%s", or(visible.Line(a.Script.Role), "the runner's own"))
	line("timeout", "%d s", a.Script.TimeoutSeconds)
	if len(a.Script.Inputs) > 0 {
		line("inputs", "%s", visible.Line(strings.Join(a.Script.Inputs, ", ")))
	}
	line("accepted", "%s, release %d (%s), by order %s", a.Since.Format(time.RFC3339), a.Release, visible.Line(a.ReleaseID), visible.Line(a.JobID))
	if a.NoText {
		line("text", "not here: another machine had it. It comes with the next deploy, and runs only if it has this digest")
	}
	_ = w.Flush() // a tab writer without an error of its own
	for i, step := range a.Script.Action.Steps {
		fmt.Fprintf(to, "\nstep %d %s\n", i+1, visible.Line(step.Name))
		for _, name := range slices.Sorted(maps.Keys(step.EnvVars)) {
			fmt.Fprintf(to, "  env %s=%s\n", visible.Line(name), visible.Line(step.EnvVars[name]))
		}
		for _, text := range strings.Split(strings.TrimSuffix(step.InlineContents+step.Command, "\n"), "\n") {
			fmt.Fprintf(to, "  | %s\n", visible.Line(text))
		}
	}
}
