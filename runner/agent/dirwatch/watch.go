// Package dirwatch follows a directory that another process may change.
package dirwatch

import (
	"context"
	"reflect"

	"golang.org/x/sys/unix"
)

// Teller tells somebody what a directory says.
type Teller[T any] struct {
	Dir string
	// Read reads what there is to tell; ok is false for nothing.
	Read func() (now T, ok bool, err error)
	// Put tells it.
	Put func(context.Context, T) error
	// Failed hears of an error of either; the next change of the directory tries again.
	Failed func(error)
}

// Tell tells it at once, and again each time that it changes, until ctx ends.
func (t Teller[T]) Tell(ctx context.Context) error {
	changed, end, err := Watch(t.Dir)
	if err != nil {
		return err
	}
	defer end()
	var told *T
	for {
		now, ok, err := t.Read()
		if err == nil && ok && (told == nil || !reflect.DeepEqual(*told, now)) {
			if err = t.Put(ctx, now); err == nil {
				told = &now
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			t.Failed(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// Watch says on a channel when something in dir was written or replaced: once for any
// number of changes that nobody has heard of yet. The function ends it.
func Watch(dir string) (<-chan struct{}, func(), error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(fd)
		return nil, nil, err
	}
	if _, err = unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE); err != nil {
		_, _ = unix.Close(fd), unix.Close(wake)
		return nil, nil, err
	}
	changed, over := make(chan struct{}, 1), make(chan struct{})
	ended := false
	go func() {
		defer close(over)
		buf := make([]byte, 4096)
		for {
			fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
			if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR || fds[1].Revents != 0 {
				return
			}
			for {
				if n, err := unix.Read(fd, buf); n <= 0 || err != nil {
					break
				}
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	}()
	end := func() {
		if ended {
			return
		}
		ended = true
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		<-over
		_, _ = unix.Close(fd), unix.Close(wake)
	}
	return changed, end, nil
}
