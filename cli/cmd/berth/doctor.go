package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/doctor"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/version"
)

const doctorTimeout = 20 * time.Second

func (c *cli) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check this machine and the Berth that commands talk to", Args: command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), doctorTimeout)
			defer cancel()
			found := append(doctor.Machine(ctx, c.Getenv), c.examineBerth(ctx)...)
			if err := command.PrintList(c.CLI, found, doctor.View()); err != nil {
				return err
			}
			for _, f := range found {
				if f.Remedy != "" && !c.ForPrograms() {
					output.Printf(c.Err, "%s: try: %s\n", f.What, f.Remedy)
				}
			}
			if !doctor.Healthy(found) {
				return command.Outcome(command.ExitFailed)
			}
			return nil
		},
	}
}

// examineBerth looks at the control plane of the context.
func (c *cli) examineBerth(ctx context.Context) []doctor.Finding {
	client, err := c.ClientWith(doctor.Patience)
	if err != nil {
		return []doctor.Finding{doctor.Bad("context", err)}
	}
	return doctor.Berth(ctx, client, c.Now)
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program",
		Args:  command.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			info := version.Get()
			if c.ForPrograms() {
				return command.PrintOne(c.CLI, info, output.View[version.Info]{Name: func(i version.Info) string { return i.Version }})
			}
			_, err := output.Printf(c.Out, "berth %s, %s\n", info, info.Go)
			return err
		},
	}
}
