package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/berth"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/pkg/version"
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
	*berth.Client
	opts  Options
	doer  *doer
	plain *ctlapi.Client
}

// OnThisMachine tells whether the control plane is on this machine, and so reaches
// what this machine reaches.
func (c *Client) OnThisMachine() bool { return OnThisMachine(c.opts.URL) }

// OnThisMachine tells whether an address leads to this machine.
func OnThisMachine(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && at.IsLoopback()
}

// New makes a client. It calls nobody.
func New(opts Options) (*Client, error) {
	d, err := newDoer(opts)
	if err != nil {
		return nil, err
	}
	c := &Client{opts: opts, doer: d}
	if c.Client, err = berth.Through(opts.URL, d); err != nil {
		return nil, err
	}
	c.plain, err = ctlapi.NewClient(opts.URL, ctlapi.WithHTTPClient(d))
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
	d, err := newDoer(opts)
	if err != nil {
		return nil, err
	}
	l := &Logs{}
	if l.ClientWithResponses, err = logapi.NewClientWithResponses(opts.URL, logapi.WithHTTPClient(d)); err != nil {
		return nil, err
	}
	l.plain, err = logapi.NewClient(opts.URL, logapi.WithHTTPClient(d))
	return l, err
}

// Logs calls log-ingest.
type Logs struct {
	*logapi.ClientWithResponses
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

// doer sends requests as pkg/berth does, as the command line and with a trace;
// what goes wrong it says as a person at a terminal needs it.
type doer struct{ sender *berth.Sender }

func newDoer(opts Options) (*doer, error) {
	if opts.Patience == 0 {
		opts.Patience = berth.DefaultPatience
	}
	told := func(why string) {
		if opts.Say != nil {
			opts.Say(fmt.Sprintf("waiting for Berth, up to %s: %s", opts.Patience, why))
		}
	}
	// Impatient: a person may have mistyped the address.
	sender, err := berth.NewSender(berth.Options{URL: opts.URL, Token: opts.Token, Org: opts.Org, Patience: opts.Patience, Impatient: true, Waiting: told})
	return &doer{sender}, err
}

// Do implements the generated clients' interface.
func (d *doer) Do(req *http.Request) (*http.Response, error) {
	req.Header.Set("User-Agent", "berth/"+version.Get().Version)
	for name, value := range telemetry.Inject(req.Context()) {
		req.Header.Set(name, value)
	}
	resp, err := d.sender.Do(req)
	return resp, forPeople(err, req.URL.Path)
}

// forPeople gives an error of pkg/berth the words and the advice of the command
// line.
func forPeople(err error, path string) error {
	var problem *berth.Problem
	var unreachable *berth.Unreachable
	var notBerth *berth.NotBerth
	switch {
	case errors.As(err, &problem):
		return newProblem(problem, path)
	case errors.As(err, &unreachable):
		return &Unreachable{unreachable}
	case errors.As(err, &notBerth):
		return &NoBerth{notBerth}
	}
	return err
}

// NoBerth says that somebody else answers.
type NoBerth struct{ *berth.NotBerth }

// Remedy says what to do.
func (*NoBerth) Remedy() string {
	return "check the address (BERTH_URL, or berth context show): it must be the control plane's"
}

// Unreachable says that nobody answers.
type Unreachable struct{ *berth.Unreachable }

// Remedy says what to do.
func (u *Unreachable) Remedy() string {
	if errors.Is(u.Err, syscall.ECONNREFUSED) {
		return "start it on this machine with berth up; berth up --status shows what is running"
	}
	return "check the address (berth context show) and the network"
}
