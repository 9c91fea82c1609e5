package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
)

// call makes the RunE of a command that talks to the control plane.
func (c *cli) call(fn func(ctx context.Context, client *api.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		client, err := c.client()
		if err != nil {
			return err
		}
		return fn(cmd.Context(), client, args)
	}
}
