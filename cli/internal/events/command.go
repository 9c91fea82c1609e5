// Package events is `berth events`: the org's stream of events, read or followed.
// The client reads the stream (pkg/berth); the control plane says who may see what.
package events

import (
	"context"
	"encoding/json"
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

// Command is `berth events`.
func Command(c *command.CLI) *cobra.Command {
	var since, install, app string
	var kinds []string
	var follow bool
	cmd := &cobra.Command{
		Use: "events", Short: "Show or follow what happens in the org", Args: command.Exactly(),
		Long: `Shows the events of the org that you may see, oldest first: those of the last day, or from
--since on. With --follow it shows what happens from now on (or since --since) as it happens,
until you stop it; it reconnects by itself and misses nothing.

Events have numbers. --since takes a number, and shows what came after it; a time, such as
2026-11-26T10:00:00Z; or how long ago, such as 2h. Events are kept for 30 days unless the
operator chose otherwise. -o json prints the bodies too; with --follow it is a line per event.`,
	}
	f := cmd.Flags()
	f.StringVar(&since, "since", "", "begin after this event number, at this time, or this long ago")
	f.BoolVarP(&follow, "follow", "f", false, "show events as they happen, until you stop it")
	f.StringSliceVar(&kinds, "type", nil, "only events of this type, such as workflow.failed or change.*")
	f.StringVar(&install, "install", "", "only events of this install")
	f.StringVar(&app, "app", "", "only events of this app and its installs")
	limit := command.LimitFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, _ []string) error {
		which, err := begin(since, follow, c.Now())
		if err != nil {
			return err
		}
		which.Install, which.App = api.Optional(install), api.Optional(app)
		if len(kinds) > 0 {
			which.Kind = &kinds
		}
		if follow {
			return stream(ctx, c, client, which)
		}
		items, err := client.EventsOf(ctx, *limit, which)
		if err != nil {
			return err
		}
		if err := command.PrintList(c, items, table.Event()); err != nil || *limit == 0 || len(items) < *limit {
			return err
		}
		_, err = output.Printf(c.Err, "these are the first %d; go on with --since %d, or see all with --limit 0\n", *limit, items[len(items)-1].Seq)
		return err
	})
	return cmd
}

// usual is how far back events are shown when nobody says since when.
const usual = 24 * time.Hour

// begin reads --since.
func begin(since string, follow bool, now time.Time) (which ctlapi.ListEventsParams, err error) {
	switch {
	case since == "" && follow:
		which.FromNow = new(true)
		return which, nil
	case since == "":
		which.Since = new(now.Add(-usual).UTC())
		return which, nil
	}
	if n, err := strconv.ParseInt(since, 10, 64); err == nil && n >= 0 {
		which.After = &n
		return which, nil
	}
	at, err := when.Past("--since", since, now)
	if err != nil {
		return which, usage.Errorf("%w, or as the number of an event", err)
	}
	which.Since = new(at.UTC())
	return which, nil
}

// stream prints events as they come: a line each.
func stream(ctx context.Context, c *command.CLI, client *api.Client, which ctlapi.ListEventsParams) error {
	format, err := c.Format()
	if err != nil {
		return err
	}
	show, err := printer(c, format)
	if err != nil {
		return err
	}
	return client.FollowEvents(ctx, which, show)
}

// printer prints one event in a format that can go on for ever.
func printer(c *command.CLI, format output.Options) (func(ctlapi.Event) error, error) {
	switch format.Format {
	case output.JSON:
		if len(format.Fields) > 0 {
			return nil, usage.Errorf("--follow prints whole events: use -o json, without --json FIELDS")
		}
		return func(e ctlapi.Event) error {
			line, err := json.Marshal(e)
			if err != nil {
				return err
			}
			_, err = output.Println(c.Out, string(line))
			return err
		}, nil
	case output.Table, output.Wide:
		view := table.Event()
		return func(e ctlapi.Event) error { return output.Row(c.Out, format, e, view) }, nil
	}
	return nil, usage.Errorf("-o %s cannot go on for ever: with --follow use a table, or -o json for a line per event", format.Format)
}
