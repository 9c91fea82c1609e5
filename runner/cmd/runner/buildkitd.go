package main

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/runner/agent/buildkit"
)

// buildkitdCommand keeps the BuildKit daemon of a Build Runner. The agent starts it
// for itself; people have no use for it.
func buildkitdCommand() *cobra.Command {
	return &cobra.Command{
		Use: "buildkitd FILE", Short: "Keep the BuildKit of a Build Runner", Args: cobra.ExactArgs(1), Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error { return buildkit.Keep(args[0]) },
	}
}
