package order

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/durable"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

const (
	// MaxTries is how often one effect may be tried under one origin.
	MaxTries = 3
	// effectsKept is how long after its last order an effect is remembered. A
	// plan that could bring it about again is forgotten before that.
	effectsKept = 365 * 24 * time.Hour
	// unendedKept is how long after its expiry an order without a result is
	// remembered: its engine may still run.
	unendedKept = 7 * 24 * time.Hour
)

// Refusals of Ledger.Begin, for errors.Is.
var (
	ErrUsedUp  = errors.New("the order is used up")
	ErrExpired = errors.New("the order has expired")
)

// Past is what was done for an order before.
type Past struct {
	// Starts of an engine, and the highest attempt that one was started for.
	Starts  int
	Attempt int
	// Ended: there is a result. It is final.
	Ended bool
}

// Spent is what was done towards an effect, under one origin.
type Spent struct {
	Tries   int
	Applied bool
}

// Ledger is the runner's own count, on disk, of what it began: engines per order,
// and tries per effect. It is a file of lines that only grows, until Prune
// writes it again. One agent uses it at a time; within it, it is safe for
// concurrent use.
type Ledger struct {
	path string

	mu      sync.Mutex
	file    *os.File
	size    int64
	orders  map[string]*entry
	effects map[effectKey]*spending
	// floor is the time of the last Prune: orders that expired by then are
	// refused although they are forgotten, also when the clock goes back later.
	floor  int64
	broken error
}

// entry is one order that was begun.
type entry struct {
	Past
	until  int64
	effect effectKey
}

type effectKey struct{ origin, digest string }

type spending struct {
	Spent
	until int64
}

