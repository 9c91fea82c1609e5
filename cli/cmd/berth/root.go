package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/ask"
	"github.com/berth-dev/berth/cli/internal/complete"
	"github.com/berth-dev/berth/cli/internal/contexts"
	"github.com/berth-dev/berth/cli/internal/example"
	"github.com/berth-dev/berth/cli/internal/front"
	"github.com/berth-dev/berth/cli/internal/manual"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/plugins"
	"github.com/berth-dev/berth/cli/internal/rehearse"
	"github.com/berth-dev/berth/cli/internal/remedy"
	"github.com/berth-dev/berth/cli/internal/tfstates"
	"github.com/berth-dev/berth/cli/internal/usage"
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
type cli struct {
	streams
	getenv func(string) string

	now    func() time.Time
	person *ask.Person // at the terminal, once somebody was asked

	running bool // a command was found, and its flags and arguments are right

	contextFlag string // --context
	orgFlag     string // --org
	outputFlag  string // -o
	jsonFlag    string // --json
	noPager     bool   // --no-pager
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, s streams, getenv func(string) string) int {
	out, errs := visible.NewWriter(s.out), visible.NewWriter(s.err)
	defer func() {
		_ = out.Flush() // as every command ignores what becomes of its last line
		_ = errs.Flush()
	}()
	s.out, s.err = out, errs
	c := &cli{streams: s, getenv: getenv, now: time.Now}
	root := c.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && ctx.Err() != nil {
		fmt.Fprintln(s.err, "berth: interrupted")
		if try := remedy.For(err); try != "" {
			fmt.Fprintln(s.err, "try:", visible.Row(try))
		}
		return exitFailed
	}
	if err != nil && !c.running {
		err = usage.Error{Err: err}
	}
	report(s.err, err)
	return exitCode(err)
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
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	root.Version = version.Get().String()
	root.SetVersionTemplate("berth {{.Version}}, " + version.Get().Go + "\n")
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetFlagErrorFunc(usage.OfFlag)
	root.PersistentFlags().StringVar(&c.contextFlag, "context", "", "the context to use (BERTH_CONTEXT)")
	root.PersistentFlags().StringVar(&c.orgFlag, "org", "", "the org to work in, if you belong to several (BERTH_ORG)")
	root.PersistentFlags().StringVarP(&c.outputFlag, "output", "o", "table", "table, wide, json, yaml or name")
	root.PersistentFlags().StringVar(&c.jsonFlag, "json", "", "print only these fields, as JSON: name,install.name")
	root.PersistentFlags().BoolVar(&c.noPager, "no-pager", false, "print long output directly instead of through a pager (NO_PAGER)")
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
		_, err := c.format() // before anything is done that could not be printed
		return err
	}
	c.add(root)
	example.Attach(root)
	c.addWords(root)
	complete.Attach(root, c.clientWith)
	c.watchStart(root)
	return root
}

// watchStart notes when a command begins to run: what goes wrong before that is
// wrong with the command line.
func (c *cli) watchStart(cmd *cobra.Command) {
	if inner := cmd.RunE; inner != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.running = true
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
	group(groupDaily, c.syncCommand(), rehearse.Command(rehearse.Doors{Call: c.call, Args: exactly("FOLDER"), Format: c.format, Out: c.out, Err: c.err, Now: c.now}), c.deployCommand(), c.approveCommand(), c.logsCommand(), c.statusCommand(), c.whyCommand(),
		c.denyCommand(), c.retryCommand(), c.rollbackCommand(), c.diffOfInstall(), c.historyCommand(), c.outputsCommand())
	group(groupNouns, c.appsCommand(), c.configsCommand(), c.buildsCommand(), c.releasesCommand(), c.installsCommand(),
		c.workflowsCommand(), c.changesCommand(), c.actionsCommand(), c.runnersCommand(), c.alarmsCommand(), c.customersCommand(),
		c.tokensCommand(), c.registryCommand(), c.membersCommand(), c.orgsCommand(), plugins.Command(noun, plugins.Doors{Args: exactly("DIR"), Out: c.out, Err: c.err, Format: c.format}), tfstates.Command(noun, tfstates.Doors{Call: c.call, Args: exactly, Limit: limitFlag, Out: c.out, Format: c.format, Now: c.now}))
	group(groupSystem, c.upCommand(), c.downCommand(), front.Command(exactly(), c.getenv, c.err), c.doctorCommand(), c.contextCommand(), c.apiCommand(), c.versionCommand(), manual.Command(exactly("DIR"), c.now))
}

// habits are what other tools call our verbs.
var habits = map[string][]string{"list": {"ls"}, "show": {"get", "describe"}}

// noun is a command that only holds verbs. The singular is accepted too.
func noun(plural, singular, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: plural, Aliases: []string{singular}, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	for _, verb := range verbs {
		verb.Aliases = append(verb.Aliases, habits[verb.Name()]...)
	}
	cmd.AddCommand(verbs...)
	return cmd
}

// exactly is cobra.ExactArgs with the names of what is missing, and our exit
// code. Names that start with [ may be left out.
func exactly(names ...string) cobra.PositionalArgs {
	least := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			least++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s needs %s; see %s --help", cmd.CommandPath(), names[len(args)], cmd.CommandPath())
		case len(args) > len(names):
			return usagef("%s does not take %q; see %s --help", cmd.CommandPath(), args[len(names)], cmd.CommandPath())
		}
		return nil
	}
}

// target finds out where to go and as whom.
func (c *cli) target() (contexts.Target, error) {
	file, err := c.contextFile()
	if err != nil {
		return contexts.Target{}, err
	}
	target, err := contexts.Resolve(file, c.contextFlag, c.getenv)
	if c.orgFlag != "" {
		target.Org = c.orgFlag
	}
	return target, err
}

func (c *cli) contextFile() (*contexts.File, error) {
	path, err := contexts.Path(c.getenv)
	if err != nil {
		// Without a home there are no contexts; variables may still say all.
		path = ""
	}
	return contexts.Load(path)
}

func (c *cli) client() (*api.Client, error) { return c.clientWith(0) }

// clientWith is a client with other than the usual patience.
func (c *cli) clientWith(patience time.Duration) (*api.Client, error) {
	target, err := c.target()
	if err != nil {
		return nil, err
	}
	return api.New(api.Options{
		URL: target.URL, Token: target.Token, Org: target.Org, Patience: patience,
		Say: func(line string) { output.Println(c.err, line) },
	})
}
