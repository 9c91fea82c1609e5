package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
	"github.com/berth-dev/berth/runner/agent/states"
)

// stateCommand shows the customer the Terraform states of the install.
func (s *settings) stateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "state", Short: "Show the states of this install: of Terraform, of other tools, of Helm releases",
		Long: `Shows the states that this machine keeps, the last ` + strconv.Itoa(states.Versions) + ` of each resource: of Terraform, Pulumi
and plugins, and the releases of charts with storage_driver = "nuon". They are
sealed with the runner's key, so only this machine opens them: the vendor sees
neither their contents nor that you look. It works while the vendor is down.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(s.stateListCommand(), s.stateHistoryCommand(), s.stateShowCommand(), s.statePullCommand(), s.stateUnlockCommand())
	return cmd
}

func (s *settings) stateListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the newest state of each resource", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			list, err := states.Store{Dir: dir.States()}.List()
			if err != nil {
				return err
			}
			return printStates(cmd.OutOrStdout(), list, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s *settings) stateHistoryCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "history RESOURCE", Short: "List the states of a component, or of the sandbox", Args: oneResource,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			list, err := states.Store{Dir: dir.States()}.History(args[0])
			if err != nil {
				return err
			}
			return printStates(cmd.OutOrStdout(), list, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func oneResource(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("the name of one component is needed, or sandbox; see %s --help", cmd.CommandPath())}
	}
	return nil
}

// printStates never prints what is sealed.
func printStates(to io.Writer, list []states.Kept, asJSON bool) error {
	for i := range list {
		list[i].Sealed = nil
	}
	if asJSON {
		return printJSON(to, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(to, "no states are kept here yet: the next plan or apply brings them")
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tSERIAL\tKEPT\tJOB\tLINEAGE")
	for _, k := range list {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\n", visible.Line(k.Name), visible.Line(k.Kind), k.Serial, k.At.Format(time.RFC3339), visible.Line(k.JobID), visible.Line(k.Lineage))
	}
	return w.Flush()
}

func (s *settings) stateShowCommand() *cobra.Command {
	var serial string
	var reveal, asJSON bool
	cmd := &cobra.Command{
		Use: "show RESOURCE", Short: "Show what is in a state, without its sensitive values", Args: oneResource,
		RunE: func(cmd *cobra.Command, args []string) error {
			_, body, err := s.openState(args[0], serial)
			if err != nil {
				return err
			}
			shown, err := states.Show(body, reveal)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), shown)
			}
			return printState(cmd.OutOrStdout(), shown)
		},
	}
	cmd.Flags().StringVar(&serial, "serial", "", "an earlier state (berth-runner state history lists them)")
	cmd.Flags().BoolVar(&reveal, "reveal", false, "show sensitive values too")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printState(to io.Writer, s states.Shown) error {
	by := ""
	if s.Terraform != "" {
		by = ", written by Terraform " + visible.Line(s.Terraform)
	}
	fmt.Fprintf(to, "serial %d, lineage %s%s\n", s.Serial, visible.Line(s.Lineage), by)
	for _, o := range s.Objects {
		tainted := ""
		if o.Tainted {
			tainted = " (tainted)"
		}
		fmt.Fprintf(to, "\n%s%s\n", visible.Line(o.Address), tainted)
		if err := printValues(to, o.Attributes); err != nil {
			return err
		}
	}
	if len(s.Outputs) == 0 {
		return nil
	}
	fmt.Fprintln(to, "\noutputs")
	return printValues(to, s.Outputs)
}

func printValues(to io.Writer, values map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		raw, err := json.Marshal(values[name])
		if err != nil {
			return err
		}
		text := string(raw)
		if values[name] == states.Masked {
			text = states.Masked
		}
		fmt.Fprintf(to, "  %s = %s\n", visible.Line(name), visible.Line(text))
	}
	return nil
}

func (s *settings) statePullCommand() *cobra.Command {
	var serial, out string
	cmd := &cobra.Command{
		Use: "pull RESOURCE", Short: "Write a state, with all its secrets, to a file that only you read", Args: oneResource,
		RunE: func(cmd *cobra.Command, args []string) error {
			kept, body, err := s.openState(args[0], serial)
			if err != nil {
				return err
			}
			if out == "" {
				out = strings.ReplaceAll(kept.Name, string(os.PathSeparator), "_") + "." + strconv.FormatInt(kept.Serial, 10) + ".tfstate"
			}
			f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if errors.Is(err, fs.ErrExist) {
				return fmt.Errorf("%s is there already: name another file with --out", out)
			}
			if err != nil {
				return err
			}
			_, err = f.Write(body)
			if err := errors.Join(err, f.Close()); err != nil {
				return errors.Join(err, os.Remove(out))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s has serial %d, in clear: delete it when you are done\n", out, kept.Serial)
			return err
		},
	}
	cmd.Flags().StringVar(&serial, "serial", "", "an earlier state (berth-runner state history lists them)")
	cmd.Flags().StringVar(&out, "out", "", "the file, which must not be there yet (default: NAME.SERIAL.tfstate)")
	return cmd
}

// openState finds a state that is kept and opens it with the runner's key.
func (s *settings) openState(resource, serial string) (states.Kept, []byte, error) {
	dir, err := s.dir()
	if err != nil {
		return states.Kept{}, nil, err
	}
	kept, err := states.Store{Dir: dir.States()}.Find(resource, serial)
	if err != nil {
		return kept, nil, err
	}
	runner, found, err := dir.LoadRunner()
	if err == nil && !found {
		err = errors.New("this runner is not enrolled")
	}
	if err != nil {
		return kept, nil, err
	}
	keys, err := dir.Keys()
	if err != nil {
		return kept, nil, err
	}
	body, _, err := stateproxy.OpenWith(keys.Open, datadir.StatePurpose(runner, kept.ResourceID, kept.Lineage, kept.Serial), kept.Sealed)
	return kept, body, err
}
