package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/csvcell"
	ledger "github.com/berth-dev/berth/pkg/egress"
	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/egress"
)

func (s *settings) egressCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "egress", Short: "What leaves this runner, and what you do not let leave", Args: noArgs,
		Long: "Everything that the agent sends has a class, and the ledger has a line for it: class, form, size, digest, to whom, when. Engines have a network of their own, " +
			"which the ledger does not see.",
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(s.egressListCommand(), s.egressShowCommand(), s.egressSwitchCommand(false), s.egressSwitchCommand(true), s.egressVerifyCommand())
	return cmd
}

// form is how lists are printed that can be CSV too.
type form struct{ output string }

func (f *form) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.output, "output", "o", "table", "table, json or csv")
}

// print prints rows under names; value is what JSON has.
func (f form) print(w io.Writer, value any, names []string, rows [][]string) error {
	switch f.output {
	case "json":
		return printJSON(w, value)
	case "csv":
		out := csv.NewWriter(w)
		_ = out.Write(names)
		for _, row := range rows {
			safe := make([]string, len(row))
			for i, cell := range row {
				safe[i] = csvcell.Safe(cell)
			}
			_ = out.Write(safe)
		}
		out.Flush()
		return out.Error()
	case "table":
		out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range append([][]string{names}, rows...) {
			for i, cell := range row {
				if i > 0 {
					fmt.Fprint(out, "\t")
				}
				fmt.Fprint(out, visible.Line(or(cell, "-")))
			}
			fmt.Fprintln(out)
		}
		return out.Flush()
	}
	return usageError{fmt.Errorf("--output %q is not table, json or csv", f.output)}
}

// shownClass is a class, what left of it, and whether it may.
type shownClass struct {
	Class string `json:"class"`
	State string `json:"state"` // on, off, always
	Count int64  `json:"count"`
	Bytes int64  `json:"bytes"`
	What  string `json:"what"`
	// Off is what happens without it, Why why that cannot be.
	Off      string           `json:"without_it,omitempty"`
	Why      string           `json:"why_always,omitempty"`
	Switched *egress.Switched `json:"switched,omitempty"`
}

func egressClasses(dir datadir.Dir) ([]shownClass, error) {
	totals := map[string]ledger.Total{}
	first := true
	err := ledger.Read(dir.Egress(), func(_ []byte, l ledger.Line) error {
		if first {
			for name, t := range l.Totals {
				totals[name] = t
			}
		}
		first = false
		ledger.Add(totals, l)
		return nil
	})
	if err != nil {
		return nil, err
	}
	off, err := egress.At(dir.EgressOff()).All()
	if err != nil {
		return nil, fmt.Errorf("%w: until it is corrected, everything is off that can be", err)
	}
	var list []shownClass
	for _, c := range egress.Classes() {
		s := shownClass{Class: c.Name, State: "always", Count: totals[c.Name].Count, Bytes: totals[c.Name].Bytes, What: c.What, Off: c.Off, Why: c.Why}
		if c.Off != "" {
			s.State = "on"
		}
		for _, o := range off {
			if o.Class == c.Name {
				s.State, s.Switched = "off", &o
			}
		}
		list = append(list, s)
	}
	return list, nil
}

func (s *settings) egressListCommand() *cobra.Command {
	var how form
	cmd := &cobra.Command{
		Use: "list", Short: "List the classes of bytes that leave, and which are off", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			list, err := egressClasses(dir)
			if err != nil {
				return err
			}
			var rows [][]string
			for _, c := range list {
				without := c.Off
				if without == "" {
					without = "cannot be off: " + c.Why
				}
				rows = append(rows, []string{c.Class, c.State, strconv.FormatInt(c.Count, 10), strconv.FormatInt(c.Bytes, 10), c.What, without})
			}
			return how.print(cmd.OutOrStdout(), list, []string{"CLASS", "STATE", "REQUESTS", "BYTES", "WHAT", "WITHOUT IT"}, rows)
		},
	}
	how.flags(cmd)
	return cmd
}

