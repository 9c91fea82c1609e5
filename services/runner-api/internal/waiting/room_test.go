package waiting_test

import (
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/services/runner-api/internal/waiting"
)

func awake(w *waiting.Waiter) bool {
	select {
	case <-w.C:
		return true
	default:
		return false
	}
}

func TestALookInVainIsRemembered(t *testing.T) {
	t.Parallel()
	room := waiting.NewRoom()
	w := room.Enter("a")
	seen, needed := w.Look(0)
	if !needed {
		t.Fatal("nothing is known, and yet no look is needed")
	}
	w.Nothing(seen, 0)
	w.Leave()

	w = room.Enter("a")
	if _, needed := w.Look(0); needed {
		t.Error("a second look is needed though nothing happened")
	}
	room.Wake("a")
	if _, needed := w.Look(0); !needed || !awake(w) {
		t.Error("a wake-up wakes nobody")
	}
	w.Leave()
}

func TestAWakeUpDuringALookIsNotLost(t *testing.T) {
	t.Parallel()
	room := waiting.NewRoom()
	w := room.Enter("a")
	defer w.Leave()
	seen, _ := w.Look(0)
	room.Wake("a") // while the statement runs, which does not see the new row
	w.Nothing(seen, 0)
	if _, needed := w.Look(0); !needed || !awake(w) {
		t.Error("the wake-up was lost")
	}
}

func TestAWakeUpBetweenTwoWaitsIsNotLost(t *testing.T) {
	t.Parallel()
	room := waiting.NewRoom()
	w := room.Enter("a")
	seen, _ := w.Look(0)
	w.Nothing(seen, 0)
	w.Leave()
	room.Wake("a") // nobody is there
	w = room.Enter("a")
	defer w.Leave()
	if _, needed := w.Look(0); !needed {
		t.Error("the wake-up was lost")
	}
}

func TestNumberedNews(t *testing.T) {
	t.Parallel()
	room := waiting.NewRoom()
	w := room.Enter("a")
	defer w.Leave()
	seen, _ := w.Look(7)
	w.Nothing(seen, 7)
	if _, needed := w.Look(6); !needed {
		t.Error("who has only 6 must look: 7 may be there")
	}
	if _, needed := w.Look(8); needed {
		t.Error("who has 8 need not look")
	}
	room.WakeBeyond("a", 7)
	if awake(w) {
		t.Error("woken for what was seen")
	}
	room.WakeBeyond("a", 8)
	if !awake(w) {
		t.Error("not woken for 8")
	}
}

// Many producers and one consumer: every item that is put down before its
// wake-up is found, although the consumer only looks when it is told to.
func TestNothingIsLostUnderLoad(t *testing.T) {
	t.Parallel()
	const items = 2000
	room := waiting.NewRoom()
	var mu sync.Mutex
	queued := 0
	go func() {
		for range items {
			mu.Lock()
			queued++
			mu.Unlock()
			room.Wake("a")
		}
	}()
	deadline := time.After(30 * time.Second)
	for taken := 0; taken < items; {
		w := room.Enter("a")
		for {
			if seen, needed := w.Look(0); needed {
				mu.Lock()
				n := queued
				queued = 0
				mu.Unlock()
				if taken += n; n > 0 {
					break
				}
				w.Nothing(seen, 0)
			}
			select {
			case <-w.C:
			case <-deadline:
				t.Fatalf("took %d of %d, then waited in vain", taken, items)
			}
		}
		w.Leave()
	}
}
