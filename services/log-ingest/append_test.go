package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.opentelemetry.io/otel/attribute"

	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/metrictest"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
)

func TestAppendRules(t *testing.T) {
	t.Parallel()
	metrictest.Start()
	pg := pgtest.New(t)
	r, org := start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha")
	a := org.attempt(t)
	sink := a.sink(t, r)
	other := func(b logship.Batch) logship.Batch {
		b.Frames = []byte(strings.Replace(string(b.Frames), "line", "lime", 1))
		return b
	}
	gap := &logship.GapError{}
	steps := []struct {
		name     string
		batch    logship.Batch
		wantNext int64
		wantGap  int64 // the wanted line, when the batch leaves a gap
		wantErr  error
	}{
		{name: "a gap at the start", batch: batch(t, 2, 3), wantGap: 1},
		{name: "the first lines", batch: batch(t, 1, 4), wantNext: 5},
		{name: "the same again", batch: batch(t, 1, 4), wantNext: 5},
		{name: "overlap is trimmed", batch: batch(t, 3, 6), wantNext: 7},
		{name: "repeat inside a chunk", batch: batch(t, 2, 3), wantNext: 7},
		{name: "repeat over two chunks", batch: batch(t, 2, 5), wantNext: 7},
		{name: "repeat up to the end", batch: batch(t, 5, 6), wantNext: 7},
		{name: "other lines inside a chunk", batch: other(batch(t, 2, 3)), wantErr: logship.ErrConflict},
		{name: "other lines in the overlap", batch: other(batch(t, 5, 9)), wantErr: logship.ErrConflict},
		{name: "other history", batch: logship.Batch{FirstSeq: 7, PrevHash: head(t, 5).Hash, Frames: frames(7, 7)}, wantErr: logship.ErrConflict},
		{name: "a gap", batch: batch(t, 9, 9), wantGap: 7},
		{name: "on it goes", batch: batch(t, 7, 9), wantNext: 10},
	}
	for _, step := range steps { // in order, each on the stream that the ones before made
		next, err := sink.Append(t.Context(), step.batch)
		switch {
		case step.wantGap > 0:
			if !errors.As(err, &gap) || gap.NextSeq != step.wantGap {
				t.Errorf("%s: got %v, want a gap at line %d", step.name, err, step.wantGap)
			}
		case !errors.Is(err, step.wantErr) || next != step.wantNext:
			t.Errorf("%s: got next %d and error %v, want %d and %v", step.name, next, err, step.wantNext, step.wantErr)
		}
	}

	for reason, least := range map[string]float64{logship.CodeGap: 2, logship.CodeConflict: 3} {
		if n := metrictest.Value(t, "log.append.refused", attribute.String("reason", reason)); n < least {
			t.Errorf("%g batches are counted as refused by %s, want at least %g", n, reason, least)
		}
	}
	if n := metrictest.Value(t, "log.append.lines"); n < 9 {
		t.Errorf("%g lines are counted, want at least 9", n)
	}

	end := func(n int) logship.End { return logship.End{TotalLines: int64(n), Hash: head(t, n).Hash} }
	if err := sink.Finish(t.Context(), end(12)); !errors.As(err, &gap) || gap.NextSeq != 10 {
		t.Errorf("finish with missing lines: got %v, want a gap at line 10", err)
	}
	if err := sink.Finish(t.Context(), end(8)); !errors.Is(err, logship.ErrConflict) {
		t.Errorf("finish before the last line: got %v, want a conflict", err)
	}
	for range 2 { // may be repeated
		if err := sink.Finish(t.Context(), end(9)); err != nil {
			t.Errorf("finish: %v", err)
		}
	}
	if next, err := sink.Append(t.Context(), batch(t, 8, 9)); err != nil || next != 10 {
		t.Errorf("repeat after the end: got next %d, error %v", next, err)
	}
	if _, err := sink.Append(t.Context(), batch(t, 10, 10)); !errors.Is(err, logship.ErrConflict) {
		t.Errorf("new line after the end: got %v, want it refused", err)
	}
	wantLines(t, org.lines(t, r, a.stream), 9)

	resp, err := r.client(t).GetStreamWithResponse(t.Context(), a.stream, as(org.viewer))
	if err != nil || resp.JSON200 == nil {
		t.Fatalf("get stream: %v, %s", err, resp.Body)
	}
	want := logapi.Stream{
		ID: a.stream, Attempt: 1, State: logapi.StreamStateFinished, Lines: 9, Bytes: int64(len(frames(1, 9))),
		Sha256: head(t, 9).Hash.String(), Complete: true, Gaps: []logapi.Gap{},
	}
	if diff := cmp.Diff(want, *resp.JSON200, cmpopts.IgnoreFields(logapi.Stream{}, "JobID", "CreatedAt", "FinishedAt")); diff != "" {
		t.Errorf("stream (-want +got):\n%s", diff)
	}
}

