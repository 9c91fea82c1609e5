package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// habits are what other tools call our verbs.
var habits = map[string][]string{"list": {"ls"}, "show": {"get", "describe"}}

// Noun is a command that only holds verbs. The singular is accepted too.
func Noun(plural, singular, short string, verbs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: plural, Aliases: []string{singular}, Short: short, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return Unknown(cmd, args[0])
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

// Exactly is cobra.ExactArgs with the names of what is missing, and our exit
// code. Names that start with [ may be left out.
func Exactly(names ...string) cobra.PositionalArgs {
	least := 0
	for _, name := range names {
		if !strings.HasPrefix(name, "[") {
			least++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage.Errorf("%s needs %s; see %s --help", cmd.CommandPath(), names[len(args)], cmd.CommandPath())
		case len(args) > len(names):
			return usage.Errorf("%s does not take %q; see %s --help", cmd.CommandPath(), args[len(names)], cmd.CommandPath())
		}
		return nil
	}
}

// Unknown is the error for a word that means nothing here.
func Unknown(cmd *cobra.Command, typed string) error {
	var known, aliases []string
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			known, aliases = append(known, sub.Name()), append(aliases, sub.Aliases...)
		}
	}
	hint := "see " + cmd.CommandPath() + " --help"
	if near := place.Nearest(strings.ToLower(typed), append(known, aliases...)); near != "" {
		hint = "did you mean " + near + "?"
	}
	return usage.Errorf("unknown command %q for %q; %s", usage.Shortened(typed), cmd.CommandPath(), hint)
}
