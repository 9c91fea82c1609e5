package past

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/cli/internal/when"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// State is `berth installs state`.
func State(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "state INSTALL [FROM] [TO]", Short: "Show the state tree that templates read, now or earlier, and what changed it", Args: command.Exactly("INSTALL", "[FROM]", "[TO]"),
		Long: `Prints the tree as JSON, or with -o yaml. --versions lists its versions: which paths each
changed, and why. --diff FROM TO shows what differs between two of them; without TO, up to
the newest. Sensitive values are shown as (sealed).

FROM, TO and --at are a version, or a time: 2026-11-26T10:00:00Z, 2026-11-26 10:00 (your
time), or how long ago: 2h, 3d.`,
	}
	var at string
	var versions, diff bool
	cmd.Flags().StringVar(&at, "at", "", "the tree of this version or time (default: the newest)")
	cmd.Flags().BoolVar(&versions, "versions", false, "list the versions, newest first")
	cmd.Flags().BoolVar(&diff, "diff", false, "show what differs between FROM and TO")
	cmd.MarkFlagsMutuallyExclusive("at", "versions", "diff")
	limit := cmd.Flags().Int("limit", 20, "with --versions: show at most this many; 0 shows all")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if err := sides(args, diff); err != nil {
			return err
		}
		switch {
		case versions:
			items, err := client.StateVersions(ctx, *limit, args[0])
			if err != nil {
				return err
			}
			return command.PrintList(c, items, table.StateVersion(c.Now()))
		case diff:
			return stateDiff(ctx, c, client, args)
		}
		ref, err := versionOf("--at", at, c.Now())
		if err != nil {
			return err
		}
		resp, err := client.GetStateWithResponse(ctx, args[0], &ctlapi.GetStateParams{At: api.Optional(ref)})
		if err != nil {
			return err
		}
		state, err := api.Body(resp.JSON200)
		if err != nil {
			return err
		}
		o, err := c.Format()
		if err != nil {
			return err
		}
		return output.Program(c.Out, o, state.Tree)
	})
	return cmd
}

// sides checks that what is compared is named, and nothing where nothing is.
func sides(args []string, diff bool) error {
	switch {
	case diff && len(args) < 2:
		return usage.Errorf("--diff needs FROM, and may have TO: --diff 3 5, or --diff 2h")
	case !diff && len(args) > 1:
		return usage.Errorf("%q is one argument too many; to compare, add --diff", args[1])
	}
	return nil
}

// arg is an argument, "" when there are fewer.
func arg(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

func stateDiff(ctx context.Context, c *command.CLI, client *api.Client, args []string) error {
	from, err := versionOf("FROM", args[1], c.Now())
	if err != nil {
		return err
	}
	to, err := versionOf("TO", arg(args, 2), c.Now())
	if err != nil {
		return err
	}
	resp, err := client.DiffStateWithResponse(ctx, args[0], &ctlapi.DiffStateParams{From: from, To: api.Optional(to)})
	if err != nil {
		return err
	}
	found, err := api.Body(resp.JSON200)
	if err != nil {
		return err
	}
	return printDiff(c, found, fmt.Sprintf("state version %d → %d", found.From, found.To), found.Changes)
}

// printDiff prints what was found to differ: whole as JSON and YAML, else its changes
// below a line that says between what.
func printDiff(c *command.CLI, found any, between string, changes []ctlapi.TreeChange) error {
	o, err := c.Format()
	if err != nil {
		return err
	}
	if o.Format == output.JSON || o.Format == output.YAML {
		return output.Program(c.Out, o, found)
	}
	if !c.ForPrograms() {
		output.Println(c.Out, between)
	}
	return command.PrintList(c, changes, table.TreeChange())
}

// versionOf reads a version or a time, as the API takes them.
func versionOf(flag, text string, now time.Time) (string, error) {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return text, nil
	}
	at, err := when.Past(flag, text, now)
	if err != nil || at == nil {
		return "", err
	}
	return at.UTC().Format(time.RFC3339Nano), nil
}
