package past

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/cli/internal/when"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// sparkValues is how many values a spark line has at most.
const sparkValues = 20

// Metrics is `berth metrics`.
func Metrics(c *command.CLI) *cobra.Command {
	cmd := &cobra.Command{
		Use: "metrics INSTALL [SERIES]", Short: "Show the numbers that runs of actions wrote", Args: command.Exactly("INSTALL", "[SERIES]"),
		Long: `Lists the series of numbers of an install with their newest values, or the points of one of
them, newest first. A script of an action writes numbers to the file that BERTH_METRICS
names, in the Prometheus text format:

  echo 'queue_length{queue="mail"} 12' >> "$BERTH_METRICS"

SERIES is a name (queue_length), a name with its labels as the list shows it
('queue_length{queue="mail"}'), or an id. Points are kept for 30 days unless the operator
chose otherwise. --step puts them together: 1h shows the last value of each hour, the least,
the most and the mean.

Times are written as 2026-11-26T10:00:00Z, as 2026-11-26 10:00 (your time), or as how long
ago: 2h, 3d.`,
	}
	var action, name, since, until string
	var step time.Duration
	f := cmd.Flags()
	f.StringVar(&action, "action", "", "only what runs of this action wrote")
	f.StringVar(&name, "name", "", "list only series with this name")
	f.StringVar(&since, "since", "24h", "show points from this time on")
	f.StringVar(&until, "until", "", "show points from before this time")
	f.DurationVar(&step, "step", 0, "put points together in steps of this length, such as 1h")
	limit := command.LimitFlag(cmd)
	cmd.RunE = c.Call(func(ctx context.Context, client *api.Client, args []string) error {
		if len(args) == 1 {
			for _, flag := range []string{"since", "until", "step"} {
				if f.Changed(flag) {
					return usage.Errorf("--%s is for the points of one series: berth metrics %s SERIES --%s …", flag, args[0], flag)
				}
			}
			which := ctlapi.ListMetricsParams{Action: api.Optional(action), Name: api.Optional(name)}
			if !c.ForPrograms() {
				which.Recent = new(sparkValues)
			}
			items, err := client.Metrics(ctx, *limit, args[0], which)
			if err != nil {
				return err
			}
			return command.PrintList(c, items, table.Metric(c.Now(), which.Recent != nil))
		}
		if f.Changed("name") {
			return usage.Errorf("--name is for the list; the series is already named: %s", args[1])
		}
		if until != "" && !f.Changed("since") {
			since = "" // a day before that
		}
		which, err := pointsWhich(since, until, step, c.Now())
		if err != nil {
			return err
		}
		series, err := findSeries(ctx, client, args[0], args[1], action)
		if err != nil {
			return err
		}
		points, err := client.MetricPoints(ctx, *limit, api.PointsOf{Install: args[0], Series: series.ID, ListMetricPointsParams: which})
		if err != nil {
			return err
		}
		if !c.ForPrograms() {
			writeSeries(c.Out, *series, points, c.Age(series.At))
		}
		if err := command.PrintList(c, points, table.MetricPoint(step > 0)); err != nil || *limit == 0 || len(points) < *limit {
			return err
		}
		_, err = output.Printf(c.Err, "these are the newest %d; see all of this time with --limit 0\n", *limit)
		return err
	})
	return cmd
}

// longestStep is the longest that the API takes.
const longestStep = 31 * 24 * time.Hour

func pointsWhich(since, until string, step time.Duration, now time.Time) (which ctlapi.ListMetricPointsParams, err error) {
	if which.Since, err = when.Past("--since", since, now); err != nil {
		return which, err
	}
	if which.Until, err = when.Past("--until", until, now); err != nil {
		return which, err
	}
	if step == 0 {
		return which, nil
	}
	if step < time.Second || step%time.Second != 0 || step > longestStep {
		return which, usage.Errorf("--step is %s; it can be whole seconds, up to 31 days (744h)", step)
	}
	which.Step = new(int(step / time.Second))
	return which, nil
}

// findSeries is the one series that somebody named.
func findSeries(ctx context.Context, client *api.Client, install, named, action string) (*ctlapi.Metric, error) {
	name, _, _ := strings.Cut(named, "{")
	which := ctlapi.ListMetricsParams{Name: &name, Action: api.Optional(action)}
	if strings.HasPrefix(named, "ser_") {
		which.Name = nil
	}
	items, err := client.Metrics(ctx, 0, install, which)
	if err != nil {
		return nil, err
	}
	var found []ctlapi.Metric
	for _, m := range items {
		if m.ID == named || m.Series == named || m.Name == named {
			found = append(found, m)
		}
	}
	switch {
	case len(found) == 1:
		return &found[0], nil
	case len(found) == 0:
		return nil, usage.Errorf("install %s has no series %s; see what it has: berth metrics %s", install, named, install)
	}
	var list []string
	for _, m := range found[:min(len(found), seriesNamed)] {
		list = append(list, visible.Row(m.Series+" of "+writer(m)+": "+m.ID))
	}
	if len(found) > seriesNamed {
		list = append(list, "…")
	}
	return nil, usage.Errorf("install %s has %d series %s; name one with its labels, its --action or its id:\n%s", install, len(found), named, strings.Join(list, "\n"))
}

// writer says who writes a series.
func writer(m ctlapi.Metric) string {
	if m.Source == ctlapi.MetricSourceRunner {
		return "the runner"
	}
	return "action " + m.Action
}

// seriesNamed is how many series are named to choose from.
const seriesNamed = 10

// writeSeries shows what a series is, and the newest of these points as a line.
func writeSeries(w io.Writer, m ctlapi.Metric, points []ctlapi.MetricPoint, age string) {
	output.Printf(w, "%s, %s of %s: %s, %s ago\n", m.Series, string(m.Kind), writer(m), table.Number(m.Value), age)
	if help := api.Value(m.Help); help != "" {
		output.Println(w, help)
	}
	var values []float64
	for _, p := range points[:min(len(points), 3*sparkValues)] {
		values = append(values, p.Value)
	}
	if line := table.Spark(values); line != "" {
		output.Println(w, line)
	}
	output.Println(w)
}