func TestLostLinesShowAsGap(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	r, org := start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha")
	a := org.attempt(t)
	lost := logship.AppendFrame(frames(1, 2), logship.Record{Time: time.Unix(3, 0), Source: logship.Agent, Lost: true, Text: "1284 lines dropped: spool full"})
	if _, err := a.sink(t, r).Append(t.Context(), logship.Batch{FirstSeq: 1, Frames: lost}); err != nil {
		t.Fatal(err)
	}
	hash, _, err := logship.Start().Advance(lost, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.sink(t, r).Finish(t.Context(), logship.End{TotalLines: 3, Hash: hash.Hash, LateRedaction: true}); err != nil {
		t.Fatal(err)
	}
	resp, err := r.client(t).GetStreamWithResponse(t.Context(), a.stream, as(org.viewer))
	if err != nil || resp.JSON200 == nil {
		t.Fatalf("get stream: %v, %s", err, resp.Body)
	}
	got := *resp.JSON200
	if diff := cmp.Diff([]logapi.Gap{{Reason: logapi.GapReasonDropped, Seq: 3, Lines: 1284}}, got.Gaps); diff != "" || got.Complete || !got.LateRedaction {
		t.Errorf("complete %v, late redaction %v, gaps (-want +got):\n%s", got.Complete, got.LateRedaction, diff)
	}
}

// Several writers of one stream, through two replicas, with batches that begin
// and end anywhere: as after a restart, when the old process still sends.
func TestManyWritersOfOneStream(t *testing.T) {
	t.Parallel()
	const lines, writers = 2000, 6
	pg := pgtest.New(t)
	replicas, org := []replica{start(t, pg, "127.0.0.1:0"), start(t, pg, "127.0.0.1:0")}, newTenant(t, pg, "alpha")
	a := org.attempt(t)
	var wg sync.WaitGroup
	for w := range writers {
		sink := a.sink(t, replicas[w%2])
		wg.Go(func() {
			size := 37 + 11*w
			for first := 1; first <= lines; {
				last := min(first+size, lines)
				next, err := sink.Append(context.Background(), batch(t, first, last))
				if err != nil {
					t.Errorf("writer %d, lines %d to %d: %v", w, first, last, err)
					return
				}
				if next <= int64(last) {
					t.Errorf("writer %d: next %d after line %d was taken", w, next, last)
					return
				}
				first = last + 1
			}
		})
	}
	wg.Wait()
	wantLines(t, org.lines(t, replicas[0], a.stream), lines)
}

// A voided attempt is a zombie: nothing of it is taken any more, and its tail
// ends.
func TestVoidedAttemptIsRefused(t *testing.T) {
	t.Parallel()
	for _, void := range []struct {
		name string
		do   func(ctx context.Context, q *runnerdb.Queries, a attempt, org tenant) error
	}{
		{"its stream was closed", func(ctx context.Context, q *runnerdb.Queries, a attempt, _ tenant) error {
			return q.CloseLogStreams(ctx, []string{a.stream})
		}},
		{"its token was revoked", func(ctx context.Context, q *runnerdb.Queries, a attempt, _ tenant) error {
			return q.RevokeLogTokensOfStreams(ctx, []string{a.stream})
		}},
		{"its runner was revoked", func(ctx context.Context, q *runnerdb.Queries, _ attempt, org tenant) error {
			return q.RevokeLogTokensOfRunner(ctx, org.runner)
		}},
	} {
		t.Run(void.name, func(t *testing.T) {
			t.Parallel()
			pg := pgtest.New(t)
			r, org := start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha")
			a := org.attempt(t)
			a.mustAppend(t, r, 1, 3)
			err := pg.AsRole(store.RoleRunner).Tx(t.Context(), org.org, func(ctx context.Context, tx *store.Tx) error {
				return void.do(ctx, runnerdb.New(tx.DB()), a, org)
			})
			if err != nil {
				t.Fatal(err)
			}
			for name, b := range map[string]logship.Batch{"new lines": batch(t, 4, 5), "a repeat": batch(t, 2, 3)} {
				if _, err := a.sink(t, r).Append(t.Context(), b); !errors.Is(err, logship.ErrClosed) {
					t.Errorf("%s: got %v, want ErrClosed", name, err)
				}
			}
			if err := a.sink(t, r).Finish(t.Context(), logship.End{TotalLines: 3, Hash: head(t, 3).Hash}); !errors.Is(err, logship.ErrClosed) {
				t.Errorf("finish: got %v, want ErrClosed", err)
			}
			wantLines(t, org.lines(t, r, a.stream), 3)
		})
	}
}

func TestAppendRefusesBadBodies(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	r, org := start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha")
	a := org.attempt(t)
	zstd, plain := logapi.AppendRecordsParamsContentEncodingZstd, logapi.AppendRecordsParamsContentEncodingIdentity
	for _, tt := range []struct {
		name     string
		body     string
		encoding *logapi.AppendRecordsParamsContentEncoding
		status   int
		code     string
	}{
		{"no frames", "", &plain, 422, "invalid"},
		{"no frames at all", "hello", nil, 422, "invalid"},
		{"not zstd", "hello", &zstd, 422, "invalid"},
		{"too large", strings.Repeat(string(frames(1, 1)), logship.MaxBatch/10), &plain, 413, "too_large"},
		{"plain frames", string(frames(1, 1)), nil, 200, ""},
	} {
		params := &logapi.AppendRecordsParams{FirstSeq: 1, PrevHash: logship.Hash{}.String(), ContentEncoding: tt.encoding}
		resp, err := r.client(t).AppendRecordsWithBodyWithResponse(t.Context(), a.stream, params, "application/octet-stream", strings.NewReader(tt.body), as(a.token))
		if err != nil {
			t.Fatal(err)
		}
		code := ""
		if p := resp.ApplicationProblemJSONDefault; p != nil {
			code = p.Code
			if p.RequestID == nil || *p.RequestID == "" {
				t.Errorf("%s: the problem has no request_id", tt.name)
			}
		}
		if got, want := fmt.Sprint(resp.StatusCode(), code), fmt.Sprint(tt.status, tt.code); got != want {
			t.Errorf("%s: got %s, want %s: %s", tt.name, got, want, resp.Body)
		}
	}
}
