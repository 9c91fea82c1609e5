package heads

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// slotSize is how many bytes each of the file's two slots has: a line with room
// for any head.
const slotSize = 160

// Copy keeps the head of the chain in a second file. Heads take turns in two
// places of it, so that a crash damages at most the one that was being written.
// The file never grows: a full disk does not stop it. Safe for concurrent use.
type Copy struct {
	path string

	mu   sync.Mutex
	head chain.Head
}

type slot struct {
	chain.Head
	Sum string `json:"sum"` // CRC-32 of both: tells a torn write
}

func sum(h chain.Head) string {
	return fmt.Sprintf("%08x", crc32.ChecksumIEEE(fmt.Appendf(nil, "%d %s", h.Seq, h.Hash)))
}

// Open reads the copy at path; found is false when there is none that can be
// read.
func Open(path string) (c *Copy, found bool, err error) {
	c = &Copy{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, false, nil
	}
	if err != nil {
		return c, false, fmt.Errorf("second copy of the chain's head: %w", err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		var s slot
		if json.Unmarshal([]byte(strings.TrimSpace(line)), &s) != nil || s.Sum != sum(s.Head) {
			continue
		}
		if !found || s.Seq > c.head.Seq {
			c.head, found = s.Head, true
		}
	}
	return c, found, nil
}

// Head is the newest head that was kept.
func (c *Copy) Head() chain.Head {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head
}

// Keep stores a head whose record is on disk; an older one changes nothing.
func (c *Copy) Keep(h chain.Head) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.Seq <= c.head.Seq {
		return nil
	}
	f, err := os.OpenFile(c.path, os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return c.put(h)
	}
	if err != nil {
		return fmt.Errorf("second copy of the chain's head: %w", err)
	}
	_, err = f.WriteAt(line(h), h.Seq%2*slotSize)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("second copy of the chain's head: %w", err)
	}
	c.head = h
	return nil
}

// Reset stores a head in place of all others: at the very beginning, and after
// the customer's decision.
func (c *Copy) Reset(h chain.Head) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.put(h)
}

func (c *Copy) put(h chain.Head) error {
	text := make([]byte, 0, 2*slotSize)
	for range 2 {
		text = append(text, line(h)...)
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o700); err != nil {
		return fmt.Errorf("second copy of the chain's head: %w", err)
	}
	if err := datadir.Write(c.path, text); err != nil {
		return fmt.Errorf("second copy of the chain's head: %w", err)
	}
	c.head = h
	return nil
}

// line is the text of one place: readable, and always of the same length.
func line(h chain.Head) []byte {
	text, err := json.Marshal(slot{Head: h, Sum: sum(h)})
	if err != nil {
		panic(err) // a number and two texts
	}
	return fmt.Appendf(nil, "%-*s\n", slotSize-1, text)
}
