package disk

import (
	"errors"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// reserveBytes is the room that is kept for reports: hundreds of them, or a
	// large state. A small disk gives a sixteenth of itself.
	reserveBytes = 16 << 20
	// giveBytes is how much of it is given up at once: a report with its attempt
	// and its record, so that who filled the disk does not get all the rest.
	giveBytes = 256 << 10
)

// reserve is a file that takes up room. Safe for concurrent use.
type reserve struct {
	path string

	mu   sync.Mutex
	size int64 // what it takes up now
}

// fill takes up to want bytes, as many as there is room for.
func (r *reserve) fill(want int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	f, err := os.OpenFile(r.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && r.size == 0 {
		r.size = min(info.Size(), want) // of an earlier agent
	}
	if r.size >= want {
		return nil
	}
	if err := allocate(f, r.size, want-r.size); err != nil {
		return errors.Join(err, f.Truncate(r.size))
	}
	r.size = want
	return f.Sync()
}

// allocate makes the file really use the disk from off on.
func allocate(f *os.File, off, n int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, off, n)
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		return err
	}
	zeros := make([]byte, 1<<16)
	for n > 0 {
		wrote, err := f.WriteAt(zeros[:min(n, int64(len(zeros)))], off)
		if err != nil {
			return err
		}
		off, n = off+int64(wrote), n-int64(wrote)
	}
	return nil
}

// give frees some of it, and reports whether there was any left to free.
func (r *reserve) give() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size == 0 {
		return false
	}
	f, err := os.OpenFile(r.path, os.O_RDWR, 0)
	if err != nil {
		r.size = 0
		return false
	}
	defer f.Close()
	left := max(r.size-giveBytes, 0)
	if err := f.Truncate(left); err != nil {
		return false
	}
	r.size = left
	_ = f.Sync() // some file systems free blocks only with this; the next write tells
	return true
}

// held is how much it takes up.
func (r *reserve) held() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.size
}
