package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/ask"
	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/cli/internal/clearance"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/fleet"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/pager"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) changesCommand() *cobra.Command {
	var install, workflow, resource, state string
	list := &cobra.Command{Use: "list", Short: "List changes, newest first", Args: command.Exactly()}
	limit := command.LimitFlag(list)
	list.Flags().StringVar(&install, "install", "", "only for this install")
	list.Flags().StringVar(&workflow, "workflow", "", "only for this workflow")
	list.Flags().StringVar(&resource, "resource", "", "only for this resource, by id, or by name together with --install")
	list.Flags().Var(usage.OneOf(&state, ctlapi.ChangeStatePreparing, ctlapi.ChangeStateProposed, ctlapi.ChangeStateApproved,
		ctlapi.ChangeStateExecuting, ctlapi.ChangeStateApplied, ctlapi.ChangeStateNoChange, ctlapi.ChangeStatePlanned, ctlapi.ChangeStateDenied,
		ctlapi.ChangeStateSuperseded, ctlapi.ChangeStateWithdrawn, ctlapi.ChangeStateStale, ctlapi.ChangeStateRefused, ctlapi.ChangeStateFailed,
		ctlapi.ChangeStateUncertain), "state", "only in this state; proposed means waiting for a decision")
	var waiting bool
	list.Flags().BoolVar(&waiting, "waiting", false, "only what waits for a decision, of all installs unless --install names one, with when it expires")
	list.MarkFlagsMutuallyExclusive("waiting", "state")
	list.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		view := table.Change(c.Now())
		if waiting {
			state, view = string(ctlapi.ChangeStateProposed), table.Waiting(c.Now())
		}
		items, err := client.Changes(ctx, *limit, ctlapi.ListChangesParams{
			Install: api.Optional(install), Workflow: api.Optional(workflow), Resource: api.Optional(resource), State: api.Optional(ctlapi.ChangeState(state)),
		})
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, view)
	})
	var text bool
	show := &cobra.Command{Use: "show CHANGE | INSTALL[/COMPONENT]", Short: "Show what a change would do, or did", Args: command.Exactly("CHANGE or INSTALL")}
	show.Flags().BoolVar(&text, "text", true, "also show the tool's own output")
	show.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		id, err := names.Book{Client: client}.Change(ctx, args[0], false)
		if err != nil {
			return err
		}
		change, err := client.Change(ctx, id)
		if err != nil {
			return err
		}
		return c.printChange(change, text)
	})
	approve, deny, again := c.approveCommand(), c.denyCommand(), c.planAgainCommand()
	return command.Noun("changes", "change", "What Berth proposes to do, for people to approve or deny", list, show, fleet.Plan(c.CLI), fleet.Capsule(c.CLI), approve, deny, again)
}

func (c *cli) printChange(change *ctlapi.Change, text bool) error {
	if c.ForPrograms() {
		return command.PrintOne(c.CLI, *change, output.View[ctlapi.Change]{Name: func(x ctlapi.Change) string { return x.ID }})
	}
	if err := c.showChanges(c.Out, changes.Options{Text: text}, *change); err != nil {
		return err
	}
	output.Printf(c.Out, "state %s%s\n", change.State, forReason(change))
	if votes := clearance.Summary(*change); votes != "" {
		output.Println(c.Out, votes)
	}
	for _, d := range change.Decisions {
		output.Printf(c.Out, "%s by %s (%s) %s ago, effect %s\n", d.Answer, d.Actor, d.Rule, c.Age(d.CreatedAt), output.ShortDigest(d.EffectDigest))
	}
	return nil
}

func forReason(change *ctlapi.Change) string {
	switch {
	case api.Value(change.Error) != "":
		return ": " + api.Value(change.Error)
	case change.Wait != nil:
		return ": " + change.Wait.Reason
	}
	return ""
}

// deciding says what is decided, and how.
type deciding struct {
	answer           follow.Answer
	then             ctlapi.DecisionRequestThen
	autoApprove, all bool
	note             string
	watching         watching
}

