package past

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/command"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/usage"
	"github.com/berth-dev/berth/cli/internal/when"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// HealthFlags are those of `berth installs health` that ask for a time, or for all installs.
type HealthFlags struct {
	since, until string
	parts        int
	app          string
	labels       []string
}

// Add adds the flags to a command.
func (f *HealthFlags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.since, "since", "", "show how it was from this time on, such as 7d")
	cmd.Flags().StringVar(&f.until, "until", "", "show how it was before this time")
	cmd.Flags().IntVar(&f.parts, "parts", 60, "how many parts the strip has")
	cmd.Flags().StringVar(&f.app, "app", "", "of all installs, only those of this app")
	cmd.Flags().StringSliceVarP(&f.labels, "label", "l", nil, "of all installs, only those with this label, key=value")
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		one := len(args) > 0
		switch {
		case one && (f.app != "" || len(f.labels) > 0):
			return usage.Errorf("--app and --label choose among all installs: leave %s out", args[0])
		case one && cmd.Flags().Changed("parts") && !f.Given():
			return usage.Errorf("--parts is for a time: add --since 7d")
		}
		return nil
	}
}

// Given says whether a time is asked for.
func (f *HealthFlags) Given() bool { return f.since != "" || f.until != "" }

// Show prints how healthy an install was.
func (f *HealthFlags) Show(ctx context.Context, c *command.CLI, client *api.Client, install string) error {
	which := ctlapi.GetHealthHistoryParams{Parts: &f.parts}
	var err error
	if which.Since, which.Until, err = f.time(c.Now()); err != nil {
		return err
	}
	resp, err := client.GetHealthHistoryWithResponse(ctx, install, &which)
	if err != nil {
		return err
	}
	history, err := api.Body(resp.JSON200)
	if err != nil {
		return err
	}
	if c.ForPrograms() {
		return command.PrintOne(c, *history, output.View[ctlapi.HealthHistory]{Name: func(ctlapi.HealthHistory) string { return install }})
	}
	for _, line := range healthLines(*history, f.parts, c.ColorOn(c.Out)) {
		output.Println(c.Out, line)
	}
	return nil
}

func (f *HealthFlags) time(now time.Time) (since, until *time.Time, err error) {
	if since, err = when.Past("--since", f.since, now); err != nil {
		return nil, nil, err
	}
	until, err = when.Past("--until", f.until, now)
	return since, until, err
}

// ShowAll prints how healthy the installs were that the flags choose.
func (f *HealthFlags) ShowAll(ctx context.Context, c *command.CLI, client *api.Client, limit int) error {
	which := ctlapi.ListHealthHistoryParams{App: api.Optional(f.app), Parts: &f.parts}
	if len(f.labels) > 0 {
		which.Label = &f.labels
	}
	since, until, err := f.time(c.Now())
	if err != nil {
		return err
	}
	if until == nil {
		until = new(c.Now().UTC())
	}
	if since == nil {
		since = new(until.Add(-week))
	}
	which.Since, which.Until = since, until
	items, err := client.HealthHistory(ctx, limit, which)
	if err != nil {
		return err
	}
	return command.PrintList(c, items, installView(*since, *until, f.parts))
}

func installView(since, until time.Time, parts int) output.View[ctlapi.InstallHealthPast] {
	return output.View[ctlapi.InstallHealthPast]{
		Name: func(x ctlapi.InstallHealthPast) string { return x.Install.Name },
		None: "no installs",
		Columns: []output.Column[ctlapi.InstallHealthPast]{
			{Head: "INSTALL", Shrinks: true, Cell: func(x ctlapi.InstallHealthPast) string { return x.Install.Name }},
			{Head: "AVAILABLE", Cell: func(x ctlapi.InstallHealthPast) string { return percent(x.Availability) }},
			{Head: "UNHEALTHY", Cell: func(x ctlapi.InstallHealthPast) string { return lasted(x.UnhealthySeconds) }},
			{Head: heading(since, until, parts), Cell: func(x ctlapi.InstallHealthPast) string { return strip(x.Strip, false) }},
		},
	}
}

// heading stands over strips.
func heading(since, until time.Time, parts int) string {
	return fmt.Sprintf("%s, %s each", since.UTC().Format("2006-01-02 15:04 UTC"), follow.Duration(until.Sub(since)/time.Duration(parts)))
}

