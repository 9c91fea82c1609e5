package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/alerts"
	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/clearance"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/fleet"
	"github.com/berth-dev/berth/cli/internal/inputs"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/past"
	"github.com/berth-dev/berth/cli/internal/rehearse"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) installsCommand() *cobra.Command {
	return command.Noun("installs", "install", "Your apps, installed for customers",
		c.installsList(), c.installsShow(), c.installsCreate(), c.installsInputs(), c.installsSet(), c.installsToggle(), c.installsConfig(), c.installsResources(), fleet.InstallGraph(c.CLI), fleet.Readme(c.CLI), past.State(c.CLI), past.Snapshot(c.CLI), past.Remediations(c.CLI),
		c.installsHealth(), c.installsDrift(), c.installsSecrets(), c.installsStack(), c.installsSync(), c.installsSyncSecrets(), clearance.Pause(c.CLI), clearance.Resume(c.CLI), c.installsProvision(), c.installsReprovision(), c.installsTeardown(), c.installsDeprovision(), c.installsForget())
}

func (c *cli) installsList() *cobra.Command {
	var app, customer, state, health, waiting, expiring, sort string
	var behind, paused bool
	var labels []string
	cmd := &cobra.Command{Use: "list", Short: "List installs", Args: command.Exactly()}
	limit := command.LimitFlag(cmd)
	cmd.Flags().StringVar(&app, "app", "", "only for this app")
	cmd.Flags().StringVar(&customer, "customer", "", "only for this customer")
	cmd.Flags().Var(usage.OneOf(&state, ctlapi.InstallStateNew, ctlapi.InstallStateProvisioning, ctlapi.InstallStateLive, ctlapi.InstallStateRehearsed,
		ctlapi.InstallStateDeprovisioning, ctlapi.InstallStateDeprovisioned), "state", "only in this state: new, provisioning, live, rehearsed, deprovisioning, deprovisioned")
	cmd.Flags().StringSliceVarP(&labels, "label", "l", nil, "only with this label, key=value")
	cmd.Flags().Var(usage.OneOf(&health, ctlapi.HealthVerdictHealthy, ctlapi.HealthVerdictUnhealthy, ctlapi.HealthVerdictUnknown), "health", "only with this health: healthy, unhealthy, unknown")
	cmd.Flags().BoolVar(&behind, "behind", false, "only those behind the newest release of their app; --behind=false: only those at it")
	cmd.Flags().BoolVar(&paused, "paused", false, "only those that you paused; --paused=false: only those that are not")
	cmd.Flags().StringVar(&waiting, "waiting", "", "only those in which something waits for this, such as decision or runner; any for whatever it is")
	cmd.Flags().StringVar(&expiring, "expiring", "", "only those with a proposal that ends without a decision within this time, such as 24h")
	cmd.Flags().Var(usage.OneOf(&sort, ctlapi.InstallSortName, ctlapi.InstallSortHealth, ctlapi.InstallSortExpiry, ctlapi.InstallSortNewest), "sort", "name, health (unhealthy first), expiry (what ends soonest first) or newest")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		which := ctlapi.ListInstallsParams{
			App: api.Optional(app), Customer: api.Optional(customer), State: api.Optional(ctlapi.InstallState(state)), Label: optionalList(labels),
			Health: api.Optional(ctlapi.HealthVerdict(health)), Waiting: api.Optional(waiting), Expiring: api.Optional(expiring), Sort: api.Optional(ctlapi.InstallSort(sort)),
		}
		if cmd.Flags().Changed("behind") {
			which.Behind = &behind
		}
		if cmd.Flags().Changed("paused") {
			which.Paused = &paused
		}
		items, err := client.Installs(ctx, *limit, which)
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Install(c.Now()))
	})
	return cmd
}

func optionalList(items []string) *[]string {
	if len(items) == 0 {
		return nil
	}
	return &items
}

func (c *cli) installsShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show INSTALL", Short: "Show an install and its resources", Args: command.Exactly("INSTALL")}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		install, err := client.Install(ctx, args[0])
		if err != nil {
			return err
		}
		if err := c.printInstall(*install); err != nil || c.ForPrograms() {
			return err
		}
		if err := c.printRunnerProblems(ctx, client, install.ID); err != nil {
			return err
		}
		if err := c.printResources(ctx, client, install.ID); err != nil {
			return err
		}
		_ = rehearse.Print(c.Out, *install)
		c.printUnsupported(*install)
		if err := alerts.Print(ctx, c.CLI, client, *install); err != nil {
			return err
		}
		return c.printAlarms(ctx, client, *install)
	})
	return cmd
}

