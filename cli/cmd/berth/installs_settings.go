package main

import (
	"context"
	"maps"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/inputs"
	"github.com/berth-dev/berth/cli/internal/installsync"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/settings"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

func (c *cli) installsInputs() *cobra.Command {
	var given inputs.Flags
	var unset []string
	var how watching
	var apply bool
	var confirm string
	cmd := &cobra.Command{
		Use: "inputs INSTALL", Short: "Show the inputs of an install, or set some", Args: command.Exactly("INSTALL"),
		Long: `Shows every input with its value, and hides the values of sensitive inputs. --set,
--input-file and --unset make a new version of the inputs. This deploys nothing: the next
berth deploy uses the new values. With --plan they set nothing, and show what a deploy of
the newest release would change with them.

--apply also starts a workflow, with the release that the install has: it deploys exactly
what refers to an input that was set since it was deployed, with what needs that; all
components when the sandbox refers to one. With --plan it shows that and sets nothing.

The value of a sensitive input cannot be an argument, which other programs can read: use
--set NAME to be asked for it, or --input-file.`,
	}
	given.Add(cmd.Flags(), "set", "")
	cmd.Flags().StringSliceVar(&unset, "unset", nil, "reset an input to its default")
	cmd.Flags().BoolVar(&apply, "apply", false, "deploy what refers to inputs that changed")
	command.ConfirmFlag(cmd, &confirm, "install")
	how.planFlag(cmd, "changed")
	how.startFlags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if !apply && (how.watch || how.autoApprove || confirm != "") {
			return usage.Errorf("--watch, --auto-approve and --confirm need --apply: setting inputs deploys nothing")
		}
		update := launch{args[0], ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindInputUpdate, Confirm: confirm}, how}
		values, err := c.inputValues(ctx, &given, func() (map[string]bool, error) { return client.SecretsOfInstall(ctx, args[0]) })
		if err != nil {
			return err
		}
		if how.plan {
			if apply {
				if values != nil || len(unset) > 0 {
					update.request.PreviewInputs = &ctlapi.InputsUpdate{Values: values, Unset: unset}
				}
				return c.start(ctx, client, update)
			}
			if values == nil && len(unset) == 0 {
				return usage.Errorf("--plan needs --set or --unset; berth deploy %s --plan shows a deploy with the inputs as they are", args[0])
			}
			return c.start(ctx, client, launch{args[0], ctlapi.WorkflowRequest{
				Kind: ctlapi.WorkflowKindDeploy, PreviewInputs: &ctlapi.InputsUpdate{Values: values, Unset: unset},
			}, how})
		}
		if apply {
			return c.applyInputs(ctx, client, update, ctlapi.InputsUpdate{Values: values, Unset: unset})
		}
		now, err := c.setInputs(ctx, client, args[0], ctlapi.InputsUpdate{Values: values, Unset: unset})
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, now.Items, table.Input())
	})
	return cmd
}

// setInputs sets inputs and says what uses them; without any it only reads them.
func (c *cli) setInputs(ctx context.Context, client *api.Client, install string, change ctlapi.InputsUpdate) (*ctlapi.Inputs, error) {
	if change.Values == nil && len(change.Unset) == 0 {
		resp, err := client.GetInputsWithResponse(ctx, install)
		if err != nil {
			return nil, err
		}
		return api.Body(resp.JSON200)
	}
	now, err := putInputs(ctx, client, install, change)
	if err != nil {
		return nil, err
	}
	output.Printf(c.Err, "inputs are now at version %d; berth deploy %s uses it\n", now.Version, install)
	return now, nil
}

// applyInputs sets inputs, if any are given, and deploys what refers to those that
// changed. When the second part fails, the same command without values does it again.
func (c *cli) applyInputs(ctx context.Context, client *api.Client, update launch, change ctlapi.InputsUpdate) error {
	if change.Values != nil || len(change.Unset) > 0 {
		now, err := putInputs(ctx, client, update.install, change)
		if err != nil {
			return err
		}
		output.Printf(c.Err, "inputs are now at version %d\n", now.Version)
	}
	return c.start(ctx, client, update)
}

func putInputs(ctx context.Context, client *api.Client, install string, change ctlapi.InputsUpdate) (*ctlapi.Inputs, error) {
	resp, err := client.SetInputsWithResponse(ctx, install, &ctlapi.SetInputsParams{}, change)
	if err != nil {
		return nil, err
	}
	return api.Body(resp.JSON200)
}

// inputValues are the inputs that the flags give; nil for none. secrets are the
// names of sensitive inputs.
func (c *cli) inputValues(ctx context.Context, given *inputs.Flags, secrets func() (map[string]bool, error)) (*ctlapi.InputValues, error) {
	var ask func(name string) (string, error)
	if c.CanAsk() {
		ask = func(name string) (string, error) { return c.Person().Secret(ctx, visible.Row(name)+": ") }
	}
	all, err := given.Values(c.In, ask, secrets)
	if all == nil || err != nil {
		return nil, err
	}
	return new(ctlapi.InputValues(all)), nil
}

