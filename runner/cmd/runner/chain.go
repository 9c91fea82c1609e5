package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/visible"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/heads"
)

// decisionWait is how long a command waits for a running agent to carry a
// decision out: it needs the control plane for that.
const decisionWait = time.Minute

// decideCommands are what the customer may decide about a chain that does not
// lead to a head that was kept.
func (s *settings) decideCommands() []*cobra.Command {
	var reason string
	accept := &cobra.Command{
		Use: "accept", Short: "Continue although records are missing; the decision becomes the next record", Args: noArgs,
		Long: "Shows where the chain and the heads that others kept differ, and lets the runner change things again. What the control plane's copy has is taken " +
			"from there first. The decision, with the reason and the heads that are given up, becomes a record of the chain; berth-verify prints it from then on.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if reason == "" {
				return usageError{errors.New("say why with --reason: it becomes part of the record")}
			}
			return s.decide(cmd, agent.ChainDecision{Action: agent.ChainAccept, Reason: reason})
		},
	}
	accept.Flags().StringVar(&reason, "reason", "", "why; it becomes part of the record")
	return []*cobra.Command{accept, {
		Use: "restore", Short: "Take missing records from the control plane's copy", Args: noArgs,
		Long: "Appends the records that the control plane's copy has and the chain here has not, byte for byte, when they continue it, were signed by this machine, " +
			"and lead to every head that was kept.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.decide(cmd, agent.ChainDecision{Action: agent.ChainRestore})
		},
	}}
}

// decide hands a decision to the agent and waits for what comes of it.
func (s *settings) decide(cmd *cobra.Command, d agent.ChainDecision) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	var p agent.ChainProblem
	found, err := datadir.ReadJSON(dir.ChainProblem(), &p)
	if err != nil {
		return err
	}
	if !found {
		return errors.New("there is nothing to decide: the runner found nothing wrong with the chain, which it checks each time it connects")
	}
	out := cmd.OutOrStdout()
	if err := printChainProblem(out, p); err != nil {
		return err
	}
	d.Problem, d.At = p.ID, time.Now().UTC()
	if err := datadir.WriteJSON(dir.ChainDecision(), d); err != nil {
		return err
	}
	if p.State == heads.Damaged {
		fmt.Fprintln(out, "The decision is stored. When the agent starts next, it sets the file aside and continues its good records; "+
			"changes stay stopped until you have decided once more, about what is missing then.")
		return nil
	}
	if !dir.Locked() {
		fmt.Fprintln(out, "The decision is stored. No agent is running: the next one carries it out once it has reached the control plane.")
		return nil
	}
	return awaitDecision(cmd.Context(), out, dir)
}

func awaitDecision(ctx context.Context, out io.Writer, dir datadir.Dir) error {
	end := time.After(decisionWait)
	look := time.NewTicker(200 * time.Millisecond)
	defer look.Stop()
	for {
		var p agent.ChainProblem
		found, err := datadir.ReadJSON(dir.ChainProblem(), &p)
		switch {
		case err != nil:
			return err
		case !found:
			fmt.Fprintln(out, "Done: changes are carried out again.")
			return nil
		}
		if _, err := os.Lstat(dir.ChainDecision()); errors.Is(err, os.ErrNotExist) && p.Refused != "" {
			return errors.New(p.Refused)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return errors.New("the agent has not carried the decision out: it needs the control plane; the decision stays stored")
		case <-look.C:
		}
	}
}

// printChainProblem shows what differs.
func printChainProblem(out io.Writer, p agent.ChainProblem) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "Changes are stopped since %s: %s.\n", p.Found.Format(time.RFC3339), visible.Line(p.Text))
	fmt.Fprintf(w, "the chain here\trecord %d\t%s\n", p.Local.Seq, visible.Line(p.Local.Hash))
	for _, k := range p.Kept {
		fmt.Fprintf(w, "%s\trecord %d\t%s\n", visible.Line(k.By), k.Seq, visible.Line(k.Hash))
	}
	return w.Flush()
}
