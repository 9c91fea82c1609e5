package webhooks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// feedBatch is how many events one transaction looks at for a webhook.
	feedBatch = 500
	// feedSweep makes up for a hint that was lost with the process that should have
	// sent it.
	feedSweep = 10 * time.Second
	// overdue is how late a delivery is before somebody concludes that the wake-up
	// for it is gone.
	overdue = 30 * time.Second
)

// Inserter adds jobs to a transaction; the zero time means now.
type Inserter interface {
	InsertAt(ctx context.Context, tx *store.Tx, args river.JobArgs, due time.Time) error
}

// Distributor makes deliveries of events. Any number of replicas may run one.
type Distributor struct {
	Store    *database.Store
	Listener *store.Listener
	Jobs     Inserter
	Log      *slog.Logger

	wake chan struct{}
}

// NewDistributor makes one that listens from now on. The listener must listen on
// model.ChannelEvents.
func NewDistributor(d Distributor) *Distributor {
	d.wake = make(chan struct{}, 1)
	poke := func() {
		select {
		case d.wake <- struct{}{}:
		default: // one look is already asked for
		}
	}
	d.Listener.Handle(model.ChannelEvents, func(string) { poke() })
	d.Listener.OnResync(func(context.Context) { poke() })
	return &d
}

// Run distributes events as they are numbered, until ctx ends.
func (d *Distributor) Run(ctx context.Context) error {
	ticks := time.NewTicker(feedSweep)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-d.wake:
		case <-ticks.C:
			if err := d.wakeOverdue(ctx); err != nil && ctx.Err() == nil {
				d.Log.WarnContext(ctx, "overdue deliveries not woken", "err", err)
			}
		}
		if err := d.Distribute(ctx); err != nil && ctx.Err() == nil {
			d.Log.WarnContext(ctx, "events not distributed", "err", err)
		}
	}
}

// Distribute makes the deliveries of all events that have a number.
func (d *Distributor) Distribute(ctx context.Context) error {
	var orgs []string
	err := d.Store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		orgs, err = tx.WebhooksBehind(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("find orgs with new events: %w", err)
	}
	for _, org := range orgs {
		for more := true; more; {
			err := d.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) (err error) {
				more, err = d.feed(ctx, tx)
				return err
			})
			if err != nil {
				return fmt.Errorf("distribute events of %s: %w", org, err)
			}
		}
	}
	return nil
}

// feed looks at one batch for each webhook of the org; more says that some have
// not come to the head.
func (d *Distributor) feed(ctx context.Context, tx *database.Tx) (more bool, _ error) {
	head, err := tx.EventHead(ctx)
	if err != nil {
		return false, err
	}
	hooks, err := tx.WebhooksToFeed(ctx, head)
	if err != nil {
		return false, err
	}
	for _, hook := range hooks {
		events, position, err := matching(ctx, tx, hook, Range{After: hook.Position, UpTo: head, Most: feedBatch})
		if err != nil {
			return false, err
		}
		if err := d.enqueue(ctx, tx, hook.ID, model.CauseEvent, events); err != nil {
			return false, err
		}
		if err := tx.MoveWebhook(ctx, ctldb.MoveWebhookParams{ID: hook.ID, Position: position}); err != nil {
			return false, err
		}
		more = more || position < head
	}
	return more, nil
}

// Range is a piece of the stream.
type Range struct {
	After, UpTo int64
	Most        int
}

// matching reads a range and returns what the webhook gets of it, and how far it
// has read. A webhook sees what somebody sees who may read everything of the org and looks
// at what its filters name.
func matching(ctx context.Context, tx *database.Tx, hook ctldb.Webhook, r Range) ([]stream.Event, int64, error) {
	var filters Filters
	if err := json.Unmarshal(hook.Filters, &filters); err != nil {
		return nil, 0, fmt.Errorf("read filters of %s: %w", hook.ID, err)
	}
	q := stream.Query{Principal: auth.Principal{Kind: auth.KindSystem}}
	if filters.limited() {
		q.Covers = func(ctx context.Context, events []stream.Event) (covered []stream.Event, err error) {
			labels, err := labelsOf(ctx, tx, filters, events)
			for _, e := range events {
				if filters.Covers(e, labels[e.InstallID]) {
					covered = append(covered, e)
				}
			}
			return covered, err
		}
	}
	page, err := stream.ReadTo(ctx, tx, q, stream.Span{After: r.After, UpTo: r.UpTo, Most: r.Most})
	if err != nil {
		return nil, 0, err
	}
	var out []stream.Event
	for _, e := range page.Events {
		if filters.Wants(e.Kind) {
			out = append(out, e)
		}
	}
	return out, page.Position, nil
}

func labelsOf(ctx context.Context, tx *database.Tx, filters Filters, events []stream.Event) (map[string]map[string]string, error) {
	if len(filters.Labels) == 0 {
		return nil, nil
	}
	ids := []string{}
	for _, e := range events {
		if e.InstallID != "" {
			ids = append(ids, e.InstallID)
		}
	}
	rows, err := tx.LabelsOfInstalls(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	all := map[string]map[string]string{}
	for _, row := range rows {
		labels := map[string]string{}
		if err := json.Unmarshal(row.Labels, &labels); err != nil {
			return nil, fmt.Errorf("read labels of %s: %w", row.ID, err)
		}
		all[row.ID] = labels
	}
	return all, nil
}

// enqueue makes a delivery of each event and wakes the courier.
func (d *Distributor) enqueue(ctx context.Context, tx *database.Tx, hookID string, cause model.DeliveryCause, events []stream.Event) error {
	return enqueue(ctx, tx, d.Jobs, Batch{WebhookID: hookID, Cause: cause, Events: events})
}

// Batch is events for one webhook.
type Batch struct {
	WebhookID string
	Cause     model.DeliveryCause
	Events    []stream.Event
}

func enqueue(ctx context.Context, tx *database.Tx, jobs Inserter, b Batch) error {
	if len(b.Events) == 0 {
		return nil
	}
	p := ctldb.InsertDeliveriesParams{WebhookID: b.WebhookID, Cause: string(b.Cause)}
	for _, e := range b.Events {
		p.Ids = append(p.Ids, id.New(id.Delivery))
		p.EventIds = append(p.EventIds, e.ID)
		p.Kinds = append(p.Kinds, string(e.Kind))
		p.Seqs = append(p.Seqs, e.Seq)
	}
	if err := tx.InsertDeliveries(ctx, p); err != nil {
		return fmt.Errorf("store deliveries: %w", err)
	}
	return jobs.InsertAt(ctx, tx.Tx, Wake{OrgID: tx.OrgID(), WebhookID: b.WebhookID}, time.Time{})
}

// ping is the event of a test.
func ping(webhook string, now time.Time) stream.Event {
	body, _ := json.Marshal(map[string]string{"webhook": webhook}) // a text always encodes
	return stream.Event{ID: id.New(id.Event), Kind: event.Ping, At: now, Body: body}
}
