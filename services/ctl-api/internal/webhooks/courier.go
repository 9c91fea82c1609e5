package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"github.com/riverqueue/river"
	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

const (
	// Queue is River's queue of the courier, and Workers how many webhooks of all
	// orgs are sent to at once in one replica. They hold no connection to the
	// database while they send.
	Queue   = "webhooks"
	Workers = 100

	// A turn sends at most turnSize deliveries of one webhook, parallel at once: with
	// a receiver that never answers it takes 4 × 10 s, and the webhook's claim, which
	// a killed worker leaves behind, is longer than that.
	turnSize = 16
	parallel = 4
	claimFor = 55 * time.Second
)

// alarmKind is that of the alarm about a webhook that was disabled.
const alarmKind = "webhook_failed"

var (
	instruments = telemetry.InstrumentsOf("services/ctl-api/webhooks")
	attempts    = instruments.Counter("webhook.attempt", "{attempt}", "attempts to deliver an event to a webhook")
)

// Wake has the due deliveries of a webhook sent.
type Wake struct {
	OrgID     string `json:"org_id"`
	WebhookID string `json:"webhook_id"`
}

// Kind is stored with every job; it must not change.
func (Wake) Kind() string { return "webhook_send" }

// InsertOpts keeps slow receivers away from everything else.
func (Wake) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: Queue} }

// Later is Wake at a later time: one for all that ask for the same.
type Later struct {
	OrgID     string    `json:"org_id"`
	WebhookID string    `json:"webhook_id"`
	Due       time.Time `json:"due"`
}

// Kind is stored with every job; it must not change.
func (Later) Kind() string { return "webhook_due" }

// InsertOpts makes one job of those for the same time, which lies ahead.
func (Later) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: Queue, UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

// Courier sends what is due. It is safe for concurrent use.
type Courier struct {
	Store  *database.Store
	Jobs   Inserter
	Keys   *keys.Ring
	Sender *Sender
	Log    *slog.Logger
	// Next is when to try again; nil means NextAttempt.
	Next func(failed int, spread float64) (time.Duration, bool)
}

// AddWorkers has the courier work its jobs.
func (c *Courier) AddWorkers(workers *river.Workers) {
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[Wake]) error {
		return c.Turn(ctx, job.Args.OrgID, job.Args.WebhookID)
	}))
	river.AddWorker(workers, river.WorkFunc(func(ctx context.Context, job *river.Job[Later]) error {
		return c.Turn(ctx, job.Args.OrgID, job.Args.WebhookID)
	}))
}

// Turn sends the due deliveries of one webhook, at most turnSize, and says when the
// next turn is. When another worker is at it, that worker says so.
func (c *Courier) Turn(ctx context.Context, org, webhookID string) error {
	var hook ctldb.Webhook
	var due []ctldb.DueDeliveriesRow
	err := c.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) (err error) {
		due = nil
		hook, err = tx.ClaimWebhook(ctx, ctldb.ClaimWebhookParams{ID: webhookID, Seconds: claimFor.Seconds()})
		if errors.Is(err, fault.ErrNotFound) {
			return c.leave(ctx, tx, webhookID)
		}
		if err != nil {
			return err
		}
		due, err = tx.DueDeliveries(ctx, ctldb.DueDeliveriesParams{WebhookID: webhookID, Most: turnSize})
		return err
	})
	if err != nil || hook.ID == "" {
		return err
	}
	secrets, err := openSecrets(c.Keys, hook)
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, d := range due {
		group.Go(func() error { return c.deliver(groupCtx, hook, secrets, d) })
	}
	err = group.Wait()
	// Also after a failure: else the webhook would rest until the claim runs out.
	ctx = context.WithoutCancel(ctx)
	done := c.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
		if err := tx.ReleaseWebhook(ctx, hook.ID); err != nil {
			return err
		}
		return c.again(ctx, tx, hook.ID)
	})
	return errors.Join(err, done)
}

