package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/remedy"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// watching are the flags of commands that start a workflow.
type watching struct {
	watch, autoApprove bool
	timeout            time.Duration
}

func (w *watching) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&w.watch, "watch", "w", false, "follow it until it is finished or waits for a decision")
	cmd.Flags().BoolVar(&w.watch, "wait", false, "the same as --watch")
	cmd.Flags().BoolVar(&w.autoApprove, "auto-approve", false, "approve each change as it was shown, without asking (implies --watch)")
	w.timeoutFlag(cmd)
}

func (w *watching) timeoutFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "stop waiting after this time; the work goes on (0: never)")
}

// within bounds the waiting of a command.
func (w *watching) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, w.timeout, timeoutError(w.timeout))
}

type timeoutError time.Duration

// Error implements error.
func (t timeoutError) Error() string {
	return fmt.Sprintf("still not finished after %s", time.Duration(t))
}

// started reports a workflow that was just started, and follows it when asked.
func (c *cli) started(ctx context.Context, client *api.Client, w *ctlapi.Workflow, how watching) error {
	if !how.watch && !how.autoApprove {
		if c.forPrograms() {
			return printOne(c, *w, table.Workflow(c.now()))
		}
		output.Printf(c.out, "%s started; follow it with berth workflows watch %s\n", follow.Title(*w), w.ID)
		return nil
	}
	return c.watch(ctx, client, w.ID, how)
}

// watch follows a workflow and turns what becomes of it into an exit code.
func (c *cli) watch(ctx context.Context, client *api.Client, id string, how watching) error {
	ctx, cancel := how.within(ctx)
	defer cancel()
	f := &follow.Follower{Client: client, Screen: c.screen(), Ask: c.asker(how.autoApprove), Automatic: how.autoApprove, Now: c.now}
	if !how.autoApprove {
		f.Show = func(change ctlapi.Change) error { return c.showChanges(c.err, changes.Options{Text: true}, change) }
	}
	w, err := f.Run(ctx, id)
	if err != nil {
		return remedy.WhileFollowing(err, "berth workflows watch "+id)
	}
	if w.PlanOnly && follow.Finished(w.State) {
		if err := c.showPlanned(ctx, client, f.Screen, w); err != nil {
			return err
		}
	}
	if c.forPrograms() {
		if err := printOne(c, *w, table.Workflow(c.now())); err != nil {
			return err
		}
	}
	return c.verdict(w)
}

// showPlanned shows the changes of a workflow that only planned; nobody was
// asked about them, so they were not shown on the way.
func (c *cli) showPlanned(ctx context.Context, client *api.Client, screen *follow.Screen, w *ctlapi.Workflow) error {
	for _, s := range w.Steps {
		if s.Change == nil || s.Change.Counts == nil || s.Change.Counts.NoChange {
			continue
		}
		resp, err := client.GetChangeWithResponse(ctx, s.Change.ID)
		if err != nil {
			return err
		}
		if resp.JSON200 != nil {
			screen.Print(changes.Lines(*resp.JSON200, changes.Options{Color: screen.Color})...)
		}
	}
	return nil
}

// verdict says, on stderr, how a workflow stands and what to do, and decides
// the exit code.
func (c *cli) verdict(w *ctlapi.Workflow) error {
	if !follow.Finished(w.State) {
		for _, question := range follow.Questions(*w) {
			output.Printf(c.err, "berth approve %s\n", question[0].ID)
		}
		return outcome(exitWaits)
	}
	code := exitOK
	for _, s := range w.Steps {
		if s.State == ctlapi.StepStateFailed {
			output.Printf(c.err, "%s failed: %s\n", s.Name, strings.Join(strings.Fields(value(s.Error)), " "))
			if remedy := value(s.Remedy); remedy != "" {
				output.Printf(c.err, "try: %s\n", remedy)
			}
			output.Printf(c.err, "log: berth logs %s   again: berth retry %s\n", s.ID, s.ID)
		}
		if s.Change == nil {
			continue
		}
		switch {
		case s.Change.State == ctlapi.ChangeStateRefused:
			code = exitRefused
		case w.PlanOnly && s.Change.Counts != nil && !s.Change.Counts.NoChange && code == exitOK:
			code = exitChanges
		}
	}
	if w.State != ctlapi.WorkflowStateSucceeded && code != exitRefused {
		code = exitFailed
	}
	if w.PlanOnly && code == exitOK {
		output.Println(c.err, "nothing to do")
	}
	if code == exitOK {
		return nil
	}
	return outcome(code)
}

// screen is stderr: what is followed is progress, not output.
func (c *cli) screen() *follow.Screen {
	s := &follow.Screen{W: c.err, Color: c.colorOn(c.err)}
	if f, ok := terminal(c.err); ok && c.getenv("TERM") != "dumb" {
		s.Terminal = true
		s.Columns, _, _ = term.GetSize(int(f.Fd())) // 0 means no cutting
	}
	return s
}

// asker decides on changes: by itself, by asking on a terminal, or not at all.
func (c *cli) asker(auto bool) func(context.Context, ctlapi.Change) (follow.Answer, error) {
	switch {
	case auto:
		return func(context.Context, ctlapi.Change) (follow.Answer, error) { return follow.Approve, nil }
	case c.canAsk():
		return func(ctx context.Context, change ctlapi.Change) (follow.Answer, error) {
			return c.ask(ctx, question(change, " "+change.ID))
		}
	}
	return func(context.Context, ctlapi.Change) (follow.Answer, error) { return follow.Later, nil }
}

func (c *cli) canAsk() bool { return isTerminal(c.in) && isTerminal(c.err) }

func (c *cli) ask(ctx context.Context, question string) (follow.Answer, error) {
	for {
		output.Printf(c.err, "%s", question)
		line, err := c.readLine(ctx)
		if errors.Is(err, io.EOF) { // nobody is there any more
			fmt.Fprintln(c.err)
			return follow.Later, nil
		}
		if err != nil {
			return follow.Later, err
		}
		switch strings.ToLower(strings.TrimSpace(line)) {
		case "y", "yes":
			return follow.Approve, nil
		case "n", "no":
			return follow.Deny, nil
		case "l", "later", "":
			return follow.Later, nil
		}
	}
}

// readLine returns when a line was typed or the context ends; in that case the
// reader is left behind, and the program is about to end.
func (c *cli) readLine(ctx context.Context) (string, error) {
	type read struct {
		line string
		err  error
	}
	done := make(chan read, 1)
	go func() {
		if c.lines == nil {
			c.lines = bufio.NewReader(c.in)
		}
		line, err := c.lines.ReadString('\n')
		done <- read{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-done:
		return r.line, r.err
	}
}
