// Package intake bounds what peers can make an HTTP server hold: how large a
// body may be, how slowly it may come, how many bytes of bodies are in memory
// at once, and how many connections are open.
//
// A body is locked until its handler opens it, so that nothing is read before
// the peer has proved who it is:
//
//	Handler ─▶ who asks, by the headers alone ─▶ Body.Open(terms) ─▶ reads
//
// What a locked body holds is never read. A server that serves one kind of
// caller only opens all bodies with WithTerms.
package intake

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

var (
	// ErrLocked is what reading a body without having opened it answers: a
	// mistake of the handler.
	ErrLocked = errors.New("the body was read before its sender was known")
	// ErrSlow ends a body that comes more slowly than its terms say.
	ErrSlow = errors.New("the body comes too slowly")
	// ErrFull refuses a body because too much of others is in memory.
	ErrFull = errors.New("too many bytes of bodies are in memory")
)

const (
	// stall bounds one read of a body or one write of an answer, never the whole
	// request: long-polls and event streams live as long as they like.
	stall = 30 * time.Second

	// linger is for the rest of a small body that nobody wants: net/http reads
	// it before it ends the connection, so that the answer is not lost.
	linger = time.Second

	// step is how much is read, and counted, at once.
	step = 32 << 10
)

// Terms are how a body may be read. The zero Terms allow nothing.
type Terms struct {
	// MaxBytes of the body.
	MaxBytes int64
	// Pace is how slowly it may come.
	Pace Pace
	// Memory counts the bytes until the request has ended; nil for what is passed
	// on as it comes.
	Memory *Memory
	// Holder is whose share of Memory they are.
	Holder string
}

// Pace is how slowly a body may come. Only the time counts in which we wait for
// bytes, not that in which we work on them.
type Pace struct {
	// Every body gets Grace plus the time that its bytes take at
	// BytesPerSecond.
	Grace          time.Duration
	BytesPerSecond int64
	// Deadline bounds all of it; 0 for none.
	Deadline time.Duration
}

// left is how long we wait for the next byte, after having waited so long for
// so many.
func (p Pace) left(waited time.Duration, got int64) time.Duration {
	budget := p.Grace
	if p.BytesPerSecond > 0 {
		budget += time.Duration(float64(got) / float64(p.BytesPerSecond) * float64(time.Second))
	}
	if p.Deadline > 0 {
		budget = min(budget, p.Deadline)
	}
	return min(budget-waited, stall)
}

// Body is the body of a request. A proxy's transport may still read it when the
// handler answers, or has ended: from then on it reads no more, and leaves the
// connection's deadlines alone.
type Body struct {
	body    io.ReadCloser
	control *http.ResponseController
	length  int64 // as declared; -1 when it was not

	reading sync.Mutex // held by the one that reads, while it waits for bytes too

	mu     sync.Mutex // guards what follows; held for moments
	over   bool       // the handler has ended
	open   bool
	terms  Terms
	got    int64
	held   int64 // of them, those that Memory counts
	waited time.Duration
	ended  bool
	err    error
}

type contextKey struct{}

// BodyOf is the body of the request that ctx belongs to, or nil outside of
// Handler; a nil Body can be opened.
func BodyOf(ctx context.Context) *Body {
	b, _ := ctx.Value(contextKey{}).(*Body)
	return b
}

// Open lets the body be read. It refuses at once what is declared larger than
// the terms allow (http.MaxBytesError), or than there is memory for (ErrFull).
// Only the first call counts.
func (b *Body) Open(terms Terms) error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		return nil
	}
	b.open, b.terms = true, terms
	switch {
	case b.length > terms.MaxBytes:
		b.err = &http.MaxBytesError{Limit: terms.MaxBytes}
	case b.length > 0 && !terms.Memory.fits(terms.Holder, b.length):
		b.err = ErrFull
	}
	return b.err
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	p, err := b.ready(p)
	if err != nil || len(p) == 0 {
		return 0, err
	}
	begin := time.Now()
	n, err := b.body.Read(p)
	return b.count(n, err, time.Since(begin))
}

// ready is how much of p may be read now; it sets the deadline that the pace
// allows.
func (b *Body) ready(p []byte) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.err != nil:
		return nil, b.err
	case !b.open:
		return nil, b.fail(ErrLocked)
	case len(p) == 0:
		return nil, nil
	}
	left := b.terms.Pace.left(b.waited, b.got)
	if left <= 0 {
		return nil, b.fail(ErrSlow)
	}
	// Not every connection has deadlines; then the pace is checked between
	// reads.
	_ = b.control.SetReadDeadline(time.Now().Add(left))
	// One byte more than allowed tells a body that is too large from one that
	// ends just there.
	return p[:min(int64(len(p)), step, b.terms.MaxBytes-b.got+1)], nil
}

