package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/logdb"
	"github.com/berth-dev/berth/services/log-ingest/internal/database"
	"github.com/berth-dev/berth/services/log-ingest/internal/retention"
)

// The whole way from a growing file to the rows, with the service stopped and
// started again and the database connections cut in between.
func TestShippingThroughRestarts(t *testing.T) {
	t.Parallel()
	const lines, rounds = 9000, 6
	pg := pgtest.New(t)
	r, org := start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha")
	a := org.attempt(t)
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "stdout"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	spool, err := logship.OpenSpool(filepath.Join(dir, "spool"), logship.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ended, tailed, shipped := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		tailed <- logship.Tail{Spool: spool, Path: file.Name(), Source: logship.Stdout}.Run(t.Context(), ended)
	}()
	go func() {
		shipped <- logship.Shipper{Spool: spool, Sink: a.sink(t, r), Interval: time.Millisecond, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}.Run(t.Context())
	}()
	addr := strings.TrimPrefix(r.url, "http://")
	for round := range rounds {
		for n := round*lines/rounds + 1; n <= (round+1)*lines/rounds; n++ {
			if _, err := fmt.Fprintf(file, "line %d\n", n); err != nil {
				t.Fatal(err)
			}
		}
		if round%2 == 0 {
			r.stop()
			r = start(t, pg, addr)
			continue
		}
		exec(t, pg, `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'berth-log-ingest' and datname = current_database()`)
	}
	close(ended)
	if err := <-tailed; err != nil {
		t.Fatal(err)
	}
	if err := spool.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := <-shipped; err != nil {
		t.Fatal(err)
	}
	wantLines(t, org.lines(t, r, a.stream), lines)
	resp, err := r.client(t).GetStreamWithResponse(t.Context(), a.stream, as(org.viewer))
	if err != nil || resp.JSON200 == nil {
		t.Fatalf("get stream: %v", err)
	}
	if got := resp.JSON200; !got.Complete || got.Sha256 != spool.Position().Head.Hash.String() {
		t.Errorf("stream: complete %v, hash %s; want the spool's %s", got.Complete, got.Sha256, spool.Position().Head.Hash)
	}
}

func TestRetentionDropsOldDays(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	r, org := start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha")
	a := org.attempt(t)
	a.mustAppend(t, r, 1, 5)
	// As if these lines had come 40 days ago.
	owner := pg.Owner()
	if _, err := owner.Exec(t.Context(), `select add_log_partition(current_date - 40)`); err != nil {
		t.Fatal(err)
	}
	exec(t, pg, `update log_streams set created_at = now() - interval '40 days'`)
	exec(t, pg, `update log_chunks set created_at = now() - interval '40 days'`)
	a.mustAppend(t, r, 6, 8)

	keep := retention.Keeper{Store: database.New(pg.AsRole(store.RoleLog)), Days: 41, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	if err := keep.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLines(t, org.lines(t, r, a.stream), 8)

	keep.Days = 30
	for range 2 { // again is nothing more
		if err := keep.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	resp, err := r.client(t).GetStreamWithResponse(t.Context(), a.stream, as(org.viewer))
	if err != nil || resp.JSON200 == nil {
		t.Fatalf("get stream: %v", err)
	}
	if got, want := fmt.Sprint(resp.JSON200.Lines, resp.JSON200.Gaps), fmt.Sprint(8, []logapi.Gap{{Reason: logapi.GapReasonExpired, Seq: 1, Lines: 5}}); got != want {
		t.Errorf("stream: got lines and gaps %s, want %s", got, want)
	}
	page, err := r.client(t).ListRecordsWithResponse(t.Context(), a.stream, nil, as(org.viewer))
	if err != nil || page.JSON200 == nil || len(page.JSON200.Items) != 3 || page.JSON200.Items[0].Seq != 6 {
		t.Errorf("records after retention: %v, %s; want lines 6 to 8", err, page.Body)
	}
	// A repeat of an expired line cannot be compared any more, and stores nothing.
	if next, err := a.sink(t, r).Append(t.Context(), batch(t, 2, 3)); err != nil || next != 9 {
		t.Errorf("repeat of expired lines: got next %d, error %v", next, err)
	}
	// The days ahead are there, so lines are taken without this worker for a week.
	var ahead int
	if err := pg.Admin().QueryRow(t.Context(), `select count(*) from pg_inherits join pg_class on oid = inhrelid
		where inhparent = 'log_chunks'::regclass and relname >= 'log_chunks_' || to_char(current_date, 'YYYYMMDD')`).Scan(&ahead); err != nil || ahead != 8 {
		t.Errorf("partitions: got %d, %v; want today and 7 days", ahead, err)
	}
}

// Only one of many replicas works; the others find the lock taken.
func TestRetentionGivesWay(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	log := database.New(pg.AsRole(store.RoleLog))
	err := log.System(t.Context(), func(ctx context.Context, first *database.Tx) error {
		if dropped, err := first.KeepLogPartitions(ctx, logdb.KeepLogPartitionsParams{KeepDays: 30, AheadDays: 7}); err != nil || dropped == nil {
			t.Errorf("first: got %v, %v; want an empty list", dropped, err)
		}
		return log.System(ctx, func(ctx context.Context, second *database.Tx) error {
			dropped, err := second.KeepLogPartitions(ctx, logdb.KeepLogPartitionsParams{KeepDays: 30, AheadDays: 7})
			if dropped != nil {
				t.Errorf("second: got %v, want nothing done", dropped)
			}
			return err
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}
