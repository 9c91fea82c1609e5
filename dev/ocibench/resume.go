package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
)

// cutter passes connections on to a registry, counts what comes back, and breaks one
// of them once, after so many bytes.
type cutter struct {
	listener net.Listener
	to       string
	after    int64
	came     atomic.Int64
	cut      atomic.Bool
	running  sync.WaitGroup
}

func newCutter(to string, after int64) (*cutter, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &cutter{listener: listener, to: to, after: after}
	c.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c.running.Go(func() { c.pass(conn) })
		}
	})
	return c, nil
}

func (c *cutter) pass(from net.Conn) {
	defer from.Close()
	to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", c.to)
	if err != nil {
		return
	}
	defer to.Close()
	c.running.Go(func() { _, _ = io.Copy(to, from); _ = to.Close() })
	_, _ = io.Copy(from, c.counted(to))
}

// counted reads until the cut.
func (c *cutter) counted(r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if c.came.Add(int64(n)) > c.after && c.cut.CompareAndSwap(false, true) {
			return 0, io.ErrClosedPipe
		}
		return n, err
	})
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func (c *cutter) close() {
	_ = c.listener.Close()
	c.running.Wait()
}

// maxResumes is how often a pull is repeated until it is complete.
const maxResumes = 5

// resume breaks a pull in the middle and has each library go on. It prints how much
// crossed the network in all, compared with what there is.
func (b *bench) resume(ctx context.Context, i image) error {
	if err := b.fill(ctx, opPull, i); err != nil {
		return err
	}
	fmt.Println("a pull of", i.bytes, "bytes that breaks off in the middle, until it is complete:")
	all := slices.Clone(b.all)
	slices.SortFunc(all, func(x, y contestant) int { return slices.Index(order, x.name) - slices.Index(order, y.name) })
	for n, c := range all {
		if c.command != nil {
			continue
		}
		wire, err := newCutter(b.here.host, i.bytes/2)
		if err != nil {
			return err
		}
		t := task{Op: opPull, From: wire.listener.Addr().String(), Repository: repository, Digest: i.digest, Dir: filepath.Join(b.dir, fmt.Sprintf("resumed-%d", n))}
		calls := 0
		for err = fmt.Errorf("not begun"); err != nil && calls < maxResumes; calls++ {
			_, _, err = c.do(ctx, t)
		}
		fmt.Printf("  %s: %.2f × its bytes, in %d calls", c.name, float64(wire.came.Load())/float64(i.bytes), calls)
		if err != nil {
			fmt.Printf(" (never complete: %.200v)", err)
		}
		fmt.Println()
		wire.close()
		if err := os.RemoveAll(t.Dir); err != nil {
			return err
		}
	}
	return nil
}

var order = []string{ours, "oras-go", "ggcr"}
