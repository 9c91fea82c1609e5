package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/cli/internal/words"
)

// addWords gives the root the words that fingers type out of habit. They are in
// no help: each runs the command that it means, or says which one to type.
func (c *cli) addWords(root *cobra.Command) {
	nouns := map[string]string{}
	for _, cmd := range root.Commands() {
		if cmd.GroupID == groupNouns {
			for _, name := range append(cmd.Aliases, cmd.Name()) {
				nouns[name] = cmd.Name()
			}
		}
	}
	for _, word := range words.Known() {
		root.AddCommand(&cobra.Command{
			Use: word, Hidden: true, DisableFlagParsing: true, ValidArgsFunction: cobra.NoFileCompletions,
			RunE: func(cmd *cobra.Command, rest []string) error {
				m := words.Of(word, rest, nouns)
				if m.Command == nil {
					return usage.Errorf("berth %s: %s", word, m.Answer)
				}
				meant := c.root()
				meant.SetArgs(m.Command)
				return meant.ExecuteContext(cmd.Context())
			},
		})
	}
}

// alsoCalled lets a flag be typed by the name that other commands have for the same
// thing. Help shows only its own.
func alsoCalled(cmd *cobra.Command, flag, other string) {
	cmd.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == other {
			name = flag
		}
		return pflag.NormalizedName(name)
	})
}
