package httpserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/pkg/intake"
	"github.com/berth-dev/berth/services/internal/fault"
)

const (
	// problemKey holds the error behind a problem, for the access log.
	problemKey = "berth.problem"

	// statusClientGone is in the log only: nobody is there to read it.
	statusClientGone = 499
)

// WriteProblem answers with what a user may see of err (RFC 9457) and ends the
// request. Every error of every route goes through it, once.
func WriteProblem(c *gin.Context, err error) {
	c.Set(problemKey, err)
	if c.Request.Context().Err() != nil && errors.Is(err, context.Canceled) {
		c.Abort()
		c.Status(statusClientGone)
		return
	}
	problem := fault.From(withKind(err))
	if retry, over := countFailure(c, problem); over {
		c.Header("Retry-After", retry)
		problem = fault.From(errTooManyFailures)
	}
	writeProblem(c, problem)
}

func writeProblem(c *gin.Context, problem fault.Problem) {
	c.Abort()
	if c.Writer.Written() {
		return // an answer that broke off: its reader sees that it is short
	}
	problem.RequestID = RequestID(c.Request.Context())
	switch problem.Status {
	case http.StatusUnauthorized:
		c.Header("WWW-Authenticate", `Bearer realm="berth"`)
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		if c.Writer.Header().Get("Retry-After") == "" {
			c.Header("Retry-After", "2")
		}
	}
	c.Header("Content-Type", "application/problem+json")
	c.Header("Cache-Control", "no-store")
	c.JSON(problem.Status, problem)
}

// withKind gives kinds to what net/http and encoding/json say.
func withKind(err error) error {
	if fault.KindOf(err) != nil {
		return err
	}
	var tooLarge *http.MaxBytesError
	var syntax *json.SyntaxError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.Is(err, intake.ErrSlow):
		return fault.With(fault.Wrap(fault.ErrTooSlow, err, "the body did not arrive in time"), fault.Code("body_too_slow"), fault.Remedy("try again"))
	case errors.Is(err, intake.ErrFull):
		return fault.With(fault.Wrap(fault.ErrUnavailable, err, "too many bodies are being read at once"), fault.Code("busy"), fault.Remedy("try again in a few seconds"))
	case errors.As(err, &tooLarge):
		return fault.Wrap(fault.ErrTooLarge, err, "the body is larger than %d bytes", tooLarge.Limit)
	case errors.As(err, &syntax):
		return fault.Wrap(fault.ErrInvalid, err, "the body is not JSON: error at byte %d", syntax.Offset)
	case errors.As(err, &wrongType):
		return fault.Wrap(fault.ErrInvalid, err, "the value of %q must not be a JSON %s", wrongType.Field, wrongType.Value)
	}
	return err
}

// The functions below are the error hooks of generated servers, so that what
// they find is answered like everything else:
//
//	apigen.NewStrictHandlerWithOptions(impl, nil, apigen.StrictGinServerOptions{
//		RequestErrorHandlerFunc:  httpserver.RequestError,
//		HandlerErrorFunc:         httpserver.HandlerError,
//		ResponseErrorHandlerFunc: httpserver.ResponseError,
//	})
//	apigen.RegisterHandlersWithOptions(server.Router(), strict,
//		apigen.GinServerOptions{ErrorHandler: httpserver.ParamError})

// ParamError answers a parameter that cannot be parsed.
func ParamError(c *gin.Context, err error, _ int) {
	WriteProblem(c, fault.Wrap(fault.ErrInvalid, err, "%s", err.Error()))
}

// RequestError answers a body that cannot be parsed.
func RequestError(c *gin.Context, err error) {
	err = withKind(err)
	switch {
	case fault.KindOf(err) != nil, errors.Is(err, context.Canceled), errors.Is(err, intake.ErrLocked):
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		err = fault.Wrap(fault.ErrInvalid, err, "the body ends too early")
	default:
		err = fault.Wrap(fault.ErrInvalid, err, "the body cannot be read")
	}
	WriteProblem(c, err)
}

// HandlerError answers what a handler returned as its error.
func HandlerError(c *gin.Context, err error) { WriteProblem(c, err) }

// ResponseError handles an answer that could not be written: usually nobody is
// there any more to read it.
func ResponseError(c *gin.Context, err error) { WriteProblem(c, err) }
