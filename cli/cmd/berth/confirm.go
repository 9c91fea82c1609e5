package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/visible"
)

// confirmFlag adds --confirm to a command that may remove something for good.
func confirmFlag(cmd *cobra.Command, to *string, noun string) {
	cmd.Flags().StringVar(to, "confirm", "", confirmUsage(noun))
}

func confirmUsage(noun string) string {
	return "the " + noun + "'s name: remove what goes without asking (--auto-approve does not)"
}

// notConfirmed is the error of a command that had nobody to ask.
type notConfirmed struct {
	error
	name string // what has to be given
}

// Unwrap returns the sentence for people.
func (n notConfirmed) Unwrap() error { return n.error }

// deed removes something for good.
type deed struct {
	what string // "deprovisioning install acme"
	name string // what has to be typed
	goes []string
}

// confirm has a person type the name, after showing what goes, unless it was
// given on the command line. Without either, nothing is done.
func (c *cli) confirm(ctx context.Context, given string, d deed) error {
	d.what = visible.Row(d.what)
	switch {
	case given == d.name:
		return nil
	case given != "":
		return usagef("--confirm %s is not the name: %s needs --confirm %s; nothing was done", given, d.what, d.name)
	}
	if len(d.goes) > 0 {
		output.Printf(c.err, "%s removes:\n", d.what)
		for _, what := range d.goes {
			output.Println(c.err, " ", visible.Row(what))
		}
	}
	if !c.canAsk() {
		return notConfirmed{usagef("%s has to be confirmed, and this is not a terminal: use --confirm %s; nothing was done", d.what, d.name), d.name}
	}
	typed, err := c.asking().Line(ctx, fmt.Sprintf("This cannot be undone. Type %s to confirm %s: ", visible.Row(d.name), d.what))
	if err != nil {
		return err
	}
	if typed != d.name {
		return errors.New("not confirmed: that is not the name; nothing was done")
	}
	return nil
}
