package gate

import (
	"bytes"
	"io"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/pkg/httpsig"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

// Admit is the middleware that lets a request through to validation and its
// handler: first the proof, from the headers alone where it is there, so that
// strangers learn nothing else and we read nothing from them. Admit tells saw
// which runner has proved its identity.
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
	ctx := c.Request.Context()
	switch route.Proof {
	case Secret:
		return httpserver.Unproven(c)
	case Signature:
		if _, err := httpsig.Peek(c.Request); err != nil {
			return refused(err)
		}
		if err := httpserver.Unproven(c); err != nil {
			return err
		}
		body, err := readBody(c)
		if err != nil {
			return err
		}
		c.Request = c.Request.WithContext(g.WithSigned(ctx, c.Request, body))
		return nil
	}
	s, err := g.Session(ctx, c.Request)
	if err != nil {
		return err
	}
	principal := s.Principal()
	if !principal.May(auth.JobsWork) {
		return auth.Forbidden(auth.JobsWork)
	}
	if err := httpserver.Proven(c, s.RunnerID); err != nil {
		return err
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	if err := CheckBody(c.Request, body); err != nil {
		return err
	}
	saw(s.RunnerID)
	c.Request = c.Request.WithContext(WithSession(auth.NewContext(ctx, principal), s))
	return nil
}

// readBody reads the body whole, for its digest is signed, and puts it back.
func readBody(c *gin.Context) ([]byte, error) {
	var body []byte
	if c.Request.Body != nil {
		var err error
		if body, err = io.ReadAll(c.Request.Body); err != nil {
			return nil, err
		}
	}
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
