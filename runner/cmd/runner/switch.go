package main

import (
	"fmt"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/power"
)

// switchCommands set the customer's switch, which stands above everything that
// the control plane asks for.
func (s *settings) switchCommands() []*cobra.Command {
	var commands []*cobra.Command
	for _, c := range []struct {
		use, short string
		mode       power.Mode
	}{
		{"pause", "Let running jobs finish and start nothing new; health checks keep running", power.Pause},
		{"resume", "Set the switch back to run", power.Run},
		{"read-only", "Start nothing that changes anything; plans, drift and health checks keep running", power.ReadOnly},
		{"stop-now", "Stop engines at their next safe point, begin nothing", power.StopNow},
		{"sever", "Like stop-now, and send and fetch nothing either", power.Sever},
	} {
		cmd := &cobra.Command{
			Use: c.use, Short: c.short, Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error { return s.setSwitch(cmd, c.mode) },
		}
		cmd.Flags().StringVar(&s.reason, "reason", "", "why, for the record")
		commands = append(commands, cmd)
	}
	return commands
}

func (s *settings) setSwitch(cmd *cobra.Command, mode power.Mode) error {
	dir, err := s.dir()
	if err != nil {
		return err
	}
	state := power.State{Mode: mode, Reason: s.reason, At: time.Now().UTC()}
	if u, err := user.Current(); err == nil {
		state.By = u.Username
	}
	if err := power.Set(dir, state); err != nil {
		return err
	}
	note := "the running agent obeys at once"
	if !dir.Locked() {
		note = "no agent is running; the next one obeys"
	}
	fmt.Fprintf(cmd.OutOrStdout(), "switch: %s (%s)\n", mode, note)
	return nil
}

func (s *settings) dir() (datadir.Dir, error) {
	cfg, err := s.config()
	if err != nil {
		return datadir.Dir{}, err
	}
	return datadir.At(cfg.Data)
}
