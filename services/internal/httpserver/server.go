// Package httpserver is the edge of every service that speaks HTTP: one gin
// engine with tracing, request ids, an access log, limits and time-outs, one
// writer for every kind of problem, validation against the OpenAPI contract,
// the reference page, health, and a graceful end.
//
// It knows operations (what the contract calls them), not what they do: who may
// call them is package auth's or the service's own business, given to it as
// middleware.
//
//	request ─▶ id, trace, log, recover ─▶ Config.Middleware ─▶ validate ─▶ handler
//	                     ▲                  (who asks? may they?)              │
//	                     └────────────── WriteProblem ◀── any error ───────────┘
//
// No body is read before the middleware has said by Proven who sends it, or by
// Unproven that the body itself is the proof. See Limits for what bounds it then.
package httpserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"

	"github.com/berth-dev/berth/pkg/intake"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/reference"
)

const (
	headerTimeout = 10 * time.Second // a client that is slower to send headers is not one of ours
	idleTimeout   = 2 * time.Minute  // longer than the pauses of a long-polling client
	maxHeaders    = 64 << 10

	// DefaultDrain is long enough for a transaction, and for a long-poll to
	// notice Draining and answer.
	DefaultDrain = 10 * time.Second

	readyTimeout = 2 * time.Second
)

// Config of a Server. Name, Log and Spec are required.
type Config struct {
	// Name of the service in traces, e.g. "berth-ctl-api".
	Name string
	Log  *slog.Logger
	// Spec is the bundled contract, as apigen.GetSpec returns it.
	Spec *openapi3.T
	// BasePath goes before every path of the contract; usually empty.
	BasePath string
	// Middleware runs for every operation, before validation: authentication,
	// authorisation, idempotency.
	Middleware []gin.HandlerFunc
	// Listen is the address to listen on, unless Listener is given.
	Listen   string
	Listener net.Listener
	// TLS is nil on loopback only.
	TLS *tls.Config
	// BodyLimits in bytes by operation id; else 1 MiB for JSON, 64 MiB for
	// what is not.
	BodyLimits map[string]int64
	// Limits of what callers can make the server hold.
	Limits Limits
	// Rates are how often callers may ask.
	Rates Rates
	// KnownCallers are the codes of refusals (401) that tell nothing about
	// guessing, such as that of a session that has ended: they are not counted
	// against the address that they go to.
	KnownCallers []string
	// Ready says why the service cannot work now; nil when it can.
	Ready func(ctx context.Context) error
	// Reference serves the contract at /reference and /openapi.json, with how to
	// call it from these clients; the zero Clients serve neither.
	Reference reference.Clients
	// Drain is how long requests may go on after the end was asked for;
	// DefaultDrain when zero.
	Drain time.Duration
}

// Server is one HTTP door.
type Server struct {
	cfg        Config
	engine     *gin.Engine
	router     *gin.RouterGroup
	operations operations
	bodies     bodies
	failures   *intake.Failures
	pacer      *pacer
	draining   chan struct{}
	isDraining atomic.Bool
}

