package presence_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/runner-api/internal/database"
	"github.com/berth-dev/berth/services/runner-api/internal/presence"
)

// spans records what the store's tracer says; a test finds its own by trace.
var spans = sync.OnceValue(func() *tracetest.SpanRecorder {
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	return recorder
})

// fleet makes three orgs with this many runners altogether, which were last
// seen an hour ago, and returns their ids.
func fleet(t *testing.T, db *pgtest.DB, n int) (ids []string) {
	t.Helper()
	for _, sql := range []string{
		`insert into orgs (org_id, name) select 'org_' || o, 'o' || o from generate_series(0, 2) o`,
		`insert into apps (id, org_id, name) select 'app_' || o, 'org_' || o, 'a' from generate_series(0, 2) o`,
		`insert into customers (id, org_id, name) select 'cus_' || o, 'org_' || o, 'c' from generate_series(0, 2) o`,
		`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, created_by)
		 select 'ins_' || i, 'org_' || i % 3, 'cus_' || i % 3, 'app_' || i % 3, 'i' || i, 'local', 'test' from generate_series(1, $1::int) i`,
		`insert into runners (id, org_id, install_id, kind, name, state, epoch, last_seen_at)
		 select 'rnr_' || i, 'org_' || i % 3, 'ins_' || i, 'install', 'r', 'active', i, now() - interval '1 hour' from generate_series(1, $1::int) i`,
	} {
		var args []any
		if strings.Contains(sql, "$1") {
			args = append(args, n)
		}
		if _, err := db.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	for i := range n {
		ids = append(ids, fmt.Sprintf("rnr_%d", i+1))
	}
	return ids
}

// statements are those that a function makes with its context.
func statements(t *testing.T, fn func(ctx context.Context) error) (sent []string) {
	t.Helper()
	ctx, root := otel.Tracer("test").Start(t.Context(), "root")
	if err := fn(ctx); err != nil {
		t.Fatal(err)
	}
	root.End()
	for _, span := range spans().Ended() {
		if span.SpanContext().TraceID() != root.SpanContext().TraceID() {
			continue
		}
		for _, a := range span.Attributes() {
			if a.Key == attribute.Key("db.query.text") {
				sent = append(sent, a.Value.AsString())
			}
		}
	}
	return sent
}

func TestSweepTellsOfAllOrgs(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ids := fleet(t, db, 6)
	for _, sql := range []string{
		`insert into runner_jobs (id, org_id, runner_id, kind, operation, spec, timeout_seconds) values ('job_1', 'org_1', 'rnr_1', 'k', 'plan', '{}', 1)`,
		`insert into runner_jobs (id, org_id, runner_id, kind, operation, spec, timeout_seconds, cancel_requested_at) values ('job_2', 'org_2', 'rnr_2', 'k', 'plan', '{}', 1, now())`,
		`insert into settings_versions (org_id, install_id, version, digest, envelope, expires_at) values ('org_0', 'ins_3', 7, 'd', '{}', now())`,
		`update runners set state = 'revoked' where id = 'rnr_4'`,
		`update runners set last_seen_at = now() - interval '1 second' where id = 'rnr_5'`,
	} {
		if _, err := db.Admin().Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	got := map[string]presence.News{}
	here := presence.New(database.New(db.AsRole(store.RoleRunner)), slog.New(slog.DiscardHandler), func(n presence.News) { got[n.RunnerID] = n })
	release := here.Hold("rnr_1")
	for _, id := range ids[1:5] {
		here.Saw(id)
	}
	here.Saw("rnr_of_nobody")
	var began time.Time
	if err := db.Admin().QueryRow(t.Context(), `select now()`).Scan(&began); err != nil {
		t.Fatal(err)
	}
	if err := here.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]presence.News{
		"rnr_1": {RunnerID: "rnr_1", Epoch: 1, Active: true, Queued: true},
		"rnr_2": {RunnerID: "rnr_2", Epoch: 2, Active: true}, // its job is to be cancelled
		"rnr_3": {RunnerID: "rnr_3", Epoch: 3, Active: true, SettingsVersion: 7},
		"rnr_4": {RunnerID: "rnr_4", Epoch: 4},
		"rnr_5": {RunnerID: "rnr_5", Epoch: 5, Active: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("news (-want +got):\n%s", diff)
	}
	var written string
	err := db.Admin().QueryRow(t.Context(), `select string_agg(id, ' ' order by id) from runners where last_seen_at >= $1`, began).Scan(&written)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("rnr_1 rnr_2 rnr_3 rnr_4", written); diff != "" {
		t.Errorf("written as seen, but for the one that just was and the one that was not (-want +got):\n%s", diff)
	}

	// Who is held stays there, the others have left.
	clear(got)
	if err := here.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !got["rnr_1"].Queued {
		t.Errorf("news of the held runner alone are wanted, got %v", got)
	}
	release()
	clear(got)
	if err := here.Sweep(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("nobody is there, got %v, %v", got, err)
	}
}

// 10,000 waiting runners, whatever their orgs, cost less than 5 statements per
// second.
func TestIdleRunnersCostFewStatements(t *testing.T) {
	t.Parallel()
	spans() // before the store makes its tracer
	db := pgtest.New(t)
	const n, perSecond = 10_000, 5
	ids := fleet(t, db, n)
	news := 0
	here := presence.New(database.New(db.AsRole(store.RoleRunner)), slog.New(slog.DiscardHandler), func(presence.News) { news++ })
	for _, id := range ids {
		here.Hold(id)
	}
	began := time.Now()
	sent := statements(t, here.Sweep)
	t.Logf("a sweep of %d runners made %d statements in %s", n, len(sent), time.Since(began))
	if news != n {
		t.Errorf("news of %d runners, want of %d", news, n)
	}
	asked := 0
	for _, sql := range sent {
		if strings.Contains(sql, "runners_present") {
			asked++
		}
	}
	if asked == 0 || float64(len(sent)) >= perSecond*presence.Interval.Seconds() {
		t.Errorf("%d statements per %s, %d of them about runners:\n%s", len(sent), presence.Interval, asked, strings.Join(sent, "\n"))
	}
	var seen int
	if err := db.Admin().QueryRow(t.Context(), `select count(*) from runners where last_seen_at > now() - interval '1 minute'`).Scan(&seen); err != nil {
		t.Fatal(err)
	}
	if seen != n {
		t.Errorf("%d of %d runners were written as seen", seen, n)
	}
}
