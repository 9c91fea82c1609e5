package hostproxy

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Listen opens the Unix socket at a path for the user uid alone, the agent's own when it
// is 0. One that an earlier agent left there is replaced.
func Listen(path string, uid, gid int) (net.Listener, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("way out: %w", err)
	}
	defer root.Close()
	name := filepath.Base(path)
	if err := root.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("way out: %w", err)
	}
	// By descriptor: paths of sockets may have 107 bytes only.
	dir, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("way out: %w", err)
	}
	defer dir.Close()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("way out: %w", err)
	}
	l.SetUnlinkOnClose(false) // it goes with the job's folder
	err = root.Chmod(name, 0o600)
	if err == nil && uid != 0 {
		err = root.Lchown(name, uid, gid)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("way out: %w", err), l.Close())
	}
	return l, nil
}

// limited accepts so many connections at a time. More wait until one is closed.
func limited(l net.Listener, most int) net.Listener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, most), closed: make(chan struct{})}
}

type limitedListener struct {
	net.Listener
	slots   chan struct{}
	closing sync.Once
	closed  chan struct{}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: conn, done: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	done func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.done()
	return c.Conn.Close()
}

// CloseWrite says that nothing more comes.
func (c *limitedConn) CloseWrite() error {
	if half, can := c.Conn.(interface{ CloseWrite() error }); can {
		return half.CloseWrite()
	}
	return c.Conn.Close()
}
