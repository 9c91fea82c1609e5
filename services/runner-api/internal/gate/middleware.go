package gate

import (
	"bytes"
	"io"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

// Admit is the middleware that lets a request through to validation and its
// handler: first the proof, so that strangers learn nothing else. saw is told
// which runner has proved to be itself.
func (g *Gate) Admit(saw func(runnerID string)) gin.HandlerFunc {
	return func(c *gin.Context) {
		if err := g.admit(c, saw); err != nil {
			httpserver.WriteProblem(c, err)
		}
	}
}

func (g *Gate) admit(c *gin.Context, saw func(runnerID string)) error {
	route, ok := Routes[httpserver.OperationID(c)]
	if !ok {
		return fault.With(fault.Newf(fault.ErrNotFound, "there is no such route"), fault.Code("no_route"))
	}
	if route.Proof == Secret {
		return nil
	}
	var body []byte
	if c.Request.Body != nil {
		var err error
		if body, err = io.ReadAll(c.Request.Body); err != nil {
			return err
		}
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	ctx := c.Request.Context()
	switch route.Proof {
	case Signature:
		ctx = g.WithSigned(ctx, c.Request, body)
	default:
		s, err := g.Session(ctx, c.Request, body)
		if err != nil {
			return err
		}
		principal := s.Principal()
		if !principal.May(auth.JobsWork) {
			return auth.Forbidden(auth.JobsWork)
		}
		saw(s.RunnerID)
		ctx = WithSession(auth.NewContext(ctx, principal), s)
	}
	c.Request = c.Request.WithContext(ctx)
	return nil
}
