package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/pkg/weakened"
	"github.com/berth-dev/berth/runner/drill"
)

// drillCommand attacks this runner's executables in scratch installs.
func (s *settings) drillCommand() *cobra.Command {
	var only []string
	var list bool
	var output, report, base string
	cmd := &cobra.Command{
		Use: "drill", Short: "Attack this runner in a scratch install, and print which rule refused what",
		Long: `Plays a control plane that was taken over, a hostile registry, an employee of the vendor and vendor code
against the executables of this runner: in scratch installs, which it makes below the temporary directory
and removes. The data directory of this runner, the vendor's control plane and your cluster are not touched;
all of it happens on loopback.

Whether an attack had its effect is not asked of the runner: the drill looks for it in the world (a line in
a file, a secret in what left the machine, a process that stayed). In each scene it first does what is
allowed, and sees that work. It takes about two minutes, and ends with 1 unless every attack was refused.`,
		Example: "  berth-runner drill\n  berth-runner drill --report drill.md\n  berth-runner drill --only consent-missing --only order-again -o json\n  berth-runner drill --list",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return usageError{fmt.Errorf("--output is text or json, not %q", output)}
			}
			for _, name := range only {
				if !drill.Known(name) {
					return usageError{fmt.Errorf("there is no attack %q; see berth-runner drill --list", name)}
				}
			}
			if list {
				return listAttacks(cmd.OutOrStdout(), output)
			}
			o := drill.Options{Base: base, Only: only}
			if output == "text" {
				o.Told = func(out drill.Outcome, allowed bool) { tellAttack(cmd.ErrOrStderr(), out, allowed) }
			}
			return s.drill(cmd, o, output, report)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&only, "only", nil, "an attack to try, instead of all; may be given several times")
	f.BoolVar(&list, "list", false, "list the attacks and try none")
	f.StringVarP(&output, "output", "o", "text", "text or json")
	f.StringVar(&report, "report", "", "write the report for a security review to this file, as Markdown")
	f.StringVar(&base, "scratch", "", "directory for the scratch installs, which other users can enter (default: the temporary directory)")
	return cmd
}

func listAttacks(w io.Writer, output string) error {
	all := drill.Attacks()
	if output == "json" {
		return json.NewEncoder(w).Encode(all)
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ATTACK\tBY\tTRIES")
	for _, a := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\n", a.Name, a.Adversary, a.Try)
	}
	return table.Flush()
}

func tellAttack(w io.Writer, out drill.Outcome, allowed bool) {
	why := out.Rule
	switch {
	case allowed && out.Verdict == drill.Succeeded:
		fmt.Fprintf(w, "%-9s  %-32s  %s\n", "works", out.Name, "allowed: "+out.Try)
		return
	case out.Error != "":
		why = strings.SplitN(out.Error, "\n", 2)[0]
	}
	fmt.Fprintf(w, "%-9s  %-32s  %s\n", out.Verdict, out.Name, why)
}

// drill runs one and says how it ended.
func (s *settings) drill(cmd *cobra.Command, o drill.Options, output, file string) error {
	executable, err := os.Executable()
	if err != nil {
		return err
	}
	o.Runner = drill.Runner{Executable: executable, Args: s.engineFlags(cmd)}
	if weakened.Built {
		fmt.Fprintln(cmd.ErrOrStderr(), "this runner was built to be weakened, to test the drill: never run it for real")
		o.Runner.Env = append(o.Runner.Env, weakened.Variable+"="+os.Getenv(weakened.Variable))
	}
	for _, name := range []string{"BERTH_LIBEXEC", "BERTH_ENGINE", "BERTH_ENGINE_UIDS", "BERTH_ENGINE_SEES"} {
		if value := os.Getenv(name); value != "" {
			o.Runner.Env = append(o.Runner.Env, name+"="+value)
		}
	}
	text, err := os.ReadFile(executable)
	if err != nil {
		return err
	}
	report, err := drill.Run(cmd.Context(), o)
	if err != nil {
		return err
	}
	report.Version, report.Digest = version.Get().Version, capsule.DigestBytes(text)
	if file != "" {
		if err := os.WriteFile(file, []byte(report.Markdown()), 0o600); err != nil {
			return err
		}
	}
	if output == "json" {
		if err := json.NewEncoder(cmd.OutOrStdout()).Encode(report); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "%d attacks: %d refused, %d succeeded, %d unclear; %.0f s\n", len(report.Outcomes), report.Count(drill.Refused),
			report.Count(drill.Succeeded), report.Count(drill.Unclear), report.Seconds)
	}
	if !report.OK() {
		return errors.New("not every attack was refused")
	}
	return nil
}

// engineFlags are the flags about engines, as they were given.
func (s *settings) engineFlags(cmd *cobra.Command) (args []string) {
	for _, name := range []string{"engine", "engine-uids", "engine-uid", "engine-sees", "engine-limits"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Changed {
			args = append(args, "--"+name, f.Value.String())
		}
	}
	return args
}
