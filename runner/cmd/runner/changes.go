package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Besides what consent knows, a change on the list may be one of these.
const (
	stateApplied  = "applied"
	stateReplaced = "replaced" // by a later plan
	stateNotAsked = "not asked"
)

// installDir is the data directory of an enrolled runner of an install. what is what
// such a runner knows.
func (s *settings) installDir(what string) (dir datadir.Dir, runner datadir.Runner, err error) {
	if dir, err = s.dir(); err != nil {
		return dir, runner, err
	}
	runner, found, err := dir.LoadRunner()
	switch {
	case err != nil:
	case !found:
		err = fmt.Errorf("the runner in %s is not enrolled yet, so it knows no %s: start it first", dir.Path(), what)
	case runner.InstallID == "":
		err = fmt.Errorf("this is a runner for builds; only the runner of an install has %s", what)
	}
	return dir, runner, err
}

func (s *settings) consentStore() (consents.Store, datadir.Keys, error) {
	dir, runner, err := s.installDir("changes")
	if err != nil {
		return consents.Store{}, datadir.Keys{}, err
	}
	keys, err := dir.Keys()
	return consents.Store{Dir: dir, InstallID: runner.InstallID, Machine: keys.Public(), Now: time.Now}, keys, err
}

// desk is what lies before somebody who is to answer.
type desk struct {
	store   consents.Store
	view    consents.View
	changes []consents.Change // the newest first
}

func (s *settings) desk() (d desk, err error) {
	if d.store, _, err = s.consentStore(); err != nil {
		return d, err
	}
	return deskOf(d.store)
}

func deskOf(store consents.Store) (d desk, err error) {
	d.store = store
	if d.view, err = store.Look(); err != nil {
		return d, err
	}
	d.changes, err = store.Changes()
	return d, err
}

// shownChange is a line of the list.
type shownChange struct {
	Change string `json:"change_id"`
	State  string `json:"state"`
	What   string `json:"what"`
	Effect string `json:"effect_digest"`
	// Still is how many more holders have to agree.
	Still     int       `json:"still,omitempty"`
	Why       string    `json:"why,omitempty"`
	By        []string  `json:"by,omitempty"`
	Until     time.Time `json:"until,omitzero"`
	PlannedAt time.Time `json:"planned_at"`
}

func (d desk) shown(c consents.Change) shownChange {
	stand, over := d.view.Stand(c), d.overBy(c)
	line := shownChange{
		Change: c.ID, State: cmp.Or(over, string(stand.State), stateNotAsked), What: c.What(), Effect: c.Effect,
		Why: stand.Why, By: stand.By, Until: stand.Until, PlannedAt: c.PlannedAt,
	}
	if over == "" && stand.State == consent.Needed {
		line.Still = stand.Still
	}
	return line
}

// overBy says of a change that it is over, and how; "" while it may still be brought about.
func (d desk) overBy(c consents.Change) string {
	if d.view.Applied(c) {
		return stateApplied
	}
	if slices.ContainsFunc(d.view.Open(d.changes), func(open consents.Change) bool { return open.ID == c.ID }) {
		return ""
	}
	return stateReplaced
}

