package stream

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Event is one event as readers and receivers get it.
type Event struct {
	Seq int64 `json:"seq"`
	// After is the number up to which the reader had seen everything before: there
	// is nothing for this reader between After and Seq.
	After      int64           `json:"after"`
	ID         string          `json:"id"`
	At         time.Time       `json:"at"`
	Kind       event.Kind      `json:"kind"`
	CustomerID string          `json:"customer_id,omitempty"`
	AppID      string          `json:"app_id,omitempty"`
	InstallID  string          `json:"install_id,omitempty"`
	Body       json.RawMessage `json:"body"`
}

// Query is what a reader wants, of what its rights let it see.
type Query struct {
	Kinds     []event.Kind // none: all
	InstallID *string
	AppID     *string
	Principal auth.Principal
	// Covers keeps the events of what the reader has limited itself to; nil: it has not.
	Covers func(ctx context.Context, events []Event) ([]Event, error)
}

// whole says that a reader asks for the whole org, and may.
func (q Query) whole() bool {
	return q.InstallID == nil && q.AppID == nil && q.Covers == nil && q.Principal.Scope(permission(event.Installs)).Everywhere
}

// covered are those of some events that the reader may see, and that happened where it
// looks.
func (q Query) covered(ctx context.Context, events []Event) ([]Event, error) {
	var seen []Event
	for _, e := range events {
		if MayRead(q.Principal, e) && (q.InstallID == nil || *q.InstallID == e.InstallID) && (q.AppID == nil || *q.AppID == e.AppID) {
			seen = append(seen, e)
		}
	}
	if q.Covers == nil {
		return seen, nil
	}
	return q.Covers(ctx, seen)
}

// Page is a piece of the stream. Position is the number up to which the reader has
// seen everything that is for it: the next page goes on there.
type Page struct {
	Events   []Event
	Position int64
	// More says that there is more already.
	More bool
}

// mostOfPage bounds one read.
const mostOfPage = 500

// Read reads events after a number, at most so many. Errors: ErrGone when some of
// these are no longer kept; 0 is the oldest that is.
func Read(ctx context.Context, tx *database.Tx, q Query, after int64, most int) (Page, error) {
	// The head first: what is numbered after this look is for the next page.
	head, err := tx.EventHead(ctx)
	if err != nil {
		return Page{}, fmt.Errorf("read head of events: %w", err)
	}
	if after > head {
		return Page{}, fault.With(fault.Newf(fault.ErrInvalid, "there is no event %d: the last one is %d", after, head), fault.Code("event_ahead"))
	}
	first, err := oldest(ctx, tx, head)
	if err != nil {
		return Page{}, err
	}
	if after > 0 && after < first-1 {
		return Page{}, expired(first)
	}
	return ReadTo(ctx, tx, q, Span{After: after, UpTo: head, Most: min(most, mostOfPage)})
}

// Since is the number to read after for everything that happened at a time or
// later. Errors: ErrGone for a time before the oldest event that is kept, unless
// that is the org's first one.
func Since(ctx context.Context, tx *database.Tx, at time.Time) (int64, error) {
	found, err := tx.EventsSince(ctx, at)
	if err != nil {
		return 0, fmt.Errorf("find events since %s: %w", at, err)
	}
	if found.Earlier > 0 {
		return found.After, nil
	}
	head, err := tx.EventHead(ctx)
	if err != nil {
		return 0, fmt.Errorf("read head of events: %w", err)
	}
	first, err := oldest(ctx, tx, head)
	if err == nil && first > 1 {
		err = expired(first)
	}
	return found.After, err
}

// oldest is the number of the oldest event that is kept, or of the next one.
func oldest(ctx context.Context, tx *database.Tx, head int64) (int64, error) {
	first, err := tx.FirstEvent(ctx)
	if err != nil {
		return 0, fmt.Errorf("read oldest event: %w", err)
	}
	if first == 0 {
		first = head + 1
	}
	return first, nil
}

// expired is the answer to a reader that asks for events before the oldest one
// that is kept.
func expired(first int64) error {
	return fault.With(fault.Newf(fault.ErrGone, "events before %d are no longer kept", first),
		fault.Code("events_expired"), fault.Remedy("read on from %d, and read the state of installs again", first-1))
}