// week is over how long many are shown, unless another time is given.
const week = 7 * 24 * time.Hour

// maxShown is how many episodes people are shown.
const maxShown = 5

// healthLines is a history for people: a strip for the install and each resource, what the
// objective leaves, and the newest episodes.
func healthLines(h ctlapi.HealthHistory, parts int, color bool) []string {
	rows := [][]string{{"", "AVAILABLE", "UNHEALTHY", heading(h.Since, h.Until, parts)}}
	strips := []string{""}
	add := func(name string, p ctlapi.HealthPast) {
		rows = append(rows, []string{name, percent(p.Availability), lasted(p.UnhealthySeconds), ""})
		strips = append(strips, strip(p.Strip, color))
	}
	add("all of it", h.Install)
	for _, r := range h.Resources {
		add(visible.Line(r.Name), r.Past)
	}
	widths := make([]int, 3)
	for _, row := range rows {
		for i := range widths {
			widths[i] = max(widths[i], len([]rune(row[i])))
		}
	}
	var lines []string
	for i, row := range rows {
		var b strings.Builder
		for k, width := range widths {
			fmt.Fprintf(&b, "%s%s  ", row[k], strings.Repeat(" ", width-len([]rune(row[k]))))
		}
		lines = append(lines, strings.TrimRight(b.String()+row[3]+strips[i], " "))
	}
	lines = append(lines, "", "▇ healthy  ▁ unhealthy  ░ unknown  · not there")
	if b := h.Budget; b != nil {
		left := lasted(b.LeftSeconds) + " left"
		if b.LeftSeconds < 0 {
			left = "missed by " + lasted(-b.LeftSeconds)
		}
		lines = append(lines, fmt.Sprintf("objective %g %%: %s allowed, %s used, %s", b.Objective, lasted(b.AllowedSeconds), lasted(b.UsedSeconds), left))
	}
	return append(lines, episodes(h)...)
}

// episodes are the newest of all resources.
func episodes(h ctlapi.HealthHistory) []string {
	type episode struct {
		of string
		ctlapi.HealthEpisode
	}
	var all []episode
	left := 0
	for _, r := range h.Resources {
		left += r.Past.EpisodesLeft
		for _, e := range r.Past.Episodes {
			all = append(all, episode{r.Name, e})
		}
	}
	slices.SortStableFunc(all, func(a, b episode) int { return b.From.Compare(a.From) })
	var lines []string
	for i, e := range all {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("and %d more: -o json has them", len(all)-maxShown+left))
			break
		}
		text := fmt.Sprintf("%s  %s was unhealthy ", e.From.UTC().Format("2006-01-02 15:04:05 UTC"), visible.Line(e.of))
		if e.To != nil {
			text += "for " + follow.Duration(e.To.Sub(e.From))
		} else {
			text += "since then"
		}
		if change := api.Value(e.ChangeID); change != "" {
			text += ", on change " + change
		}
		lines = append(lines, text)
	}
	if len(lines) > 0 {
		lines = append([]string{""}, lines...)
	}
	return lines
}

// strip draws a part of the time as one character; shapes tell them apart without colours.
func strip(parts []ctlapi.HealthPart, color bool) string {
	shapes := map[ctlapi.HealthPart]string{
		ctlapi.HealthPartHealthy: "▇", ctlapi.HealthPartUnhealthy: "▁", ctlapi.HealthPartUnknown: "░", ctlapi.HealthPartAbsent: "·",
	}
	var b strings.Builder
	for len(parts) > 0 {
		n := slices.IndexFunc(parts, func(p ctlapi.HealthPart) bool { return p != parts[0] })
		if n < 0 {
			n = len(parts)
		}
		b.WriteString(output.Paint(color, output.StyleOf(string(parts[0])), strings.Repeat(shapes[parts[0]], n)))
		parts = parts[n:]
	}
	return b.String()
}

// percent cuts and does not round: 99.999 % is not 100 %.
func percent(share *float64) string {
	if share == nil {
		return "unknown"
	}
	const steps = 100_00 // hundredths of a percent
	return fmt.Sprintf("%.2f %%", float64(int(*share*steps))/100)
}

func lasted(seconds int64) string {
	if seconds == 0 {
		return "0 s"
	}
	return follow.Duration(time.Duration(seconds) * time.Second)
}
