// Package logproxy lets pages of the dashboard read logs at ctl-api's own address: a
// browser gives its session to no other. It passes reads on to log-ingest, which checks the
// same session again, and whose streams they may read.
package logproxy

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store"
)

const (
	// path is where the routes of log-ingest begin here.
	path = "/logs"

	answerTimeout = 30 * time.Second // until log-ingest begins its answer
)

var (
	// sent are the headers of a request that log-ingest gets; all others are dropped.
	sent = []string{"Accept", "Last-Event-Id"}
	// kept are the headers of its answer that the browser gets.
	kept = []string{"Content-Type", "Content-Length", "Content-Disposition", "Cache-Control", "Retry-After"}
)

// Proxy passes reads of logs on. Credential, Auth and Listener are those of the API.
type Proxy struct {
	Credential auth.Credential
	Auth       auth.Authenticator
	Listener   *store.Listener

	target    *url.URL
	transport *http.Transport
}

// New makes a proxy to log-ingest, at an address that Config.Validate has passed.
func New(logURL string) (*Proxy, error) {
	target, err := url.Parse(logURL)
	if err != nil {
		return nil, fmt.Errorf("address of log-ingest: %w", err)
	}
	if target.Path == "" {
		target.Path = "/" // JoinPath would make a path without it
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	transport.Proxy = nil
	transport.ResponseHeaderTimeout = answerTimeout
	transport.MaxIdleConnsPerHost = 32
	transport.DisableCompression = true
	return &Proxy{target: target, transport: transport}, nil
}

// Register adds the route to one of httpserver.Server.Admitted.
func (p *Proxy) Register(router gin.IRouter) {
	router.GET(path+"/streams/*rest", auth.Admit(auth.LogsRead, p.Auth, p.Credential), p.pass)
}

func (p *Proxy) pass(c *gin.Context) {
	secret, err := p.Credential(c.Request)
	if err != nil {
		httpserver.WriteProblem(c, err)
		return
	}
	if slices.Contains(strings.Split(c.Param("rest"), "/"), "..") {
		httpserver.WriteProblem(c, fault.Newf(fault.ErrNotFound, "there is no route %s", c.Request.URL.Path))
		return
	}
	ctx, stop := p.whileGood(c.Request.Context())
	defer stop()
	proxy := httputil.ReverseProxy{
		Transport: p.transport, FlushInterval: -1, // at once: a tail is read as it is written
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = p.target.JoinPath(strings.TrimPrefix(r.In.URL.EscapedPath(), path))
			r.Out.URL.RawQuery = r.In.URL.RawQuery
			r.Out.Host = ""
			r.Out.Header = only(r.In.Header, sent)
			r.Out.Header.Set("Authorization", "Bearer "+secret)
			r.Out.Body = http.NoBody
		},
		ModifyResponse: func(r *http.Response) error {
			r.Header = only(r.Header, kept)
			// What a log says is nobody's page, whatever a browser takes it for.
			r.Header.Set("Content-Security-Policy", "sandbox; default-src 'none'")
			r.Header.Set("X-Content-Type-Options", "nosniff")
			return nil
		},
		ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
			httpserver.WriteProblem(c, fault.Wrap(fault.ErrUnavailable, err, "the logs cannot be reached now"))
		},
	}
	proxy.ServeHTTP(c.Writer, c.Request.WithContext(ctx))
}

// whileGood is ctx until the session, token or account of the request is revoked or the
// server ends.
func (p *Proxy) whileGood(ctx context.Context) (_ context.Context, stop func()) {
	who := auth.PrincipalOf(ctx)
	ctx, cancel := context.WithCancel(ctx)
	token := p.Listener.Subscribe(model.ChannelRevoked, who.TokenID)
	account := p.Listener.Subscribe(model.ChannelRevoked, who.AccountID)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer cancel()
		select {
		case <-token.C:
		case <-account.C:
		case <-httpserver.Draining(ctx):
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel()
		<-ended
		token.Close()
		account.Close()
	}
}

func only(from http.Header, names []string) http.Header {
	out := http.Header{}
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			out[name] = values
		}
	}
	return out
}
