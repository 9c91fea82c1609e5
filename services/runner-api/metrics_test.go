package main

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

func gauge(name string, value float64, labels ...string) jobspec.Metric {
	m := jobspec.Metric{Name: name, Kind: jobspec.MetricGauge, Value: value}
	for i := 0; i+1 < len(labels); i += 2 {
		if m.Labels == nil {
			m.Labels = map[string]string{}
		}
		m.Labels[labels[i]] = labels[i+1]
	}
	return m
}

// ranAt is a run of the schedule that ended a second after its tick.
func ranAt(at time.Time, metrics ...jobspec.Metric) jobspec.Run {
	return jobspec.Run{Action: "health", ScheduledAt: at, State: "succeeded", StartedAt: at, FinishedAt: at.Add(time.Second), Metrics: metrics}
}

// put reports a run and answers its id.
func (a *agent) put(run jobspec.Run) string {
	a.w.t.Helper()
	resp, err := a.PutRunWithResponse(a.w.t.Context(), id.New(id.ActionRun), run)
	must(a.w.t, resp, err, http.StatusOK)
	return resp.JSON200.RunID
}

// points are what is stored of an install: a line for each.
func (w *world) points(o org) string {
	w.t.Helper()
	return one[string](w, `select coalesce(string_agg(format('%s %s %s %s=%s %s', s.action, s.name, s.labels, to_char(p.at at time zone 'utc', 'HH24:MI:SS'), p.value, p.run_id), E'\n' order by p.at, s.name, s.labels::text), '')
		from metric_points p join metric_series s on s.number = p.series and s.org_id = p.org_id where s.install_id = $1`, o.install)
}

func (w *world) metricsOf(runID string) string {
	w.t.Helper()
	return one[string](w, `select concat_ws(' ', metrics_kept, to_char(metrics_at at time zone 'utc', 'HH24:MI:SS'), metrics_error) from action_runs where id = $1`, runID)
}

// Reports come late and more than once; a number is one point, at the time of its run.
func TestMetricsOfScheduledRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.publish(a.o, jobspec.SettingsLifetime, "health")
	later := ranAt(tick.Add(time.Minute), gauge("rows", 2, "table", "b"), gauge("rows", 3, "table", "a"), gauge("up", 1))
	second := a.put(later)
	// The runner was cut off: what it kept of before comes now, and again after a lost reply.
	earlier := ranAt(tick, gauge("rows", 1, "table", "a"))
	earlier.State, earlier.ExitCode = "failed", 1
	first := a.put(earlier)
	for range 2 {
		a.put(earlier)
		a.put(later)
	}
	want := fmt.Sprintf(`health rows {"table": "a"} 10:00:01=1 %[1]s
health rows {"table": "a"} 10:01:01=3 %[2]s
health rows {"table": "b"} 10:01:01=2 %[2]s
health up {} 10:01:01=1 %[2]s`, first, second)
	if diff := cmp.Diff(want, w.points(a.o)); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	newest := one[string](w, `select string_agg(format('%s %s %s', name, last_value, last_run), ', ' order by name, labels::text) from metric_series`)
	if diff := cmp.Diff(fmt.Sprintf("rows 3 %[1]s, rows 2 %[1]s, up 1 %[1]s", second), newest); diff != "" {
		t.Errorf("an older run took the place of a newer one (-want +got):\n%s", diff)
	}
	if got := w.metricsOf(first); got != "1 10:00:01" {
		t.Errorf("the first run says %q", got)
	}
}

// A runner's own numbers are series without an action, one point for each time however often
// they are told.
func TestOwnNumbersOfARunner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	tell := func(status int, list ...jobspec.Sample) {
		t.Helper()
		resp, err := a.PutSamplesWithResponse(t.Context(), runnerapi.Samples{Samples: list})
		must(t, resp, err, status)
	}
	sample := func(at time.Time, metrics ...jobspec.Metric) jobspec.Sample {
		return jobspec.Sample{At: at, Metrics: metrics}
	}
	first, second := sample(tick, gauge("runner_cpu_used", 0.5)), sample(tick.Add(time.Minute), gauge("runner_cpu_used", 0.25), gauge("runner_check_duration_seconds", 3, "quantile", "1"))
	tell(http.StatusNoContent, first)
	tell(http.StatusNoContent, first, second) // the reply to the first was lost
	tell(http.StatusNoContent, second, first)
	want := ` runner_cpu_used {} 10:00:00=0.5 
 runner_check_duration_seconds {"quantile": "1"} 10:01:00=3 
 runner_cpu_used {} 10:01:00=0.25 `
	if diff := cmp.Diff(want, w.points(a.o)); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}

	// What is no number of a runner is left out; a clock that is ahead is refused.
	tell(http.StatusNoContent, sample(tick.Add(2*time.Minute), gauge("rows", 666), gauge("runner_cpu_used", math.MaxFloat64), gauge("runner_a b", 1)))
	tell(http.StatusUnprocessableEntity, sample(time.Now().Add(time.Hour), gauge("runner_cpu_used", 1)))
	want += "\n runner_cpu_used {} 10:02:00=1.7976931348623157e+308 "
	if diff := cmp.Diff(want, w.points(a.o)); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
}

