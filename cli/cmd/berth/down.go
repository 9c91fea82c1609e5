package main

import (
	"errors"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/up"
)

func (c *cli) downCommand() *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Stop Berth on this machine",
		Long: `Ends everything that berth up started, process by process, and says what it ended.
The data stays, and the next berth up goes on with it. With --purge the data folder
is deleted too: the database, the artifacts, and what local installs keep in it.`,
		Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			layout, err := localLayout()
			if err != nil {
				return err
			}
			return c.down(layout, purge)
		},
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "also delete the data folder")
	return cmd
}

func (c *cli) down(layout up.Layout, purge bool) error {
	if _, err := os.Stat(layout.Dir); errors.Is(err, fs.ErrNotExist) {
		_, err := output.Printf(c.out, "nothing to stop: there is no data folder %s\n", layout.Dir)
		return err
	}
	ended := 0
	err := up.Down(layout, func(e up.Ended) {
		ended++
		how := "stopped"
		if e.Killed {
			how = "killed"
		}
		output.Printf(c.out, "%s %s (pid %d)\n", how, e.Name, e.PID)
	})
	if err != nil {
		return err
	}
	if ended == 0 {
		output.Println(c.out, "nothing was running")
	}
	if !purge {
		return nil
	}
	deleted, err := up.Purge(layout)
	for _, dir := range deleted {
		output.Println(c.out, "deleted", dir)
	}
	return err
}
