package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/pkg/version"
)

const (
	// patience is as long as a service may take to come back after a crash.
	patience = 20 * time.Second

	// quietly is how long a call is repeated without a word.
	quietly = 2 * time.Second

	firstPause = 100 * time.Millisecond
	maxPause   = 2 * time.Second

	dialTimeout = 10 * time.Second

	maxProblemBytes = 1 << 20
)

// Options say where to go and as whom.
type Options struct {
	URL   string
	Token string
	Org   string // "" for the credential's own
	// Patience is how long a call is repeated while the service is away.
	// Default: 20 s.
	Patience time.Duration
	// Say receives one message per call when it takes long, with the reason. Default: none is sent.
	Say func(line string)
}

// Client calls the control plane.
type Client struct {
	*ctlapi.ClientWithResponses
	opts  Options
	doer  *doer
	plain *ctlapi.Client
}

// New makes a client. It calls nobody.
func New(opts Options) (*Client, error) {
	c := &Client{opts: opts, doer: newDoer(opts)}
	withDoer := ctlapi.WithHTTPClient(c.doer)
	var err error
	if c.ClientWithResponses, err = ctlapi.NewClientWithResponses(opts.URL, withDoer); err != nil {
		return nil, err
	}
	c.plain, err = ctlapi.NewClient(opts.URL, withDoer)
	return c, err
}

// Logs returns the client of log-ingest, whose address the control plane tells.
func (c *Client) Logs(ctx context.Context) (*Logs, error) {
	me, err := c.GetMeWithResponse(ctx)
	if err != nil {
		return nil, err
	}
	body, err := Body(me.JSON200)
	if err != nil {
		return nil, err
	}
	opts := c.opts
	opts.URL = body.LogURL
	l := &Logs{doer: newDoer(opts)}
	if l.ClientWithResponses, err = logapi.NewClientWithResponses(opts.URL, logapi.WithHTTPClient(l.doer)); err != nil {
		return nil, err
	}
	l.plain, err = logapi.NewClient(opts.URL, logapi.WithHTTPClient(l.doer))
	return l, err
}

// Logs calls log-ingest.
type Logs struct {
	*logapi.ClientWithResponses
	doer  *doer
	plain *logapi.Client
}

// Raw sends a request of the caller's making, with all that the others have.
func (c *Client) Raw(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.opts.URL, "/")+"/"+strings.TrimPrefix(path, "/"), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.doer.Do(req)
}

// Body returns the one body that an answer has. The generated clients leave
// all of them nil when an answer is not what the contract says.
func Body[T any](bodies ...*T) (*T, error) {
	for _, body := range bodies {
		if body != nil {
			return body, nil
		}
	}
	return nil, errors.New("this version does not understand the control plane's answer: compare berth version on both sides")
}

// doer sends requests. An answer that says no is returned as an error.
type doer struct {
	http *http.Client
	opts Options
	// reached is set once the service answered: from then on it is worth
	// waiting for.
	reached atomic.Bool
}

func newDoer(opts Options) *doer {
	transport := http.DefaultTransport.(*http.Transport).Clone() // keeps the proxy of the environment
	transport.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	if opts.Patience == 0 {
		opts.Patience = patience
	}
	if opts.Say == nil {
		opts.Say = func(string) {}
	}
	return &doer{http: &http.Client{Transport: transport}, opts: opts}
}

// Do implements the generated clients' interface.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	d.dress(req)
	began, told := time.Now(), false
	deadline := began.Add(d.opts.Patience)
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		resp, err := d.http.Do(req)
		if !d.worthRepeating(req, resp, err) || time.Now().Add(pause).After(deadline) {
			return d.judge(req, resp, err)
		}
		if !told && time.Since(began)+pause > quietly {
			told = true
			d.opts.Say(fmt.Sprintf("waiting for Berth, up to %s: %s", d.opts.Patience, whyAway(resp, err)))
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		select {
		case <-req.Context().Done():
			return nil, context.Cause(req.Context())
		case <-time.After(pause):
		}
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}

func (d *doer) dress(req *http.Request) {
	req.Header.Set("Authorization", "Bearer "+d.opts.Token)
	req.Header.Set("User-Agent", "berth/"+version.Get().Version)
	if d.opts.Org != "" {
		req.Header.Set("Berth-Org", d.opts.Org)
	}
	// So that a repetition, ours too, does nothing twice.
	if req.Method == http.MethodPost && req.Header.Get("Idempotency-Key") == "" {
		req.Header.Set("Idempotency-Key", rand.Text())
	}
	for name, value := range telemetry.Inject(req.Context()) {
		req.Header.Set(name, value)
	}
}

// worthRepeating tells whether the service is only away for a moment. All
// requests may be repeated: those that change something carry a key.
func (d *doer) worthRepeating(req *http.Request, resp *http.Response, err error) bool {
	if req.Context().Err() != nil || (req.Body != nil && req.Body != http.NoBody && req.GetBody == nil) {
		return false
	}
	if err != nil {
		return d.reached.Load()
	}
	switch resp.StatusCode {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

// whyAway says in a few words what a call that is repeated met.
func whyAway(resp *http.Response, err error) string {
	if err != nil {
		return innermost(err).Error()
	}
	problem := &Problem{}
	if data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes)); err == nil && json.Unmarshal(data, &problem.Problem) == nil && problem.Status != 0 {
		return value(problem.Detail)
	}
	return "it answers " + resp.Status
}

func (d *doer) judge(req *http.Request, resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		if req.Context().Err() != nil {
			return nil, context.Cause(req.Context())
		}
		return nil, &Unreachable{URL: req.URL.Scheme + "://" + req.URL.Host, Err: err}
	}
	d.reached.Store(true)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode/100 == 2 {
		if resp.StatusCode != http.StatusNoContent && kind == "text/html" {
			_ = resp.Body.Close()
			return nil, &NoBerth{Host: req.URL.Host}
		}
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	problem := &Problem{}
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	if err != nil || json.Unmarshal(data, &problem.Problem) != nil || problem.Status == 0 {
		if resp.StatusCode == http.StatusNotFound {
			return nil, &NoBerth{Host: req.URL.Host}
		}
		problem.Status, problem.Title = resp.StatusCode, http.StatusText(resp.StatusCode)
		detail := fmt.Sprintf("%s %s answered %s", req.Method, req.URL.Path, resp.Status)
		problem.Detail = &detail
	}
	problem.name(req.URL.Path)
	return nil, problem
}

// NoBerth says that somebody else answers.
type NoBerth struct{ Host string }

// Error implements error.
func (n *NoBerth) Error() string { return n.Host + " answers, but it is not a Berth control plane" }

// Remedy says what to do.
func (*NoBerth) Remedy() string {
	return "check the address (BERTH_URL, or berth context show): it must be the control plane's"
}

// Unreachable says that nobody answers.
type Unreachable struct {
	URL string
	Err error
}

// Error names the reason without the request, which may be long.
func (u *Unreachable) Error() string {
	return fmt.Sprintf("cannot reach Berth at %s: %v", u.URL, innermost(u.Err))
}

func innermost(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// Unwrap returns the cause.
func (u *Unreachable) Unwrap() error { return u.Err }

// Remedy says what to do.
func (u *Unreachable) Remedy() string {
	if errors.Is(u.Err, syscall.ECONNREFUSED) {
		return "start it on this machine with berth up; berth up --status shows what is running"
	}
	return "check the address (berth context show) and the network"
}
