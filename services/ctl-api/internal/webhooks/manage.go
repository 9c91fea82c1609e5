package webhooks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/pkg/webhook"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// States of webhooks and deliveries, as in the table.
const (
	enabled   = model.WebhookEnabled
	disabled  = model.WebhookDisabled
	deleted   = model.WebhookDeleted
	pending   = model.DeliveryPending
	delivered = model.DeliveryDelivered
	dead      = model.DeliveryDead
)

const (
	// maxWebhooks of an org bounds what one org can make the couriers do.
	maxWebhooks = 20
	// maxReplay is how many events one replay sends.
	maxReplay = 1000
)

// Office makes and changes webhooks.
type Office struct {
	Keys  *keys.Ring
	Jobs  Inserter
	Guard *Guard
}

// Wish is a webhook as somebody wants it; nil leaves what is there. Apps and
// installs are ids.
type Wish struct {
	Name, URL      *string
	Kinds          *[]string
	Apps, Installs *[]string
	Labels         *map[string]string
	Enabled        *bool
	Rotate, Retire bool
	Actor          string
}

// apply puts the wish into a row and its filters. It does no I/O.
func (w Wish) apply(g *Guard, row *ctldb.Webhook, f *Filters, head int64) error {
	if w.Name != nil {
		row.Name = *w.Name
	}
	if w.URL != nil {
		if err := g.CheckURL(*w.URL); err != nil {
			return err
		}
		row.URL = *w.URL
	}
	if w.Kinds != nil {
		if _, err := stream.KindsOf(*w.Kinds); err != nil {
			return err
		}
		f.Kinds = *w.Kinds
	}
	if w.Apps != nil {
		f.Apps = *w.Apps
	}
	if w.Installs != nil {
		f.Installs = *w.Installs
	}
	if w.Labels != nil {
		f.Labels = *w.Labels
	}
	if w.Enabled == nil {
		return nil
	}
	was := row.State
	if row.State = disabled; *w.Enabled {
		row.State = enabled
		if was != enabled { // what it missed is replayed on purpose, or not at all
			row.Position, row.FailingSince = head, nil
		}
	}
	return nil
}

// Create makes a webhook; secret is shown once.
func (o *Office) Create(ctx context.Context, tx *database.Tx, w Wish) (row ctldb.Webhook, secret string, err error) {
	if err := tx.LockMakingWebhooks(ctx); err != nil {
		return row, "", err
	}
	n, err := tx.CountWebhooks(ctx)
	if err != nil {
		return row, "", err
	}
	if n >= maxWebhooks {
		return row, "", fault.With(fault.Newf(fault.ErrConflict, "this org has %d webhooks, which is the most", n), fault.Code("too_many_webhooks"), fault.Remedy("delete one, or let one receiver distribute"))
	}
	row.ID = id.New(id.Webhook)
	var filters Filters
	if err := w.apply(o.Guard, &row, &filters, 0); err != nil {
		return row, "", err
	}
	secret = webhook.NewSecret()
	sealed, err := sealSecrets(o.Keys, tx.OrgID(), row.ID, []string{secret})
	if err != nil {
		return row, "", err
	}
	raw, err := json.Marshal(filters)
	if err != nil {
		return row, "", err
	}
	row, err = tx.InsertWebhook(ctx, ctldb.InsertWebhookParams{ID: row.ID, Name: row.Name, URL: row.URL, Filters: raw, Secrets: sealed, CreatedBy: w.Actor})
	return row, secret, nameTaken(err, row.Name)
}

