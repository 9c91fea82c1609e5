package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// roleFlag takes the role to run under, which the control plane refuses for now,
// with the roles that there are.
func roleFlag(cmd *cobra.Command, role *string) {
	cmd.Flags().StringVar(role, "role", "", "run under this role of the app (not supported yet)")
}

func (c *cli) deployCommand() *cobra.Command {
	var how watching
	var to, role string
	var confirm []string
	var sandbox, dependents bool
	var many selector
	cmd := &cobra.Command{
		Use:   "deploy INSTALL[/COMPONENT] [COMPONENT]...",
		Short: "Deploy a release to an install",
		Long: `Brings all components of an install, or only the ones you name, to a release: the
newest, or the one you choose with --to. Berth plans each change and shows it before
making it. It leaves alone what is already up to date, and the sandbox unless you name it:
--sandbox deploys the sandbox, alone or before the components you name.

With --app or --label instead of an install, it deploys to all live installs that match,
one after the other with --watch; the exit code is then the worst of all.

A deploy that removes a component, because it was switched off, shows what goes and
asks for the install's name; --confirm gives it in a script, repeated for each install
that --app or --label selects and that loses a component.`,
		Args: cobra.ArbitraryArgs,
	}
	cmd.Flags().StringVar(&to, "to", "", "release, by number or id (default: the newest)")
	alsoCalled(cmd, "to", "release")
	how.planFlag(cmd, "changed")
	cmd.Flags().StringVar(&many.app, "app", "", "deploy to all live installs of this app")
	cmd.Flags().StringSliceVarP(&many.labels, "label", "l", nil, "deploy to all live installs with this label, key=value")
	cmd.Flags().StringArrayVar(&confirm, "confirm", nil, command.ConfirmUsage("install")+"; with --app or --label once per install")
	cmd.Flags().BoolVar(&sandbox, "sandbox", false, "deploy the sandbox, and no component but those you name")
	cmd.Flags().BoolVar(&dependents, "with-dependents", false, "also deploy what needs the components you name")
	roleFlag(cmd, &role)
	how.startFlags(cmd)
	how.holdFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch selects := many.app != "" || len(many.labels) > 0; {
		case len(args) == 0 && !selects:
			return usage.Errorf("%s needs INSTALL, --app or --label; see %s --help", cmd.CommandPath(), cmd.CommandPath())
		case len(args) > 0 && selects:
			return usage.Errorf("name an install, or select several with --app and --label")
		case len(args) > 0 && len(confirm) > 1:
			return usage.Errorf("one install is deployed to, so give --confirm once")
		}
		request := ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, Release: api.Optional(to), Confirm: strings.Join(confirm, ""), Role: role, WithDependents: dependents}
		return c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
			l := launch{request: request, how: how}
			if len(args) > 0 {
				l.install, l.request.Components = deployTarget(args)
			}
			if sandbox {
				l.request.Components = append(l.request.Components, "sandbox")
			}
			if len(args) == 0 {
				many.confirmed = confirm
				return c.deployMany(ctx, client, many, l)
			}
			if len(l.request.Components) == 0 {
				if err := provisioned(ctx, client, l.install); err != nil {
					return err
				}
			}
			return c.start(ctx, client, l)
		})(cmd, args)
	}
	return cmd
}

// provisioned refuses an install of which nothing is there yet: without its sandbox,
// a deploy of its components ends in templates that find no outputs.
func provisioned(ctx context.Context, client *api.Client, name string) error {
	install, err := client.Install(ctx, name)
	if err != nil {
		return err
	}
	if install.State == ctlapi.InstallStateNew {
		return fmt.Errorf("install %s was never provisioned: berth installs provision %s makes its sandbox and all components", install.Name, install.Name)
	}
	return nil
}

// selector chooses installs; an empty one chooses all.
type selector struct {
	app    string
	labels []string
	// confirmed are the names of those of which something may be removed.
	confirmed []string
}