// printUnsupported lists what the app says and this version does not act on.
func (c *cli) printUnsupported(install ctlapi.Install) {
	list := api.Value(install.Unsupported)
	if len(list) == 0 {
		return
	}
	output.Printf(c.Out, "\nthe app declares, but this version ignores:\n")
	for _, w := range list {
		d := place.Diagnostic{File: api.Value(w.File), Line: api.Value(w.Line), Column: api.Value(w.Column), Message: w.Message, Remedy: api.Value(w.Remedy)}
		output.Println(c.Out, " ", d.Unrated())
	}
}

// printRunnerProblems says what keeps the install's runner from working.
func (c *cli) printRunnerProblems(ctx context.Context, client *api.Client, install string) error {
	runners, err := client.Runners(ctx, 0, install)
	if err != nil {
		return err
	}
	for _, r := range runners {
		if problem := api.Value(r.Problem); problem != "" && r.State == ctlapi.RunnerStateActive {
			output.Printf(c.Out, "\nrunner %s: %s\n", r.ID, problem)
		}
	}
	return nil
}

func (c *cli) installsCreate() *cobra.Command {
	var how watching
	var app, customer, stack, release string
	var given inputs.Flags
	var labels []string
	var noProvision, approveAll bool
	var rehearsed rehearse.Flags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an install and provision it",
		Long: `Creates an install of an app for a customer, with its runner, and provisions it: the
sandbox and all components. You see each change before Berth makes it. If there is no
such customer, Berth creates it; its default name is the name of the install.

The value of a sensitive input cannot be an argument, which other programs can read: use
--input NAME to be asked for it, or --input-file.

With --stack kubernetes the install waits for the customer's cluster; berth installs
stack NAME --new prints what the customer runs there.`,
		Args: command.Exactly("NAME"),
	}
	cmd.Flags().StringVar(&app, "app", "", "the app (default: the only one)")
	cmd.Flags().StringVar(&customer, "customer", "", "the customer (default: the name of the install)")
	cmd.Flags().StringVar(&stack, "stack", "local", "where the runner runs: local, or kubernetes for the customer's cluster")
	cmd.Flags().StringVar(&release, "release", "", "release to provision, by number or id (default: the newest)")
	given.Add(cmd.Flags(), "input", "i")
	rehearsed.Add(cmd.Flags())
	cmd.Flags().StringSliceVarP(&labels, "label", "l", nil, "a label, key=value")
	cmd.Flags().BoolVar(&noProvision, "no-provision", false, "only create it; berth installs provision does the rest")
	cmd.Flags().BoolVar(&approveAll, "approve-all", false, "approve all changes of this install automatically, from now on")
	how.flags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := usage.Nameable("an install", args[0]); err != nil {
			return err
		}
		marks, err := usage.Pairs[ctlapi.Labels]("--label", labels)
		if err != nil {
			return err
		}
		if app == "" {
			if app, err = onlyApp(ctx, client); err != nil {
				return err
			}
		}
		values, err := c.inputValues(ctx, &given, func() (map[string]bool, error) { return client.SecretsOfApp(ctx, app) })
		if err != nil {
			return err
		}
		if customer == "" {
			customer = args[0]
		}
		request := ctlapi.InstallRequest{
			Name: args[0], App: app, Customer: customer, CreateCustomer: true, Stack: api.Optional(ctlapi.StackKind(stack)),
			Inputs: values, Labels: marks, Release: api.Optional(release), Provision: !noProvision,
		}
		if request.Rehearsal, err = rehearsed.Request(c.Err); err != nil {
			return err
		}
		if approveAll {
			request.ApprovalOption = api.Optional(ctlapi.ApprovalOptionApproveAll)
		}
		resp, err := client.CreateInstallWithResponse(ctx, &ctlapi.CreateInstallParams{}, request)
		if err != nil {
			return err
		}
		install, err := api.Body(resp.JSON201)
		if err != nil {
			return err
		}
		if install.Stack == ctlapi.StackKindKubernetes && !c.ForPrograms() {
			output.Printf(c.Err, "next, the customer's cluster: berth installs stack %s --new prints what to run there\n", install.Name)
		}
		workflow := api.Value(install.WorkflowID)
		if workflow == "" && install.Stack == ctlapi.StackKindLocal && !c.ForPrograms() {
			output.Printf(c.Err, "next: berth installs provision %s\n", install.Name)
		}
		if workflow == "" || !how.watch && !how.autoApprove {
			return command.PrintOne(c.CLI, *install, table.Install(c.Now()))
		}
		return c.watch(ctx, client, workflow, how)
	})
	return cmd
}

// onlyApp saves typing where there is no choice.
func onlyApp(ctx context.Context, client *api.Client) (string, error) {
	resp, err := client.ListAppsWithResponse(ctx, &ctlapi.ListAppsParams{})
	if err != nil {
		return "", err
	}
	page, err := api.Body(resp.JSON200)
	if err != nil {
		return "", err
	}
	switch len(page.Items) {
	case 0:
		return "", fmt.Errorf("there are no apps yet: run berth sync in an app folder to create one")
	case 1:
		return page.Items[0].Name, nil
	}
	return "", usage.Errorf("there are several apps: choose one with --app")
}

