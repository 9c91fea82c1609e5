package plugin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/berth-dev/berth/pkg/plugin"
)

// relay leads connections to a port of the own loopback to the agent's proxy, which
// decides what comes of them.
type relay struct {
	listener net.Listener
	socket   string
	// dir is the socket's, so that its path is short.
	dir *os.File

	mu     sync.Mutex
	open   map[net.Conn]bool // nil once it is closed
	copies sync.WaitGroup
}

func (p *admitted) hostsSocket() string {
	return filepath.Join(p.job.Dir, filepath.FromSlash(plugin.HostsSocket))
}

// openRelay opens the way to the hosts that the plugin may reach, nil for one that has
// none. Close has to follow.
func (p *admitted) openRelay() (*relay, error) {
	if p.given.Network || len(p.given.Hosts) == 0 {
		return nil, nil
	}
	path := p.hostsSocket()
	dir, err := os.OpenFile(filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	r := &relay{dir: dir, socket: "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + filepath.Base(path), open: map[net.Conn]bool{}}
	if r.listener, err = (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0"); err != nil {
		return nil, errors.Join(fmt.Errorf("way to the plugin's hosts: %w", err), dir.Close())
	}
	r.copies.Go(r.serve)
	return r, nil
}

// env is what the plugin is told of the relay.
func (r *relay) env() []string {
	if r == nil {
		return nil
	}
	return plugin.ProxyEnv(r.listener.Addr().String())
}

func (r *relay) serve() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.copies.Go(func() { r.lead(in) })
	}
}

// lead copies both ways until both are at their end.
func (r *relay) lead(in net.Conn) {
	defer r.drop(in)
	if !r.keep(in) {
		return
	}
	out, err := net.Dial("unix", r.socket) //nolint:noctx // a socket of this machine: it answers or is not there
	if err != nil {
		return
	}
	defer r.drop(out)
	if !r.keep(out) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { move(out, in) })
	both.Go(func() { move(in, out) })
	both.Wait()
}

// move copies to the end of from, and passes that on.
func move(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, can := to.(interface{ CloseWrite() error })
	if err != nil || !can {
		_, _ = to.Close(), from.Close()
		return
	}
	_ = half.CloseWrite()
}

// keep notes what close has to end; false when that was already.
func (r *relay) keep(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		return false
	}
	r.open[conn] = true
	return true
}

func (r *relay) drop(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = conn.Close()
	delete(r.open, conn)
}

// close ends the relay and all connections.
func (r *relay) close() {
	if r == nil {
		return
	}
	_ = r.listener.Close()
	r.mu.Lock()
	for conn := range r.open {
		_ = conn.Close()
	}
	r.open = nil
	r.mu.Unlock()
	r.copies.Wait()
	_ = r.dir.Close()
}

// alone says whether nobody has a socket of the internet in this network namespace: who
// looks is in one of its own then.
func alone() (bool, error) {
	for _, name := range []string{"tcp", "tcp6", "udp", "udp6", "raw", "raw6"} {
		f, err := os.Open("/proc/self/net/" + name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, err
		}
		lines := bufio.NewScanner(f)
		n := 0
		for lines.Scan() {
			n++
		}
		f.Close()
		if err := lines.Err(); err != nil || n > 1 { // the first names the columns
			return false, err
		}
	}
	return true, nil
}
