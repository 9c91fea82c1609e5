package oci

import (
	"io"
	"sync"
)

// meter sums up the bytes of a transfer and reports them, one call at a time.
type meter struct {
	mu          sync.Mutex
	done, total int64
	report      func(done, total int64)
}

func (m *meter) start(total int64, report func(done, total int64)) {
	m.total, m.report = total, report
	m.add(0)
}

func (m *meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done += n
	if m.report != nil {
		m.report(m.done, m.total)
	}
}

// position is how far one blob is. It goes back when an attempt starts over.
type position struct {
	meter *meter
	at    int64
}

func (p *position) set(at int64) {
	if at != p.at {
		p.meter.add(at - p.at)
		p.at = at
	}
}

// measure reports what is read, and keeps a seeker a seeker: that is how a
// partial blob is skipped.
func (p *position) measure(rc io.ReadCloser) io.ReadCloser {
	if p.meter.report == nil {
		return rc // a file is then sent by the kernel, without copying
	}
	if seeker, ok := rc.(io.Seeker); ok {
		return &measuredSeeker{measured{rc, p}, seeker}
	}
	return &measured{rc, p}
}

type measured struct {
	io.ReadCloser
	position *position
}

func (m *measured) Read(b []byte) (int, error) {
	n, err := m.ReadCloser.Read(b)
	m.position.set(m.position.at + int64(n))
	return n, err
}

type measuredSeeker struct {
	measured
	seeker io.Seeker
}

func (m *measuredSeeker) Seek(offset int64, whence int) (int64, error) {
	at, err := m.seeker.Seek(offset, whence)
	if err == nil {
		m.position.set(at)
	}
	return at, err
}