func (s *settings) egressShowCommand() *cobra.Command {
	var how form
	var class, since string
	cmd := &cobra.Command{
		Use: "show", Short: "Show the lines of the ledger", Args: noArgs,
		Long: "Shows the ledger, oldest first. A line stands for one request, or for all that are alike within 10 minutes; what is counted right now has no line yet.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			from, err := parseSince(since, time.Now())
			if err != nil {
				return err
			}
			lines, rows := []ledger.Line{}, [][]string{}
			err = ledger.Read(dir.Egress(), func(_ []byte, l ledger.Line) error {
				if l.Until.Before(from) || class != "" && l.Class != class || l.Class == ledger.ClassTotals {
					return nil
				}
				lines = append(lines, l)
				rows = append(rows, []string{
					strconv.FormatInt(l.Seq, 10), l.From.Format(time.RFC3339), l.Until.Format(time.RFC3339), l.Class, l.Schema, l.To, l.About,
					strconv.FormatInt(l.Count, 10), strconv.FormatInt(l.Bytes, 10), l.Digest,
				})
				return nil
			})
			if err != nil {
				return err
			}
			return how.print(cmd.OutOrStdout(), lines, []string{"LINE", "FROM", "UNTIL", "CLASS", "SCHEMA", "TO", "ABOUT", "REQUESTS", "BYTES", "DIGEST"}, rows)
		},
	}
	how.flags(cmd)
	cmd.Flags().StringVar(&class, "class", "", "only this class")
	cmd.Flags().StringVar(&since, "since", "24h", "from then on: a duration back from now, or a time in RFC 3339")
	return cmd
}

// parseSince reads a duration back from now, or a time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if span, err := time.ParseDuration(text); err == nil && span > 0 {
		return now.Add(-span), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, usageError{fmt.Errorf("--since %q is neither a duration (24h) nor a time (2026-11-01T00:00:00Z)", text)}
	}
	return at, nil
}

func (s *settings) egressSwitchCommand(on bool) *cobra.Command {
	use, short := "off CLASS", "Do not let a class of bytes leave from now on"
	if on {
		use, short = "on CLASS", "Let a class of bytes leave again"
	}
	var reason string
	cmd := &cobra.Command{
		Use: use, Short: short, Args: oneArg("a class"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			changed, err := egress.Set(dir.EgressOff(), egress.Switched{Class: args[0], By: osUser(), At: time.Now().UTC(), Reason: reason}, !on)
			if err != nil {
				return err
			}
			class, _ := egress.Find(args[0])
			state, note := "off", "the running agent obeys at once"
			if on {
				state = "on"
			}
			switch {
			case !changed:
				note = "it was so already"
			case !dir.Locked():
				note = "no agent is running; the next one obeys"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s (%s)\n", class.Name, state, note)
			if !on {
				fmt.Fprintln(cmd.OutOrStdout(), class.Off)
			}
			return nil
		},
	}
	if !on {
		cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	}
	return cmd
}

func (s *settings) egressVerifyCommand() *cobra.Command {
	var how listOutput
	cmd := &cobra.Command{
		Use: "verify", Short: "Check the ledger against itself and the install's chain", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := s.dir()
			if err != nil {
				return err
			}
			report, err := verifyEgress(dir)
			if err != nil {
				return err
			}
			if asJSON, err := how.json(); err != nil {
				return err
			} else if asJSON {
				if err := printJSON(cmd.OutOrStdout(), report); err != nil {
					return err
				}
			} else if report.OK() {
				fmt.Fprintf(cmd.OutOrStdout(), "egress ledger is good: lines %d to %d, the chain vouches up to line %d, %d requests could not be written down\n",
					report.First, report.Head.Seq, report.Agreed, report.Unwritten)
			}
			if !report.OK() {
				return errors.New("egress ledger is bad: " + report.Problem)
			}
			return nil
		},
	}
	how.flags(cmd)
	return cmd
}

// verifyEgress checks the ledger of a runner. A Build Runner has no chain.
func verifyEgress(dir datadir.Dir) (ledger.Report, error) {
	var anchors []ledger.Head
	f, err := os.Open(dir.Chain())
	if err == nil {
		defer f.Close()
		anchors, err = ledger.Anchors(f)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return ledger.Report{}, err
	}
	return ledger.Verify(dir.Egress(), anchors)
}
