package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/waits"
)

func (c *cli) whyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "why INSTALL | ID", Short: "Explain what something waits for, and who can end that",
		Long: waits.Long,
		Args: command.Exactly("INSTALL or ID"),
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		ref := args[0]
		if strings.HasPrefix(ref, "wfl_") {
			var err error
			if ref, err = (names.Book{Client: client}).Workflow(ctx, ref); err != nil {
				return err
			}
		}
		if !waits.IsID(ref) {
			install, err := (names.Book{Client: client}).Install(ctx, ref)
			if err != nil {
				return err
			}
			ref = install.ID
		}
		why, err := waits.Ask(ctx, client, ref)
		if err != nil {
			return err
		}
		if c.ForPrograms() {
			return command.PrintOne(c.CLI, *why, waits.View)
		}
		waits.Print(c.Out, command.ColumnsOf(c.Out), why)
		return nil
	})
	return cmd
}
