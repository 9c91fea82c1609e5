package consents

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// aheadAtMost is how far a record may be dated ahead of the clock and still hold it back:
// the clock was set back since. One that is further ahead was written by a clock that was
// wrong; it would stop all rules for as long.
const aheadAtMost = 7 * 24 * time.Hour

// chronicle is what the chain's file tells of consent. It reads on from where it was.
type chronicle struct {
	path string

	mu      sync.Mutex
	offset  int64
	last    []byte // the line that ends at offset
	entries []entry
	applied map[string]time.Time // effects that are there, and since when
}

// entry is what one record says.
type entry struct {
	at    time.Time
	rule  string // that agreed to the intent
	spent bool   // the chain goes on from elsewhere
}

// read takes in what is new in the file, up to its last whole line. mu is held.
func (c *chronicle) read() error {
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		c.forget()
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if c.offset > 0 { // the customer's decision about a chain may have replaced its end
		was := make([]byte, len(c.last))
		if _, err := f.ReadAt(was, c.offset-int64(len(c.last))); err != nil || !bytes.Equal(was, c.last) {
			c.forget()
		}
	}
	if _, err := f.Seek(c.offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil // half a line is one that is being written
		}
		if err != nil {
			return err
		}
		record, err := chain.ParseRecord(line[:len(line)-1])
		if err != nil {
			return err
		}
		c.take(record)
		c.offset += int64(len(line))
		c.last = line
	}
}

func (c *chronicle) forget() { c.offset, c.last, c.entries, c.applied = 0, nil, nil, nil }

func (c *chronicle) take(r chain.Record) {
	e := entry{at: r.Time, spent: r.Handover != nil || r.Accepted != nil}
	if r.Consent != nil {
		e.rule = r.Consent.Rule
	}
	c.entries = append(c.entries, e)
	if r.Kind == chain.Outcome && r.Result == string(jobspec.OutcomeSucceeded) {
		if c.applied == nil {
			c.applied = map[string]time.Time{}
		}
		c.applied[r.Effect] = r.Time
	}
}

// history is what the rules are decided by, and the effects that are there.
func (c *chronicle) history(now time.Time) (h consent.History, applied map[string]time.Time, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(); err != nil {
		return h, nil, err
	}
	applied = make(map[string]time.Time, len(c.applied))
	for effect, at := range c.applied {
		applied[effect] = at
	}
	return historyOf(c.entries, now), applied, nil
}

// historyOf goes through the records with a clock that never goes back.
func historyOf(entries []entry, now time.Time) consent.History {
	var h consent.History
	var clock time.Time
	for _, e := range entries {
		if e.at.After(clock) && !e.at.After(now.Add(aheadAtMost)) {
			clock = e.at
		}
		if e.rule != "" {
			h.Used = append(h.Used, consent.Use{Rule: e.rule, At: clock})
		}
		if e.spent {
			h.SpentAt = clock
		}
	}
	h.Now = now
	if clock.After(now) {
		h.Now = clock
	}
	return h
}
