package store

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/services/internal/model"
)

const (
	// A notification that cannot be sent in this time is dropped: by then the
	// connection is gone, and every listener resyncs when it has its own back.
	notifyTimeout = 5 * time.Second

	// maxNotifyBatch keeps one statement small; the rest goes in the next one.
	maxNotifyBatch = 1000
)

type notification struct {
	channel model.Channel
	key     string
}

// notifier sends notifications from one goroutine. What is added while a
// statement is on its way goes out together in the next one, each different
// notification once: under load many commits share one NOTIFY, at rest it
// leaves at once.
type notifier struct {
	pool *pgxpool.Pool
	log  *slog.Logger
	done chan struct{}

	mu      sync.Mutex
	more    sync.Cond
	pending map[notification]struct{}
	closed  bool
}

func newNotifier(pool *pgxpool.Pool, log *slog.Logger) *notifier {
	n := &notifier{pool: pool, log: log, done: make(chan struct{}), pending: map[notification]struct{}{}}
	n.more.L = &n.mu
	go n.run()
	return n
}

func (n *notifier) add(notes []notification) {
	if len(notes) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, note := range notes {
		n.pending[note] = struct{}{}
	}
	n.more.Signal()
}

// close sends what is pending and waits for it.
func (n *notifier) close() {
	n.mu.Lock()
	n.closed = true
	n.more.Signal()
	n.mu.Unlock()
	<-n.done
}

func (n *notifier) run() {
	defer close(n.done)
	for {
		batch := n.next()
		if batch == nil {
			return
		}
		if err := n.send(batch); err != nil {
			n.log.Warn("notifications dropped", "count", len(batch), "err", err)
		}
	}
}

// next waits for something to send; nil means closed and nothing left.
func (n *notifier) next() []notification {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.pending) == 0 {
		if n.closed {
			return nil
		}
		n.more.Wait()
	}
	batch := slices.Collect(maps.Keys(n.pending))
	if len(batch) > maxNotifyBatch {
		batch = batch[:maxNotifyBatch]
	}
	for _, note := range batch {
		delete(n.pending, note)
	}
	return batch
}

func (n *notifier) send(batch []notification) error {
	channels, keys := make([]string, len(batch)), make([]string, len(batch))
	for i, note := range batch {
		channels[i], keys[i] = string(note.channel), note.key
	}
	ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
	defer cancel()
	_, err := n.pool.Exec(ctx, `select pg_notify(n.channel, n.key) from unnest($1::text[], $2::text[]) as n (channel, key)`, channels, keys)
	return err
}

const (
	// eventNotice is what berth.emit says when a transaction wrote an event.
	eventNotice = "BE001"
	eventsHeard = "berth.events"
)

// noticeEvents remembers with the connection that its transaction wrote events.
// Triggers write them, so the program would not know otherwise, and a NOTIFY in
// the trigger would make commits queue. The sequencer is notified after the commit.
func noticeEvents(c *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == eventNotice {
		c.CustomData()[eventsHeard] = true
	}
}
