package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/ask"
	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/remedy"
	"github.com/berth-dev/berth/cli/internal/settings"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// watching are the flags of commands that start a workflow.
type watching struct {
	watch, autoApprove bool
	plan               bool   // only plan, and show it
	onFailure          string // "" for what the control plane takes by itself
	hold               hold
	timeout            time.Duration
	again              string // what to watch after an interruption; "": the workflow's id
}

func (w *watching) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVarP(&w.watch, "watch", "w", false, "follow it until it finishes or needs a decision")
	cmd.Flags().BoolVar(&w.watch, "wait", false, "the same as --watch")
	cmd.Flags().BoolVar(&w.autoApprove, "auto-approve", false, "approve each change as shown, without asking (implies --watch)")
	w.timeoutFlag(cmd)
}

// planFlag lets a command only plan; what says what is shown.
func (w *watching) planFlag(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&w.plan, "plan", false, "only show what would be "+what+"; exit code 2 if anything would")
}

// startFlags are those of a command that starts a workflow, in which somebody chooses
// what happens after a failed step.
func (w *watching) startFlags(cmd *cobra.Command) {
	w.flags(cmd)
	cmd.Flags().Var(usage.OneOf(&w.onFailure, ctlapi.OnFailureStop, ctlapi.OnFailureContinue), "on-failure",
		"after a failed step: stop, or continue with what does not need it (default stop)")
}

// hold is the value of --hold; seconds is nil when it is not given.
type hold struct{ seconds *int }

// String implements pflag.Value.
func (h *hold) String() string {
	if h.seconds == nil {
		return ""
	}
	return (time.Duration(*h.seconds) * time.Second).String()
}

// Set implements pflag.Value.
func (h *hold) Set(value string) error {
	d, err := settings.Hold(value)
	if err == nil {
		seconds := int(d / time.Second)
		h.seconds = &seconds
	}
	return err
}

// Type implements pflag.Value.
func (*hold) Type() string { return "duration" }

// holdFlag lets a command that deploys say when that is done.
func (w *watching) holdFlag(cmd *cobra.Command) {
	cmd.Flags().Var(&w.hold, "hold", "the deploy is done when it was healthy for this long, such as 5m; app: only where the app says so (default: as the install says)")
}

func (w *watching) timeoutFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "stop waiting after this time; the work continues (0: never)")
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

// launch is a workflow to start in an install.
type launch struct {
	install string
	request ctlapi.WorkflowRequest
	how     watching
}

// start starts a workflow, and follows it when asked.
func (c *cli) start(ctx context.Context, client *api.Client, l launch) error {
	l.how.watch = l.how.watch || l.how.plan
	w, err := c.begin(ctx, client, l)
	if err != nil {
		return err
	}
	return c.started(ctx, client, w, l.how)
}

// begin starts a workflow. It asks to confirm what that removes, and says which
// release it takes.
func (c *cli) begin(ctx context.Context, client *api.Client, l launch) (*ctlapi.Workflow, error) {
	if err := resolveLaunch(ctx, client, &l); err != nil {
		return nil, err
	}
	l.request.PlanOnly, l.request.OnFailure = l.how.plan, ctlapi.OnFailure(l.how.onFailure)
	l.request.HoldSeconds = l.how.hold.seconds
	w, err := create(ctx, client, l)
	if goes, refused := api.Unconfirmed(err); refused {
		if err := c.confirmStart(ctx, client, &l, goes); err != nil {
			return nil, err
		}
		w, err = create(ctx, client, l)
	}
	if err != nil {
		return nil, names.Book{Client: client}.MissingRelease(ctx, l.install, api.Value(l.request.Release), err)
	}
	if w.Kind == ctlapi.WorkflowKindDeploy || w.Kind == ctlapi.WorkflowKindProvision {
		c.tellRelease(ctx, client, w, l.request.Release != nil)
	}
	if w.Kind == ctlapi.WorkflowKindRollback && w.Rollback != nil && !c.ForPrograms() {
		for i, says := range w.Rollback.Says {
			if i == 0 {
				says = "rolling " + w.Install.Name + " back " + says
			}
			output.Printf(c.Err, "%s%s\n", strings.Repeat("  ", min(i, 1)), says)
		}
	}
	return w, nil
}

// confirmStart has a person confirm a workflow that removes something.
func (c *cli) confirmStart(ctx context.Context, client *api.Client, l *launch, goes []string) error {
	install, err := client.Install(ctx, l.install)
	if err != nil {
		return err
	}
	d := command.Deed{What: fmt.Sprintf("the %s of install %s", strings.ReplaceAll(string(l.request.Kind), "_", " "), install.Name), Name: install.Name, Goes: goes}
	if err := c.Confirm(ctx, l.request.Confirm, d); err != nil {
		return err
	}
	l.request.Confirm = install.Name
	return nil
}

// create starts a workflow, through the one door that there is.
func create(ctx context.Context, client *api.Client, l launch) (*ctlapi.Workflow, error) {
	resp, err := client.CreateWorkflowWithResponse(ctx, l.install, &ctlapi.CreateWorkflowParams{}, l.request)
	if err != nil {
		return nil, err
	}
	return api.Body(resp.JSON202)
}

