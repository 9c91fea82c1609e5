package oci

import (
	"context"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

type lockMode int

const (
	shared    lockMode = unix.LOCK_SH
	exclusive lockMode = unix.LOCK_EX
)

// lockFile takes a flock on name, made when missing, and waits for it. Each
// call has an open file of its own, so it also holds off goroutines of this
// process. The kernel frees it when the process dies.
func lockFile(ctx context.Context, name string, mode lockMode) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(ctx, f, mode); err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

// flock waits for the lock of an open file; closing the file frees it.
func flock(ctx context.Context, f *os.File, mode lockMode) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := retryInterrupted(func() error { return unix.Flock(int(f.Fd()), int(mode)|unix.LOCK_NB) })
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	// flock(2) cannot be cancelled: the waiter keeps a descriptor of its own
	// and lets go of the lock if nobody wants it any more.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return err
	}
	waiter := os.NewFile(uintptr(fd), f.Name())
	done := make(chan error, 1)
	go func() {
		err := retryInterrupted(func() error { return unix.Flock(fd, int(mode)) })
		waiter.Close()
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func retryInterrupted(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