// Update changes a webhook; secret is a new one, shown once, or empty.
func (o *Office) Update(ctx context.Context, tx *database.Tx, ref string, w Wish) (row ctldb.Webhook, secret string, err error) {
	if row, err = tx.LockWebhook(ctx, ref); err != nil {
		return row, "", missing(err, ref)
	}
	filters, err := FiltersOf(row)
	if err != nil {
		return row, "", err
	}
	head, err := tx.EventHead(ctx)
	if err != nil {
		return row, "", err
	}
	before := row.State
	if err := w.apply(o.Guard, &row, &filters, head); err != nil {
		return row, "", err
	}
	secrets, err := openSecrets(o.Keys, row)
	if err != nil {
		return row, "", err
	}
	if w.Retire && len(secrets) > 1 {
		secrets = secrets[:1]
	}
	if w.Rotate {
		secret = webhook.NewSecret()
		secrets = []string{secret, secrets[0]}
	}
	if row.Secrets, err = sealSecrets(o.Keys, tx.OrgID(), row.ID, secrets); err != nil {
		return row, "", err
	}
	raw, err := json.Marshal(filters)
	if err != nil {
		return row, "", err
	}
	row, err = tx.UpdateWebhook(ctx, ctldb.UpdateWebhookParams{
		ID: row.ID, Name: row.Name, URL: row.URL, Filters: raw, Secrets: row.Secrets, State: row.State, Position: row.Position, FailingSince: row.FailingSince,
	})
	if err != nil {
		return row, "", nameTaken(err, row.Name)
	}
	if row.State == enabled && before != enabled { // what was pending when it was disabled
		err = o.Jobs.InsertAt(ctx, tx.Tx, Wake{OrgID: tx.OrgID(), WebhookID: row.ID}, time.Time{})
	}
	return row, secret, err
}

// Delete ends a webhook, with everything that waits.
func (o *Office) Delete(ctx context.Context, tx *database.Tx, ref string) (ctldb.Webhook, error) {
	row, err := tx.LockWebhook(ctx, ref)
	if err != nil {
		return row, missing(err, ref)
	}
	if _, err := tx.BuryDeliveries(ctx, ctldb.BuryDeliveriesParams{WebhookID: row.ID, Error: "the webhook was deleted"}); err != nil {
		return row, err
	}
	return tx.UpdateWebhook(ctx, ctldb.UpdateWebhookParams{
		ID: row.ID, Name: row.Name, URL: "", Filters: json.RawMessage("{}"), Secrets: []byte{}, State: deleted, Position: row.Position,
	})
}

// Replay is what to send again: one of the three.
type Replay struct {
	Delivery    string
	Dead        bool
	After, UpTo *int64
}

// Replay sends events again; it returns how many.
func (o *Office) Replay(ctx context.Context, tx *database.Tx, ref string, r Replay) (ctldb.Webhook, int, error) {
	row, err := o.enabled(ctx, tx, ref)
	if err != nil {
		return row, 0, err
	}
	var events []stream.Event
	ranged := r.After != nil || r.UpTo != nil
	switch {
	case ranged && r.Delivery == "" && !r.Dead:
		events, err = o.ranged(ctx, tx, row, r)
	case !ranged && (r.Delivery != "") != r.Dead:
		events, err = again(ctx, tx, row, r)
	default:
		err = fault.With(fault.Newf(fault.ErrInvalid, "say what to send again: one delivery, all dead ones, or a range"), fault.Code("replay_unclear"))
	}
	if err != nil {
		return row, 0, err
	}
	return row, len(events), enqueue(ctx, tx, o.Jobs, Batch{WebhookID: row.ID, Cause: model.CauseReplay, Events: events})
}

func again(ctx context.Context, tx *database.Tx, row ctldb.Webhook, r Replay) ([]stream.Event, error) {
	p := ctldb.DeliveriesToReplayParams{WebhookID: row.ID, Most: maxReplay}
	if r.Dead {
		state := string(dead)
		p.State = &state
	} else {
		p.ID = &r.Delivery
	}
	rows, err := tx.DeliveriesToReplay(ctx, p)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 && !r.Dead {
		return nil, fault.Newf(fault.ErrNotFound, "webhook %s has no delivery %q of an event that is still kept", row.Name, r.Delivery)
	}
	var events []stream.Event
	for _, e := range rows {
		events = append(events, stream.Event{Seq: e.Seq, ID: e.ID, Kind: event.Kind(e.Kind)})
	}
	return events, nil
}

func (o *Office) ranged(ctx context.Context, tx *database.Tx, row ctldb.Webhook, r Replay) ([]stream.Event, error) {
	head, err := tx.EventHead(ctx)
	if err != nil {
		return nil, err
	}
	span := Range{UpTo: head, Most: maxReplay}
	if r.After != nil {
		span.After = *r.After
	}
	if r.UpTo != nil {
		span.UpTo = min(*r.UpTo, head)
	}
	var events []stream.Event
	for span.After < span.UpTo && len(events) < maxReplay {
		some, position, err := matching(ctx, tx, row, span)
		if err != nil {
			return nil, err
		}
		events, span.After = append(events, some...), position
	}
	return events[:min(len(events), maxReplay)], nil
}

