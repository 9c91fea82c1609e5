package egress

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/egress"
)

const (
	// span is how long requests that are alike are counted into one line.
	span = 10 * time.Minute
	// slots is how many such lines are open at once, each in its own place of the
	// file "open"; slotSize bounds one, in bytes.
	slots    = 128
	slotSize = 2048
	// maxSeen bounds the memory of what was written lately.
	maxSeen = 4096

	defaultFileBytes = 4 << 20
	defaultFiles     = 16
)

// Options are what a ledger needs.
type Options struct {
	Dir string
	// FileBytes is where a new file begins, Files how many are kept; 0: 4 MiB, 16.
	FileBytes int64
	Files     int
	// Store runs a write that may take of the disk's reserve; nil: just runs it.
	Store func(func() error) error
	Now   func() time.Time
	Log   *slog.Logger
}

// Ledger is written by one process. Safe for concurrent use.
//
// A line reaches the kernel before the request leaves, so a killed agent loses
// nothing; the disk has it for sure once Sync has returned.
type Ledger struct {
	o Options

	mu     sync.Mutex
	file   *os.File
	size   int64
	number int
	head   egress.Head
	totals map[string]egress.Total
	seen   map[key]time.Time // what has a line of its own already
	open   *os.File
	counts map[key]*count
	free   []int // slots
	// unwritten is how many requests have no line because the disk took none.
	unwritten int64
}

// key is what requests have in common that are counted together.
type key struct{ class, schema, to, about, digest string }

type count struct {
	slot int
	line egress.Line
}

// entry is a request.
type entry struct {
	sort
	to     string
	bytes  int64
	digest string
	ends   int64
}

// Open opens the ledger and goes on with what an agent that died had counted.
func Open(o Options) (*Ledger, error) {
	if o.FileBytes == 0 {
		o.FileBytes = defaultFileBytes
	}
	if o.Files == 0 {
		o.Files = defaultFiles
	}
	if o.Store == nil {
		o.Store = func(write func() error) error { return write() }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	l := &Ledger{o: o, totals: map[string]egress.Total{}, seen: map[key]time.Time{}, counts: map[key]*count{}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("egress ledger: %w", err)
	}
	if err := l.load(); err != nil {
		return nil, fmt.Errorf("egress ledger: %w", err)
	}
	if err := l.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("egress ledger: %w", err), l.closeFiles())
	}
	return l, nil
}

// load finds the head and opens the last file behind its last whole line.
func (l *Ledger) load() error {
	err := egress.Read(l.o.Dir, func(raw []byte, line egress.Line) error {
		if line.Seq < 1 || l.head.Hash != "" && line.Prev != l.head.Hash {
			// What is there stays: verify names it. The ledger goes on behind it.
			l.o.Log.Error("egress ledger has a line that does not fit: see berth-runner egress verify", "after", l.head.Seq)
		}
		if l.head.Hash == "" {
			maps.Copy(l.totals, line.Totals)
		}
		egress.Add(l.totals, line)
		l.head = egress.Head{Seq: max(line.Seq, l.head.Seq), Hash: egress.Digest(raw)}
		return nil
	})
	if err != nil {
		return err
	}
	files, err := egress.Files(l.o.Dir)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return l.begins(1)
	}
	last := files[len(files)-1]
	if _, err := fmt.Sscanf(filepath.Base(last), "%d.jsonl", &l.number); err != nil {
		return fmt.Errorf("%s is no file of a ledger: move it away", last)
	}
	if l.file, err = os.OpenFile(last, os.O_RDWR, 0o600); err != nil {
		return err
	}
	whole, err := wholeLines(l.file)
	if err == nil {
		err = l.file.Truncate(whole) // a crash left a part of a line
	}
	if err == nil {
		_, err = l.file.Seek(whole, 0)
	}
	l.size = whole
	return err
}

// wholeLines is how long a file is up to its last line feed.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	tail := make([]byte, min(info.Size(), egress.MaxLine+1))
	if _, err := f.ReadAt(tail, info.Size()-int64(len(tail))); err != nil && len(tail) > 0 {
		return 0, err
	}
	return info.Size() - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')+1), nil
}

