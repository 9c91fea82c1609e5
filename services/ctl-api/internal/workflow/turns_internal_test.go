package workflow

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Of many wake-ups at once, one works, one waits, and the rest are covered by the
// one that waits: it begins after all of them came.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var of turns
		take := func(id string) bool {
			mine, err := of.take(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return mine
		}
		if !take("w") {
			t.Fatal("nobody works, and it is not the first one's turn")
		}
		var began atomic.Int32
		second := make(chan struct{})
		go func() {
			if take("w") {
				began.Add(1)
			}
			close(second)
		}()
		synctest.Wait()
		for range 5 {
			if take("w") {
				t.Error("a third one works or waits")
			}
		}
		if !take("other") {
			t.Error("another workflow waits for this one")
		}
		if began.Load() != 0 {
			t.Error("two work at once")
		}
		of.give("w")
		<-second
		if began.Load() != 1 {
			t.Error("the one that waits has no turn")
		}
		of.give("w")
		of.give("other")
		if len(of.next) != 0 {
			t.Errorf("left behind: %v", of.next)
		}
	})
}

// Who gives up while waiting leaves the place to the next.
func TestTurnsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var of turns
		if mine, err := of.take(t.Context(), "w"); !mine || err != nil {
			t.Fatal(mine, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := errors.New("stopped")
		gone := make(chan error)
		go func() {
			_, err := of.take(ctx, "w")
			gone <- err
		}()
		synctest.Wait()
		cancel(stopped)
		if err := <-gone; !errors.Is(err, stopped) {
			t.Errorf("who gave up got %v", err)
		}
		next := make(chan bool)
		go func() {
			mine, _ := of.take(t.Context(), "w")
			next <- mine
		}()
		synctest.Wait()
		of.give("w")
		if !<-next {
			t.Error("the next one is not taken")
		}
		of.give("w")
	})
}

// However they meet, never do two work at once, and each wake-up is followed by a
// whole turn that began after it.
func TestTurnsCoverEachWakeUp(t *testing.T) {
	t.Parallel()
	var of turns
	var working, woken, seen atomic.Int64
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			woken.Add(1)
			mine, err := of.take(t.Context(), "w")
			if err != nil || !mine {
				return
			}
			defer of.give("w")
			if working.Add(1) != 1 {
				t.Error("two work at once")
			}
			seen.Store(woken.Load())
			working.Add(-1)
		})
	}
	all.Wait()
	if seen.Load() != woken.Load() {
		t.Errorf("the last look saw %d of %d wake-ups", seen.Load(), woken.Load())
	}
}
