package apps

import (
	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/clusterneeds"
	"github.com/berth-dev/berth/cli/internal/command"
)

func (c apps) permissionsCommand() *cobra.Command {
	run := clusterneeds.Run{Out: c.Out, Err: c.Err, In: c.In, Now: c.Now, OfInstall: c.installState}
	cmd := clusterneeds.Command(&run)
	cmd.Args = command.Exactly("[DIR]")
	cmd.PreRun = func(*cobra.Command, []string) { run.JSON = c.JSONFlag != "" }
	return cmd
}
