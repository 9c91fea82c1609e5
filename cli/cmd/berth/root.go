package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/alerts"
	"github.com/berth-dev/berth/cli/internal/apps"
	"github.com/berth-dev/berth/cli/internal/clearance"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/complete"
	"github.com/berth-dev/berth/cli/internal/dashboard"
	"github.com/berth-dev/berth/cli/internal/drift"
	"github.com/berth-dev/berth/cli/internal/events"
	"github.com/berth-dev/berth/cli/internal/example"
	"github.com/berth-dev/berth/cli/internal/fleet"
	"github.com/berth-dev/berth/cli/internal/front"
	"github.com/berth-dev/berth/cli/internal/manual"
	"github.com/berth-dev/berth/cli/internal/past"
	"github.com/berth-dev/berth/cli/internal/plugins"
	"github.com/berth-dev/berth/cli/internal/policies"
	"github.com/berth-dev/berth/cli/internal/rehearse"
	"github.com/berth-dev/berth/cli/internal/remedy"
	"github.com/berth-dev/berth/cli/internal/tfstates"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/cli/internal/webhooks"
	"github.com/berth-dev/berth/pkg/version"
	"github.com/berth-dev/berth/pkg/visible"
)

// Groups of commands in the help.
const (
	groupDaily  = "daily"
	groupNouns  = "nouns"
	groupSystem = "system"
)

// cli is what all commands share.
type cli struct{ *command.CLI }

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, s command.Streams, getenv func(string) string) int {
	out, errs := visible.NewWriter(s.Out), visible.NewWriter(s.Err)
	defer func() {
		_ = out.Flush() // as every command ignores what becomes of its last line
		_ = errs.Flush()
	}()
	s.Out, s.Err = out, errs
	c := &cli{&command.CLI{Streams: s, Getenv: getenv, Now: time.Now}}
	root := c.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		fmt.Fprintln(s.Err, "berth: interrupted")
		if try := remedy.For(err); try != "" {
			fmt.Fprintln(s.Err, "try:", visible.Row(try))
		}
		return command.ExitFailed
	}
	if err != nil && !c.Running {
		err = usage.Error{Err: err}
	}
	command.Report(s.Err, err)
	return command.ExitCode(err)
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "berth",
		Short: "Run your product in your customers' own accounts, clusters and machines",
		Long: `Berth runs your product in your customers' own accounts, clusters and machines,
and keeps it healthy there, without holding a key to them.

Start here: berth up, then berth sync in an app folder.`,
		SilenceErrors: true, // report writes them
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs, // unknown commands get our own error
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Unknown(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.Version = version.Get().String()
	root.SetVersionTemplate("berth {{.Version}}, " + version.Get().Go + "\n")
	root.SetIn(c.In)
	root.SetOut(c.Out)
	root.SetErr(c.Err)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(usage.OfFlag)
	root.PersistentFlags().StringVar(&c.ContextFlag, "context", "", "the context to use (BERTH_CONTEXT)")
	root.PersistentFlags().StringVar(&c.OrgFlag, "org", "", "the org to work in, if you belong to several (BERTH_ORG)")
	root.PersistentFlags().StringVarP(&c.OutputFlag, "output", "o", "table", "table, wide, json, yaml, csv or name")
	root.PersistentFlags().StringVar(&c.JSONFlag, "json", "", "print only these fields, as JSON: name,install.name")
	root.PersistentFlags().BoolVar(&c.NoPager, "no-pager", false, "print long output directly instead of through a pager (NO_PAGER)")
	root.AddGroup(
		&cobra.Group{ID: groupDaily, Title: "Every day:"},
		&cobra.Group{ID: groupNouns, Title: "Everything else, by noun:"},
		&cobra.Group{ID: groupSystem, Title: "This machine and this program:"},
	)
	root.SetHelpCommandGroupID(groupSystem)
	root.SetCompletionCommandGroupID(groupSystem)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd {
			return nil // an empty argument is one that nothing was typed of yet
		}
		if err := usage.Check(cmd, args); err != nil {
			return err
		}
		_, err := c.Format() // before anything is done that could not be printed
		return err
	}
	c.add(root)
	example.Attach(root)
	c.addWords(root)
	complete.Attach(root, c.ClientWith)
	c.watchStart(root)
	return root
}

// watchStart notes when a command begins to run: what goes wrong before that is
// wrong with the command line.
func (c *cli) watchStart(cmd *cobra.Command) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.Running = true
			return inner(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		c.watchStart(sub)
	}
}

// add gives the root its commands, in the order of the help.
func (c *cli) add(root *cobra.Command) {
	group := func(id string, commands ...*cobra.Command) {
		for _, cmd := range commands {
			cmd.GroupID = id
			root.AddCommand(cmd)
		}
	}
	group(groupDaily, c.syncCommand(), rehearse.Command(rehearse.Doors{Call: c.Call, Args: command.Exactly("FOLDER"), Format: c.Format, Out: c.Out, Err: c.Err, Now: c.Now}), c.deployCommand(), c.approveCommand(), c.logsCommand(), c.statusCommand(), c.whyCommand(),
		c.denyCommand(), c.retryCommand(), c.rollbackCommand(), c.skipCommand(), c.diffOfInstall(), past.History(c.CLI), past.Metrics(c.CLI),
		c.outputsCommand(), c.rolesCommand())
	group(groupNouns, apps.Command(c.CLI), c.configsCommand(), c.buildsCommand(), c.releasesCommand(), c.installsCommand(),
		c.workflowsCommand(), c.changesCommand(), c.actionsCommand(), c.runnersCommand(), alerts.Command(c.CLI), alerts.Incidents(c.CLI), c.alarmsCommand(), c.customersCommand(),
		fleet.Resources(c.CLI), drift.Command(c.CLI), fleet.Bulk(c.CLI), clearance.Approvals(c.CLI), clearance.Freezes(c.CLI), policies.Command(c.CLI), c.tokensCommand(), dashboard.Sessions(c.CLI), c.registryCommand(), c.membersCommand(), c.orgsCommand(), events.Command(c.CLI), webhooks.Command(c.CLI), plugins.Command(command.Noun, plugins.Doors{Args: command.Exactly("DIR"), Packed: command.Exactly("DIR", "IMAGE"), Pushed: command.Exactly("DIR", "REGISTRY/REPOSITORY:TAG"), Getenv: c.Getenv, Out: c.Out, Err: c.Err, Format: c.Format}), tfstates.Command(command.Noun, tfstates.Doors{Call: c.Call, Args: command.Exactly, Limit: command.LimitFlag, Out: c.Out, Format: c.Format, Now: c.Now}))
	group(groupSystem, c.upCommand(), c.downCommand(), dashboard.UI(c.CLI), front.Command(command.Exactly(), c.Getenv, c.Err), c.doctorCommand(), c.contextCommand(), c.apiCommand(), c.versionCommand(), manual.Command(command.Exactly("DIR"), c.Now))
}
