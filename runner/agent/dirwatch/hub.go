package dirwatch

import (
	"encoding/binary"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// events are those that mean that something was written, replaced or removed.
const events = unix.IN_MOVED_TO | unix.IN_CLOSE_WRITE | unix.IN_DELETE

// hub is the process's one instance of inotify: a user has few of them, and all that
// follow a directory in a process share it.
type hub struct {
	fd   int
	file *os.File // the same, to read from

	mu sync.Mutex
	// watches are the followers of each watch descriptor. The kernel has one descriptor
	// for a directory, whoever asks.
	watches map[int32]map[*follower]bool
}

// follower is who hears of one directory.
type follower struct{ changed chan struct{} }

func (f *follower) tell() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

var (
	starting sync.Mutex
	started  *hub
)

// shared is the hub, which is started when somebody first asks and lasts as long as the
// process. When that fails, the next one tries again.
func shared() (*hub, error) {
	starting.Lock()
	defer starting.Unlock()
	if started != nil {
		return started, nil
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	started = &hub{fd: fd, file: os.NewFile(uintptr(fd), "inotify"), watches: map[int32]map[*follower]bool{}}
	go started.read()
	return started, nil
}

// follow adds a follower of a directory. The function ends that, once.
func (h *hub) follow(dir string) (*follower, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	wd, err := unix.InotifyAddWatch(h.fd, dir, events)
	if err != nil {
		return nil, nil, &os.PathError{Op: "watch", Path: dir, Err: err}
	}
	f, at := &follower{changed: make(chan struct{}, 1)}, int32(wd)
	if h.watches[at] == nil {
		h.watches[at] = map[*follower]bool{}
	}
	h.watches[at][f] = true
	return f, sync.OnceFunc(func() { h.leave(at, f) }), nil
}

func (h *hub) leave(wd int32, f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.watches[wd], f)
	if _, known := h.watches[wd]; known && len(h.watches[wd]) == 0 {
		delete(h.watches, wd)
		_, _ = unix.InotifyRmWatch(h.fd, uint32(wd))
	}
}

// read hands events out for as long as the process lives. An event is its watch
// descriptor, mask, cookie, the length of a name, and the name: inotify(7).
func (h *hub) read() {
	buffer := make([]byte, 64*(unix.SizeofInotifyEvent+unix.NAME_MAX+1))
	for {
		n, err := h.file.Read(buffer)
		if err != nil {
			return
		}
		for left := buffer[:n]; len(left) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(left)), binary.NativeEndian.Uint32(left[4:])
			name := binary.NativeEndian.Uint32(left[12:])
			left = left[min(len(left), unix.SizeofInotifyEvent+int(name)):]
			h.tell(wd, mask)
		}
	}
}

// tell wakes who follows a directory, and all when the kernel lost events.
func (h *hub) tell(wd int32, mask uint32) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if mask&unix.IN_Q_OVERFLOW != 0 {
		for _, followers := range h.watches {
			for f := range followers {
				f.tell()
			}
		}
		return
	}
	for f := range h.watches[wd] {
		f.tell()
	}
	if mask&unix.IN_IGNORED != 0 { // the directory is gone
		delete(h.watches, wd)
	}
}
