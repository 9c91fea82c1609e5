package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/logview"
	"github.com/berth-dev/berth/cli/internal/names"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func (c *cli) logsCommand() *cobra.Command {
	var l logview.View
	var raws bool
	cmd := &cobra.Command{
		Use: "logs [INSTALL[/COMPONENT or ACTION] | ID]", Short: "Show or follow logs",
		Long: `Shows the log of a component's newest change, an action's newest run or an install's
newest workflow, or of a build, change, step, workflow, run or stream that you name by
its id; without an argument that of your newest workflow. Each log ends with its number of lines and their hash, or with what is missing.
With -o json each line is a JSON object.

Berth removes the colours of the tool's output, and writes out characters that could
control the terminal or hide text, such as ⟨U+001B⟩.`,
		Args: command.Exactly("[INSTALL or ID]", "[COMPONENT or ACTION]"),
	}
	cmd.Flags().BoolVarP(&l.Follow, "follow", "f", false, "wait for more lines until everything has finished")
	cmd.Flags().BoolVarP(&l.Times, "timestamps", "t", false, "show when each line was written")
	cmd.Flags().BoolVar(&raws, "raw", false, "print the lines exactly as written, with colours; they can control your terminal")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if raws && command.IsTerminal(c.Out) {
			output.Println(c.Err, "warning: --raw lets the log control this terminal: it can hide and forge lines")
		}
		if len(args) == 2 { // as berth outputs and berth deploy take it
			args = []string{args[0] + "/" + args[1]}
		}
		what, err := whoseLog(ctx, client, args)
		if err != nil {
			return err
		}
		logs, err := client.Logs(ctx)
		if err != nil {
			return err
		}
		l.Client, l.Logs, l.Out, l.Err, l.JSON = client, logs, c.Out, c.Err, c.OutputFlag == string(output.JSON)
		if w, ok := command.Raw(c.Out).(io.Writer); ok && raws {
			l.Raw = w
		}
		if len(args) == 0 {
			output.Printf(c.Err, "the newest workflow: %s\n", what)
		}
		return l.Show(ctx, what)
	})
	return cmd
}

// whoseLog is what was named or, when nothing was, the newest workflow.
func whoseLog(ctx context.Context, client *api.Client, args []string) (string, error) {
	if len(args) > 0 {
		return names.Book{Client: client}.Log(ctx, args[0])
	}
	newest, err := client.Workflows(ctx, 1, ctlapi.ListWorkflowsParams{})
	switch {
	case err != nil:
		return "", err
	case len(newest) == 0:
		return "", errors.New("there has been no workflow yet; name a build: berth builds list shows them")
	}
	return newest[0].ID, nil
}
