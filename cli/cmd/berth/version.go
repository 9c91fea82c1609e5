package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/pkg/version"
)

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			info := version.Get()
			_, err := fmt.Fprintf(c.out, "berth %s, %s\n", info, info.Go)
			return err
		},
	}
}