func (s *settings) changesCommand() *cobra.Command {
	var how listOutput
	var waiting bool
	cmd := &cobra.Command{
		Use: "changes", Short: "List planned changes, and which wait for your consent", Args: noArgs,
		Long: `The changes that this runner has planned and still remembers, the newest first. Those in state
"needed" are not brought about before you agree: see show, approve and deny.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := s.desk()
			if err != nil {
				return err
			}
			list := []shownChange{}
			for _, c := range d.changes {
				line := d.shown(c)
				if !waiting || line.State == string(consent.Needed) {
					list = append(list, line)
				}
			}
			if asJSON, err := how.json(); err != nil || asJSON {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), list))
			}
			return printChanges(cmd.OutOrStdout(), list)
		},
	}
	cmd.Flags().BoolVar(&waiting, "waiting", false, "only those that wait for your consent")
	how.flags(cmd)
	return cmd
}

func printChanges(to io.Writer, list []shownChange) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(to, "no changes")
		return err
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHANGE\tSTATE\tWHAT\tPLANNED\tBY\tWHY")
	for _, c := range list {
		state := c.State
		if c.Still > 0 {
			state += fmt.Sprintf(" (%d more)", c.Still)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", c.Change, state, visible.Line(c.What), timeOr(c.PlannedAt),
			or(visible.Line(strings.Join(c.By, ", ")), "-"), or(visible.Line(c.Why), "-"))
	}
	return w.Flush()
}

// wholeChange is all that the runner knows of a change.
type wholeChange struct {
	shownChange
	Origin     string              `json:"origin_id"`
	Requesters []string            `json:"requesters,omitempty"`
	Facts      consent.Facts       `json:"facts"`
	Effect     *capsule.Effect     `json:"effect,omitempty"`
	Judgement  *policy.Judgement   `json:"judgement,omitempty"`
	Plan       jobspec.PlanSummary `json:"plan"`
}

func readWhole(store consents.Store, c consents.Change) (w wholeChange, err error) {
	d, err := deskOf(store)
	if err != nil {
		return w, err
	}
	w = wholeChange{shownChange: d.shown(c), Origin: c.OriginID, Requesters: c.Requesters, Facts: c.Facts}
	if w.Plan, _, err = store.Plan(c); err != nil || c.IsScript() {
		return w, err
	}
	var record struct {
		Effect    *capsule.Effect   `json:"effect"`
		Judgement *policy.Judgement `json:"judgement"`
	}
	if _, err = datadir.ReadJSON(store.Dir.Plan(c.ID), &record); err != nil {
		return w, fmt.Errorf("record of the plan: %w", err)
	}
	w.Effect, w.Judgement = record.Effect, record.Judgement
	return w, nil
}

func (s *settings) showCommand() *cobra.Command {
	var how listOutput
	cmd := &cobra.Command{
		Use: "show CHANGE", Short: "Show a planned change, and why you are asked", Args: oneArg("the id of a change"),
		Long: "Shows what this runner wrote down when it planned a change: the plan, the digest of its effect, why your consent is asked for and who has agreed. " +
			"Nothing of it comes from the vendor's side. The end of an id is enough.",
		RunE: func(cmd *cobra.Command, args []string) error {
			store, _, err := s.consentStore()
			if err != nil {
				return err
			}
			c, err := store.Find(args[0])
			if err != nil {
				return err
			}
			whole, err := readWhole(store, c)
			if err != nil {
				return err
			}
			if asJSON, err := how.json(); err != nil || asJSON {
				return errors.Join(err, printJSON(cmd.OutOrStdout(), whole))
			}
			return printWhole(cmd.OutOrStdout(), whole)
		},
	}
	how.flags(cmd)
	return cmd
}

func printWhole(to io.Writer, c wholeChange) error {
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name+":", visible.Line(value))
		}
	}
	state := c.State
	if c.Still > 0 {
		state += fmt.Sprintf(", %d more to agree", c.Still)
	}
	line("what", c.What)
	line("change", c.Change)
	line("origin", c.Origin)
	line("effect", c.shownChange.Effect)
	line("state", state)
	line("why", c.Why)
	line("by", strings.Join(c.By, ", "))
	line("planned", timeOr(c.PlannedAt))
	line("asked by", strings.Join(c.Requesters, ", "))
	if c.Effect != nil {
		line("artifact", c.Effect.ArtifactDigest)
		line("place", c.Effect.Target)
		line("role", c.Effect.Role)
		line("guardrails", c.Effect.Verdict)
	}
	if c.Judgement != nil {
		for _, v := range policy.Against(c.Judgement.Guardrails, policy.Ask) {
			line("verdict", v.String())
		}
		for _, v := range policy.Against(c.Judgement.Vendor, policy.Deny) {
			line("vendor says", v.String())
		}
	}
	b.WriteByte('\n')
	if c.Plan.Footprint != nil {
		for _, line := range c.Plan.Footprint.Lines() {
			b.WriteString(line + "\n")
		}
	}
	for _, o := range c.Plan.Objects {
		fmt.Fprintf(&b, "  %s %s\n", visible.Line(o.Action), visible.Line(o.Address))
		for _, f := range o.Fields {
			fmt.Fprintf(&b, "      %s: %s -> %s\n", visible.Line(f.Path), or(visible.Line(f.Before), "(none)"), or(visible.Line(f.After), "(none)"))
		}
	}
	for _, f := range c.Plan.Outputs {
		fmt.Fprintf(&b, "  output %s: %s -> %s\n", visible.Line(f.Path), or(visible.Line(f.Before), "(none)"), or(visible.Line(f.After), "(none)"))
	}
	if c.Plan.Text != "" {
		b.WriteString(strings.TrimRight(c.Plan.Text, "\n") + "\n")
	}
	_, err := io.WriteString(to, b.String())
	return err
}
