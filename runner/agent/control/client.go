// Package control is the agent's side of runner-api: it signs each request,
// carries the session, and turns answers into values or errors that say
// whether another try can help. It decides nothing and keeps nothing but the
// session's token.
package control

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/runnerclient"
	"github.com/berth-dev/berth/runner/agent/egress"
)

const (
	// callTimeout is for requests that are answered at once.
	callTimeout = 30 * time.Second
	// WaitSeconds is how long a request is held open by the other side when
	// there is nothing to say; proxies cut idle connections at 60 s.
	WaitSeconds = 50
	// holdTimeout is for requests that are held.
	holdTimeout = (WaitSeconds + 20) * time.Second
)

// Gate says when requests may leave. Wait blocks while they may not; While
// returns a context that ends when that changes.
type Gate interface {
	WaitNetwork(ctx context.Context) error
	WhileNetwork(ctx context.Context) (context.Context, context.CancelFunc)
}

// Client talks to runner-api. Safe for concurrent use.
type Client struct {
	api    *runnerapi.ClientWithResponses
	signer *runnerclient.Transport
}

// New returns a client of the runner-api at url, for the runner with this key.
// base carries the requests, when gate lets them.
func New(url string, key ed25519.PrivateKey, base egress.Client, gate Gate) (*Client, error) {
	c := &Client{}
	// The gate comes first: a signature is good for a minute only.
	doer := base.Wrap(func(under http.RoundTripper) http.RoundTripper {
		c.signer = runnerclient.New(under, key)
		return gatedTransport{base: c.signer, gate: gate}
	})
	api, err := runnerapi.NewClientWithResponses(strings.TrimRight(url, "/"), runnerapi.WithHTTPClient(doer.HTTP()))
	if err != nil {
		return nil, fmt.Errorf("runner-api url: %w", err)
	}
	c.api = api
	return c, nil
}

// Identify signs as the enrolled runner from now on.
func (c *Client) Identify(runnerID string) { c.signer.SetRunner(runnerID) }

// closer ends the request's context together with its answer.
type closer struct {
	io.ReadCloser
	done context.CancelFunc
}

func (c *closer) Close() error {
	defer c.done()
	return c.ReadCloser.Close()
}

// NewHTTP returns what the client for all requests of the agent is made of (see
// egress.Ledger.Client): through the environment's proxy, and trusting privateCAFile in addition to the system's
// authorities when it is not "".
func NewHTTP(privateCAFile string) (*http.Client, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if privateCAFile != "" {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("certificates of the system: %w", err)
		}
		text, err := os.ReadFile(privateCAFile)
		if err != nil {
			return nil, fmt.Errorf("private authority: %w", err)
		}
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("private authority: %s has no certificate", privateCAFile)
		}
		tlsConfig.RootCAs = pool
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           dialer.DialContext,
			TLSClientConfig:       tlsConfig,
			TLSHandshakeTimeout:   10 * time.Second,
			ForceAttemptHTTP2:     true,
			MaxIdleConnsPerHost:   4,
			IdleConnTimeout:       90 * time.Second,
			ExpectContinueTimeout: time.Second,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a signed request goes nowhere else
		},
	}, nil
}

// Error is an answer of runner-api that is not what was asked for.
type Error struct {
	What   string // the call, for people
	Status int
	Code   string // empty when the answer is no problem document
	Detail string
	Remedy string
}

// Error says it in one line.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: runner-api answered %d", e.What, e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Away reports whether err says nothing about the request itself: the control
// plane, or the way to it, is out of order, and the same request may be sent
// again later.
func Away(err error) bool {
	var answer *Error
	if !errors.As(err, &answer) {
		return err != nil
	}
	switch {
	case answer.Status >= 500, answer.Status == http.StatusTooManyRequests, answer.Status == http.StatusRequestTimeout:
		return true
	case answer.Code == "":
		return true // not an answer of Berth: something in between
	}
	return false
}

// Is reports whether err is an answer with this code.
func Is(err error, code string) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Code == code
}

// Status is the HTTP status of an answer, 0 when there was none.
func Status(err error) int {
	var answer *Error
	if errors.As(err, &answer) {
		return answer.Status
	}
	return 0
}

// problem makes an Error of an answer.
func problem(what string, status int, p *runnerapi.Problem) error {
	e := &Error{What: what, Status: status}
	if p != nil {
		e.Code, e.Detail, e.Remedy = p.Code, deref(p.Detail), deref(p.Remedy)
	}
	return e
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func unreachable(what string, err error) error { return fmt.Errorf("%s: %w", what, err) }
