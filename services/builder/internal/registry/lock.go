package registry

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// Locker lets one caller at a time, of all replicas, do something under a name.
// When the holder dies the lock is free.
type Locker interface {
	Locked(ctx context.Context, name string, do func(context.Context) error) error
}

// dirLock is the Locker of replicas that share a directory: one lock for all names.
type dirLock struct {
	mu   sync.Mutex
	file string
}

func newDirLock(dir string) *dirLock { return &dirLock{file: filepath.Join(dir, ".referrers.lock")} }

// Locked implements [Locker].
func (l *dirLock) Locked(ctx context.Context, _ string, do func(context.Context) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lock, err := os.OpenFile(l.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() // frees it
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", l.file, err)
	}
	return do(ctx)
}
