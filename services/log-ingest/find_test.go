package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/pgtest"
)

// A search looks at every line of a stream, over all its batches, and says what it found
// and where it goes on.
func TestSearchInAStream(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	r, org, stranger := start(t, pg, "127.0.0.1:0"), newTenant(t, pg, "alpha"), newTenant(t, pg, "beta")
	a := org.attempt(t)
	at := logship.Start()
	for batch := range 40 {
		var frames []byte
		for n := batch*100 + 1; n <= batch*100+100; n++ {
			text := fmt.Sprintf("line %d", n)
			switch n {
			case 50:
				text = "Error: bucket \x1b[1mAcme\x1b[0m-logs is taken"
			case 2750:
				text = "WARN acme-logs is slow"
			case 3999:
				text = "ERROR Zoë says ÄCME-LOGS"
			}
			frames = logship.AppendFrame(frames, logship.Record{Time: time.Unix(int64(n), 0), Source: logship.Stdout, Text: text})
		}
		if _, err := a.sink(t, r).Append(t.Context(), logship.Batch{FirstSeq: at.NextSeq, PrevHash: at.Hash, Frames: frames}); err != nil {
			t.Fatal(err)
		}
		var err error
		if at, _, err = at.Advance(frames, 0); err != nil {
			t.Fatal(err)
		}
	}
	find := func(token string, params logapi.ListRecordsParams) (seqs []int64, next int64, status int) {
		t.Helper()
		resp, err := r.client(t).ListRecordsWithResponse(context.Background(), a.stream, &params, as(token))
		if err != nil {
			t.Fatal(err)
		}
		if resp.JSON200 == nil {
			return nil, 0, resp.StatusCode()
		}
		for _, record := range resp.JSON200.Items {
			seqs = append(seqs, record.Seq)
		}
		if resp.JSON200.Next != nil {
			next = *resp.JSON200.Next
		}
		return seqs, next, resp.StatusCode()
	}
	bad, warn := logapi.LevelError, logapi.LevelWarning
	tests := []struct {
		name   string
		params logapi.ListRecordsParams
		want   []int64
		next   int64
	}{
		{"a text, in any case and through colours", logapi.ListRecordsParams{Contains: new("ACME-logs")}, []int64{50, 2750}, 0},
		{"letters of other languages too", logapi.ListRecordsParams{Contains: new("äcme-logs")}, []int64{3999}, 0},
		{"a level", logapi.ListRecordsParams{Level: &bad}, []int64{50, 3999}, 0},
		{"both have to fit", logapi.ListRecordsParams{Level: &warn, Contains: new("acme")}, []int64{2750}, 0},
		{"behind a line", logapi.ListRecordsParams{Level: &bad, After: new(int64(50))}, []int64{3999}, 0},
		{"up to a limit, and then it goes on there", logapi.ListRecordsParams{Contains: new("acme"), Limit: new(1)}, []int64{50}, 50},
		{"the last one of all has nothing behind it", logapi.ListRecordsParams{Contains: new("line 4000"), Limit: new(1)}, []int64{4000}, 0},
		{"nothing", logapi.ListRecordsParams{Contains: new("no such text")}, nil, 0},
		{"no pattern: a dot is a dot", logapi.ListRecordsParams{Contains: new("line.50")}, nil, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, next, status := find(org.viewer, tt.params)
			if diff := cmp.Diff(tt.want, got); diff != "" || next != tt.next || status != 200 {
				t.Errorf("status %d, next %d, want %d; records (-want +got):\n%s", status, next, tt.next, diff)
			}
		})
	}
	if got, _, status := find(stranger.viewer, logapi.ListRecordsParams{Contains: new("acme")}); status != 404 || got != nil {
		t.Errorf("a search by another org: status %d and %v, want 404 and nothing", status, got)
	}
	if _, _, status := find(org.viewer, logapi.ListRecordsParams{Contains: new("")}); status != 422 {
		t.Errorf("a search for nothing: status %d, want 422", status)
	}
}
