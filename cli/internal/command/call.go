package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/names"
)

// Call makes the RunE of a command that talks to the control plane. Its arguments
// and flags that name something (INSTALL, --app) come to it as the control plane
// knows them, see package names.
func (c *CLI) Call(fn func(ctx context.Context, client *api.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		client, err := c.Client()
		if err != nil {
			return err
		}
		book := names.Book{Client: client, Exact: names.IsFinal(cmd.Name())}
		if args, err = resolveArgs(cmd, book, args); err == nil {
			err = fn(cmd.Context(), client, args)
		}
		return book.Explain(cmd.Context(), err)
	}
}

// resolveArgs writes out what was typed, by what the command's line of use calls
// its arguments and by the names of its flags.
func resolveArgs(cmd *cobra.Command, book names.Book, typed []string) ([]string, error) {
	args := slices.Clone(typed)
	for i, kind := range names.Kinds(cmd.Use) {
		if i >= len(args) {
			break
		}
		var err error
		if args[i], err = book.Resolve(cmd.Context(), kind, args[i]); err != nil {
			return nil, err
		}
	}
	var wrong error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		kind := names.OfFlag(f.Name)
		if kind == "" || wrong != nil || f.Value.String() == "" {
			return
		}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			typed := several.GetSlice()
			for i := range typed {
				if typed[i], wrong = book.Resolve(cmd.Context(), kind, typed[i]); wrong != nil {
					return
				}
			}
			wrong = several.Replace(typed)
			return
		}
		var name string
		if name, wrong = book.Resolve(cmd.Context(), kind, f.Value.String()); wrong == nil {
			wrong = f.Value.Set(name)
		}
	})
	return args, wrong
}