// confirmedAreAmong refuses a confirmed name that is none of the installs'.
func (s selector) confirmedAreAmong(installs []ctlapi.Install) error {
	for _, name := range s.confirmed {
		if !slices.ContainsFunc(installs, func(i ctlapi.Install) bool { return i.Name == name }) {
			return usage.Errorf("--confirm %s names none of the live installs that match; nothing was done", name)
		}
	}
	return nil
}

// deployMany starts the same workflow in all live installs that are selected.
// That one goes wrong keeps no other from being deployed.
func (c *cli) deployMany(ctx context.Context, client *api.Client, which selector, l launch) error {
	l.how.watch = l.how.watch || l.how.plan
	installs, err := client.Installs(ctx, 0, ctlapi.ListInstallsParams{
		App: api.Optional(which.app), Label: optionalList(which.labels), State: new(ctlapi.InstallStateLive),
	})
	if err != nil {
		return err
	}
	if len(installs) == 0 {
		return errors.New("no live install matches; berth installs list shows them all")
	}
	if c.ForPrograms() && (l.how.watch || l.how.autoApprove) {
		return usage.Errorf("following several deploys prints text only: leave out --watch, or -o and --json")
	}
	if err := which.confirmedAreAmong(installs); err != nil {
		return err
	}
	var worst error
	var unconfirmed []string
	var began []ctlapi.Workflow
	for _, install := range installs {
		l.install, l.request.Confirm = install.Name, ""
		if slices.Contains(which.confirmed, install.Name) {
			l.request.Confirm = install.Name
		}
		w, err := c.begin(ctx, client, l)
		if err == nil {
			began = append(began, *w)
		}
		if err == nil && !c.ForPrograms() {
			err = c.started(ctx, client, w, l.how)
		}
		if err != nil && ctx.Err() != nil {
			return err
		}
		if missing, ok := errors.AsType[command.NotConfirmed](err); ok {
			unconfirmed = append(unconfirmed, missing.Name)
		}
		command.Report(c.Err, err)
		worst = worse(worst, err)
	}
	if len(unconfirmed) > 0 {
		output.Printf(c.Err, "not confirmed, so nothing was deployed to %s; to deploy there, add --confirm %s\n",
			strings.Join(unconfirmed, ", "), strings.Join(unconfirmed, " --confirm "))
	}
	if c.ForPrograms() {
		if err := command.PrintList(c.CLI, began, table.Workflow(c.Now())); err != nil {
			return err
		}
	}
	if worst == nil {
		return nil
	}
	return command.Outcome(command.ExitCode(worst)) // each was reported
}

// bySeverity are exit codes, the worst first.
var bySeverity = []int{command.ExitFailed, command.ExitUsage, command.ExitRefused, command.ExitWaits, command.ExitChanges, command.ExitOK}

// worse is the error of two that weighs more.
func worse(a, b error) error {
	if slices.Index(bySeverity, command.ExitCode(a)) <= slices.Index(bySeverity, command.ExitCode(b)) {
		return a
	}
	return b
}

// deployTarget reads acme, acme/api, and acme api db.
func deployTarget(args []string) (install string, components []string) {
	install, component, found := strings.Cut(args[0], "/")
	if found && component != "" {
		components = append(components, component)
	}
	return install, append(components, args[1:]...)
}

func (c *cli) rollbackCommand() *cobra.Command {
	var how watching
	var to, confirm string
	var components []string
	var dependents bool
	cmd := &cobra.Command{
		Use:   "rollback INSTALL[/COMPONENT]",
		Short: "Go back to an earlier release, with the inputs of then",
		Long: `Brings an install, or only the components you name, back to a release that they stood
on, with the inputs and overrides that they had with it. Without --to it is the last
good state before the current release, or before the failure when a deploy has just
failed. Berth plans it, shows it and asks, as always.

When all of the install has gone back, that release and those inputs are what the
install is to be: berth status shows it, and a newer release waits to be deployed.
Secrets, toggles and data do not go back. A component that the earlier release does
not have stays as it is.`,
		Args: command.Exactly("INSTALL"),
	}
	cmd.Flags().StringVar(&to, "to", "", "release, by number or id; berth history shows them (default: the last good one before)")
	alsoCalled(cmd, "to", "release")
	cmd.Flags().StringSliceVar(&components, "component", nil, "only this component, or sandbox; may be repeated")
	cmd.Flags().BoolVar(&dependents, "with-dependents", false, "also what needs the components you name")
	command.ConfirmFlag(cmd, &confirm, "install")
	how.planFlag(cmd, "changed")
	how.startFlags(cmd)
	how.holdFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		install, named := deployTarget(args)
		return c.start(ctx, client, launch{install, ctlapi.WorkflowRequest{
			Kind: ctlapi.WorkflowKindRollback, Release: api.Optional(to), Components: append(named, components...), WithDependents: dependents, Confirm: confirm,
		}, how})
	})
	return cmd
}

