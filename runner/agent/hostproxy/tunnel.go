package hostproxy

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// connection is one to a host. It ends when nothing moves on it.
type connection struct {
	net.Conn
	proxy          *Proxy
	target         string
	since          time.Time
	idle           *time.Timer
	sent, received atomic.Int64
	closing        sync.Once
	gone           chan struct{} // closed by Close
	closeErr       error
}

// Read implements net.Conn.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.moved(n)
	c.received.Add(int64(n))
	return n, err
}

// Write implements net.Conn.
func (c *connection) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.moved(n)
	c.sent.Add(int64(n))
	return n, err
}

func (c *connection) moved(n int) {
	if n > 0 {
		c.idle.Reset(c.proxy.config.IdleTime)
	}
}

// Close implements net.Conn. It logs the bytes that moved, once.
func (c *connection) Close() error {
	c.closing.Do(func() {
		c.closeErr = c.Conn.Close()
		close(c.gone)
		p := c.proxy
		p.mu.Lock()
		c.idle.Stop()
		delete(p.open, c)
		p.sent += c.sent.Load()
		p.received += c.received.Load()
		p.mu.Unlock()
		p.tell(fmt.Sprintf("network: %s: closed after %s, %d bytes sent, %d received", c.target, time.Since(c.since).Round(time.Millisecond), c.sent.Load(), c.received.Load()))
	})
	return c.closeErr
}

// tunnel serves a CONNECT.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	out, err := p.connect(r.Context(), r.Host)
	if err != nil {
		answer(w, err)
		return
	}
	defer func() { _ = out.Close() }()
	in, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		answer(w, err)
		return
	}
	_, _ = io.WriteString(in, "HTTP/1.1 200 Connection established\r\n\r\n") // a plugin that is gone does not read on either
	var both, end sync.WaitGroup
	both.Go(func() {
		_, err := io.Copy(out, buffered)
		endWriting(out.Conn, err)
	})
	both.Go(func() {
		_, err := io.Copy(in, out)
		endWriting(in, err)
	})
	end.Go(func() {
		<-out.gone // it is done, was idle, or the job is over
		_ = in.Close()
	})
	both.Wait()
	_ = out.Close()
	end.Wait()
}

// endWriting tells the other side that nothing more comes; after an error it is told
// that the connection is over.
func endWriting(conn net.Conn, err error) {
	half, can := conn.(interface{ CloseWrite() error })
	if err != nil || !can {
		_ = conn.Close()
		return
	}
	_ = half.CloseWrite()
}