// line is one line of the file. Which fields are set follows from Is: "floor",
// "begin" and "end" are written as they happen, "order" and "effect" sum up what
// was before, in a file that Prune wrote.
type line struct {
	Is      string `json:"is"`
	Job     string `json:"job,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Starts  int    `json:"starts,omitempty"`
	Ended   bool   `json:"ended,omitempty"`
	Origin  string `json:"origin,omitempty"`
	Effect  string `json:"effect,omitempty"`
	Tries   int    `json:"tries,omitempty"`
	Applied bool   `json:"applied,omitempty"`
	Until   int64  `json:"until,omitempty"` // unix seconds
}

// OpenLedger opens the ledger at path, or starts an empty one (mode 0600). An
// unfinished last line, as a crash leaves it, is cut off: what it was to say did
// not begin. Any other damage is an error: without its memory the runner would
// do again what it did.
func OpenLedger(path string) (*Ledger, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	l := &Ledger{path: path, file: f, orders: map[string]*entry{}, effects: map[effectKey]*spending{}}
	if err = l.load(); err == nil {
		err = durable.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return l, nil
}

// Past is what was done for the order of a job.
func (l *Ledger) Past(job string) Past {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.orders[job]; e != nil {
		return e.Past
	}
	return Past{}
}

// Spent is what was done towards an effect under an origin.
func (l *Ledger) Spent(origin, effect string) Spent {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.effects[effectKey{origin, effect}]; s != nil {
		return s.Spent
	}
	return Spent{}
}

// Floor is the time up to which orders were forgotten.
func (l *Ledger) Floor() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Unix(l.floor, 0)
}

// Begin counts one start for an order, and returns once that is on disk; only
// then may the engine be started. Of two calls for one attempt at most one
// succeeds, also across crashes.
func (l *Ledger) Begin(o capsule.Order, attempt int, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	past := Past{}
	if e := l.orders[o.JobID]; e != nil {
		past = e.Past
	}
	spent := Spent{}
	if s := l.effects[effectKey{o.OriginID, o.EffectDigest}]; s != nil && o.EffectDigest != "" {
		spent = s.Spent
	}
	switch {
	case past.Ended, past.Starts >= o.Starts, attempt <= past.Attempt, spent.Applied, spent.Tries >= MaxTries:
		return ErrUsedUp
	case !now.Before(o.ExpiresAt), o.ExpiresAt.Unix() <= l.floor:
		return ErrExpired
	}
	return l.write(line{Is: "begin", Job: o.JobID, Attempt: attempt, Origin: o.OriginID, Effect: o.EffectDigest, Until: o.ExpiresAt.Unix()})
}

// End says that the job has a result, and whether its effect is there now. A job
// of which nothing was begun leaves no trace.
func (l *Ledger) End(job string, applied bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.orders[job]
	if e == nil || e.Ended {
		return nil
	}
	return l.write(line{Is: "end", Job: job, Applied: applied})
}

// Prune forgets orders that have expired by now, and keeps the file small. They
// stay refused.
func (l *Ledger) Prune(now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	floor := max(l.floor, now.Unix())
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	lines := []line{{Is: "floor", Until: floor}}
	for _, job := range slices.Sorted(maps.Keys(l.orders)) {
		if e := l.orders[job]; e.until > floor || !e.Ended && e.until+int64(unendedKept/time.Second) > floor {
			lines = append(lines, line{
				Is: "order", Job: job, Attempt: e.Attempt, Starts: e.Starts, Ended: e.Ended,
				Origin: e.effect.origin, Effect: e.effect.digest, Until: e.until,
			})
		}
	}
	for key, s := range l.effects {
		if s.until+int64(effectsKept/time.Second) > floor {
			lines = append(lines, line{Is: "effect", Origin: key.origin, Effect: key.digest, Tries: s.Tries, Applied: s.Applied, Until: s.until})
		}
	}
	for _, entry := range lines {
		if err := encoder.Encode(entry); err != nil {
			return err
		}
	}
	written := datadir.Write(l.path, text.Bytes())
	fresh, err := OpenLedger(l.path) // the file of before where that did not work: it knows the same
	if err != nil {
		l.broken = os.ErrClosed // which file is there now is not known
		return errors.Join(written, err)
	}
	_ = l.file.Close()
	l.file, l.size, l.orders, l.effects, l.floor, l.broken = fresh.file, fresh.size, fresh.orders, fresh.effects, fresh.floor, nil
	return written
}

// Close closes the file; the ledger cannot be used after it.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = os.ErrClosed
	return l.file.Close()
}

// write appends a line and takes it in. l.mu is held.
func (l *Ledger) write(what line) error {
	if err := l.heal(); err != nil {
		return err
	}
	text, err := json.Marshal(what)
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if _, err := l.file.WriteAt(text, l.size); err != nil {
		l.broken = err
		return fmt.Errorf("ledger of orders: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		l.broken = err
		return fmt.Errorf("ledger of orders: %w", err)
	}
	l.size += int64(len(text))
	l.take(what)
	return nil
}

// heal makes sure after a failed write that the file ends with the last line that
// was taken in: every byte up to there was synced before.
func (l *Ledger) heal() error {
	if l.broken == nil {
		return nil
	}
	if !errors.Is(l.broken, os.ErrClosed) {
		err := l.file.Truncate(l.size)
		if err == nil {
			err = l.file.Sync()
		}
		if err == nil {
			l.broken = nil
			return nil
		}
		l.broken = err
	}
	return fmt.Errorf("ledger of orders failed earlier: %w", l.broken)
}

// take adds what a line says to what is known. It says whether the line makes
// sense.
func (l *Ledger) take(what line) bool {
	key := effectKey{what.Origin, what.Effect}
	switch what.Is {
	case "floor":
		l.floor = max(l.floor, what.Until)
	case "begin":
		e := l.orders[what.Job]
		if e == nil {
			e = &entry{until: what.Until, effect: key}
			l.orders[what.Job] = e
		}
		e.Starts++
		e.Attempt = max(e.Attempt, what.Attempt)
		if what.Effect != "" {
			s := l.effects[key]
			if s == nil {
				s = &spending{}
				l.effects[key] = s
			}
			s.Tries++
			s.until = max(s.until, what.Until)
		}
	case "end":
		e := l.orders[what.Job]
		if e == nil {
			return false
		}
		e.Ended = true
		if s := l.effects[e.effect]; s != nil && what.Applied {
			s.Applied = true
		}
	case "order":
		l.orders[what.Job] = &entry{Past: Past{Starts: what.Starts, Attempt: what.Attempt, Ended: what.Ended}, until: what.Until, effect: key}
	case "effect":
		l.effects[key] = &spending{Spent: Spent{Tries: what.Tries, Applied: what.Applied}, until: what.Until}
	default:
		return false
	}
	return what.Is == "floor" || what.Is == "effect" || what.Job != ""
}

func (l *Ledger) load() error {
	r := bufio.NewReader(l.file)
	for {
		raw, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(raw) > 0 {
				return l.file.Truncate(l.size)
			}
			return nil
		}
		if err != nil {
			return err
		}
		var what line
		if err := json.Unmarshal(raw, &what); err != nil || !l.take(what) {
			return fmt.Errorf("the record of orders is damaged at byte %d; without it the runner would do again what it did", l.size)
		}
		l.size += int64(len(raw))
	}
}
