package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// wrote writes what runner-api writes of runs of an action, one each minute since a
// time: values of one series, the oldest first.
func (d *door) wrote(install, series, labels string, since time.Time, values ...float64) {
	d.t.Helper()
	id := "ser_" + install + series + labels
	d.sql(`insert into metric_series (id, org_id, install_id, action, name, labels, labels_key, kind, help, last_value, last_at, last_run)
		select $1, i.org_id, i.id, 'look', $2, $3::text::jsonb, $3, 'gauge', 'Help.', $4, $5, 'arn_' || $6::int from installs i where i.name = $7`,
		id, series, labels, values[len(values)-1], since.Add(time.Duration(len(values)-1)*time.Minute), len(values)-1, install)
	for i, value := range values {
		d.sql(`insert into metric_points (org_id, series, at, value, run_id, stored_at) select org_id, number, $2, $3, 'arn_' || $4::int, now() - interval '1 minute' from metric_series where id = $1`,
			id, since.Add(time.Duration(i)*time.Minute), value, i)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme", "globex")
	ctx := t.Context()
	hour := time.Now().UTC().Truncate(time.Hour).Add(-time.Hour)
	d.wrote("acme", "rows", `{"table": "b"}`, hour, 1, 2, 3, 4, 5)
	d.wrote("acme", "rows", `{"table": "a\"\n"}`, hour.Add(-100*24*time.Hour), 7)
	d.wrote("acme", "age", `{}`, hour, 9)
	d.wrote("globex", "rows", `{}`, hour, 666)

	var names []string
	var after *string
	for {
		page, err := admin.ListMetricsWithResponse(ctx, "acme", &ctlapi.ListMetricsParams{Limit: new(2), After: after, Recent: new(3)})
		must(t, page, err, http.StatusOK)
		for _, m := range page.JSON200.Items {
			recent := "none"
			if m.Recent != nil {
				recent = fmt.Sprint(*m.Recent)
			}
			names = append(names, fmt.Sprintf("%s %s %v %s", m.Series, m.Kind, m.Value, recent))
		}
		if page.JSON200.Next == "" {
			break
		}
		after = &page.JSON200.Next
	}
	if diff := cmp.Diff([]string{`age gauge 9 [9]`, `rows{table="b"} gauge 5 [5 4 3]`, `rows{table="a\"\n"} gauge 7 none`}, names); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		params ctlapi.ListMetricsParams
		want   int
	}{{ctlapi.ListMetricsParams{Name: new("rows")}, 2}, {ctlapi.ListMetricsParams{Action: new("look")}, 3}, {ctlapi.ListMetricsParams{Name: new("rows"), Action: new("other")}, 0}} {
		page, err := admin.ListMetricsWithResponse(ctx, "acme", &tt.params)
		must(t, page, err, http.StatusOK)
		if len(page.JSON200.Items) != tt.want {
			t.Errorf("%+v: %d series, want %d", tt.params, len(page.JSON200.Items), tt.want)
		}
	}

	series := `ser_acmerows{"table": "b"}`
	read := func(params ctlapi.ListMetricPointsParams) (got []string) {
		t.Helper()
		for {
			page, err := admin.ListMetricPointsWithResponse(ctx, "acme", series, &params)
			must(t, page, err, http.StatusOK)
			for _, p := range page.JSON200.Items {
				line := fmt.Sprintf("%s %v", p.At.Sub(hour), p.Value)
				if p.RunID != nil {
					line += " " + *p.RunID
				}
				if p.Count != nil {
					line += fmt.Sprintf(" %v %v %v %d", *p.Min, *p.Max, *p.Mean, *p.Count)
				}
				got = append(got, line)
			}
			if page.JSON200.Next == "" {
				return got
			}
			params.After = &page.JSON200.Next
		}
	}
	if diff := cmp.Diff([]string{"4m0s 5 arn_4", "3m0s 4 arn_3", "2m0s 3 arn_2", "1m0s 2 arn_1", "0s 1 arn_0"}, read(ctlapi.ListMetricPointsParams{Limit: new(2)})); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"2m0s 3 arn_2", "1m0s 2 arn_1"}, read(ctlapi.ListMetricPointsParams{Since: new(hour.Add(time.Minute)), Until: new(hour.Add(3 * time.Minute))})); diff != "" {
		t.Errorf("points of a time (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"4m0s 5 5 5 5 1", "2m0s 4 3 4 3.5 2", "0s 2 1 2 1.5 2"}, read(ctlapi.ListMetricPointsParams{Step: new(120), Limit: new(1)})); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}
	if header, rows := admin.csv("/installs/acme/metrics/" + strings.NewReplacer(`"`, "%22", " ", "%20", "{", "%7B", "}", "%7D").Replace(series) + "/points?limit=2"); len(rows) != 5 || header[1] != "value" || rows[0][1] != "5" {
		t.Errorf("points as CSV: %v %v", header, rows)
	}
	if _, rows := admin.csv("/installs/acme/metrics?limit=1"); len(rows) != 3 || rows[1][0] != `rows{table="b"}` {
		t.Errorf("series as CSV: %v", rows)
	}

	// Of another install of the same org, and of no time.
	one, err := admin.GetMetricWithResponse(ctx, "globex", series)
	problemOf(t, one, err, http.StatusNotFound, "not_found")
	points, err := admin.ListMetricPointsWithResponse(ctx, "globex", series, &ctlapi.ListMetricPointsParams{})
	problemOf(t, points, err, http.StatusNotFound, "not_found")
	points, err = admin.ListMetricPointsWithResponse(ctx, "acme", series, &ctlapi.ListMetricPointsParams{Since: &hour, Until: &hour})
	problemOf(t, points, err, http.StatusUnprocessableEntity, "invalid")

	// What a run wrote: its own numbers, with the values of then.
	d.sql(`insert into action_runs (id, org_id, install_id, action, trigger, key, created_by, metrics_at, metrics_kept, metrics_error)
		select 'arn_2', org_id, id, 'look', 'cron', 'k', 'x', $1, 1, 'line 3 is wrong' from installs where name = 'acme'`, hour.Add(2*time.Minute))
	run, err := admin.GetActionRunWithResponse(ctx, "arn_2")
	must(t, run, err, http.StatusOK)
	want := []ctlapi.RunMetric{{ID: series, Series: `rows{table="b"}`, Kind: "gauge", Help: new("Help."), Value: 3}}
	if diff := cmp.Diff(&want, run.JSON200.Metrics); diff != "" || *run.JSON200.MetricsKept != 1 || *run.JSON200.MetricsError != "line 3 is wrong" {
		t.Errorf("the run has %v, %v (-want +got):\n%s", run.JSON200.MetricsKept, run.JSON200.MetricsError, diff)
	}
}

// A runner's own numbers have a source and neither an action nor a run. Pages of their points
// go on where they ended.
func TestMetricsOfTheRunner(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme")
	hour := time.Now().UTC().Truncate(time.Hour).Add(-time.Hour)
	d.wrote("acme", "rows", `{}`, hour, 1)
	d.wrote("acme", "runner_cpu_used", `{}`, hour, 1, 2, 3)
	d.sql(`update metric_series set action = '', last_run = '' where name = 'runner_cpu_used'`)
	d.sql(`update metric_points set run_id = '' where series in (select number from metric_series where action = '')`)
	for source, want := range map[ctlapi.ListMetricsParamsSource]string{ctlapi.ListMetricsParamsSourceRunner: "runner_cpu_used", ctlapi.ListMetricsParamsSourceAction: "rows"} {
		page, err := admin.ListMetricsWithResponse(t.Context(), "acme", &ctlapi.ListMetricsParams{Source: &source})
		must(t, page, err, http.StatusOK)
		if items := page.JSON200.Items; len(items) != 1 || items[0].Name != want || string(items[0].Source) != string(source) || (items[0].Action == "") != (source == ctlapi.ListMetricsParamsSourceRunner) {
			t.Errorf("of source %s: %+v", source, items)
		}
	}
	var got []float64
	params := ctlapi.ListMetricPointsParams{Since: &hour, Limit: new(1)}
	for {
		page, err := admin.ListMetricPointsWithResponse(t.Context(), "acme", "ser_acmerunner_cpu_used{}", &params)
		must(t, page, err, http.StatusOK)
		for _, p := range page.JSON200.Items {
			if p.RunID != nil {
				t.Errorf("the point of %s is of run %q", p.At, *p.RunID)
			}
			got = append(got, p.Value)
		}
		if page.JSON200.Next == "" {
			break
		}
		params.After = &page.JSON200.Next
	}
	if diff := cmp.Diff([]float64{3, 2, 1}, got); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}