// New builds the engine. It panics when the contract is unusable, which is a
// mistake at build time.
func New(cfg Config) *Server {
	if cfg.Drain == 0 {
		cfg.Drain = DefaultDrain
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	gin.SetMode(gin.ReleaseMode)
	s := &Server{
		cfg: cfg, engine: gin.New(), operations: operationsOf(cfg.Spec, cfg.BasePath), bodies: newBodies(cfg),
		failures: intake.NewFailures(nil), pacer: newPacer(cfg.Rates), draining: make(chan struct{}),
	}
	e := s.engine
	// gin's context is never used as one: it is the next request's as soon as the
	// handlers of this one returned. Handlers get the request's.
	e.ContextWithFallback = false
	e.HandleMethodNotAllowed = true
	e.RedirectTrailingSlash = false // a redirect would lose the body and answer outside of the contract
	e.UseRawPath = true             // so that an escaped slash is part of a value
	e.UnescapePathValues = true
	_ = e.SetTrustedProxies(nil) // nil cannot be refused

	e.Use(s.identify, otelgin.Middleware(cfg.Name, otelgin.WithFilter(isTraced)), s.logAccess, s.recoverPanic)
	e.NoRoute(func(c *gin.Context) {
		WriteProblem(c, fault.With(fault.Newf(fault.ErrNotFound, "there is no route %s", c.Request.URL.Path), fault.Code("no_route")))
	})
	e.NoMethod(func(c *gin.Context) {
		writeProblem(c, fault.Problem{
			Type: "about:blank", Title: http.StatusText(http.StatusMethodNotAllowed), Status: http.StatusMethodNotAllowed, Code: "method_not_allowed",
			Detail: fmt.Sprintf("%s is not a method of %s", c.Request.Method, c.Request.URL.Path),
		})
	})
	e.GET("/healthz", func(c *gin.Context) { c.JSON(http.StatusOK, gin.H{"status": "ok"}) })
	e.GET("/readyz", s.readyz)
	if cfg.Reference != (reference.Clients{}) {
		reference.Serve(e, cfg.Spec, cfg.BasePath, cfg.Reference)
	}
	s.router = e.Group(cfg.BasePath, append([]gin.HandlerFunc{s.operations.find, s.checkText, s.admit}, append(cfg.Middleware, s.validate)...)...)
	return s
}

// Router is where the generated handlers are registered.
func (s *Server) Router() gin.IRouter { return s.router }

// Engine is for what is not in the contract, such as the dashboard's files:
// without Config.Middleware and without validation.
func (s *Server) Engine() *gin.Engine { return s.engine }

// Admitted is for routes that are not in the contract and ask who calls: bad
// credentials count there as they do everywhere.
func (s *Server) Admitted() gin.IRouter { return s.engine.Group("", s.checkText, s.admit) }

// Handler is the whole door as an http.Handler, as Run serves it.
func (s *Server) Handler() http.Handler { return intake.Handler(s.engine) }

// Run serves until ctx ends, then lets requests finish for Config.Drain. It
// panics when an operation of the contract has no handler.
func (s *Server) Run(ctx context.Context) error {
	s.operations.mustBeServed(s.engine)
	listener := s.cfg.Listener
	if listener == nil {
		var err error
		if listener, err = net.Listen("tcp", s.cfg.Listen); err != nil {
			return fmt.Errorf("listen: %w", err)
		}
	}
	// Requests outlive ctx by the drain time, so they do not descend from it.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	limited := intake.Limit(listener, s.cfg.Limits.Connections())
	server := &http.Server{
		Handler:           s.Handler(),
		TLSConfig:         s.cfg.TLS,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaders,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug), // broken handshakes and the like
	}
	limited.Watch(server)
	ended := make(chan error, 1)
	go func() { ended <- serve(server, limited) }()
	s.cfg.Log.InfoContext(ctx, "listening", "address", listener.Addr().String())

	select {
	case err := <-ended:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.isDraining.Store(true)
	close(s.draining)
	drained, stop := context.WithTimeout(base, s.cfg.Drain)
	defer stop()
	if err := server.Shutdown(drained); err != nil {
		cancel() // handlers that still run are cancelled, then cut off
		_ = server.Close()
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func serve(server *http.Server, listener net.Listener) error {
	if server.TLSConfig != nil {
		return server.ServeTLS(listener, "", "")
	}
	return server.Serve(listener)
}

func (s *Server) readyz(c *gin.Context) {
	if s.isDraining.Load() {
		WriteProblem(c, fault.With(fault.Newf(fault.ErrUnavailable, "shutting down"), fault.Code("draining")))
		return
	}
	if s.cfg.Ready != nil {
		ctx, cancel := context.WithTimeout(c.Request.Context(), readyTimeout)
		defer cancel()
		if err := s.cfg.Ready(ctx); err != nil {
			if fault.KindOf(err) == nil {
				err = fault.Wrap(fault.ErrUnavailable, err, "not ready")
			}
			WriteProblem(c, err)
			return
		}
	}
	c.JSON(http.StatusOK, gin.H{"status": "ready"})
}
