package main

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/version"
)

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			info := version.Get()
			if c.forPrograms() {
				return printOne(c, info, output.View[version.Info]{Name: func(i version.Info) string { return i.Version }})
			}
			_, err := output.Printf(c.out, "berth %s, %s\n", info, info.Go)
			return err
		},
	}
}
