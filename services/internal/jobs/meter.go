package jobs

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/berth-dev/berth/pkg/telemetry"
)

const (
	// lookTimeout is short of what a scrape takes altogether.
	lookTimeout = 3 * time.Second
	// lookAgain is how long an answer holds, however often somebody collects.
	lookAgain = 5 * time.Second
)

var (
	instruments = telemetry.InstrumentsOf("services/internal/jobs")
	open        = instruments.Gauge("wakeup.open", "{wakeup}", "wake-ups that are due, at work, or wait to be tried again; of the whole queue, so the same from each replica")
	oldest      = instruments.Gauge("wakeup.oldest", "s", "how long the oldest wake-up has been due; of the whole queue")
	duration    = instruments.Duration("wakeup.duration", "how long wake-ups were worked on", telemetry.Requests)
)

// queue looks at what waits in a schema's queue, for metrics.
type queue struct {
	pool      *pgxpool.Pool
	schema    string
	statement string

	mu     sync.Mutex
	looked time.Time
	seen   []backlog
}

// backlog is how many wake-ups are in a state, and how long the first of them has
// been due.
type backlog struct {
	State   string
	Count   int64
	Seconds float64
}

func newQueue(pool *pgxpool.Pool, schema string) *queue {
	return &queue{pool: pool, schema: schema, statement: strings.ReplaceAll(`
		SELECT s.state::text, count(j.id), coalesce(greatest(extract(epoch FROM now() - min(j.scheduled_at)), 0), 0)::float8
		FROM unnest('{available,running,retryable}'::SCHEMA.river_job_state[]) s(state)
		LEFT JOIN SCHEMA.river_job j ON j.state = s.state AND (s.state <> 'available' OR j.scheduled_at <= now())
		GROUP BY s.state ORDER BY s.state`, "SCHEMA", pgx.Identifier{schema}.Sanitize())}
}

// look is called when somebody collects.
func (q *queue) look(ctx context.Context, o metric.Observer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if time.Since(q.looked) > lookAgain {
		ctx, cancel := context.WithTimeout(ctx, lookTimeout)
		defer cancel()
		var err error
		if q.seen, err = q.read(ctx); err != nil {
			return fmt.Errorf("look at the queue %s: %w", q.schema, err)
		}
		q.looked = time.Now()
	}
	name := attribute.String("queue", q.schema)
	for _, b := range q.seen {
		o.ObserveFloat64(open, float64(b.Count), metric.WithAttributes(name, attribute.String("state", b.State)))
		if b.State == "available" {
			o.ObserveFloat64(oldest, b.Seconds, metric.WithAttributes(name))
		}
	}
	return nil
}

func (q *queue) read(ctx context.Context) ([]backlog, error) {
	rows, err := q.pool.Query(ctx, q.statement)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[backlog])
}

// worked counts one wake-up that was worked on.
func worked(ctx context.Context, kind string, took time.Duration, err error) {
	outcome := "done"
	if err != nil {
		outcome = "failed"
	}
	duration.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("kind", kind), attribute.String("outcome", outcome)))
}
