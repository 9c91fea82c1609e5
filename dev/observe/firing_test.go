package observe

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// steady is what all is well looks like: two hours, a sample a minute.
const steady = `up{job="berth",service="ctl-api",instance="a"} 1x120
up{job="berth",service="ctl-api",instance="b"} 1x120
up{job="berth",service="builder",instance="c"} 1x120
http_server_request_duration_seconds_count{service="ctl-api",http_response_status_code="200"} 0+600x120
http_server_request_duration_seconds_count{service="ctl-api",http_response_status_code="404"} 0+300x120
db_client_connection_count{service="ctl-api",instance="a",db_client_connection_state="used"} 3x120
db_client_connection_count{service="ctl-api",instance="a",db_client_connection_state="idle"} 7x120
db_client_connection_max{service="ctl-api",instance="a"} 20x120
wakeup_oldest_seconds{queue="river_ctl",instance="a"} 0.1x120
wakeup_duration_seconds_count{service="ctl-api",kind="workflow_advance",outcome="done"} 0+60x120
runner_online{instance="a"} 60x120
runner_online{instance="b"} 40x120
runner_backlogged{instance="a"} 1x120
runner_backlogged{instance="b"} 2x120
runner_leases_lost_total{instance="a"} 0x120
runner_disputes_total{instance="a"} 0x120
runner_enrolment_alarms_total{instance="a"} 0x120
runner_chain_forks_total{instance="a"} 0x120
runner_states_orphaned_total{instance="a"} 0x120
log_append_refused_total{reason="log_gap"} 0+1x120
workflow_duration_seconds_count{kind="deploy",outcome="succeeded"} 0+1x120
`

// Each alert fires in its case, and none does while all is well.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		// All its pods are gone, and their targets with them.
		"BerthServiceDown":               `up{job="berth",service="log-ingest",instance="d"} 1x60`,
		"BerthErrors":                    `http_server_request_duration_seconds_count{service="ctl-api",http_response_status_code="503"} 0+60x120`,
		"BerthDatabaseConnectionsUsedUp": `db_client_connection_count{service="ctl-api",instance="a",db_client_connection_state="used",pool="other"} 16x120`,
		"BerthWakeupsWait":               `wakeup_oldest_seconds{queue="river_builder",instance="c"} 0+60x120`,
		"BerthWakeupsFail":               `wakeup_duration_seconds_count{service="ctl-api",kind="workflow_advance",outcome="failed"} 0+20x120`,
		"BerthRunnersGone":               `runner_online{instance="c"} 100x100 0x20`,
		"BerthJobsNotClaimed":            `runner_backlogged{instance="c"} 10x120`,
		"BerthWakeupsLost":               `sweep_moved_total{what="workflow",do="settle_change"} 0x110 1x10`,
		"BerthLeasesLost":                `runner_leases_lost_total{instance="b"} 0x110 0+1x10`,
		"BerthKeyInTwoPlaces":            `runner_disputes_total{instance="b"} 0x110 1x10`,
		"BerthChainFork":                 `runner_chain_forks_total{instance="b"} 0x110 1x10`,
		"BerthStatesRefused":             `runner_states_orphaned_total{instance="b"} 0x110 1x10`,
		"BerthLogsNotStored":             `log_append_refused_total{reason="unavailable"} 0+1x120`,
		"BerthWorkflowsFail":             `workflow_duration_seconds_count{kind="deploy",outcome="failed"} 0+2x120`,
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute})
	defer engine.Close()
	for _, r := range alerts(t) {
		if n := firing(t, engine, r.Expr, steady); n != 0 {
			t.Errorf("%s fires while all is well", r.Alert)
		}
		series, there := cases[r.Alert]
		if !there {
			t.Errorf("%s has no case in which it fires", r.Alert)
			continue
		}
		if n := firing(t, engine, r.Expr, steady+series); n != 1 {
			t.Errorf("%s fires %d times, want once", r.Alert, n)
		}
	}
}

// firing is how many alerts an expression makes two hours into these series.
func firing(t *testing.T, engine *promql.Engine, expr, series string) int {
	t.Helper()
	query, err := engine.NewInstantQuery(t.Context(), stored(t, series), nil, expr, time.UnixMilli(0).Add(2*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	defer query.Close()
	vector, err := query.Exec(t.Context()).Vector()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	return len(vector)
}

// stored has a sample a minute of each series, one a line, as promtool writes them.
func stored(t *testing.T, lines string) storage.Queryable {
	t.Helper()
	var all []storage.Series
	for line := range strings.Lines(lines) {
		name, values, err := parser.ParseSeriesDesc(strings.TrimSpace(line))
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var samples []chunks.Sample
		for minute, v := range values {
			samples = append(samples, sample{(time.Duration(minute) * time.Minute).Milliseconds(), v.Value})
		}
		all = append(all, storage.NewListSeries(name, samples))
	}
	return &storage.MockQueryable{MockQuerier: &storage.MockQuerier{
		SelectMockFunction: func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
			return &found{rest: slices.DeleteFunc(slices.Clone(all), func(s storage.Series) bool {
				return slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.Labels().Get(m.Name)) })
			})}
		},
	}}
}

// found is a storage.SeriesSet.
type found struct {
	at   storage.Series
	rest []storage.Series
}

func (f *found) Next() bool {
	if len(f.rest) == 0 {
		return false
	}
	f.at, f.rest = f.rest[0], f.rest[1:]
	return true
}

func (f *found) At() storage.Series                { return f.at }
func (f *found) Err() error                        { return nil }
func (f *found) Warnings() annotations.Annotations { return nil }

// sample is a chunks.Sample: milliseconds since 1970, and a number.
type sample struct {
	t int64
	f float64
}

func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.f }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