// A run that a person asked for is a job; its job's row does not keep the numbers too.
func TestMetricsOfAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	runID := id.New(id.ActionRun)
	w.exec(`insert into action_runs (id, org_id, install_id, action, trigger, key, created_by) values ($1, $2, $3, 'script/count', 'run_script', $1, 'x')`, runID, a.o.id, a.o.install)
	report := func(j runnerapi.Assignment, outcome jobspec.Outcome) {
		t.Helper()
		for range 2 {
			resp, err := a.PutResultWithResponse(t.Context(), j.JobID, runnerapi.ResultReport{Attempt: j.Attempt, Result: jobspec.Result{
				JobID: j.JobID, Attempt: j.Attempt, Outcome: outcome, StartedAt: tick, FinishedAt: tick.Add(time.Second),
				Metrics: []jobspec.Metric{gauge("rows", 7)}, MetricsError: "step \"x\": line 2 is not in the Prometheus text format",
			}})
			must(t, resp, err, http.StatusOK)
		}
	}
	j := a.lease(job{operation: jobspec.OperationRun})
	w.exec(`update runner_jobs set action_run_id = $1 where id = $2`, runID, j.JobID)
	report(j, jobspec.OutcomeNotStarted) // it is given out again: this attempt did nothing
	if got := w.points(a.o); got != "" {
		t.Errorf("an attempt that did not start has points: %s", got)
	}
	j = a.claim("claim-again-0000000000", 1, 10)[0]
	report(j, jobspec.OutcomeFailed)
	if diff := cmp.Diff("script/count rows {} 10:00:01=7 "+runID, w.points(a.o)); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	if got := w.metricsOf(runID); got != `1 10:00:01 step "x": line 2 is not in the Prometheus text format` {
		t.Errorf("the run says %q", got)
	}
	if n := one[int](w, `select count(*) from runner_jobs where result ? 'metrics'`); n != 0 {
		t.Error("the job's result keeps the numbers too")
	}
	// A job that runs no action writes no numbers, whatever it says.
	report(a.lease(job{operation: jobspec.OperationRun}), jobspec.OutcomeFailed)
	if n := one[int](w, `select count(*) from metric_points`); n != 1 {
		t.Errorf("%d points, want one", n)
	}
}

// A runner reaches the series of its own install's runs, and can break no limit.
func TestAttackMetricsOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, neighbour, stranger := w.agent(w.org(), "install"), w.agent(w.org(), "install"), w.agent(w.org(), "install")
	for _, o := range []org{a.o, neighbour.o, stranger.o} {
		w.publish(o, jobspec.SettingsLifetime, "health", "component/api")
	}
	theirs := []string{neighbour.put(ranAt(tick, gauge("rows", 1))), stranger.put(ranAt(tick, gauge("rows", 2)))}
	before := []string{w.points(neighbour.o), w.points(stranger.o)}

	// Under the ids of others' runs: it is known by install, action and tick.
	for i, runID := range theirs {
		run := ranAt(tick.Add(time.Duration(i)*time.Hour), gauge("rows", 666))
		resp, err := a.PutRunWithResponse(t.Context(), runID, run)
		if err != nil || resp.StatusCode() < 400 {
			t.Errorf("a run with the id of another's is answered %d, %v", resp.StatusCode(), err)
		}
	}
	// A job of ours whose run is theirs, as no control plane would make it.
	j := a.lease(job{operation: jobspec.OperationRun})
	w.exec(`update runner_jobs set action_run_id = $1 where id = $2`, theirs[1], j.JobID)
	resp, err := a.PutResultWithResponse(t.Context(), j.JobID, runnerapi.ResultReport{Attempt: j.Attempt, Result: jobspec.Result{
		JobID: j.JobID, Attempt: j.Attempt, Outcome: jobspec.OutcomeSucceeded, StartedAt: tick, FinishedAt: tick, Metrics: []jobspec.Metric{gauge("rows", 666)},
	}})
	refused(t, resp, err, http.StatusNotFound, "not_found")
	// Names that would look like another's.
	a.put(ranAt(tick.Add(3*time.Hour), gauge("rows", 5, "install_id", neighbour.o.install, "org_id", stranger.o.id)))
	a.put(jobspec.Run{Action: "component/api", ScheduledAt: tick, State: "succeeded", FinishedAt: tick, Metrics: []jobspec.Metric{gauge("rows", 666)}})
	if diff := cmp.Diff(before, []string{w.points(neighbour.o), w.points(stranger.o)}); diff != "" {
		t.Errorf("the points of others have changed (-before +after):\n%s", diff)
	}
	if got := one[int](w, `select count(*) from metric_series where action like 'component/%' or last_value = 666`); got != 0 {
		t.Errorf("%d series should not be there", got)
	}

	// What no engine would let through is left out, and said.
	bad := ranAt(tick.Add(4*time.Hour), gauge("good", 1), gauge("bad name", 1), gauge("rows", 1, "x", strings.Repeat("v", 300)), gauge("huge", math.MaxFloat64))
	bad.MetricsError = strings.Repeat("é", 500)
	runID := a.put(bad)
	if got := w.metricsOf(runID); !strings.HasPrefix(got, "2 14:00:01 éé") || len(got) > 1020 {
		t.Errorf("the run says %q", got)
	}
	if got := one[float64](w, `select last_value from metric_series where name = 'huge'`); got != math.MaxFloat64 {
		t.Errorf("the largest number is kept as %v", got)
	}
	bad.MetricsError, bad.ScheduledAt = "", tick.Add(5*time.Hour)
	if got := w.metricsOf(a.put(bad)); !strings.Contains(got, "a name has more in it than letters, digits, _ and :; label x of rows has 300 bytes") {
		t.Errorf("the run says %q", got)
	}
}

