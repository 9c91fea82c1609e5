package disk

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// lookEvery is the time between two looks while there is room; while there
	// is none, a look follows each second, so that work goes on soon.
	lookEvery    = 10 * time.Second
	lookEveryLow = time.Second
)

// Guard watches one data directory. Safe for concurrent use. A nil Guard guards
// nothing: all writes are as they are.
type Guard struct {
	dir     string
	least   int64
	log     *slog.Logger
	reserve reserve

	mu      sync.Mutex
	room    Room
	changed chan struct{} // closed when Low or the cause changes
	failed  error         // a write that did not work, until one works
	lowFrom time.Time     // since when there is, or was, too little room
	lowTo   time.Time     // until when; zero while it lasts
}

// Open watches dir, in which new work wants least bytes (0 means the default,
// see Measure), and takes the reserve if there is room for it. It never fails:
// without room or reserve the guard says so.
func Open(dir string, least int64, log *slog.Logger) *Guard {
	g := &Guard{dir: dir, least: least, log: log, reserve: reserve{path: filepath.Join(dir, "reserve")}, changed: make(chan struct{})}
	if info, err := os.Stat(g.reserve.path); err == nil {
		g.reserve.size = info.Size() // there already: it may be given up even when nothing can be added
	}
	g.Look()
	return g
}

// Run looks every now and then until ctx ends.
func (g *Guard) Run(ctx context.Context) error {
	for {
		wait := lookEvery
		if g.Look().Low() {
			wait = lookEveryLow
		}
		_, changed := g.Now()
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// Now is the room at the last look, and a channel that is closed when there
// becomes too little of it, or enough again.
func (g *Guard) Now() (Room, <-chan struct{}) {
	if g == nil {
		return Room{}, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.room, g.changed
}

// Look measures the room, and fills up the reserve when there is enough.
func (g *Guard) Look() Room {
	if g == nil {
		return Room{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	room, err := Measure(g.dir, g.least)
	if err == nil && g.failed != nil {
		g.failed = g.probe()
	}
	if err = errors.Join(err, g.failed); err != nil {
		room.Failed = cause(err)
	}
	want := min(reserveBytes, room.Total/16)
	if missing := want - g.reserve.held(); missing > 0 && room.Failed == "" && room.Free-missing > room.Least/2 {
		// Half of what new work wants is enough for this: reports come first.
		if err := g.reserve.fill(want); err == nil {
			room.Free -= missing
		}
	}
	g.note(room)
	return room
}

// note takes a measurement over and says when it is another story. g.mu is held.
func (g *Guard) note(room Room) {
	was := g.room
	g.room = room
	if was.Low() == room.Low() && was.Full() == room.Full() && was.Failed == room.Failed {
		return
	}
	switch {
	case room.Low() && !was.Low():
		g.lowFrom, g.lowTo = time.Now(), time.Time{}
		g.log.Error("no new work is taken", "reason", room.Problem(), "free_bytes", room.Free, "least_bytes", room.Least)
	case was.Low() && !room.Low():
		g.lowTo = time.Now()
		g.log.Info("the data directory has room again", "free_bytes", room.Free, "least_bytes", room.Least)
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// probe writes a little, to see whether that works again.
func (g *Guard) probe() error {
	f, err := os.CreateTemp(g.dir, ".probe-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(make([]byte, 4096))
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Failed takes note of a write that did not work, and returns the error for
// people: one that comes of a full disk names it.
func (g *Guard) Failed(err error) error {
	if g == nil || !unwritable(err) {
		return err
	}
	g.mu.Lock()
	g.failed = err
	room, measured := Measure(g.dir, g.least)
	if measured != nil {
		room = g.room
	}
	room.Failed = cause(err)
	g.note(room)
	g.mu.Unlock()
	var said *Error
	if !Full(err) || errors.As(err, &said) {
		return err
	}
	return &Error{Room: room, Err: err}
}

// Insist does a write that must be done. On a full disk it gives up of the
// reserve for it, bit by bit; the error, when even that is not enough, says that
// the disk is full.
func (g *Guard) Insist(do func() error) error {
	for {
		err := do()
		if err == nil || g == nil {
			return err
		}
		if !Full(err) || !g.reserve.give() {
			return g.Failed(err)
		}
		g.log.Warn("disk full: a report takes of the room that is reserved for it", "dir", g.dir, "reserved_bytes", g.reserve.held())
	}
}

// WasLow reports whether there was too little room at that time, as far as this
// agent knows.
func (g *Guard) WasLow(at time.Time) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lowFrom.IsZero() || at.Before(g.lowFrom) {
		return false
	}
	return g.lowTo.IsZero() || at.Before(g.lowTo)
}
