// Package past is what `berth` shows of the past of an install: what happened, what
// changed before it broke, its state tree through time, what it was at a time, and the
// numbers that its runs wrote.
package past

import (
	"context"
	"fmt"
	"io"
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

// History is `berth history`.
func History(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "history INSTALL", Short: "Show what happened to an install, newest first", Args: command.Exactly("INSTALL"),
		Long: `Lists what happened to an install and who did it: inputs, settings, workflows, changes and
decisions, runs of actions, health, the runner and the customer's switch; and configs,
releases and variables of its app.

--before-failure finds the newest failure, goes back to when all was well last, and shows
what changed in between, the likeliest cause first.

Times are written as 2026-11-26T10:00:00Z, as 2026-11-26 10:00 (your time), or as how long
ago: 2h, 3d.`,
	}
	var kinds []string
	var resource, actor, since, until string
	var oldest, before bool
	cmd.Flags().StringSliceVar(&kinds, "kind", nil, "only these kinds, such as inputs.changed, or workflow.* for all of a noun")
	cmd.Flags().StringVar(&resource, "resource", "", "only what is about this component, or sandbox")
	cmd.Flags().StringVar(&actor, "by", "", "only what this person or service did")
	cmd.Flags().StringVar(&since, "since", "", "only what happened at this time or later")
	cmd.Flags().StringVar(&until, "until", "", "only what happened before this time")
	cmd.Flags().BoolVar(&oldest, "oldest", false, "show the oldest first")
	cmd.Flags().BoolVar(&before, "before-failure", false, "show what changed before the install broke")
	limit := cmd.Flags().Int("limit", 20, "show at most this many; 0 shows all")
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		from, err := when.Past("--since", since, c.Now())
		if err != nil {
			return err
		}
		to, err := when.Past("--until", until, c.Now())
		if err != nil {
			return err
		}
		if before {
			for _, flag := range []string{"kind", "resource", "by", "since", "oldest", "limit"} {
				if cmd.Flags().Changed(flag) {
					return usage.Errorf("--before-failure and --%s cannot be used together; it takes --until", flag)
				}
			}
			return beforeFailure(ctx, c, client, args[0], &ctlapi.GetBeforeFailureParams{At: to})
		}
		which := ctlapi.ListTimelineParams{Resource: api.Optional(resource), Actor: api.Optional(actor), Since: from, Until: to}
		if len(kinds) > 0 {
			which.Kind = &kinds
		}
		if oldest {
			which.Order = api.Optional(ctlapi.ListTimelineParamsOrderOldest)
		}
		items, err := client.Timeline(ctx, *limit, args[0], which)
		if err != nil {
			return err
		}
		return command.PrintList(c, items, table.Timeline(c.Now()))
	})
	return cmd
}

func beforeFailure(ctx context.Context, c *command.CLI, client *api.Client, install string, params *ctlapi.GetBeforeFailureParams) error {
	resp, err := client.GetBeforeFailureWithResponse(ctx, install, params)
	if err != nil {
		return err
	}
	found, err := api.Body(resp.JSON200)
	if err != nil {
		return err
	}
	o, err := c.Format()
	if err != nil {
		return err
	}
	if c.ForPrograms() {
		return output.Program(c.Out, o, found)
	}
	return writeBeforeFailure(c.Out, found, printing{age: c.Age, color: o.Color, install: install})
}

// printing is how a report is written.
type printing struct {
	age     func(at time.Time) string
	color   bool
	install string
}

// writeBeforeFailure shows a failure and what changed before it.
func writeBeforeFailure(w io.Writer, found *ctlapi.BeforeFailure, p printing) error {
	if found.Failure == nil {
		_, err := output.Printf(w, "nothing of %s failed, or it is well again\n", p.install)
		return err
	}
	line := func(title string, style output.Style, e ctlapi.TimelineEntry) {
		output.Printf(w, "%s %s\n          %s ago%s\n", output.Paint(p.color, style, fmt.Sprintf("%-9s", title)), e.Text, p.age(e.At), who(e.Actor))
	}
	line("broke", output.Bad, *found.Failure)
	if found.Good != nil {
		line("last good", output.Good, *found.Good)
	} else {
		output.Println(w, "last good never, as far back as this was looked for")
	}
	output.Println(w)
	if len(found.Suspects) == 0 {
		_, err := output.Println(w, "Nothing changed in between that Berth knows of.")
		return err
	}
	output.Println(w, "What changed in between, the likeliest cause first:")
	for i, s := range found.Suspects {
		output.Printf(w, "\n%2d. %s\n", i+1, s.Text)
		ago, actor := "", ""
		if s.At != nil {
			ago = p.age(*s.At) + " ago"
		}
		if s.Entry != nil {
			actor = who(s.Entry.Actor)
		}
		output.Printf(w, "    %s%s: %s\n", ago, actor, s.Why)
		if s.Changes != nil {
			for _, c := range *s.Changes {
				output.Printf(w, "      %s\n", table.OneChange(c))
			}
		}
	}
	return nil
}

func who(actor *string) string {
	if actor == nil {
		return ""
	}
	return " by " + *actor
}