// An install keeps so many series; those that it has go on, and new ones find room when
// old ones have been forgotten.
func TestSeriesOfAnInstallAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.publish(a.o, jobspec.SettingsLifetime, "health")
	at := tick
	write := func(from, to int, value float64) string {
		t.Helper()
		at = at.Add(time.Minute)
		run := ranAt(at)
		for i := from; i < to; i++ {
			run.Metrics = append(run.Metrics, gauge("m", value, "i", strconv.Itoa(i)))
		}
		return w.metricsOf(a.put(run))
	}
	for i := 0; i < jobspec.MaxMetricSeries-50; i += 190 {
		if got := write(i, min(i+190, jobspec.MaxMetricSeries-50), 1); strings.Contains(got, "left out") {
			t.Fatal(got)
		}
	}
	if got := write(900, 1100, 2); !strings.HasPrefix(got, "100 ") || !strings.HasSuffix(got, "an install keeps 1000 series, 100 new ones were left out") {
		t.Errorf("the run that found no room says %q", got)
	}
	if got := one[int](w, `select count(*) from metric_series`); got != jobspec.MaxMetricSeries {
		t.Errorf("%d series, want %d", got, jobspec.MaxMetricSeries)
	}
	if got := write(0, 200, 3); !strings.HasPrefix(got, "200 ") || strings.Contains(got, "left out") {
		t.Errorf("series that there are: %q", got)
	}
	// A month later half of them were not written any more.
	w.exec(`update metric_series set stored_at = now() - interval '40 days' where last_value <> 3`)
	w.exec(`delete from metric_points p using metric_series s where s.number = p.series and s.last_value <> 3`) // as partitions are dropped
	w.exec(`select berth.keep_event_partitions(30, 7)`)
	if got := write(2000, 2200, 4); !strings.HasPrefix(got, "200 ") || strings.Contains(got, "left out") {
		t.Errorf("after old series are gone: %q", got)
	}
	if got := one[int](w, `select count(*) from metric_series`); got != 400 {
		t.Errorf("%d series, want 400", got)
	}
}

// Old partitions are dropped with those of events, and a database that cannot take the
// numbers of a run takes its end.
func TestPartitionsOfPoints(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	w.publish(a.o, jobspec.SettingsLifetime, "health")
	a.put(ranAt(tick, gauge("rows", 1)))
	w.exec(`do $$ begin -- of the owner, as in a migration
		set local role berth_owner;
		perform berth.add_day_partition('metric_points', (now() at time zone 'utc')::date - age) from unnest('{29,31}'::int[]) as age;
	end $$`)
	w.exec(`insert into metric_points (org_id, series, at, value, run_id, stored_at) select org_id, number, now() - interval '31 days', 9, 'arn_old', now() - interval '31 days' from metric_series`)
	dropped := one[string](w, `select array_to_string(berth.keep_event_partitions(30, 7), ' ')`)
	if want := "metric_points_" + one[string](w, `select to_char((now() at time zone 'utc')::date - 31, 'YYYYMMDD')`); dropped != want {
		t.Errorf("dropped %q, want %q", dropped, want)
	}
	if got := one[int](w, `select count(*) from metric_points`); got != 1 {
		t.Errorf("%d points, want the new one", got)
	}
	w.exec(`do $$ declare p regclass; begin
		for p in select inhrelid from pg_inherits where inhparent = 'metric_points'::regclass loop execute format('drop table %s', p); end loop; end $$`)
	runID := a.put(ranAt(tick.Add(time.Minute), gauge("rows", 2)))
	if got := w.metricsOf(runID); got != "0 the control plane could not store the numbers; its log has the reason" {
		t.Errorf("the run says %q", got)
	}
	if got := one[string](w, `select state from action_runs where id = $1`, runID); got != "succeeded" {
		t.Errorf("the run is %s", got)
	}
	if got := one[float64](w, `select last_value from metric_series`); got != 1 {
		t.Errorf("the series has %v without a point for it", got)
	}
}
