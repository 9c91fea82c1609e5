package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent/roles"
)

// rolesCommand is where the customer switches roles of the app on and off.
func (s *settings) rolesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "roles", Short: "Switch roles of the app on and off", Args: noArgs,
		Long: `The break-glass and own roles of the app whose release this runner accepted last. All are off until
you switch one on here: nothing that the vendor sends does. An action that needs a role runs while that
is on, and the runner refuses it at any other time.

Each switch is recorded in the install's chain and told to the vendor, with your user name and the
reason. Everything works while the vendor is down.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(s.rolesListCommand(), s.rolesEnableCommand(), s.rolesDisableCommand())
	return cmd
}

func (s *settings) roleStore() (roles.Store, error) {
	dir, _, err := s.installDir("roles")
	return roles.Store{Dir: dir.Roles(), Now: time.Now}, err
}

// shownRole is a line of the list.
type shownRole struct {
	customerrole.Role
	On     bool      `json:"on"`
	Since  time.Time `json:"since,omitzero"`
	Until  time.Time `json:"until,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

func shownRoles(d roles.Document, now time.Time) []shownRole {
	list := []shownRole{}
	for _, r := range d.Declared {
		last := d.Last(r.Written)
		list = append(list, shownRole{Role: r, On: d.SwitchedOn(r.Written, now), Since: last.At, Until: last.Until, By: last.By, Reason: last.Reason})
	}
	return list
}

func (s *settings) rolesListCommand() *cobra.Command {
	var how listOutput
	cmd := &cobra.Command{
		Use: "list", Short: "List the roles that can be switched on, and which are on", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := s.roleStore()
			if err != nil {
				return err
			}
			d, _, err := store.Read()
			if err != nil {
				return err
			}
			list := shownRoles(d, time.Now())
			if asJSON, err := how.json(); err != nil || asJSON {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), list))
			}
			return printRoles(cmd.OutOrStdout(), list)
		},
	}
	how.flags(cmd)
	return cmd
}

func printRoles(to io.Writer, list []shownRole) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(to, "the accepted release declares no role that you can switch on")
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tSINCE\tUNTIL\tBY\tKIND\tAS THE APP WRITES IT\tDESCRIPTION")
	for _, r := range list {
		state := "off"
		if r.On {
			state = "ON"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", visible.Line(r.Name), state, timeOr(r.Since), timeOr(r.Until), or(visible.Line(r.By), "-"),
			visible.Line(string(r.Kind)), visible.Line(r.Written), visible.Line(r.Description))
	}
	return w.Flush()
}

func timeOr(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format(time.RFC3339)
}

func oneRole(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError{fmt.Errorf("the name of one role is needed; see %s --help", cmd.CommandPath())}
	}
	return nil
}

func (s *settings) rolesEnableCommand() *cobra.Command {
	ask := roles.Ask{On: true}
	cmd := &cobra.Command{
		Use: "enable NAME", Short: "Switch a role on", Args: oneRole,
		Long: `Switches a role on. Actions that need it can run until you switch it off, or until the time of --for
is over: the runner switches it off then by itself, also after a restart and while the vendor is down.
A run that has begun is not interrupted. Actions of the vendor that start when a role is switched on
are proposed like any other change.`,
		Example: "  berth-runner roles enable acme-repair --for 2h --reason \"ticket 4711\"",
		RunE:    func(cmd *cobra.Command, args []string) error { ask.Name = args[0]; return s.switchRole(cmd, ask) },
	}
	cmd.Flags().DurationVar(&ask.For, "for", 0, "switch it off again after this time: 90m, 2h; at most 720h (default: it stays on)")
	cmd.Flags().StringVar(&ask.Reason, "reason", "", "why, for the record; the vendor sees it too")
	return cmd
}

func (s *settings) rolesDisableCommand() *cobra.Command {
	var ask roles.Ask
	cmd := &cobra.Command{
		Use: "disable NAME", Short: "Switch a role off", Args: oneRole,
		Long: "Switches a role off, at once. A run that has begun is not interrupted: `berth-runner stop-now` does that.",
		RunE: func(cmd *cobra.Command, args []string) error { ask.Name = args[0]; return s.switchRole(cmd, ask) },
	}
	cmd.Flags().StringVar(&ask.Reason, "reason", "", "why, for the record; the vendor sees it too")
	return cmd
}

func (s *settings) switchRole(cmd *cobra.Command, ask roles.Ask) error {
	if cmd.Flags().Changed("for") && (ask.For <= 0 || ask.For > roles.MaxTime) {
		return usageError{fmt.Errorf("--for %s is not a time between 1s and %s", ask.For, roles.MaxTime)}
	}
	if len(ask.Reason) > roles.MaxReason {
		return usageError{fmt.Errorf("the reason is longer than %d bytes", roles.MaxReason)}
	}
	store, err := s.roleStore()
	if err != nil {
		return err
	}
	ask.By = osUser()
	done, err := store.Switch(ask)
	state := "off"
	if ask.On {
		state = "on"
	}
	if errors.Is(err, roles.ErrAlready) {
		if ask.For > 0 {
			return fmt.Errorf("role %s is on already: switch it off first (berth-runner roles disable %s), then on for %s", ask.Name, ask.Name, ask.For)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "role %s is %s already\n", ask.Name, state)
		return err
	}
	if err != nil {
		return err
	}
	until := ""
	if !done.Until.IsZero() {
		until = " until " + done.Until.Format(time.RFC3339)
	}
	note := "the running agent records it at once"
	if dir, err := s.dir(); err == nil && !dir.Locked() {
		note = "no agent is running; the next one records it, and tells the vendor"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "role %s is %s%s (%s)\n", done.Name, state, until, note)
	return err
}

// listOutput says how a list is printed.
type listOutput struct {
	format string
	asJSON bool
}

func (o *listOutput) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&o.format, "output", "o", "table", "table or json")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "the same as --output json")
}

func (o *listOutput) json() (bool, error) {
	switch o.format {
	case "json":
		return true, nil
	case "table":
		return o.asJSON, nil
	}
	return false, usageError{fmt.Errorf("--output %q is not table or json", o.format)}
}