// leave is for a webhook that is claimed, disabled or gone. The claim may be that
// of a killed worker, so somebody looks when it has run out.
func (c *Courier) leave(ctx context.Context, tx *database.Tx, webhookID string) error {
	hook, err := tx.GetWebhook(ctx, webhookID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	if err != nil || hook.State != enabled || hook.BusyUntil == nil {
		return err
	}
	return turnAt(ctx, tx, c.Jobs, webhookID, *hook.BusyUntil)
}

// again has the next turn take place when the next delivery is due.
func (c *Courier) again(ctx context.Context, tx *database.Tx, webhookID string) error {
	next, err := tx.NextDelivery(ctx, webhookID)
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if !next.After(time.Now()) {
		return c.Jobs.InsertAt(ctx, tx.Tx, Wake{OrgID: tx.OrgID(), WebhookID: webhookID}, time.Time{})
	}
	return turnAt(ctx, tx, c.Jobs, webhookID, next)
}

// turnAt has a turn take place. The time is rounded up, so that turns for nearly the
// same time are one; and never to that of a turn that takes place now, whose job
// would be taken for this one.
func turnAt(ctx context.Context, tx *database.Tx, jobs Inserter, webhookID string, due time.Time) error {
	due = due.UTC().Truncate(time.Second).Add(time.Second)
	return jobs.InsertAt(ctx, tx.Tx, Later{OrgID: tx.OrgID(), WebhookID: webhookID, Due: due}, due)
}

// deliver makes one attempt and writes down what became of it.
func (c *Courier) deliver(ctx context.Context, hook ctldb.Webhook, secrets []string, d ctldb.DueDeliveriesRow) error {
	if d.EventSeq != nil && d.At == nil {
		return c.record(ctx, hook, d, Outcome{Error: "the event is no longer kept"}, true)
	}
	e := stream.Event{
		Seq: optional.Value(d.EventSeq), ID: d.EventID, Kind: event.Kind(d.EventKind), Body: d.Body,
		InstallID: optional.Value(d.InstallID), AppID: optional.Value(d.AppID), CustomerID: optional.Value(d.CustomerID),
	}
	if d.At != nil {
		e.At = *d.At
	}
	if d.Cause == model.CauseTest {
		made := ping(hook.Name, d.CreatedAt)
		e.At, e.Body = made.At, made.Body
	}
	out := c.Sender.Send(ctx, hook.URL, Message{OrgID: hook.OrgID, Event: e}, secrets)
	if ctx.Err() != nil && !out.OK {
		return ctx.Err() // we were stopped: that is no attempt of the receiver's
	}
	attempts.Add(ctx, 1)
	return c.record(ctx, hook, d, out, false)
}

// record stores an attempt and decides whether there is another one; final says
// that there is none.
func (c *Courier) record(ctx context.Context, hook ctldb.Webhook, d ctldb.DueDeliveriesRow, out Outcome, final bool) error {
	ctx = context.WithoutCancel(ctx) // it was sent
	return c.Store.Tx(ctx, hook.OrgID, func(ctx context.Context, tx *database.Tx) error {
		p := ctldb.RecordAttemptParams{
			ID: d.ID, CreatedAt: d.CreatedAt, State: delivered, Error: optional.Of(out.Error), Response: optional.Of(out.Response),
			TookMs: int32(out.Took.Milliseconds()),
		}
		if out.Status != 0 {
			status := int32(out.Status)
			p.Status = &status
		}
		if out.OK {
			if err := tx.WebhookSucceeded(ctx, hook.ID); err != nil {
				return err
			}
			return tx.RecordAttempt(ctx, p)
		}
		next := c.Next
		if next == nil {
			next = NextAttempt
		}
		pause, more := next(int(d.Attempts)+1, rand.Float64()) //nolint:gosec // spread, not a secret
		if p.State = dead; more && !final {
			at := time.Now().Add(pause)
			p.State, p.NextAt = pending, &at
		}
		if err := tx.RecordAttempt(ctx, p); err != nil || final {
			return err
		}
		since, err := tx.WebhookFailing(ctx, hook.ID)
		if err != nil {
			return err
		}
		if !GivenUp(!more, since, time.Now()) {
			return nil
		}
		return c.disable(ctx, tx, hook, since)
	})
}

// disable stops a webhook that gets nothing, and raises an alarm.
func (c *Courier) disable(ctx context.Context, tx *database.Tx, hook ctldb.Webhook, since time.Time) error {
	n, err := tx.WebhookFailed(ctx, hook.ID)
	if err != nil || n == 0 {
		return err
	}
	if _, err := tx.BuryDeliveries(ctx, ctldb.BuryDeliveriesParams{WebhookID: hook.ID, Error: "the webhook was disabled"}); err != nil {
		return err
	}
	detail, err := json.Marshal(map[string]any{"webhook_id": hook.ID, "host": hostOf(hook.URL), "failing_since": since.UTC(), "position": hook.Position})
	if err != nil {
		return err
	}
	if _, err := tx.RaiseWebhookAlarm(ctx, ctldb.RaiseWebhookAlarmParams{ID: id.New("alm"), Kind: alarmKind, Subject: "webhook " + hook.Name, Detail: detail}); err != nil {
		return err
	}
	c.Log.WarnContext(ctx, "webhook disabled", "org_id", hook.OrgID, "webhook_id", hook.ID, "failing_since", since)
	return tx.WakeInstall(ctx, hook.OrgID) // records the alarm in the org's chain
}

// hostOf is what may be told of an address: its path may be a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// wakeOverdue has what a lost wake-up left lying sent.
func (d *Distributor) wakeOverdue(ctx context.Context) error {
	var due []string
	err := d.Store.System(ctx, func(ctx context.Context, tx *database.Tx) (err error) {
		due, err = tx.WebhooksDue(ctx, overdue.Seconds())
		return err
	})
	if err != nil {
		return fmt.Errorf("find overdue deliveries: %w", err)
	}
	now := time.Now()
	for _, one := range due {
		org, hook, _ := strings.Cut(one, " ")
		err := d.Store.Tx(ctx, org, func(ctx context.Context, tx *database.Tx) error {
			return turnAt(ctx, tx, d.Jobs, hook, now)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
