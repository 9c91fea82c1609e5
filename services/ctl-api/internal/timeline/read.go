// Package timeline reads what happened to an install, and says what changed before it
// broke. The rows come from the org's stream of events: see migration 00420.
package timeline

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Entry is one thing that happened.
type Entry struct {
	Seq  int64
	At   time.Time
	Kind event.Kind
	// OfApp: it happened to the app and not only to this install.
	OfApp bool
	Text  string
	Body  Body
	// Release is the number of Body.ReleaseID, or of the release of its workflow; 0 for
	// none.
	Release      int
	WorkflowKind string
	PlanOnly     bool
	// Ended says why a workflow failed when nothing broke.
	Ended string
	Error string
}

// Body is what an event says of itself, as far as this package reads it.
type Body struct {
	Actor         string            `json:"actor"`
	Resource      string            `json:"resource"`
	WorkflowID    string            `json:"workflow_id"`
	ChangeID      string            `json:"change_id"`
	ChangeKind    string            `json:"change_kind"`
	StepID        string            `json:"step_id"`
	RunID         string            `json:"run_id"`
	RunnerID      string            `json:"runner_id"`
	ReleaseID     string            `json:"release_id"`
	InputsVersion int               `json:"inputs_version"`
	Action        string            `json:"action"`
	Check         string            `json:"check"`
	From          string            `json:"from"`
	To            string            `json:"to"`
	Changed       []string          `json:"changed"`
	Overrides     []string          `json:"overrides"`
	Toggles       map[string]string `json:"toggles"`
	Version       json.RawMessage   `json:"version"`
}

// Place is where an entry stands.
type Place struct {
	At  time.Time
	Seq int64
}

// Place of an entry.
func (e Entry) Place() Place { return Place{e.At, e.Seq} }

// String is how a page says where the next one begins.
func (p Place) String() string { return fmt.Sprintf("%d.%d", p.At.UnixMicro(), p.Seq) }

// PlaceOf reads what String wrote.
func PlaceOf(text string) (Place, error) {
	at, seq, _ := strings.Cut(text, ".")
	micros, err := strconv.ParseInt(at, 10, 64)
	n, also := strconv.ParseInt(seq, 10, 64)
	if err != nil || also != nil {
		return Place{}, fault.Newf(fault.ErrInvalid, "after is not the next of a page")
	}
	return Place{time.UnixMicro(micros), n}, nil
}

// Query says which entries of an install.
type Query struct {
	Install ctldb.Install
	// WithApp also takes what happened to its app.
	WithApp         bool
	Kinds           []event.Kind // none: all
	Resource, Actor string       // empty: all
	// Since is the first moment that counts and Until the first that no longer does;
	// zero for no bound.
	Since, Until time.Time
	Oldest       bool   // first
	After        *Place // of the last entry of the page before
	Most         int
}

// The bounds of a query without any: Postgres knows times before and after.
var (
	dawn = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	dusk = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
)

// between are the places that the entries stand between, both excluded.
func (q Query) between() (from, to Place) {
	from, to = Place{dawn, 0}, Place{dusk, 0}
	if !q.Since.IsZero() {
		from = Place{q.Since.Add(-time.Microsecond), math.MaxInt64} // Postgres has microseconds
	}
	if !q.Until.IsZero() {
		to = Place{q.Until, 0}
	}
	switch {
	case q.After == nil:
	case q.Oldest:
		from = later(from, *q.After)
	default:
		to = earlier(to, *q.After)
	}
	return from, to
}

func (p Place) before(q Place) bool {
	if !p.At.Equal(q.At) {
		return p.At.Before(q.At)
	}
	return p.Seq < q.Seq
}

func later(a, b Place) Place {
	if a.before(b) {
		return b
	}
	return a
}

func earlier(a, b Place) Place {
	if b.before(a) {
		return b
	}
	return a
}

// Read reads entries, newest first unless the query wants the oldest.
func Read(ctx context.Context, tx *database.Tx, q Query) ([]Entry, error) {
	from, to := q.between()
	arg := ctldb.TimelineBackwardParams{
		InstallID: q.Install.ID, AppID: q.Install.AppID, WithApp: q.WithApp, FromAt: from.At, FromSeq: from.Seq, ToAt: to.At, ToSeq: to.Seq,
		Kinds: make([]string, 0, len(q.Kinds)), Resource: q.Resource, Actor: q.Actor, Most: int32(q.Most),
	}
	for _, kind := range q.Kinds {
		arg.Kinds = append(arg.Kinds, string(kind))
	}
	var rows []ctldb.TimelineBackwardRow
	var err error
	if q.Oldest {
		var forward []ctldb.TimelineForwardRow
		forward, err = tx.TimelineForward(ctx, ctldb.TimelineForwardParams(arg))
		for _, row := range forward {
			rows = append(rows, ctldb.TimelineBackwardRow(row))
		}
	} else {
		rows, err = tx.TimelineBackward(ctx, arg)
	}
	if err != nil {
		return nil, fmt.Errorf("read timeline: %w", err)
	}
	entries := make([]Entry, 0, len(rows))
	for _, row := range rows {
		entries = append(entries, entryOf(row))
	}
	return entries, nil
}

// broken are the kinds that an error belongs to. A change also gives its error to its
// workflow; entries that only name either have none.
var broken = map[event.Kind]bool{
	"workflow.failed": true, "change.failed": true, "change.refused": true, "change.uncertain": true,
}

func entryOf(row ctldb.TimelineBackwardRow) Entry {
	e := Entry{
		Seq: row.Seq, At: row.At, Kind: event.Kind(row.Kind), OfApp: row.InstallID == nil, PlanOnly: row.PlanOnly,
		WorkflowKind: optional.Value(row.WorkflowKind), Release: int(optional.Value(row.ReleaseNumber)),
	}
	_ = json.Unmarshal(row.Body, &e.Body) // our own triggers wrote it; a field of another type stays empty
	if broken[e.Kind] {
		e.Error = optional.Value(row.Error)
	}
	facts := event.Facts{Release: e.Release, Error: e.Error}
	if e.Kind == "workflow.failed" && row.Ended != nil {
		e.Ended = string(*row.Ended)
		facts.Ended, facts.EndedBy = e.Ended, optional.Value(row.EndedBy)
		if facts.EndedBy != "" {
			e.Body.Actor = facts.EndedBy
		}
	}
	e.Text = event.Say(e.Kind, row.Body, facts)
	return e
}
