package egress

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"sync"

	"github.com/berth-dev/berth/pkg/egress"
)

// ErrNoClass refuses a request that is of no class: nothing leaves that nobody thought
// about.
var ErrNoClass = errors.New("request is of no egress class")

// maxAtOnce is how long a body may be that is digested before it leaves, in bytes. Of a
// longer one its beginning is written down, and its digest when it has left.
const maxAtOnce = 1 << 20

// Client is an HTTP client whose requests are in a ledger. There is no other way to
// make one.
type Client struct{ http *http.Client }

// HTTP is the client as others take it.
func (c Client) HTTP() *http.Client { return c.http }

// Wrap returns a copy of the client whose transport is made of the ledger's by with.
func (c Client) Wrap(with func(http.RoundTripper) http.RoundTripper) Client {
	wrapped := *c.http
	wrapped.Transport = with(c.http.Transport)
	return Client{&wrapped}
}

// Client writes the requests of base to the control plane and its registry down.
func (l *Ledger) Client(base *http.Client) Client {
	return l.client(base, classify)
}

// ClientOf does so for requests that are all of one class.
func (l *Ledger) ClientOf(base *http.Client, class, schema string) Client {
	return l.client(base, func(*http.Request) (sort, bool) { return sort{class: class, schema: schema}, true })
}

func (l *Ledger) client(base *http.Client, classify func(*http.Request) (sort, bool)) Client {
	recorded := *base
	under := base.Transport
	if under == nil {
		under = http.DefaultTransport
	}
	recorded.Transport = transport{ledger: l, classify: classify, base: under}
	return Client{&recorded}
}

type transport struct {
	ledger   *Ledger
	classify func(*http.Request) (sort, bool)
	base     http.RoundTripper
}

// RoundTrip writes down what leaves, and sends it.
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	s, ok := t.classify(req)
	if !ok {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, fmt.Errorf("%w: %s %s", ErrNoClass, req.Method, req.URL.Path)
	}
	e := entry{sort: s, to: req.URL.Host, digest: noBody}
	if req.Body == nil || req.Body == http.NoBody {
		t.ledger.add(e)
		return t.base.RoundTrip(req)
	}
	sent := req.Clone(req.Context())
	sent.GetBody = nil                                           // what is sent again comes through here again
	if req.ContentLength <= 0 || req.ContentLength > maxAtOnce { // 0: not known
		e.bytes = max(req.ContentLength, 0)
		begun := t.ledger.begin(e)
		body := &counted{under: req.Body, sum: sha256.New(), left: func(bytes int64, digest string) {
			e.bytes, e.digest, e.ends = bytes, digest, begun
			t.ledger.add(e)
		}}
		sent.Body = body
		resp, err := t.base.RoundTrip(sent)
		if err != nil {
			_ = body.Close() // the transport does so too, maybe later
		}
		return resp, err
	}
	whole, err := io.ReadAll(req.Body)
	if err = errors.Join(err, req.Body.Close()); err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	e.bytes, e.digest = int64(len(whole)), egress.Digest(whole)
	t.ledger.add(e)
	sent.Body = io.NopCloser(bytes.NewReader(whole))
	return t.base.RoundTrip(sent)
}

var noBody = egress.Digest(nil)

// counted is a body that is digested while it leaves.
type counted struct {
	under io.ReadCloser
	left  func(bytes int64, digest string)

	mu    sync.Mutex // a transport may close a body that it is still reading
	sum   hash.Hash
	bytes int64
	once  sync.Once
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.under.Read(p)
	c.mu.Lock()
	c.sum.Write(p[:n])
	c.bytes += int64(n)
	c.mu.Unlock()
	return n, err
}

func (c *counted) Close() error {
	c.once.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.left(c.bytes, "sha256:"+hex.EncodeToString(c.sum.Sum(nil)))
	})
	return c.under.Close()
}
