package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// callTimeout is for calls that the API server answers at once.
	callTimeout = 15 * time.Second
	// maxAnswer bounds one answer, in bytes: objects in etcd have at most 1.5 MiB.
	maxAnswer = 4 << 20
)

// Client speaks to a Kubernetes API server in plain HTTPS: the agent needs a
// handful of calls and no more, so it links no library for them.
type Client struct {
	server string
	http   *http.Client
	// authorize puts the credential into a request; nil when there is none to put.
	authorize func(*http.Request) error
}

// StatusError is an answer of the API server that is not what was asked for.
type StatusError struct {
	Code    int    `json:"code"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Error says it in one line.
func (e *StatusError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("the API server answered %d", e.Code)
	}
	return fmt.Sprintf("the API server answered %d: %s", e.Code, e.Message)
}

// IsStatus reports whether err is an answer with that code.
func IsStatus(err error, code int) bool {
	var answer *StatusError
	return errors.As(err, &answer) && answer.Code == code
}

// newClient makes a client of the API server at server, which must prove itself
// with authority (PEM), or to the system's authorities when that is empty. It
// takes tlsConfig over.
func newClient(server string, tlsConfig *tls.Config, authority []byte, proxy func(*http.Request) (*url.URL, error)) (*Client, error) {
	if len(authority) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(authority) {
			return nil, errors.New("the authority of the API server holds no certificate")
		}
		tlsConfig.RootCAs = pool
	}
	return &Client{server: strings.TrimRight(server, "/"), http: &http.Client{
		Transport:     &http.Transport{TLSClientConfig: tlsConfig, Proxy: proxy, ForceAttemptHTTP2: true, TLSHandshakeTimeout: callTimeout},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Get reads what is at path into out.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.do(ctx, call{method: http.MethodGet, path: path, out: out})
}

// Post sends in as JSON, and reads the answer into out unless that is nil.
func (c *Client) Post(ctx context.Context, path string, in, out any) error {
	return c.do(ctx, call{method: http.MethodPost, path: path, in: in, out: out})
}

// Put replaces what is at path.
func (c *Client) Put(ctx context.Context, path string, in any) error {
	return c.do(ctx, call{method: http.MethodPut, path: path, in: in})
}

// Delete deletes what is at path, as options say.
func (c *Client) Delete(ctx context.Context, path string, options any) error {
	return c.do(ctx, call{method: http.MethodDelete, path: path, in: options})
}

type call struct {
	method, path string
	in, out      any // nil for none
}

func (c *Client) do(ctx context.Context, l call) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.send(ctx, l.method, l.path, l.in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if l.out == nil {
		return nil
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(l.out); err != nil {
		return fmt.Errorf("%s %s: answer of the API server: %w", l.method, l.path, err)
	}
	return nil
}

// send returns the answer when it is a success. The caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.server+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.authorize != nil {
		if err := c.authorize(req); err != nil {
			return nil, err
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	answer := &StatusError{}
	_ = json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(answer) // the status says enough without it
	answer.Code = resp.StatusCode
	return nil, answer
}

// Version is what the API server says of itself.
type Version struct {
	Major      string `json:"major"`
	Minor      string `json:"minor"`
	GitVersion string `json:"gitVersion"`
}

// Version asks for the server's version.
func (c *Client) Version(ctx context.Context) (Version, error) {
	var v Version
	err := c.Get(ctx, "/version", &v)
	return v, err
}
