package main

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/clusterneeds"
)

func (c *cli) appsPermissionsCommand() *cobra.Command {
	run := clusterneeds.Run{Out: c.out, Err: c.err, In: c.in, Now: c.now, OfInstall: c.installState}
	cmd := clusterneeds.Command(&run)
	cmd.Args = exactly("[DIR]")
	cmd.PreRun = func(*cobra.Command, []string) { run.JSON = c.jsonFlag != "" }
	return cmd
}
