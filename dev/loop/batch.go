package main

import (
	"context"
	"maps"
	"slices"
	"time"
)

// A batch is what was saved at about the same time.
type batch struct {
	first time.Time // when the first of them was saved
	files []string  // each once, sorted
}

// batches collects files until none has come for quiet, or limit after the first.
// What comes while nobody takes a batch joins it. It ends with ctx.
func batches(ctx context.Context, in <-chan string, quiet, limit time.Duration) <-chan batch {
	out := make(chan batch)
	go func() {
		files := map[string]bool{}
		var first time.Time
		due := time.NewTimer(0)
		due.Stop()
		var ready chan<- batch // out when a batch is due, else nil
		for {
			select {
			case <-ctx.Done():
				return
			case file := <-in:
				if len(files) == 0 {
					first = time.Now()
				}
				files[file] = true
				due.Reset(min(quiet, limit-time.Since(first)))
			case <-due.C:
				ready = out
			case ready <- batch{first, slices.Sorted(maps.Keys(files))}:
				clear(files)
				ready = nil
				due.Stop()
			}
		}
	}()
	return out
}
