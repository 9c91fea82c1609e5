package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/example"
	"github.com/berth-dev/berth/cli/internal/exampletest"
	"github.com/berth-dev/berth/cli/internal/usage"
)

// Every command has an example of itself, and anyone who types an example is
// understood: commands, flags, how many arguments.
func TestExamplesAreUnderstood(t *testing.T) {
	t.Parallel()
	tree := func() *cobra.Command { // flags keep what was typed, so each line gets its own
		c := &cli{&command.CLI{Getenv: func(string) string { return "" }, Now: time.Now}}
		return c.root()
	}
	all := example.Of()
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			if !sub.Hidden {
				visit(sub)
			}
		}
		if cmd.HasSubCommands() {
			return
		}
		path := cmd.CommandPath()
		itself := false
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			for _, words := range exampletest.Typed(line) {
				typed, err := understood(tree(), words)
				if err != nil {
					t.Errorf("%s: %s: %v", path, line, err)
				}
				itself = itself || typed == path
			}
		}
		if !itself {
			t.Errorf("%s has no example of itself", path)
		}
		delete(all, path)
	}
	visit(tree())
	for path := range all {
		t.Errorf("examples of %s, which is no command", path)
	}
}

// understood parses what was typed as far as a command would run, and returns which.
func understood(root *cobra.Command, words []string) (path string, err error) {
	cmd, rest, err := root.Find(words)
	if err != nil {
		return "", err
	}
	if cmd.HasSubCommands() {
		return "", usage.Errorf("%s is no command", strings.Join(words, " "))
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return "", err
	}
	args := cmd.Flags().Args()
	if err := cmd.ValidateArgs(args); err != nil {
		return "", err
	}
	if err := root.PersistentPreRunE(cmd, args); err != nil {
		return "", err
	}
	return cmd.CommandPath(), nil
}

// The test of the examples would see a mistake in one.
func TestMistakesInExamplesAreSeen(t *testing.T) {
	t.Parallel()
	c := &cli{&command.CLI{Getenv: func(string) string { return "" }, Now: time.Now}}
	for _, line := range []string{
		"deploi acme", "apps lst", "deploy acme --wach", "apps show", "apps show hello more", "orgs create vendor --admn x", "status -o xml",
		"builds list --state lost", "history acme --limit many", "context add prod",
	} {
		if path, err := understood(c.root(), strings.Fields(line)); err == nil {
			t.Errorf("%q is understood as %s", line, path)
		}
	}
}