func (c *cli) retryCommand() *cobra.Command {
	var how watching
	cmd := &cobra.Command{
		Use:   "retry STEP | WORKFLOW | INSTALL[/COMPONENT]",
		Short: "Try a failed or cancelled step again",
		Long: `Plans the failed step again and continues from there; an approval still counts if the
effect is the same. If you name a workflow, or an install and so its newest workflow,
Berth retries all its failed steps at once, or those of the component you name. A
workflow that was cancelled continues where it stopped.`,
		Args: command.Exactly("STEP, WORKFLOW or INSTALL"),
	}
	how.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		what, err := names.Book{Client: client}.Retry(ctx, args[0])
		if err != nil {
			return err
		}
		id, whole, err := follow.WholeWorkflow(ctx, client, what)
		if err != nil {
			return err
		}
		if whole {
			resp, err := client.RetryWorkflowWithResponse(ctx, id, &ctlapi.RetryWorkflowParams{})
			if err != nil {
				return err
			}
			w, err := api.Body(resp.JSON202)
			if err != nil {
				return err
			}
			return c.started(ctx, client, w, how)
		}
		return c.eachFailed(ctx, failedSteps{client, what, how}, func(step string) (*ctlapi.Workflow, error) {
			resp, err := client.RetryStepWithResponse(ctx, step, &ctlapi.RetryStepParams{})
			if err != nil {
				return nil, err
			}
			return api.Body(resp.JSON202)
		})
	})
	return cmd
}

func (c *cli) skipCommand() *cobra.Command {
	var how watching
	cmd := &cobra.Command{
		Use:   "skip STEP | WORKFLOW | INSTALL[/COMPONENT]",
		Short: "Go on without a failed step",
		Long: `Skips a failed deploy, action, check or wait for health, and what needs it; what does not
need it goes on. Without a deploy, something of the release is missing then, so the install does not count as brought
to it: berth status shows the release as pending until a deploy succeeds. To try the
step again use berth retry, to go back berth rollback, to stop leave it as it is.`,
		Args: command.Exactly("STEP, WORKFLOW or INSTALL"),
	}
	how.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.eachFailed(ctx, failedSteps{client, args[0], how}, func(step string) (*ctlapi.Workflow, error) {
			resp, err := client.SkipStepWithResponse(ctx, step, &ctlapi.SkipStepParams{})
			if err != nil {
				return nil, err
			}
			return api.Body(resp.JSON202)
		})
	})
	return cmd
}

// failedSteps are those that a person names, by a step, a workflow or an install.
type failedSteps struct {
	client *api.Client
	named  string
	how    watching
}

// eachFailed does something about each of the steps, and follows the workflow that
// goes on with it.
func (c *cli) eachFailed(ctx context.Context, f failedSteps, do func(step string) (*ctlapi.Workflow, error)) error {
	what, err := names.Book{Client: f.client}.Retry(ctx, f.named)
	if err != nil {
		return err
	}
	steps, err := follow.ToRetry(ctx, f.client, what)
	if err != nil {
		return err
	}
	var w *ctlapi.Workflow
	for _, step := range steps {
		if w, err = do(step); err != nil {
			return err
		}
	}
	return c.started(ctx, f.client, w, f.how)
}
