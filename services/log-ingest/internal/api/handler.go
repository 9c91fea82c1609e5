package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/log-ingest/internal/access"
	"github.com/berth-dev/berth/services/log-ingest/internal/apigen"
	"github.com/berth-dev/berth/services/log-ingest/internal/streams"
)

const (
	tailBeat = 15 * time.Second
	// tailAge bounds how long a revoked user token goes on reading.
	tailAge = 15 * time.Minute
)

// bodyTimeout is for one batch of 1 MiB over a slow line.
const bodyTimeout = 30 * time.Second

// Handler serves the API until running ends; then it ends the tails, which
// would keep a server from shutting down. GET /healthz answers without a token
// whether the database is there.
func Handler(running context.Context, st *store.Store, str *streams.Streams, log *slog.Logger) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	engine := gin.New()
	engine.ContextWithFallback = true // handlers see the request's cancellation and trace
	engine.HandleMethodNotAllowed = true
	edge := edge{store: st, log: log, routes: map[string]access.Route{}}
	for _, r := range access.Routes {
		edge.routes[r.Method+" "+strings.ReplaceAll(r.Path, "{stream}", ":stream")] = r
	}
	engine.Use(edge.identify, otelgin.Middleware("berth-log-ingest"), edge.recover)
	engine.NoRoute(func(c *gin.Context) {
		edge.fail(c, fault.Newf(fault.ErrNotFound, "there is no route %s", c.Request.URL.Path))
	})
	engine.NoMethod(func(c *gin.Context) {
		edge.fail(c, fault.Newf(fault.ErrNotFound, "%s is not a method of %s", c.Request.Method, c.Request.URL.Path))
	})
	engine.GET("/healthz", edge.health)

	invalid := func(c *gin.Context, err error) { edge.fail(c, fault.Newf(fault.ErrInvalid, "%w", err)) }
	strict := apigen.NewStrictHandlerWithOptions(server{running: running, streams: str, tails: tailLimits{beat: tailBeat, age: tailAge}}, nil, apigen.StrictGinServerOptions{
		RequestErrorHandlerFunc:  invalid,
		HandlerErrorFunc:         edge.fail,
		ResponseErrorHandlerFunc: edge.fail,
	})
	checked := engine.Group("", edge.check) // before anything of the request is parsed
	apigen.RegisterHandlersWithOptions(checked, strict, apigen.GinServerOptions{
		ErrorHandler: func(c *gin.Context, err error, _ int) { invalid(c, err) },
	})
	return engine
}

// edge is what stands around every handler.
type edge struct {
	store  *store.Store
	log    *slog.Logger
	routes map[string]access.Route // by method and gin's path
}

type requestKey struct{}

func requestID(ctx context.Context) string {
	s, _ := ctx.Value(requestKey{}).(string)
	return s
}

func (e edge) identify(c *gin.Context) {
	request := id.New("req")
	c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), requestKey{}, request))
	c.Header("Request-Id", request)
}

func (e edge) recover(c *gin.Context) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v)
		default:
			e.log.ErrorContext(c, "handler panicked", "err", v, "stack", string(debug.Stack()))
			e.fail(c, fmt.Errorf("panic: %v", v))
		}
	}()
	c.Next()
}

// check lets only those through whom the table of routes allows.
func (e edge) check(c *gin.Context) {
	if c.Request.Method == http.MethodPost {
		// Best effort: without it, a slow sender only holds its own connection.
		_ = http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(bodyTimeout))
	}
	route, ok := e.routes[c.Request.Method+" "+c.FullPath()]
	if !ok {
		e.fail(c, fault.Newf(fault.ErrForbidden, "nobody may use this route"))
		return
	}
	caller, err := access.Check(c, e.store, route, c.GetHeader("Authorization"), c.Param("stream"))
	if err != nil {
		e.fail(c, err)
		return
	}
	c.Request = c.Request.WithContext(access.WithCaller(c.Request.Context(), caller))
}

// fail renders an error, once.
func (e edge) fail(c *gin.Context, err error) {
	problem := fault.From(err)
	problem.RequestID = requestID(c)
	if problem.Status >= http.StatusInternalServerError && c.Request.Context().Err() == nil {
		e.log.ErrorContext(c, "request failed", "route", c.FullPath(), "request_id", problem.RequestID, "err", err)
	}
	c.Abort()
	if c.Writer.Written() {
		return // a stream broke off; its reader comes back
	}
	c.Header("Content-Type", "application/problem+json")
	c.JSON(problem.Status, problem)
}

func (e edge) health(c *gin.Context) {
	if err := e.store.Ping(c); err != nil {
		e.fail(c, err)
		return
	}
	c.JSON(http.StatusOK, gin.H{"status": "ok"})
}
