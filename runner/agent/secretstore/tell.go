package secretstore

import (
	"context"
	"reflect"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/customersecret"
)

// Told sends the versions that there are to the control plane.
type Told func(context.Context, []customersecret.Version) error

// Tell tells the control plane which versions there are, at once and each time that they
// change, until ctx ends. An error of put goes to failed; the next change sends the whole
// list again. A runner that never had a secret says nothing.
func (s Store) Tell(ctx context.Context, put Told, failed func(error)) error {
	changed, end, err := s.watch()
	if err != nil {
		return err
	}
	defer end()
	var told []customersecret.Version
	for {
		list, err := s.List()
		if err == nil && !reflect.DeepEqual(told, list) {
			if err = put(ctx, list); err == nil {
				told = list
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			failed(err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// watch says when something in the directory was replaced.
func (s Store) watch() (<-chan struct{}, func(), error) {
	if err := s.locked(func() error { return nil }); err != nil {
		return nil, nil, err
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, nil, err
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		_ = unix.Close(fd)
		return nil, nil, err
	}
	if _, err = unix.InotifyAddWatch(fd, s.Dir, unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE); err != nil {
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
