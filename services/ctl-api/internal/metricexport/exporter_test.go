package metricexport_test

import (
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	collector "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/metricexport"
	"github.com/berth-dev/berth/services/internal/logtest"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

const secret = "Bearer tok-5ecret"

// world is an install with one series, and a collector.
type world struct {
	t      *testing.T
	pg     *pgtest.DB
	log    *logtest.Log
	server *httptest.Server
	org    string
	series int64
	clock  time.Time
	mu     sync.Mutex // of what is below; answers are given without it
	// batches are the values that the collector was sent, answers what it says to each, in
	// order; then 200.
	batches [][]float64
	times   []time.Time
	answers []http.HandlerFunc
	// refuses is a value with which a batch is a bad request.
	refuses float64
	*metricexport.Exporter
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, pg: pgtest.New(t), log: &logtest.Log{}, org: id.New(id.Org), clock: time.Now().UTC().Truncate(time.Second).Add(-5 * time.Hour), refuses: -1}
	app, customer, install := id.New(id.App), id.New(id.Customer), id.New(id.Install)
	w.exec(`insert into orgs (org_id, name) values ($1, 'vendor')`, w.org)
	w.exec(`insert into apps (id, org_id, name) values ($1, $2, 'shop')`, app, w.org)
	w.exec(`insert into customers (id, org_id, name) values ($1, $2, 'ACME')`, customer, w.org)
	w.exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, state, created_by) values ($1, $2, $3, $4, 'acme', 'local', 'live', 'test')`, install, w.org, customer, app)
	w.exec(`insert into metric_series (id, org_id, install_id, action, name, labels_key, kind, last_value, last_at, last_run) values ($1, $2, $3, 'look', 'queue', 'k', 'gauge', 0, now(), 'r')`,
		id.New(id.Series), w.org, install)
	if err := w.pg.Admin().QueryRow(t.Context(), `select number from metric_series`).Scan(&w.series); err != nil {
		t.Fatal(err)
	}
	w.server = httptest.NewServer(http.HandlerFunc(w.collect))
	t.Cleanup(w.server.Close)
	w.Exporter = w.replica()
	w.turn() // from here on
	return w
}

// replica is one more exporter to the same collector.
func (w *world) replica() *metricexport.Exporter {
	w.t.Helper()
	headers := filepath.Join(w.t.TempDir(), "headers")
	if err := os.WriteFile(headers, []byte("Authorization: "+secret+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	sender, err := metricexport.NewSender(w.server.URL+"/v1/metrics", headers)
	if err != nil {
		w.t.Fatal(err)
	}
	return &metricexport.Exporter{Store: database.New(w.pg.AsRole(store.RoleCtl)), Sender: sender, Log: slog.New(slog.NewTextHandler(w.log, nil))}
}

// collect is the collector.
func (w *world) collect(rw http.ResponseWriter, r *http.Request) {
	zip, err := gzip.NewReader(r.Body)
	if err != nil {
		w.t.Errorf("body: %v", err)
		return
	}
	raw, err := io.ReadAll(zip)
	var got collector.ExportMetricsServiceRequest
	if err != nil || proto.Unmarshal(raw, &got) != nil || r.URL.Path != "/v1/metrics" || r.Header.Get("Authorization") != secret || r.Header.Get("Content-Type") != "application/x-protobuf" {
		w.t.Errorf("%s with %v is no batch: %v", r.URL, r.Header, err)
	}
	w.mu.Lock()
	var values []float64
	for _, from := range got.GetResourceMetrics() {
		for _, m := range from.GetScopeMetrics()[0].GetMetrics() {
			for _, p := range m.GetGauge().GetDataPoints() {
				values = append(values, p.GetAsDouble())
				w.times = append(w.times, time.Unix(0, int64(p.GetTimeUnixNano())).UTC())
			}
		}
	}
	w.batches = append(w.batches, values)
	say := status(http.StatusOK)
	if len(w.answers) > 0 {
		say, w.answers = w.answers[0], w.answers[1:]
	}
	if slices.Contains(values, w.refuses) {
		say = status(http.StatusBadRequest)
	}
	w.mu.Unlock()
	say(rw, r)
}

// answer is what the collector says to the next batch.
func (w *world) answer(say http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, say)
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.pg.Admin().Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

const insertPoint = `insert into metric_points (org_id, series, at, value, run_id) values ($1, $2, $3, $4, 'r')`

// write stores a point of a second later than the one before.
func (w *world) write(value float64) {
	w.t.Helper()
	w.clock = w.clock.Add(time.Second)
	w.exec(insertPoint, w.org, w.series, w.clock, value)
}

func (w *world) turn() {
	w.t.Helper()
	if _, err := w.Turn(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// send makes turns until the collector has got as many batches, which comes late while other
// tests on this server hold transactions open, and returns them. No batch is asked for again.
func (w *world) send(batches int) [][]float64 {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); w.came() < batches && time.Now().Before(end); {
		w.turn()
		time.Sleep(5 * time.Millisecond)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	got := w.batches
	w.batches = nil
	return got
}

// wantValues checks what comes, in as many batches as it takes: other transactions on this
// server decide how many.
func (w *world) wantValues(want ...float64) {
	w.t.Helper()
	var got []float64
	for len(got) < len(want) && !w.t.Failed() {
		batches := w.send(1)
		if got = append(got, slices.Concat(batches...)...); len(batches) == 0 {
			w.t.Error("no batch came")
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("values (-want +got):\n%s\n%s", diff, w.log.String())
	}
}

// came is how many batches the collector got since the last send.
func (w *world) came() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.batches)
}

// wantNone makes a turn and checks that it sends nothing.
func (w *world) wantNone() {
	w.t.Helper()
	if w.turn(); w.came() != 0 {
		w.t.Errorf("sent %v, want nothing\n%s", w.send(0), w.log.String())
	}
}

func (w *world) want(got, want [][]float64) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("batches (-want +got):\n%s\n%s", diff, w.log.String())
	}
}

// logged checks that something was logged, and no secret at all.
func (w *world) logged(what string) {
	w.t.Helper()
	log := w.log.String()
	if !strings.Contains(log, what) {
		w.t.Errorf("not logged: %s\n%s", what, log)
	}
	if strings.Contains(log, "5ecret") {
		w.t.Errorf("the log shows a header:\n%s", log)
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		if len(header) > 0 {
			rw.Header().Set(header[0], header[1])
		}
		rw.WriteHeader(code)
	}
}

// pauseOver ends the pause, of which it returns how long it would have lasted.
func (w *world) pauseOver() (left time.Duration) {
	w.t.Helper()
	var seconds float64
	if err := w.pg.Admin().QueryRow(w.t.Context(), `select extract(epoch from not_before - now())::float8 from metric_export`).Scan(&seconds); err != nil {
		w.t.Fatal(err)
	}
	w.exec(`update metric_export set not_before = now()`)
	return time.Duration(seconds * float64(time.Second))
}

// A transaction that commits after later ones have, with a point in front of theirs, loses none.
func TestLateTransactionsLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	late, err := w.pg.Admin().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before := w.clock.Add(-time.Hour)
	if _, err := late.Exec(t.Context(), insertPoint, w.org, w.series, before, 1); err != nil {
		t.Fatal(err)
	}
	w.write(2)
	w.wantNone()
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.wantValues(1, 2)
	if diff := cmp.Diff([]time.Time{before, w.clock}, w.times); diff != "" {
		t.Errorf("times (-want +got):\n%s", diff)
	}
	w.write(3)
	w.wantValues(3)
}

// The process dies after the collector has answered: its claim runs out, and the next one
// sends the batch again.
func TestCrashSendsTwiceAndSkipsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answer(func(http.ResponseWriter, *http.Request) {
		w.exec(`update metric_export set claimant = 'another', not_before = now()`)
	})
	w.write(1)
	w.want(w.send(1), [][]float64{{1}})
	w.logged("another replica took the export over")
	w.write(2)
	w.Exporter = w.replica()
	w.wantValues(1, 2)
}

func TestOneSendsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := w.replica()
	w.answer(func(http.ResponseWriter, *http.Request) {
		if more, err := other.Turn(t.Context()); more || err != nil {
			t.Errorf("the other replica: %t, %v", more, err)
		}
	})
	w.write(1)
	w.want(w.send(1), [][]float64{{1}})
}

func TestRefusedPointStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.refuses = 6
	w.exec(`insert into metric_points (org_id, series, at, value, run_id) select $1, $2, $3::timestamptz + make_interval(secs => n), n, 'r' from generate_series(1, 10) n`, w.org, w.series, w.clock)
	var took []float64
	for end := time.Now().Add(30 * time.Second); len(took) < 9 && time.Now().Before(end); {
		for _, batch := range w.send(1) {
			if !slices.Contains(batch, w.refuses) {
				took = append(took, batch...)
			}
		}
	}
	if diff := cmp.Diff([]float64{1, 2, 3, 4, 5, 7, 8, 9, 10}, took); diff != "" {
		t.Errorf("taken (-want +got):\n%s", diff)
	}
	w.logged("level=ERROR msg=\"collector refuses a point, which is skipped\" status=400")
}

// What a collector cannot take now is sent again after the pause that it asked for, and a
// redirect is no way to get the headers.
func TestUnavailableCollectorLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("redirect followed with %v", r.Header) }))
	defer thief.Close()
	w.write(1)
	for _, test := range []struct {
		answer      http.HandlerFunc
		least, most time.Duration
	}{
		{status(http.StatusServiceUnavailable, "Retry-After", "120"), 100 * time.Second, 120 * time.Second},
		{status(http.StatusTooManyRequests), 0, 10 * time.Second},
		{status(http.StatusUnauthorized), 0, 20 * time.Second},
		{status(http.StatusTemporaryRedirect, "Location", thief.URL), 0, 40 * time.Second},
		{func(rw http.ResponseWriter, r *http.Request) {
			conn, _, err := rw.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			fmt.Fprintf(conn, "%s\r\n\r\n", r.Header.Get("Authorization"))
			conn.Close()
		}, 0, 80 * time.Second},
	} {
		w.answer(test.answer)
		w.want(w.send(1), [][]float64{{1}})
		w.wantNone()
		if left := w.pauseOver(); left < test.least || left > test.most || left <= 0 {
			t.Errorf("pause of %s, want %s to %s", left, test.least, test.most)
		}
	}
	w.logged("malformed HTTP")
	w.want(w.send(1), [][]float64{{1}})
	w.write(2)
	w.want(w.send(1), [][]float64{{2}})
}

func TestPartialSuccessIsLoggedWithoutHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answer(func(rw http.ResponseWriter, r *http.Request) {
		raw, err := proto.Marshal(&collector.ExportMetricsServiceResponse{
			PartialSuccess: &collector.ExportMetricsPartialSuccess{RejectedDataPoints: 1, ErrorMessage: "too old, and you sent " + r.Header.Get("Authorization")},
		})
		if err != nil {
			t.Error(err)
		}
		rw.Write(raw)
	})
	w.write(1)
	w.want(w.send(1), [][]float64{{1}})
	w.logged("collector left points out\" points=1 of=1 said=\"too old, and you sent [redacted]")
}

// Points that retention drops before they were sent are counted, once.
func TestDroppedPointsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.pg.Owner().Exec(t.Context(), `select berth.add_day_partition('metric_points', current_date - 40)`); err != nil {
		t.Fatal(err)
	}
	w.exec(`insert into metric_points (org_id, series, at, stored_at, value, run_id) select $1, $2, now(), current_date - interval '39 days 12 hours', 1, 'r'`, w.org, w.series)
	w.exec(`select berth.keep_event_partitions(30, 7)`)
	w.turn()
	w.turn()
	w.logged("points were deleted before they were exported")
	if n := strings.Count(w.log.String(), "points=1"); n != 1 {
		t.Errorf("told %d times:\n%s", n, w.log.String())
	}
}

// A database that was restored on another server has a position of which that server's
// transactions have not come near: what is new there is sent all the same.
func TestPositionOfAnotherServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec(`update metric_export set tx = 1::bigint << 60`)
	w.write(1)
	w.want(w.send(1), [][]float64{{1}})
}
