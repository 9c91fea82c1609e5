package berth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func event(seq, after int) string {
	return fmt.Sprintf(`{"seq":%d,"after":%d,"id":"evt_%d","at":"2026-11-20T10:00:00Z","kind":"workflow.failed","body":{"n":%d}}`, seq, after, seq, seq)
}

func sent(seq, after int) string {
	return fmt.Sprintf("id: %d\nevent: workflow.failed\ndata: %s\n\n", seq, event(seq, after))
}

func position(seq int) string {
	return fmt.Sprintf("id: %d\nevent: position\ndata: {\"seq\":%d}\n\n", seq, seq)
}

// Pages are read until there is no more; filters and the beginning stay the caller's.
func TestEvents(t *testing.T) {
	t.Parallel()
	c := client(t, service(t, func(w http.ResponseWriter, r *http.Request) {
		switch last := r.Header.Get("Last-Event-ID"); {
		case r.URL.Query().Get("install") != "acme" || r.URL.Query().Get("after") != "3" || r.URL.Query().Get("limit") != "500":
			reply(w, http.StatusUnprocessableEntity, `{"title":"no","status":422,"code":"invalid"}`)
		case last == "":
			reply(w, http.StatusOK, `{"items":[`+event(4, 3)+`],"position":6,"more":true}`)
		case last == "6":
			reply(w, http.StatusOK, `{"items":[`+event(9, 6)+`],"position":9,"more":false}`)
		}
	}))
	var got []int64
	for e, err := range c.Events(t.Context(), ctlapi.ListEventsParams{After: new(int64(3)), Install: new("acme")}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Seq)
	}
	if diff := cmp.Diff([]int64{4, 9}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Whatever breaks off, comes twice or is missing: each event is handed on once.
func TestFollowEvents(t *testing.T) {
	t.Parallel()
	answers := []struct{ last, body string }{
		{"", position(3)}, // breaks off before the first event
		{"3", position(3) + sent(4, 3) + sent(4, 3) + "id: 5\nevent: work"},         // comes twice; breaks off in the middle
		{"4", position(4) + sent(5, 4) + position(8) + sent(11, 9)},                 // between 8 and 9 something is missing
		{"8", position(8) + sent(9, 8) + ": still here\n\n" + sent(11, 9)},          // it was there
		{"11", "id: 12\nevent: workflow.failed\ndata: {\"seq\":\"no number\"}\n\n"}, // not understood
	}
	var asked atomic.Int32
	c := client(t, service(t, func(w http.ResponseWriter, r *http.Request) {
		n := int(asked.Add(1)) - 1
		if n >= len(answers) || r.Header.Get("Last-Event-ID") != answers[n].last || r.URL.Query().Get("follow") != "true" {
			reply(w, http.StatusUnprocessableEntity, fmt.Sprintf(`{"title":"no","status":422,"code":"invalid","detail":"request %d after %q"}`, n, r.Header.Get("Last-Event-ID")))
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, answers[n].body)
	}))
	var got []int64
	err := c.FollowEvents(t.Context(), ctlapi.ListEventsParams{FromNow: new(true)}, func(e ctlapi.Event) error {
		got = append(got, e.Seq)
		return nil
	})
	if !errors.Is(err, berth.ErrNotUnderstood) {
		t.Errorf("it ended with %v", err)
	}
	if diff := cmp.Diff([]int64{4, 5, 9, 11}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// It ends with its context, with the caller's error, and where it is refused.
func TestFollowEventsEnds(t *testing.T) {
	t.Parallel()
	c := client(t, service(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") == "1" {
			reply(w, http.StatusGone, `{"title":"Gone","status":410,"code":"events_expired"}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, sent(4, 3))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	enough := errors.New("enough")
	if err := c.FollowEvents(t.Context(), ctlapi.ListEventsParams{}, func(ctlapi.Event) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the caller's error: got %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := c.FollowEvents(ctx, ctlapi.ListEventsParams{}, func(ctlapi.Event) error { cancel(enough); return nil }); !errors.Is(err, enough) {
		t.Errorf("the end of the context: got %v", err)
	}
	var problem *berth.Problem
	if err := c.FollowEvents(t.Context(), ctlapi.ListEventsParams{After: new(int64(1))}, nil); !errors.As(err, &problem) || problem.Status != http.StatusGone {
		t.Errorf("what is no longer kept: got %v", err)
	}
}
