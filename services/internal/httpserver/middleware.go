package httpserver

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/pkg/id"
)

// RequestIDHeader is set on every answer, and is the request_id of problems
// and log lines.
const RequestIDHeader = "Request-Id"

type (
	requestIDKey struct{}
	drainingKey  struct{}
)

// RequestID is the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	s, _ := ctx.Value(requestIDKey{}).(string)
	return s
}

// Draining is closed when the server wants to end: a request that waits for
// something answers what it has. It is nil, and so never ready, elsewhere.
func Draining(ctx context.Context) <-chan struct{} {
	ch, _ := ctx.Value(drainingKey{}).(chan struct{})
	return ch
}

func (s *Server) identify(c *gin.Context) {
	requestID := id.New("req")
	ctx := context.WithValue(c.Request.Context(), requestIDKey{}, requestID)
	ctx = context.WithValue(ctx, drainingKey{}, s.draining)
	c.Request = c.Request.WithContext(ctx)
	c.Header(RequestIDHeader, requestID)
	c.Set(serverKey, s)
}

// isTraced leaves out the probes, which would drown everything else.
func isTraced(r *http.Request) bool {
	return r.URL.Path != "/healthz" && r.URL.Path != "/readyz"
}

// logAccess writes one line per request. The query is left out: people put
// things there that do not belong into a log.
func (s *Server) logAccess(c *gin.Context) {
	start := time.Now()
	c.Next()

	status, level := c.Writer.Status(), slog.LevelInfo
	attrs := []any{
		"method", c.Request.Method, "route", c.FullPath(), "status", status,
		"took", time.Since(start), "bytes", max(0, c.Writer.Size()), "request_id", RequestID(c.Request.Context()),
	}
	if op := OperationID(c); op != "" {
		attrs = append(attrs, "operation", op)
	}
	if err, ok := c.Value(problemKey).(error); ok {
		attrs = append(attrs, "err", err)
	}
	switch {
	case status == statusClientGone:
		level = slog.LevelDebug
	case status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable:
		level = slog.LevelError
	case status == http.StatusServiceUnavailable:
		level = slog.LevelWarn
	case !isTraced(c.Request), c.Request.Method == http.MethodGet && status < http.StatusBadRequest:
		level = slog.LevelDebug
	}
	s.cfg.Log.Log(c.Request.Context(), level, "request served", attrs...)
}

func (s *Server) recoverPanic(c *gin.Context) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			panic(v) // asked for: net/http closes the connection
		default:
			WriteProblem(c, fmt.Errorf("panic: %v\n%s", v, debug.Stack()))
		}
	}()
	c.Next()
}
