package main

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
)

// A reader that loses its connection again and again, and comes back to another
// replica than the one that appends, gets every line once.
func TestTailResumesWithoutGap(t *testing.T) {
	t.Parallel()
	const lines = 400
	pg := pgtest.New(t)
	writer, reader, org := start(t, pg, "127.0.0.1:0"), start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha")
	a := org.attempt(t)
	a.mustAppend(t, writer, 1, 10) // what was there before the reader

	seen, ended := make(chan int, lines), make(chan error, 1)
	var texts []string
	var end logapi.Stream
	go func() {
		defer close(seen)
		for lastID, done := "", false; !done; {
			left := 7 // events until the connection is cut
			err := org.tail(t.Context(), reader, a.stream, lastID, func(e event) bool {
				if e.name == "end" {
					done = true
					_ = json.Unmarshal([]byte(e.data), &end)
					return false
				}
				texts, lastID, left = append(texts, text(t, e)), e.id, left-1
				seen <- len(texts)
				return left > 0
			})
			if err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	for at := 10; at < lines; at += 10 {
		for n := range seen { // the reader is live: what comes next is pushed to it
			if n >= at-5 {
				break
			}
		}
		a.mustAppend(t, writer, at+1, at+10)
	}
	if err := a.sink(t, writer).Finish(t.Context(), logship.End{TotalLines: lines, Hash: head(t, lines).Hash}); err != nil {
		t.Fatal(err)
	}
	for range seen {
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	wantLines(t, texts, lines)
	if end.State != logapi.StreamStateFinished || end.Lines != lines || !end.Complete {
		t.Errorf("end: got %+v, want a complete stream of %d lines", end, lines)
	}
}

// A tail of a stream whose attempt is voided ends, and says how.
func TestTailEndsWhenTheAttemptIsVoided(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	r, org := start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha")
	a := org.attempt(t)
	a.mustAppend(t, r, 1, 2)
	got := ""
	err := org.tail(t.Context(), r, a.stream, "", func(e event) bool {
		got += fmt.Sprint(e.name, e.id, " ")
		if e.id == "2" {
			err := pg.AsRole(store.RoleRunner).Tx(t.Context(), org.org, func(ctx context.Context, tx *store.Tx) error {
				tx.NotifyAfterCommit(model.ChannelLogs, a.stream)
				return runnerdb.New(tx.DB()).CloseLogStreams(ctx, []string{a.stream})
			})
			if err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if err != nil || got != "record1 record2 end " {
		t.Errorf("got events %q, error %v", got, err)
	}
}

// A service that stops ends its tails without an end event; the reader comes
// back to its successor.
func TestTailSurvivesARestart(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	r, org := start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha")
	a := org.attempt(t)
	a.mustAppend(t, r, 1, 3)
	first, closed := make(chan struct{}), make(chan error, 1)
	go func() {
		closed <- org.tail(context.Background(), r, a.stream, "", func(e event) bool {
			if e.name == "end" {
				t.Error("a stopping service said that the stream has ended")
			}
			if e.id == "3" {
				close(first)
			}
			return true
		})
	}()
	<-first
	r.stop()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	r = start(t, pg, "127.0.0.1:0")
	a.mustAppend(t, r, 4, 5)
	var ids []string
	if err := org.tail(t.Context(), r, a.stream, "3", func(e event) bool { ids = append(ids, e.id); return len(ids) < 2 }); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(ids) != "[4 5]" {
		t.Errorf("after the restart: got events %v, want 4 and 5", ids)
	}
}
