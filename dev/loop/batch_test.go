package main

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// save is a file, after a pause.
type save struct {
	after time.Duration
	file  string
}

// many files, one every so often.
func many(from, to int, after time.Duration) (saves []save, files []string) {
	for i := from; i < to; i++ {
		file := fmt.Sprintf("%02d", i)
		saves, files = append(saves, save{after, file}), append(files, file)
	}
	return saves, files
}

// In a bubble of synctest, time moves only when everybody waits.
func TestBatches(t *testing.T) {
	t.Parallel()
	type taken struct {
		At    time.Duration // after the beginning
		After time.Duration // after the first save
		Files []string
	}
	const quiet, limit = 80 * time.Millisecond, time.Second
	const step = 70 * time.Millisecond
	saves, _ := many(0, 20, step)
	_, early := many(0, 15, step)
	_, late := many(15, 20, step)
	tests := []struct {
		name  string
		saves []save
		busy  time.Duration // of the receiver, after each batch
		want  []taken
	}{
		{name: "one file waits for quiet", saves: []save{{0, "a"}}, want: []taken{{quiet, quiet, []string{"a"}}}},
		{name: "an editor writes in steps", saves: []save{{0, "a"}, {10 * time.Millisecond, "a"}, {50 * time.Millisecond, "b"}},
			want: []taken{{60*time.Millisecond + quiet, 60*time.Millisecond + quiet, []string{"a", "b"}}}},
		{name: "two saves are two batches", saves: []save{{0, "a"}, {200 * time.Millisecond, "b"}},
			want: []taken{{quiet, quiet, []string{"a"}}, {200*time.Millisecond + quiet, quiet, []string{"b"}}}},
		{name: "a checkout that goes on is not waited for", saves: saves,
			want: []taken{{step + limit, limit, early}, {20*step + quiet, 4*step + quiet, late}}},
		{name: "saves during a build are one batch after it", saves: []save{{0, "a"}, {300 * time.Millisecond, "b"}, {200 * time.Millisecond, "c"}},
			busy: 3 * time.Second, want: []taken{{quiet, quiet, []string{"a"}}, {quiet + 3*time.Second, quiet + 3*time.Second - 300*time.Millisecond, []string{"b", "c"}}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				in, began := make(chan string), time.Now()
				out := batches(ctx, in, quiet, limit)
				go func() {
					for _, s := range tt.saves {
						time.Sleep(s.after)
						in <- s.file
					}
				}()
				var got []taken
				for range tt.want {
					b := <-out
					got = append(got, taken{time.Since(began), time.Since(b.first), b.files})
					time.Sleep(tt.busy)
				}
				select {
				case b := <-out:
					t.Errorf("one more batch: %q", b.files)
				case <-time.After(time.Minute):
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("batches (-want +got):\n%s", diff)
				}
			})
		})
	}
}
