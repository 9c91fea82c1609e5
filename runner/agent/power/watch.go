package power

import (
	"context"
	"log/slog"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/runner/agent/datadir"
)

// Switch is the switch as the agent sees it. Safe for concurrent use.
type Switch struct {
	dir datadir.Dir
	log *slog.Logger

	mu      sync.Mutex
	state   State
	changed chan struct{}
}

// Open reads the switch for the first time.
func Open(d datadir.Dir, log *slog.Logger) *Switch {
	s := &Switch{dir: d, log: log, changed: make(chan struct{})}
	s.reload()
	return s
}

// Now returns the position, and a channel that is closed when it changes.
func (s *Switch) Now() (State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.changed
}

// Mode is the position.
func (s *Switch) Mode() Mode {
	state, _ := s.Now()
	return state.Mode
}

// Read looks at the file itself, for decisions that must not be a moment late.
func (s *Switch) Read() State {
	s.reload()
	state, _ := s.Now()
	return state
}

// Wait blocks until allowed says yes to the position, or ctx ends.
func (s *Switch) Wait(ctx context.Context, allowed func(Mode) bool) error {
	for {
		state, changed := s.Now()
		if allowed(state.Mode) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
	}
}

// While returns a context that ends as soon as allowed says no.
func (s *Switch) While(ctx context.Context, allowed func(Mode) bool) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for {
			state, changed := s.Now()
			if !allowed(state.Mode) {
				cancel()
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	}()
	return ctx, cancel
}

// Watch follows the file until ctx ends.
func (s *Switch) Watch(ctx context.Context) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(wake) }()
	// The file is replaced by rename, so its directory is what is watched.
	if _, err := unix.InotifyAddWatch(fd, s.dir.Path(), unix.IN_MOVED_TO|unix.IN_CLOSE_WRITE|unix.IN_DELETE); err != nil {
		return err
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		close(done)
	})
	defer func() {
		if !stop() {
			<-done // the descriptor must stay open until it was written to
		}
	}()
	s.reload() // what changed before the watch began
	buf := make([]byte, 64*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	for ctx.Err() == nil {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}, -1)
		if err != nil && err != unix.EINTR {
			return err
		}
		for {
			n, err := unix.Read(fd, buf)
			if n <= 0 || err != nil {
				break
			}
			if mentions(buf[:n], "switch.json") || mentions(buf[:n], "switch-cluster.json") {
				s.reload()
			}
		}
	}
	return context.Cause(ctx)
}

// mentions reports whether one of the inotify events is about the name.
func mentions(events []byte, name string) bool {
	for len(events) >= unix.SizeofInotifyEvent {
		head := (*unix.InotifyEvent)(unsafe.Pointer(&events[0])) // the kernel aligns them
		end := unix.SizeofInotifyEvent + int(head.Len)
		if unix.ByteSliceToString(events[unix.SizeofInotifyEvent:end]) == name {
			return true
		}
		events = events[end:]
	}
	return false
}

func (s *Switch) reload() {
	state, err := Load(s.dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && state != s.state {
		s.log.Warn("switch file cannot be understood, everything stops", "err", err)
	}
	if state == s.state {
		return
	}
	s.state = state
	close(s.changed)
	s.changed = make(chan struct{})
}