// tellRelease says, on stderr, which release a workflow takes, and why. Somebody
// who may not look at releases sees its number; the work continues.
func (c *cli) tellRelease(ctx context.Context, client *api.Client, w *ctlapi.Workflow, chosen bool) {
	if w.Release == nil || c.ForPrograms() {
		return
	}
	resp, err := client.GetReleaseWithResponse(ctx, w.Release.ID)
	if err != nil || resp.JSON200 == nil {
		output.Printf(c.Err, "release %d\n", w.Release.Number)
		return
	}
	output.Println(c.Err, follow.Takes(*resp.JSON200, chosen, c.Now()))
}

// started reports a workflow that was just started, and follows it when asked.
func (c *cli) started(ctx context.Context, client *api.Client, w *ctlapi.Workflow, how watching) error {
	for _, other := range w.Others {
		output.Println(c.Err, follow.Meets(other, c.Now()))
	}
	if w.Notice != "" {
		output.Printf(c.Err, "%s: its action waits (berth why %s)\n", visible.Line(w.Notice), w.ID)
	}
	if !how.watch && !how.autoApprove {
		if c.ForPrograms() {
			return command.PrintOne(c.CLI, *w, table.Workflow(c.Now()))
		}
		output.Printf(c.Out, "%s started; follow it with berth workflows watch %s\n", follow.Title(*w), follow.ToWatch(*w))
		return nil
	}
	how.again = follow.ToWatch(*w)
	return c.watch(ctx, client, w.ID, how)
}

// watch follows a workflow and turns what becomes of it into an exit code.
func (c *cli) watch(ctx context.Context, client *api.Client, id string, how watching) error {
	ctx, cancel := how.within(ctx)
	defer cancel()
	f := &follow.Follower{Client: client, Screen: c.screen(), Ask: c.asker(how.autoApprove), Automatic: how.autoApprove, Now: c.Now}
	if !how.autoApprove {
		f.Show = func(change ctlapi.Change) error { return c.showChanges(c.Err, changes.Options{Text: true}, change) }
	}
	w, err := f.Run(ctx, id)
	if err != nil {
		return remedy.WhileFollowing(err, "berth workflows watch "+cmp.Or(how.again, id))
	}
	if w.PlanOnly && follow.Finished(w.State) {
		return c.showPreview(ctx, client, f.Screen, w)
	}
	if c.ForPrograms() {
		if err := command.PrintOne(c.CLI, *w, table.Workflow(c.Now())); err != nil {
			return err
		}
	}
	return c.verdict(w)
}

// showPreview shows what a workflow that only planned would change: nobody was
// asked about it, so it was not shown on the way.
func (c *cli) showPreview(ctx context.Context, client *api.Client, screen *follow.Screen, w *ctlapi.Workflow) error {
	preview, err := follow.Planned(ctx, client, w)
	if err != nil {
		return err
	}
	for _, change := range preview.Changes {
		screen.Print(changes.Lines(change, changes.Options{Color: screen.Color})...)
	}
	screen.Print(changes.Destroyed(preview.Changes)...)
	if hold := follow.HoldLine(*w); hold != "" {
		screen.Print(hold)
	}
	if c.ForPrograms() {
		if err := command.PrintOne(c.CLI, preview, output.View[follow.Preview]{Name: func(p follow.Preview) string { return p.ID }}); err != nil {
			return err
		}
	}
	return c.verdict(w)
}

// verdict says, on stderr, how a workflow stands and what to do, and decides
// the exit code.
func (c *cli) verdict(w *ctlapi.Workflow) error {
	verdict, lines := follow.Judge(*w)
	c.screen().Fold(lines...)
	switch verdict {
	case follow.Done:
		return nil
	case follow.Changes:
		return command.Outcome(command.ExitChanges)
	case follow.Waits:
		return command.Outcome(command.ExitWaits)
	case follow.Refused:
		return command.Outcome(command.ExitRefused)
	}
	return command.Outcome(command.ExitFailed)
}

// screen is stderr: what is followed is progress, not output.
func (c *cli) screen() *follow.Screen {
	s := &follow.Screen{W: c.Err, Color: c.ColorOn(c.Err)}
	s.Columns = command.ColumnsOf(c.Err)
	s.Terminal = s.Columns > 0 && c.Getenv("TERM") != "dumb"
	return s
}

// asker decides on changes: by itself, by asking on a terminal, or not at all.
func (c *cli) asker(auto bool) func(context.Context, ctlapi.Change) (follow.Answer, error) {
	switch {
	case auto:
		return func(context.Context, ctlapi.Change) (follow.Answer, error) { return follow.Approve, nil }
	case c.CanAsk():
		return func(ctx context.Context, change ctlapi.Change) (follow.Answer, error) {
			return c.Ask(ctx, ask.AboutChange(change, change.ID))
		}
	}
	return func(context.Context, ctlapi.Change) (follow.Answer, error) { return follow.Later, nil }
}

// resolveLaunch writes out the install and the release of a workflow to start. The
// control plane knows releases by their number, too.
func resolveLaunch(ctx context.Context, client *api.Client, l *launch) error {
	book := names.Book{Client: client}
	var err error
	if l.install, err = book.Resolve(ctx, names.Install, l.install); err != nil || l.request.Release == nil {
		return err
	}
	release, err := book.Resolve(ctx, names.Release, *l.request.Release)
	l.request.Release = &release
	return err
}