func (c *cli) installsToggle() *cobra.Command {
	var how watching
	var apply bool
	var confirm string
	cmd := &cobra.Command{
		Use: "toggle INSTALL COMPONENT on|off", Short: "Switch a component of an install on or off", Args: command.Exactly("INSTALL", "COMPONENT", "on|off"),
		Long: `Switches a component that the app declares toggleable. A component cannot be off while
another one that needs it is on. This deploys and removes nothing: the next berth deploy
of the whole install creates or removes the component, as a change like any other. With
--plan it switches nothing, and shows what a deploy of the newest release would change then.

--apply also starts a workflow, with the release that the install has: it creates the
component, and what it needs and is not there, or removes it, and touches nothing else. The
app's actions for that run around it. With --plan it shows that and switches nothing. When
the workflow fails, retry it, or run the same command again.`,
	}
	cmd.Flags().BoolVar(&apply, "apply", false, "create or remove the component now")
	command.ConfirmFlag(cmd, &confirm, "install")
	how.planFlag(cmd, "created or removed")
	how.startFlags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		on := args[2] == "on"
		switch {
		case !on && args[2] != "off":
			return usage.Errorf("write on or off, not %q", args[2])
		case !apply && (how.watch || how.autoApprove || confirm != "" || how.onFailure != ""):
			return usage.Errorf("--watch, --auto-approve, --confirm and --on-failure need --apply: switching a component deploys nothing")
		}
		take := launch{args[0], ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindToggle, Components: []string{args[1]}, Confirm: confirm}, how}
		if how.plan {
			if !apply {
				take.request.Kind, take.request.Components = ctlapi.WorkflowKindDeploy, nil
			}
			take.request.PreviewToggles = &ctlapi.ComponentToggles{args[1]: on}
			return c.start(ctx, client, take)
		}
		install, err := client.ChangeInstall(ctx, args[0], func(now ctlapi.Install) (ctlapi.InstallUpdate, error) {
			toggles := maps.Clone(now.ComponentToggles)
			if toggles == nil {
				toggles = ctlapi.ComponentToggles{}
			}
			toggles[args[1]] = on
			return ctlapi.InstallUpdate{ComponentToggles: &toggles}, nil
		})
		if err != nil {
			return err
		}
		if apply {
			output.Printf(c.Err, "component %s is now %s\n", args[1], args[2])
			return c.start(ctx, client, take)
		}
		output.Printf(c.Err, "component %s is now %s; berth deploy %s applies that\n", args[1], args[2], install.Name)
		return c.printInstall(*install)
	})
	return cmd
}

func (c *cli) installsConfig() *cobra.Command {
	cmd := &cobra.Command{
		Use: "config INSTALL", Short: "Print an install as a file for berth installs sync", Args: command.Exactly("INSTALL"),
		Long: `Prints a file for installs/ in an app folder that declares the install as it is now;
syncing it changes nothing. It leaves out sensitive inputs and names them in a comment.`,
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		install, err := client.Install(ctx, args[0])
		if err != nil {
			return err
		}
		resp, err := client.GetInputsWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		inputs, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		text, err := installsync.File(*install, *inputs)
		if err != nil {
			return err
		}
		_, err = c.Out.Write(text)
		return err
	})
	return cmd
}

func (c *cli) installsSet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set INSTALL SETTING=VALUE...", Short: "Set labels and how changes of an install are approved", Args: cobra.MinimumNArgs(2),
		Long: `Settings are label=KEY=VALUE, label=KEY- to remove a label, and approval=prompt or
approval=approve-all, and approval-time=HOURSh: how long a change waits for a decision
before it is denied (720h unless you set it). A change that waits already keeps its
deadline. objective=99.9 is the share of time in percent that the install is to be healthy,
for berth installs health --since; objective=none takes it away. This deploys nothing. berth installs inputs sets inputs.`,
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		install, err := client.ChangeInstall(ctx, args[0], func(now ctlapi.Install) (ctlapi.InstallUpdate, error) {
			return settings.Update(now.Labels, args[1:])
		})
		if err != nil {
			return err
		}
		return c.printInstall(*install)
	})
	return cmd
}

// printInstall prints an install with what was set for it.
func (c *cli) printInstall(install ctlapi.Install) error {
	if err := command.PrintOne(c.CLI, install, table.Install(c.Now())); err != nil || c.ForPrograms() {
		return err
	}
	if text := table.Settings(install); text != "" {
		output.Printf(c.Out, "\n%s\n", text)
	}
	return nil
}
