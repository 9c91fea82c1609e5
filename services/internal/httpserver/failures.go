package httpserver

import (
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/fault"
)

const (
	serverKey = "berth.server"
	provenKey = "berth.proven"
	lineKey   = "berth.line"
)

// errTooManyFailures takes the place of a refusal when one address has had too
// many of them.
var errTooManyFailures = fault.With(fault.Newf(fault.ErrRateLimited, "this credential is not valid, and too many invalid ones came from this address"),
	fault.Code("too_many_failures"), fault.Remedy("use a valid credential: it is let through at once"))

// admit goes before Config.Middleware: a caller at an address that has shown too
// many bad credentials waits in line until its own is looked up.
func (s *Server) admit(c *gin.Context) {
	leave, err := s.failures.Enter(c.Request.Context(), c.Request.RemoteAddr)
	if err != nil {
		WriteProblem(c, err)
		return
	}
	defer leave()
	c.Set(lineKey, leave)
	c.Next()
}

// leaveLine lets the next one look: this caller is known, or needs no looking up.
func leaveLine(c *gin.Context) {
	if leave, ok := c.Value(lineKey).(func()); ok {
		leave()
	}
}

// countFailure counts a refused credential. over says that its address has had
// too many of them, and retry after how many seconds it may try again.
func countFailure(c *gin.Context, problem fault.Problem) (retry string, over bool) {
	s := serverOf(c)
	_, proven := c.Value(provenKey).(bool)
	if s == nil || proven || problem.Status != http.StatusUnauthorized || slices.Contains(s.cfg.KnownCallers, problem.Code) {
		return "", false
	}
	if problem.Code == "unauthenticated" && c.GetHeader("Authorization") == "" {
		return "", false // nothing was shown
	}
	wait, over := s.failures.Failed(c.Request.RemoteAddr)
	return strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))), over
}

func serverOf(c *gin.Context) *Server {
	s, _ := c.Value(serverKey).(*Server)
	return s
}