// count takes in what a read brought.
func (b *Body) count(n int, err error, waited time.Duration) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over {
		return 0, b.err
	}
	b.waited += waited
	b.got += int64(n)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrSlow
	case err == nil || errors.Is(err, io.EOF):
		// net/http keeps reading, to see the peer leave: that may take long.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	switch {
	case b.got > b.terms.MaxBytes:
		return 0, b.fail(&http.MaxBytesError{Limit: b.terms.MaxBytes})
	case !b.terms.Memory.take(b.terms.Holder, int64(n)):
		return 0, b.fail(ErrFull)
	}
	b.held += int64(n)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		b.ended, b.err = true, io.EOF
		return n, io.EOF
	}
	return n, b.fail(err)
}

func (b *Body) fail(err error) error {
	b.err = err
	return err
}

// Err is why reading ended, nil while it goes on and after the whole body.
func (b *Body) Err() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return nil
	}
	return b.err
}

// Close implements io.Closer. The rest is left to the end of the request.
func (b *Body) Close() error { return nil }

// unread reports whether there may be more to come.
func (b *Body) unread() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.ended && b.got != b.length
}

// release ends reading, also one that waits for bytes, and gives the memory
// back.
func (b *Body) release() {
	if b == nil {
		return
	}
	b.mu.Lock()
	if !b.over {
		b.terms.Memory.give(b.terms.Holder, b.held)
	}
	b.over, b.held, b.err = true, 0, http.ErrBodyReadAfterClose
	b.mu.Unlock()
	// net/http would end a read that waits too, but lifts every deadline when it
	// does.
	if !b.reading.TryLock() {
		if b.control.SetReadDeadline(time.Unix(1, 0)) != nil {
			return
		}
		b.reading.Lock() // now nobody reads
	}
	b.reading.Unlock()
}

// Handler locks the bodies of all requests, cuts off peers that stop reading
// their answer, and gives memory back when a request has ended.
func Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		var body *Body
		// A copy: net/http knows a connection with a rest on it by the body that
		// it made itself.
		inner := r
		if r.Body != nil && r.Body != http.NoBody {
			body = &Body{body: r.Body, control: control, length: r.ContentLength}
			defer body.release() // also after a panic
			inner = r.WithContext(context.WithValue(r.Context(), contextKey{}, body))
			inner.Body = body
		}
		next.ServeHTTP(&writer{ResponseWriter: w, control: control, body: body, closes: r.ProtoMajor == 1}, inner)
		unread := body.unread()
		body.release()
		if unread {
			if r.ProtoMajor == 1 {
				w.Header().Set("Connection", "close") // no effect once the header is out
			}
			_ = control.SetReadDeadline(time.Now().Add(linger))
		}
		// What is still buffered goes out now; without this it would meet the
		// deadline of an earlier answer on the same connection.
		_ = control.SetWriteDeadline(time.Now().Add(stall))
	})
}

// WithTerms is Handler for a server whose callers are all alike: every body is
// open, on these terms.
func WithTerms(terms Terms, next http.Handler) http.Handler {
	return Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := BodyOf(r.Context()).Open(terms); err != nil {
			status, text := Status(err)
			http.Error(w, text, status)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// Status is how a server without an answer of its own says why a body was not
// read; 0 for an error that is not of this package.
func Status(err error) (status int, text string) {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, tooLarge.Error()
	case errors.Is(err, ErrSlow):
		return http.StatusRequestTimeout, ErrSlow.Error()
	case errors.Is(err, ErrFull):
		return http.StatusServiceUnavailable, ErrFull.Error()
	}
	return 0, ""
}

// writer ends the connection of a body that was not read to its end: with it
// kept, net/http would read the rest before it sends the answer.
type writer struct {
	http.ResponseWriter
	control *http.ResponseController
	body    *Body
	closes  bool // HTTP/2 ends the stream by itself
	begun   bool
}

func (w *writer) begin() {
	if w.begun {
		return
	}
	w.begun = true
	if w.closes && w.body.unread() {
		w.Header().Set("Connection", "close")
	}
}

func (w *writer) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *writer) Write(p []byte) (int, error) {
	w.begin()
	_ = w.control.SetWriteDeadline(time.Now().Add(stall))
	return w.ResponseWriter.Write(p)
}

func (w *writer) Flush() {
	w.begin()
	_ = w.control.SetWriteDeadline(time.Now().Add(stall))
	_ = w.control.Flush() // the next write meets the same error
}

// Unwrap lets http.ResponseController reach the connection.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