func (l *Ledger) begins(number int) error {
	f, err := os.OpenFile(filepath.Join(l.o.Dir, fmt.Sprintf("%08d.jsonl", number)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		_ = l.file.Sync()
		_ = l.file.Close()
	}
	l.file, l.size, l.number = f, 0, number
	return nil
}

// recover goes on with the counts that are still open in the file of slots.
func (l *Ledger) recover() (err error) {
	path := filepath.Join(l.o.Dir, "open")
	left, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if l.open, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	taken := map[int]bool{}
	for at := 0; at < len(left); at += slotSize {
		var line egress.Line
		slot, _, _ := bytes.Cut(left[at:min(at+slotSize, len(left))], []byte{0})
		if at/slotSize >= slots || len(slot) == 0 || json.Unmarshal(slot, &line) != nil || line.Count == 0 || l.has(line) {
			continue
		}
		slotNumber := at / slotSize
		k := key{class: line.Class, schema: line.Schema, to: line.To, about: line.About}
		if class, _ := Find(line.Class); !class.Hot {
			k.digest = line.Digest
		}
		l.counts[k], taken[slotNumber] = &count{slot: slotNumber, line: line}, true
	}
	for slot := slots - 1; slot >= 0; slot-- { // the last of free is taken first
		if !taken[slot] {
			l.free = append(l.free, slot)
		}
	}
	return nil
}

// has says whether a count was written just before the agent died.
func (l *Ledger) has(line egress.Line) (found bool) {
	_ = egress.Read(l.o.Dir, func(_ []byte, there egress.Line) error {
		found = found || there.Class == line.Class && there.About == line.About && there.To == line.To &&
			there.Schema == line.Schema && there.From.Equal(line.From) && there.Digest == line.Digest && there.Count == line.Count
		return nil
	})
	return found
}

// add writes a request down, or counts it.
func (l *Ledger) add(e entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.o.Now().UTC()
	k := key{class: e.class, schema: e.schema, to: e.to, about: e.about}
	class, _ := Find(e.class)
	if !class.Hot {
		k.digest = e.digest
		if last, again := l.seen[k]; e.ends != 0 || !again || now.Sub(last) > span {
			l.remember(k, now)
			l.write(line(e, now))
			return
		}
	}
	c := l.counts[k]
	if c != nil && now.Sub(c.line.From) >= span {
		l.end(k)
		c = nil
	}
	if c == nil {
		if len(l.free) == 0 {
			l.endOldest()
		}
		c = &count{slot: l.free[len(l.free)-1], line: egress.Line{From: now, Class: e.class, Schema: e.schema, To: e.to, About: e.about}}
		l.free = l.free[:len(l.free)-1]
		l.counts[k] = c
	}
	c.line.Until, c.line.Count, c.line.Bytes = now, c.line.Count+1, c.line.Bytes+e.bytes
	c.line.Digest = egress.Fold(c.line.Digest, e.digest)
	l.keep(c)
}

// remember notes what has its own line; what is too old is forgotten.
func (l *Ledger) remember(k key, now time.Time) {
	if len(l.seen) >= maxSeen {
		maps.DeleteFunc(l.seen, func(_ key, at time.Time) bool { return now.Sub(at) > span })
	}
	if len(l.seen) < maxSeen {
		l.seen[k] = now
	}
}

// begin writes down that a long body begins to leave, and returns the line's number.
func (l *Ledger) begin(e entry) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	begun := line(e, l.o.Now().UTC())
	begun.Begun, begun.Digest = true, ""
	l.write(begun)
	return l.head.Seq
}

func line(e entry, now time.Time) egress.Line {
	return egress.Line{
		From: now, Until: now, Class: e.class, Schema: e.schema, To: e.to, About: e.about, Count: 1, Bytes: e.bytes, Digest: e.digest, Ends: e.ends,
	}
}

// keep puts an open count into its slot.
func (l *Ledger) keep(c *count) {
	raw, err := json.Marshal(c.line)
	if err == nil && len(raw) < slotSize {
		_, err = l.open.WriteAt(append(raw, 0), int64(c.slot)*slotSize)
	}
	if err != nil {
		l.o.Log.Warn("a count of the egress ledger is in memory only", "class", c.line.Class, "err", err)
	}
}

// end makes a line of an open count.
func (l *Ledger) end(k key) {
	c := l.counts[k]
	delete(l.counts, k)
	l.write(c.line)
	_, _ = l.open.WriteAt([]byte{0}, int64(c.slot)*slotSize)
	l.free = append(l.free, c.slot)
}

func (l *Ledger) endOldest() {
	var oldest key
	first := true
	for k, c := range l.counts {
		if first || c.line.From.Before(l.counts[oldest].line.From) {
			oldest, first = k, false
		}
	}
	l.end(oldest)
}

// write appends a line. What cannot be written is counted, and the next line says so:
// a full disk must not keep a result from leaving.
func (l *Ledger) write(line egress.Line) {
	line.Unwritten = l.unwritten
	if err := l.o.Store(func() error { return l.append(line) }); err != nil {
		l.unwritten += line.Count
		l.o.Log.Error("egress ledger cannot be written", "class", line.Class, "err", err)
		return
	}
	l.unwritten = 0
}

func (l *Ledger) append(line egress.Line) error {
	if l.size > 0 && l.size >= l.o.FileBytes {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	return l.put(line)
}

// put writes a line at the end of the file, whole or not at all.
func (l *Ledger) put(line egress.Line) error {
	raw, head, err := egress.Next(l.head, line)
	if err != nil {
		return err
	}
	if _, err := l.file.WriteAt(append(raw, '\n'), l.size); err != nil {
		_ = l.file.Truncate(l.size)
		return err
	}
	l.size += int64(len(raw)) + 1
	l.head = head
	egress.Add(l.totals, line)
	return nil
}

// rotate begins a file with the totals of all lines before, and drops the oldest.
func (l *Ledger) rotate() error {
	if err := l.begins(l.number + 1); err != nil {
		return err
	}
	now := l.o.Now().UTC()
	if err := l.put(egress.Line{From: now, Until: now, Class: egress.ClassTotals, Schema: "egress/v1 totals", Totals: maps.Clone(l.totals)}); err != nil {
		return err
	}
	files, err := egress.Files(l.o.Dir)
	for err == nil && len(files) > l.o.Files {
		err = os.Remove(files[0])
		files = files[1:]
	}
	return err
}

// Sync ends all counts, brings everything to the disk and returns the head.
func (l *Ledger) Sync() (egress.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k := range l.counts {
		l.end(k)
	}
	return l.head, l.file.Sync()
}

// Close is Sync for the end.
func (l *Ledger) Close() error {
	_, err := l.Sync()
	return errors.Join(err, l.closeFiles())
}

func (l *Ledger) closeFiles() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.file.Close()
	if l.open != nil {
		err = errors.Join(err, l.open.Close())
	}
	return err
}