// Test sends a ping.
func (o *Office) Test(ctx context.Context, tx *database.Tx, ref string) (ctldb.Webhook, error) {
	row, err := o.enabled(ctx, tx, ref)
	if err != nil {
		return row, err
	}
	return row, enqueue(ctx, tx, o.Jobs, Batch{WebhookID: row.ID, Cause: model.CauseTest, Events: []stream.Event{ping(row.Name, time.Now())}})
}

func (o *Office) enabled(ctx context.Context, tx *database.Tx, ref string) (ctldb.Webhook, error) {
	row, err := tx.FindWebhook(ctx, ref)
	if err != nil {
		return row, missing(err, ref)
	}
	if row.State != enabled {
		return row, fault.With(fault.Newf(fault.ErrConflict, "webhook %s is %s: nothing is sent to it", row.Name, row.State), fault.Code("webhook_disabled"), fault.Remedy("berth webhooks update %s --enable", row.Name))
	}
	return row, nil
}

// FiltersOf reads the filters of a row; its lists are never nil.
func FiltersOf(row ctldb.Webhook) (Filters, error) {
	f := Filters{}
	if err := json.Unmarshal(row.Filters, &f); err != nil {
		return f, fmt.Errorf("read filters of %s: %w", row.ID, err)
	}
	for _, list := range []*[]string{&f.Kinds, &f.Apps, &f.Installs} {
		*list = append([]string{}, *list...)
	}
	if f.Labels == nil {
		f.Labels = map[string]string{}
	}
	return f, nil
}

// SecretsOf is how many secrets sign.
func (o *Office) SecretsOf(row ctldb.Webhook) (int, error) {
	secrets, err := openSecrets(o.Keys, row)
	return len(secrets), err
}

// sealer closes bytes for a row of an org and opens them again.
type sealer interface {
	Seal(purpose seal.Purpose, plain []byte) ([]byte, error)
	Open(purpose seal.Purpose, sealed []byte) ([]byte, error)
}

func sealSecrets(ring sealer, org, webhookID string, secrets []string) ([]byte, error) {
	raw, err := json.Marshal(secrets)
	if err != nil {
		return nil, err
	}
	return ring.Seal(keys.WebhookAtRest(org, webhookID), raw)
}

// openSecrets returns the active ones, newest first; at least one.
func openSecrets(ring sealer, row ctldb.Webhook) ([]string, error) {
	raw, err := ring.Open(keys.WebhookAtRest(row.OrgID, row.ID), row.Secrets)
	if err != nil {
		return nil, fmt.Errorf("open secrets of %s: %w", row.ID, err)
	}
	var secrets []string
	if err := json.Unmarshal(raw, &secrets); err != nil || len(secrets) == 0 || slices.Contains(secrets, "") {
		return nil, fmt.Errorf("secrets of %s cannot be read", row.ID) // the cause could quote them
	}
	return secrets, nil
}

func missing(err error, ref string) error {
	if errors.Is(err, fault.ErrNotFound) {
		return fault.Newf(fault.ErrNotFound, "there is no webhook %q", ref)
	}
	return err
}

func nameTaken(err error, name string) error {
	if errors.Is(err, fault.ErrConflict) {
		return fault.With(fault.Newf(fault.ErrConflict, "a webhook %q exists already", name), fault.Code("name_taken"))
	}
	return err
}

// Changes names what a wish changes, for the chain.
func (w Wish) Changes() string {
	var all []string
	for name, set := range map[string]bool{
		"name": w.Name != nil, "url": w.URL != nil, "kinds": w.Kinds != nil, "apps": w.Apps != nil, "installs": w.Installs != nil, "labels": w.Labels != nil,
		"secret rotated": w.Rotate, "older secret retired": w.Retire, "enabled": w.Enabled != nil && *w.Enabled, "disabled": w.Enabled != nil && !*w.Enabled,
	} {
		if set {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
