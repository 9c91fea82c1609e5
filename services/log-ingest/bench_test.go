package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/pgtest"
)

// benchLines are lines as a tool prints them, about 130 bytes, no two alike.
func benchLines(n int) []logship.Record {
	rnd := rand.New(rand.NewPCG(1, 2))
	lines := make([]logship.Record, n)
	at := time.Unix(1_763_630_000, 0)
	for i := range lines {
		lines[i] = logship.Record{
			Time: at.Add(time.Duration(i) * time.Millisecond), Source: logship.Stdout,
			Text: fmt.Sprintf("module.cluster.aws_instance.node[%d]: Still creating... [id=i-%016x, elapsed=%ds, request=%016x, zone=eu-central-1%c]",
				i%97, rnd.Uint64(), i%600, rnd.Uint64(), 'a'+byte(i%3)),
		}
	}
	return lines
}

// BenchmarkIngest brings 100,000 lines of 20 streams into Postgres: through the
// HTTP API as agents do (framing, hashing and compressing included), 1 and 4 at
// a time, and for comparison as raw COPY of the
// same lines into one table with an index, over one connection and over 4.
//
//	go test -run xxx -bench Ingest ./log-ingest
func BenchmarkIngest(b *testing.B) {
	const total, perStream, perBatch = 100_000, 5_000, 2_500
	lines := benchLines(total)
	pg := pgtest.New(b)
	r, org := start(b, pg, "127.0.0.1:0"), newTenant(b, pg, "bench")
	report := func(b *testing.B) {
		b.ReportMetric(float64(total)*float64(b.N)/b.Elapsed().Seconds(), "lines/s")
		b.ReportMetric(0, "ns/op")
	}
	// inParallel gives the streams to so many workers.
	inParallel := func(workers int, do func(stream int)) {
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for s := w; s < total/perStream; s += workers {
					do(s)
				}
			})
		}
		wg.Wait()
	}
	for _, workers := range []int{1, 4} {
		b.Run("api/clients="+strconv.Itoa(workers), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				sinks := make([]logship.HTTPSink, total/perStream)
				for i := range sinks {
					sinks[i] = org.attempt(b).sink(b, r)
				}
				b.StartTimer()
				inParallel(workers, func(s int) {
					at := logship.Start()
					for n := s * perStream; n < (s+1)*perStream; n += perBatch {
						batch := logship.Batch{FirstSeq: at.NextSeq, PrevHash: at.Hash}
						for _, line := range lines[n : n+perBatch] {
							batch.Frames = logship.AppendFrame(batch.Frames, line)
						}
						at, _, _ = at.Advance(batch.Frames, 0)
						if _, err := sinks[s].Append(context.Background(), batch); err != nil {
							b.Error(err)
						}
					}
				})
			}
			report(b)
		})
		b.Run("copy/clients="+strconv.Itoa(workers), func(b *testing.B) {
			exec(b, pg, `create table raw_lines (stream int, seq bigint, time timestamptz, source smallint, line text, primary key (stream, seq))`)
			defer exec(b, pg, `drop table raw_lines`)
			for b.Loop() {
				b.StopTimer()
				exec(b, pg, `truncate raw_lines`)
				b.StartTimer()
				inParallel(workers, func(s int) {
					for n := s * perStream; n < (s+1)*perStream; n += perBatch { // a commit per batch, as the API has
						rows := pgx.CopyFromSlice(perBatch, func(i int) ([]any, error) {
							l := lines[n+i]
							return []any{s, int64(n + i), l.Time, int16(l.Source), l.Text}, nil
						})
						if _, err := pg.Admin().CopyFrom(context.Background(), pgx.Identifier{"raw_lines"}, []string{"stream", "seq", "time", "source", "line"}, rows); err != nil {
							b.Error(err)
						}
					}
				})
			}
			report(b)
		})
	}
}

// BenchmarkTail measures the time from the append of one line on one replica to
// its event at a reader on another.
func BenchmarkTail(b *testing.B) {
	pg := pgtest.New(b)
	writer, reader, org := start(b, pg, "127.0.0.1:0"), start(b, pg, "127.0.0.1:0"), newTenant(b, pg, "bench")
	a := org.attempt(b)
	sink, seen := a.sink(b, writer), make(chan time.Time, 1)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- org.tail(ctx, reader, a.stream, "", func(event) bool { seen <- time.Now(); return true })
	}()
	var took []time.Duration
	at := logship.Start()
	for b.Loop() {
		frame := logship.AppendFrame(nil, logship.Record{Time: time.Now(), Source: logship.Stdout, Text: "one line"})
		batch := logship.Batch{FirstSeq: at.NextSeq, PrevHash: at.Hash, Frames: frame}
		at, _, _ = at.Advance(frame, 0)
		begun := time.Now()
		if _, err := sink.Append(ctx, batch); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-seen).Sub(begun))
	}
	cancel()
	<-done
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(0, "ns/op")
}
