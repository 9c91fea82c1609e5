package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/pkg/visible"
)

// ConfirmFlag adds --confirm to a command that may remove something for good.
func ConfirmFlag(cmd *cobra.Command, to *string, noun string) {
	cmd.Flags().StringVar(to, "confirm", "", ConfirmUsage(noun))
}

// ConfirmUsage is the help of --confirm for a noun.
func ConfirmUsage(noun string) string {
	return "the " + noun + "'s name: remove what goes without asking (--auto-approve does not)"
}

// NotConfirmed is the error of a command that had nobody to ask.
type NotConfirmed struct {
	error
	Name string // what has to be given
}

// Unwrap returns the sentence for people.
func (n NotConfirmed) Unwrap() error { return n.error }

// Deed removes something for good.
type Deed struct {
	What string   // "deprovisioning install acme"
	Name string   // what has to be typed
	Goes []string // a line each
}

// Confirm has a person type the name, after showing what goes, unless it was
// given on the command line. Without either, nothing is done.
func (c *CLI) Confirm(ctx context.Context, given string, d Deed) error {
	d.What = visible.Row(d.What)
	switch {
	case given == d.Name:
		return nil
	case given != "":
		return usage.Errorf("--confirm %s is not the name: %s needs --confirm %s; nothing was done", given, d.What, d.Name)
	}
	if len(d.Goes) > 0 {
		output.Printf(c.Err, "%s removes:\n", d.What)
		for _, what := range d.Goes {
			output.Println(c.Err, " ", visible.Row(what))
		}
	}
	if !c.CanAsk() {
		return NotConfirmed{usage.Errorf("%s has to be confirmed, and this is not a terminal: use --confirm %s; nothing was done", d.What, d.Name), d.Name}
	}
	typed, err := c.Person().Line(ctx, fmt.Sprintf("This cannot be undone. Type %s to confirm %s: ", visible.Row(d.Name), d.What))
	if err != nil {
		return err
	}
	if typed != d.Name {
		return errors.New("not confirmed: that is not the name; nothing was done")
	}
	return nil
}