// Span is a piece of the stream: numbers above After up to UpTo, which have been
// given out, and at most so many events.
type Span struct {
	After, UpTo int64
	Most        int
}

// ReadTo reads a span. What of it is no longer kept is left out.
func ReadTo(ctx context.Context, tx *database.Tx, q Query, span Span) (Page, error) {
	scope := q.Principal.Scope(permission(event.Installs))
	rows, err := tx.EventsBetween(ctx, ctldb.EventsBetweenParams{
		After: span.After, UpTo: span.UpTo, Everywhere: scope.Everywhere, Customers: list(scope.Customers), Apps: list(scope.Apps), Installs: list(scope.Installs),
		Kinds: words(storedKinds(q.Kinds)), InstallID: q.InstallID, AppID: q.AppID, Most: int32(span.Most),
	})
	if err != nil {
		return Page{}, fmt.Errorf("read events: %w", err)
	}
	page := Page{Position: max(span.After, span.UpTo)}
	if len(rows) == span.Most {
		page.Position = rows[len(rows)-1].Seq
		page.More = page.Position < span.UpTo
	}
	events := make([]Event, 0, len(rows))
	for _, row := range rows {
		events = append(events, eventOf(row))
	}
	if events, err = q.covered(ctx, events); err != nil {
		return Page{}, err
	}
	if page.Events, err = onceOfIncidents(ctx, tx, q, events); err != nil {
		return Page{}, err
	}
	seen := span.After
	for i := range page.Events {
		page.Events[i].After, seen = seen, page.Events[i].Seq
	}
	return page, nil
}

func eventOf(row ctldb.EventsBetweenRow) Event {
	return Event{
		Seq: row.Seq, ID: row.ID, At: row.At, Kind: kindOf(row.Kind), Body: row.Body,
		CustomerID: optional.Value(row.CustomerID), AppID: optional.Value(row.AppID), InstallID: optional.Value(row.InstallID),
	}
}

// MayRead says whether somebody may know of an event: where it happened, and of
// which kind it is. One of a kind that this version does not know is for those who
// may read everything of the org.
func MayRead(p auth.Principal, e Event) bool {
	right := event.Runners
	if doc, known := event.Of(e.Kind); known {
		right = doc.Right
	}
	scope := p.Scope(permission(right))
	return scope.Includes(auth.Location{CustomerID: e.CustomerID, AppID: e.AppID, InstallID: e.InstallID})
}

func permission(right event.Right) auth.Permission { return auth.Permission(right) }

// list is never nil: NULL would match nothing, and not be false.
func list(all []string) []string { return append([]string{}, all...) }

func words(kinds []event.Kind) []string {
	out := make([]string, 0, len(kinds))
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return out
}

// KindsOf are the kinds that a filter names: "change.failed", "workflow.*".
func KindsOf(patterns []string) ([]event.Kind, error) {
	kinds, unknown := event.Expand(patterns)
	if unknown != "" {
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "there is no kind of event %q", unknown), fault.Code("event_kind_unknown"),
			fault.Remedy("the reference lists them (docs/reference/events.md); NOUN.* stands for all of a noun"))
	}
	return kinds, nil
}

// Writer writes a stream as server-sent events. Position is the number that its
// reader has seen everything up to.
type Writer struct {
	W        io.Writer
	Position int64
}

// Send writes a page, and its position when its last event is not at it: a reader
// that filters then knows how far it has come without knowing what it did not get.
//
// A page is written at once: what one transaction did reaches a reader together.
func (w *Writer) Send(p Page) error {
	var out bytes.Buffer
	last := w.Position
	for _, e := range p.Events {
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode event %d: %w", e.Seq, err)
		}
		fmt.Fprintf(&out, "id: %d\nevent: %s\ndata: %s\n\n", e.Seq, e.Kind, data)
		last = e.Seq
	}
	if p.Position != last {
		fmt.Fprintf(&out, positionFormat, p.Position)
	}
	if out.Len() == 0 {
		return nil
	}
	w.Position = p.Position
	_, err := w.W.Write(out.Bytes())
	return err
}

// Alive tells the position again, so that proxies keep the connection and a client
// that is gone is noticed.
func (w *Writer) Alive() error {
	_, err := fmt.Fprintf(w.W, positionFormat, w.Position)
	return err
}

const positionFormat = "id: %[1]d\nevent: position\ndata: {\"seq\":%[1]d}\n\n"
