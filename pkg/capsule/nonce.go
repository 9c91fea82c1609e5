package capsule

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/durable"
)

// Refusals of NonceFile.Use, for errors.Is.
var (
	ErrNonceUsed    = errors.New("nonce was used before")
	ErrNonceExpired = errors.New("nonce expired")
	ErrNonceForm    = errors.New("nonce is empty or has spaces")
)

// floorWord starts the line that says up to which expiry nonces were forgotten.
const floorWord = "floor"

// NonceFile is a runner's durable set of used nonces: a text file of "<expiry,
// unix seconds> <nonce>" lines that only grows, until Prune rewrites it. One
// process uses it at a time (the agent's lock sees to that); within it, it is
// safe for concurrent use.
type NonceFile struct {
	path string

	mu   sync.Mutex
	file *os.File
	size int64
	used map[string]int64 // nonce to expiry
	// floor is the time of the last Prune: what expired by then is refused
	// although it is forgotten, also when the clock goes back later.
	floor  int64
	broken error
}

// OpenNonceFile opens the set at path, or starts an empty one (mode 0600). An
// unfinished last line, as a crash leaves it, is cut off: its Use never
// returned. Any other damage is an error.
func OpenNonceFile(path string) (*NonceFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open nonces: %w", err)
	}
	n := &NonceFile{path: path, file: f, used: map[string]int64{}}
	if err := n.load(); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open nonces %s: %w", path, err)
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("open nonces %s: %w", path, err)
	}
	return n, nil
}

// Used reports whether nonce is in the set: what Facts.NonceUsed wants. Only
// Use makes it so.
func (n *NonceFile) Used(nonce string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	_, used := n.used[nonce]
	return used
}

// Use puts nonce into the set and returns once that is on disk; only then may
// the capsule be executed. Of two calls with the same nonce at most one
// succeeds, also across crashes.
func (n *NonceFile) Use(nonce string, expires, now time.Time) error {
	if nonce == "" || nonce == floorWord || strings.ContainsAny(nonce, " \r\n") || len(nonce) > 256 {
		return ErrNonceForm
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.heal(); err != nil {
		return err
	}
	if _, used := n.used[nonce]; used {
		return ErrNonceUsed
	}
	until := expires.Unix()
	if !now.Before(expires) || until <= n.floor {
		return ErrNonceExpired
	}
	line := fmt.Appendf(nil, "%d %s\n", until, nonce)
	if _, err := n.file.WriteAt(line, n.size); err != nil {
		n.broken = n.file.Truncate(n.size)
		return fmt.Errorf("store nonce: %w", err)
	}
	if err := n.file.Sync(); err != nil {
		n.broken = err
		return fmt.Errorf("store nonce: %w", err)
	}
	n.size += int64(len(line))
	n.used[nonce] = until
	return nil
}

// heal makes sure after a failed write that the file ends with the last nonce
// whose Use returned: every byte up to there was synced before.
func (n *NonceFile) heal() error {
	if n.broken == nil {
		return nil
	}
	if !errors.Is(n.broken, os.ErrClosed) {
		err := n.file.Truncate(n.size)
		if err == nil {
			err = n.file.Sync()
		}
		if err == nil {
			n.broken = nil
			return nil
		}
		n.broken = err
	}
	return fmt.Errorf("nonces failed earlier: %w", n.broken)
}

// Prune forgets nonces whose capsules have expired by now, and keeps the file
// small. Their capsules stay refused.
func (n *NonceFile) Prune(now time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	floor := max(n.floor, now.Unix())
	kept := map[string]int64{}
	text := fmt.Appendf(nil, "%d %s\n", floor, floorWord)
	for nonce, until := range n.used {
		if until > floor {
			kept[nonce] = until
			text = fmt.Appendf(text, "%d %s\n", until, nonce)
		}
	}
	f, err := n.replace(text)
	if err != nil {
		return fmt.Errorf("prune nonces: %w", err)
	}
	_ = n.file.Close()
	n.file, n.size, n.used, n.floor, n.broken = f, int64(len(text)), kept, floor, nil
	return nil
}

// replace puts a new file in the place of the old one and opens it. After an
// error the old one is used on, unless it is no longer the one that a restart
// would read: then nothing is used any more.
func (n *NonceFile) replace(text []byte) (*os.File, error) {
	err := durable.WriteFile(n.path, text, 0o600)
	if err != nil && n.inPlace() {
		return nil, err
	}
	f, openErr := os.OpenFile(n.path, os.O_RDWR, 0)
	if err := errors.Join(err, openErr); err != nil {
		_ = f.Close()
		n.broken = errors.Join(err, os.ErrClosed)
		return nil, err
	}
	return f, nil
}

// inPlace tells whether the open file is the one at its path.
func (n *NonceFile) inPlace() bool {
	have, err := n.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(n.path)
	return err == nil && os.SameFile(have, there)
}

// Close closes the file; the set cannot be used after it.
func (n *NonceFile) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = os.ErrClosed
	return n.file.Close()
}

func (n *NonceFile) load() error {
	r := bufio.NewReader(n.file)
	for {
		raw, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if len(raw) > 0 {
				return n.file.Truncate(n.size)
			}
			return nil
		}
		if err != nil {
			return err
		}
		seconds, nonce, ok := bytes.Cut(raw[:len(raw)-1], []byte(" "))
		until, err := strconv.ParseInt(string(seconds), 10, 64)
		if !ok || err != nil || len(nonce) == 0 {
			return fmt.Errorf("damaged at byte %d", n.size)
		}
		if string(nonce) == floorWord {
			n.floor = max(n.floor, until)
		} else {
			n.used[string(nonce)] = until
		}
		n.size += int64(len(raw))
	}
}