func (c *cli) approveCommand() *cobra.Command {
	var how deciding
	var install string
	cmd := &cobra.Command{
		Use: "approve CHANGE | INSTALL[/COMPONENT] | --all WORKFLOW | --all INSTALL | --install INSTALL", Short: "Show a change and approve it",
		Long: `Shows what the change would do, asks, and approves exactly that: your decision names
the digest of the effect you saw, and Berth refuses any other. You see everything: each
script, each field, and the tool's own output. Characters that could control the terminal
or hide text are written out, such as ⟨U+202E⟩. Anything too long for the terminal goes
through PAGER (less); turn that off with --no-pager or NO_PAGER=1. Berth shows the first
8 MiB of a plan; if there is more, the question says so.

If the workflow's release brings scripts that the install has not accepted yet, Berth
shows them too, and your answer covers both.

If you name an install or a component, Berth takes the change of it that waits for a
decision, and lists them if there are several. With --all, you approve everything that the
workflow, or the install's open workflow, proposes now and later.

With --install, Berth shows all changes of the install that wait now, in all its workflows,
and approves exactly those, each on its own; it says which it did not and why.

Where several people have to approve (berth approvals show), your approval counts as one.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if install != "" {
				return command.Exactly()(cmd, args)
			}
			return command.Exactly("CHANGE or INSTALL, or --all WORKFLOW or INSTALL")(cmd, args)
		},
		RunE: c.Call(func(ctx context.Context, client *api.Client, args []string) error {
			book := names.Book{Client: client}
			if install != "" {
				return c.approveInstall(ctx, client, install, how)
			}
			if how.all {
				workflow, err := book.Asking(ctx, args[0])
				if err != nil {
					return err
				}
				return c.approveAll(ctx, client, workflow, how)
			}
			change, err := book.Change(ctx, args[0], true)
			if err != nil {
				return err
			}
			how.answer = follow.Approve
			return c.decide(ctx, client, change, how)
		}),
	}
	cmd.Flags().BoolVar(&how.autoApprove, "auto-approve", false, "do not ask")
	cmd.Flags().BoolVar(&how.all, "all", false, "approve all changes of a workflow, including later ones")
	cmd.Flags().StringVar(&install, "install", "", "approve all changes of this install that wait now")
	cmd.MarkFlagsMutuallyExclusive("install", "all")
	cmd.Flags().StringVar(&how.note, "note", "", "a note to keep with the decision")
	cmd.Flags().BoolVarP(&how.watching.watch, "watch", "w", false, "then follow the workflow until it finishes or needs another decision")
	cmd.MarkFlagsMutuallyExclusive("install", "watch")
	how.watching.timeoutFlag(cmd)
	return cmd
}

func (c *cli) denyCommand() *cobra.Command {
	var how deciding
	var skip, skipDependents bool
	cmd := &cobra.Command{
		Use: "deny CHANGE | INSTALL[/COMPONENT]", Short: "Deny a change and leave everything as it is",
		Long: `Denies a change: nothing of it is done. Its step fails then, and its workflow starts
nothing new. With --skip the step is skipped instead, and the steps that need it still run.
With --skip-dependents they are skipped too, and the rest of the workflow continues.`,
		Args: command.Exactly("CHANGE or INSTALL"),
		RunE: c.Call(func(ctx context.Context, client *api.Client, args []string) error {
			change, err := names.Book{Client: client}.Change(ctx, args[0], true)
			if err != nil {
				return err
			}
			how.answer, how.autoApprove = follow.Deny, true // a no needs no second thought
			switch {
			case skip:
				how.then = ctlapi.DecisionRequestThenSkip
			case skipDependents:
				how.then = ctlapi.DecisionRequestThenSkipDependents
			}
			return c.decide(ctx, client, change, how)
		}),
	}
	cmd.Flags().BoolVar(&skip, "skip", false, "skip the step; the steps that need it still run")
	cmd.Flags().BoolVar(&skipDependents, "skip-dependents", false, "skip the step and every step that needs it; the rest continues")
	cmd.MarkFlagsMutuallyExclusive("skip", "skip-dependents")
	cmd.Flags().StringVar(&how.note, "note", "", "a note to keep with the decision")
	alsoCalled(cmd, "note", "reason")
	return cmd
}

func (c *cli) planAgainCommand() *cobra.Command {
	how := deciding{answer: follow.PlanAgain, autoApprove: true}
	cmd := &cobra.Command{
		Use: "plan-again CHANGE | INSTALL[/COMPONENT]", Short: "Withdraw a change that waits, and make a new plan for it",
		Long: `Withdraws a change that waits for a decision. Its step makes a new plan of what is there
now, and that waits for a decision of its own.`,
		Args: command.Exactly("CHANGE or INSTALL"),
		RunE: c.Call(func(ctx context.Context, client *api.Client, args []string) error {
			change, err := names.Book{Client: client}.Change(ctx, args[0], true)
			if err != nil {
				return err
			}
			return c.decide(ctx, client, change, how)
		}),
	}
	cmd.Flags().StringVar(&how.note, "note", "", "a note to keep with the decision")
	cmd.Flags().BoolVarP(&how.watching.watch, "watch", "w", false, "then follow the workflow until it finishes or needs another decision")
	how.watching.timeoutFlag(cmd)
	return cmd
}

// decide shows a change, and what is decided with it, and answers.
func (c *cli) decide(ctx context.Context, client *api.Client, id string, how deciding) error {
	change, err := client.Change(ctx, id)
	if err != nil {
		return err
	}
	shown := []ctlapi.Change{*change}
	if how.then == "" && how.answer != follow.PlanAgain { // these are about one step
		if shown, err = follow.Together(ctx, client, change); err != nil {
			return err
		}
	}
	inOrder := slices.Clone(shown)
	slices.Reverse(inOrder) // what was asked for comes last
	if err := c.showChanges(c.Err, changes.Options{Text: true}, inOrder...); err != nil {
		return err
	}
	if why := api.Value(change.Error); change.State == ctlapi.ChangeStateSuperseded && why != "" {
		return fmt.Errorf("%s does not need a decision any more: it was %s", change.ID, why)
	}
	if change.State != ctlapi.ChangeStateProposed {
		return fmt.Errorf("%s does not need a decision: it is %s%s", change.ID, change.State, forReason(change))
	}
	if !how.autoApprove {
		if how.answer, err = c.askOnce(ctx, ask.AboutChange(*change, "")); err != nil {
			return err
		}
	}
	if err := follow.Decide(ctx, client, shown, follow.Decision{Answer: how.answer, Then: how.then, Note: how.note}); err != nil {
		return err
	}
	if change, err = client.Change(ctx, id); err != nil {
		return err
	}
	if c.ForPrograms() && how.watching.watch {
		return c.watch(ctx, client, change.WorkflowID, how.watching)
	}
	if c.ForPrograms() {
		return c.printChange(change, false)
	}
	word := map[follow.Answer]string{follow.Approve: "approved", follow.Deny: "denied", follow.PlanAgain: "planned again instead of"}[how.answer]
	for _, s := range shown {
		if _, err := output.Printf(c.Out, "%s %s, effect %s\n", word, s.ID, api.Value(s.EffectDigest)); err != nil {
			return err
		}
	}
	if votes := clearance.Summary(*change); how.answer == follow.Approve && change.State == ctlapi.ChangeStateProposed && votes != "" {
		output.Println(c.Out, votes)
	}
	if how.watching.watch {
		return c.watch(ctx, client, change.WorkflowID, how.watching)
	}
	return nil
}

// approveInstall shows what an install proposes now, in all of its workflows, and
// approves that.
func (c *cli) approveInstall(ctx context.Context, client *api.Client, install string, how deciding) error {
	waiting, err := client.Changes(ctx, 0, ctlapi.ListChangesParams{Install: &install, State: new(ctlapi.ChangeStateProposed)})
	if err != nil {
		return err
	}
	if len(waiting) == 0 {
		return fmt.Errorf("nothing of %s waits for a decision", install)
	}
	slices.Reverse(waiting) // the oldest first
	var shown []ctlapi.Change
	for _, summary := range waiting {
		change, err := client.Change(ctx, summary.ID)
		if err != nil {
			return err
		}
		if change.State == ctlapi.ChangeStateProposed {
			shown = append(shown, *change)
		}
	}
	if err := c.showChanges(c.Err, changes.Options{Text: true}, shown...); err != nil {
		return err
	}
	if !how.autoApprove {
		answer, err := c.askOnce(ctx, ask.AboutAll(fmt.Sprintf("these %d changes of %s", len(shown), install)))
		if err != nil {
			return err
		}
		if answer != follow.Approve {
			output.Println(c.Err, "decided nothing")
			return command.Outcome(command.ExitWaits)
		}
	}
	items, refused, err := clearance.ApproveSeen(ctx, client, install, shown, how.note)
	if err != nil {
		return err
	}
	if err := command.PrintList(c.CLI, items, table.DecidedChange()); err != nil {
		return err
	}
	if refused > 0 {
		return command.Outcome(command.ExitRefused)
	}
	return nil
}

// askOnce asks what to do about what was just shown. To decide later ends the
// command.
func (c *cli) askOnce(ctx context.Context, question ask.Question) (follow.Answer, error) {
	if !c.CanAsk() {
		return follow.Later, usage.Errorf("this is not a terminal, so berth cannot ask: use --auto-approve to approve what it just showed")
	}
	answer, err := c.Ask(ctx, question)
	if err == nil && answer == follow.Later {
		output.Println(c.Err, "decided nothing")
		err = command.Outcome(command.ExitWaits)
	}
	return answer, err
}

func (c *cli) approveAll(ctx context.Context, client *api.Client, workflow string, how deciding) error {
	w, err := client.Workflow(ctx, workflow)
	if err != nil {
		return err
	}
	proposed, err := follow.Proposed(ctx, client, w)
	if err != nil {
		return err
	}
	if err := c.showChanges(c.Err, changes.Options{Text: true}, proposed...); err != nil {
		return err
	}
	if !how.autoApprove {
		answer, err := c.askOnce(ctx, ask.AboutAll(follow.Title(*w)))
		if err != nil {
			return err
		}
		if answer != follow.Approve {
			output.Println(c.Err, "decided nothing")
			return command.Outcome(command.ExitWaits)
		}
	}
	resp, err := client.ApproveAllWithResponse(ctx, w.ID, &ctlapi.ApproveAllParams{}, ctlapi.ApproveAllRequest{Note: how.note})
	if err != nil {
		return err
	}
	if c.ForPrograms() && !how.watching.watch {
		approved, err := api.Body(resp.JSON202)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *approved, table.Workflow(c.Now()))
	}
	if how.watching.watch {
		output.Printf(c.Err, "approved all changes of %s\n", follow.Title(*w))
		return c.watch(ctx, client, w.ID, how.watching)
	}
	_, err = output.Printf(c.Out, "approved all changes of %s; follow it with berth workflows watch %s\n", follow.Title(*w), w.ID)
	return err
}

// showChanges shows changes whole. On a terminal, what does not fit on it goes
// through a pager; what has to be in sight for a decision is shown after that
// again.
func (c *cli) showChanges(w io.Writer, o changes.Options, list ...ctlapi.Change) error {
	o.Color = c.ColorOn(w)
	var lines []string
	for _, change := range list {
		lines = append(lines, changes.Lines(change, o)...)
	}
	screen := follow.Screen{W: w}
	paged, err := c.pager(w).Page(lines)
	switch {
	case err != nil:
		return err
	case !paged:
		screen.Print(lines...)
	default:
		for _, change := range list {
			screen.Print(changes.Brief(change)...)
		}
	}
	return nil
}

// pager pages what is written to w.
func (c *cli) pager(w io.Writer) pager.Pager {
	p := pager.Pager{Getenv: c.Getenv, Off: c.NoPager, Err: c.Err}
	if command.IsTerminal(c.In) && command.IsTerminal(c.Out) {
		p.Screen, _ = command.Terminal(w)
	}
	return p
}