func (c *cli) installsResources() *cobra.Command {
	cmd := &cobra.Command{
		Use: "resources INSTALL", Short: "Show what is live: the stack, the sandbox and each component", Args: command.Exactly("INSTALL"),
		Long: `Shows the stack, the sandbox and each component, then who holds one of them and which
changes wait for it, the next one first. One that is orphaned runs and is no longer part of
the app: berth installs teardown INSTALL --orphans removes it.`,
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.printResources(ctx, client, args[0])
	})
	return cmd
}

func (c *cli) printResources(ctx context.Context, client *api.Client, install string) error {
	resp, err := client.ListResourcesWithResponse(ctx, install)
	if err != nil {
		return err
	}
	page, err := api.Body(resp.JSON200)
	if err != nil {
		return err
	}
	if err := command.PrintList(c.CLI, page.Items, table.Resource(c.Now())); err != nil || c.ForPrograms() {
		return err
	}
	for _, line := range table.Turns(page.Items, c.Now()) {
		output.Println(c.Out, line)
	}
	return nil
}

func (c *cli) installsHealth() *cobra.Command {
	cmd := &cobra.Command{
		Use: "health [INSTALL]", Short: "Show whether an install is healthy, and its health checks", Args: command.Exactly("[INSTALL]"),
		Long: `Shows the verdict of now, the checks behind it, certificates that end soon, and the remediations that have not ended. With --since or --until it shows how the
install and each of its components were over that time: a strip, which share of the known
time was healthy, when it was unhealthy, and what the objective leaves, if there is one
(berth installs set INSTALL objective=99.9).

Without INSTALL it lists how all installs were, over the last week or the time that is given.

Times are written as 2026-11-26T10:00:00Z, as 2026-11-26 10:00 (your time), or as how long
ago: 2h, 7d.`,
	}
	var over past.HealthFlags
	over.Add(cmd)
	limit := command.LimitFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if len(args) == 0 {
			return over.ShowAll(ctx, c.CLI, client, *limit)
		}
		if over.Given() {
			return over.Show(ctx, c.CLI, client, args[0])
		}
		resp, err := client.GetHealthWithResponse(ctx, args[0])
		if err != nil {
			return err
		}
		health, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c.CLI, *health, output.View[ctlapi.Health]{Name: func(h ctlapi.Health) string { return string(h.Verdict) }})
		}
		since := ""
		if health.Since != nil {
			since = " since " + c.Age(*health.Since)
		}
		output.Printf(c.Out, "%s%s\n", output.Paint(c.ColorOn(c.Out), output.StyleOf(string(health.Verdict)), string(health.Verdict)), since)
		if err := command.PrintList(c.CLI, health.Checks, table.Check(c.Now())); err != nil {
			return err
		}
		for _, line := range past.Why(health.Checks) {
			output.Println(c.Out, line)
		}
		for _, line := range past.Ending(health.Checks, c.Now()) {
			output.Println(c.Out, line)
		}
		return past.Open(ctx, c.CLI, client, args[0])
	})
	return cmd
}

func (c *cli) installsProvision() *cobra.Command {
	var how watching
	var release, confirm string
	cmd := &cobra.Command{Use: "provision INSTALL", Short: "Bring up the sandbox and all components", Args: command.Exactly("INSTALL")}
	cmd.Flags().StringVar(&release, "to", "", "release, by number or id (default: the newest)")
	command.ConfirmFlag(cmd, &confirm, "install")
	how.planFlag(cmd, "changed")
	how.startFlags(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		return c.start(ctx, client, launch{args[0], ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindProvision, Release: api.Optional(release), Confirm: confirm}, how})
	})
	return cmd
}

func (c *cli) installsForget() *cobra.Command {
	var confirm string
	cmd := &cobra.Command{
		Use: "forget INSTALL", Short: "Delete a deprovisioned install's record", Args: command.Exactly("INSTALL"),
		Long: "Removes the install from lists, frees its name and stops its runner. It removes nothing\non the customer's side; use deprovision for that.",
	}
	command.ConfirmFlag(cmd, &confirm, "install")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		install, err := client.Install(ctx, args[0])
		if err != nil {
			return err
		}
		d := command.Deed{What: "forgetting install " + install.Name, Name: install.Name, Goes: []string{"its inputs, state and history", "its runner"}}
		if err := c.Confirm(ctx, confirm, d); err != nil {
			return err
		}
		if _, err := client.ForgetInstallWithResponse(ctx, install.ID, &ctlapi.ForgetInstallParams{Confirm: &d.Name}); err != nil {
			return err
		}
		_, err = output.Printf(c.Out, "deleted the record of install %s\n", install.Name)
		return err
	})
	return cmd
}
