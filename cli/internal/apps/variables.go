package apps

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/redact"
)

// maxVariableBytes is how long the value of a variable may be, as the control
// plane has it; reading stops there.
const maxVariableBytes = 64 << 10

func (c apps) variablesCommand() *cobra.Command {
	return command.Noun("variables", "variable", "Values that all installs of an app share: .nuon.app.variables",
		c.variablesList(), c.variablesShow(), c.variablesSet(), c.variablesDelete())
}

func (c apps) variablesList() *cobra.Command {
	cmd := &cobra.Command{Use: "list APP", Short: "List the variables of an app, without their values", Args: command.Exactly("APP")}
	limit := command.LimitFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		items, err := client.Variables(ctx, *limit, args[0])
		if err != nil {
			return err
		}
		return command.PrintList(c.CLI, items, table.Variable(c.Now(), false))
	})
	return cmd
}

func (c apps) variablesShow() *cobra.Command {
	cmd := &cobra.Command{
		Use: "show APP NAME", Short: "Show a variable of an app, with its value if it is not a secret", Args: command.Exactly("APP", "NAME"),
	}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.GetAppVariableWithResponse(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		variable, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		return command.PrintOne(c.CLI, *variable, table.Variable(c.Now(), true))
	})
	return cmd
}

func (c apps) variablesSet() *cobra.Command {
	var plain bool
	var file string
	cmd := &cobra.Command{
		Use: "set APP NAME", Short: "Set a variable of an app",
		Long: `Sets a variable that the templates of every install read as .nuon.app.variables.NAME.
Berth reads the value from --from-file or from stdin, without the line break at its end;
it is not an argument, because other people on this machine can see those. Berth stores
the value sealed and never shows it again.

With --plain it is not a secret: Berth shows it, and you may write NAME=VALUE.

This deploys nothing: the next berth deploy of an install uses the new value.`,
		Args: command.Exactly("APP", "NAME"),
	}
	cmd.Flags().BoolVar(&plain, "plain", false, "it is not a secret: show it to everyone who can read the app")
	cmd.Flags().StringVar(&file, "from-file", "", "read the value from this file")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		name, given, isGiven := strings.Cut(args[1], "=")
		switch {
		case name == "":
			return usage.Errorf("the variable has no name")
		case isGiven && !plain: // the mistake must not be repeated on the screen
			return usage.Errorf("a secret value cannot be an argument, where other people can see it: pass %s on stdin or with --from-file, or use --plain", name)
		case isGiven && file != "":
			return usage.Errorf("%s has two values: one in the argument and one from --from-file", name)
		}
		if !isGiven {
			var err error
			if given, err = c.readValue(name, file); err != nil {
				return err
			}
		}
		resp, err := client.SetAppVariableWithResponse(ctx, args[0], name, nil, ctlapi.AppVariableRequest{Value: given, Sensitive: new(!plain)})
		if err != nil {
			return err
		}
		variable, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if !plain && len(given) > 0 && len(given) < redact.MinLen {
			output.Printf(c.Err, "warning: Berth does not redact secrets shorter than %d bytes from logs\n", redact.MinLen)
		}
		if len(variable.ReadBy) == 0 {
			output.Printf(c.Err, "nothing in the newest config of %s reads %s\n", args[0], name)
		} else {
			output.Printf(c.Err, "%s is read by %s; berth deploy INSTALL uses the new value\n", name, table.Readers(*variable))
		}
		return command.PrintOne(c.CLI, *variable, table.Variable(c.Now(), true))
	})
	return cmd
}

func (c apps) variablesDelete() *cobra.Command {
	cmd := &cobra.Command{Use: "delete APP NAME", Short: "Delete a variable of an app", Args: command.Exactly("APP", "NAME")}
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		resp, err := client.DeleteAppVariableWithResponse(ctx, args[0], args[1], nil)
		if err != nil {
			return err
		}
		variable, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		if len(variable.ReadBy) > 0 {
			output.Printf(c.Err, "%s is read by %s, which cannot be deployed without it\n", variable.Name, table.Readers(*variable))
		}
		_, err = output.Printf(c.Out, "deleted variable %s of %s\n", variable.Name, args[0])
		return err
	})
	return cmd
}

// readValue reads the value of a variable from a file, or from stdin: typed and
// not shown, when that is a terminal.
func (c apps) readValue(name, file string) (string, error) {
	var value []byte
	var err error
	in, isFile := c.In.(*os.File)
	switch {
	case file != "":
		value, err = readFileUpTo(file, maxVariableBytes+2) // with a line break
	case isFile && command.IsTerminal(c.In):
		output.Printf(c.Err, "value of %s (hidden; use --from-file for several lines): ", name)
		value, err = term.ReadPassword(int(in.Fd()))
		fmt.Fprintln(c.Err)
	default:
		value, err = io.ReadAll(io.LimitReader(c.In, maxVariableBytes+3))
	}
	if err != nil {
		return "", err
	}
	value = bytes.TrimSuffix(bytes.TrimSuffix(value, []byte("\n")), []byte("\r"))
	switch {
	case len(value) == 0 && file == "":
		return "", usage.Errorf("no value: pass %s on stdin or with --from-file", name)
	case len(value) > maxVariableBytes:
		return "", usage.Errorf("the value of %s is longer than %d KiB: put large values into files in the app folder", name, maxVariableBytes>>10)
	case !utf8.Valid(value) || bytes.IndexByte(value, 0) >= 0:
		return "", usage.Errorf("the value of %s is not text: encode it, for example with base64, and decode it in the template (b64dec)", name)
	}
	return string(value), nil
}

func readFileUpTo(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, most+1))
}
