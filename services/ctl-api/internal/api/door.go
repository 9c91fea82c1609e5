package api

import (
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

// Middleware is what every request passes before it is validated: who asks,
// may they, and has this been asked before.
func (s *Server) Middleware() []gin.HandlerFunc {
	return []gin.HandlerFunc{s.authenticate, s.authorize, s.idempotent}
}

// Register adds the handlers of all routes.
func (s *Server) Register(router gin.IRouter) {
	strict := apigen.NewStrictHandlerWithOptions(s, nil, apigen.StrictGinServerOptions{
		RequestErrorHandlerFunc:  httpserver.RequestError,
		HandlerErrorFunc:         httpserver.HandlerError,
		ResponseErrorHandlerFunc: httpserver.ResponseError,
	})
	apigen.RegisterHandlersWithOptions(router, strict, apigen.GinServerOptions{ErrorHandler: httpserver.ParamError})
}

// routes is the table of access by method and gin's path.
var routes = func() map[string]access.Route {
	byPath := map[string]access.Route{}
	params := strings.NewReplacer("{", ":", "}", "")
	for _, r := range access.Routes {
		byPath[r.Method+" "+params.Replace(r.Path)] = r
	}
	return byPath
}()

func (s *Server) authenticate(c *gin.Context) {
	scheme, token, _ := strings.Cut(c.GetHeader("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	p, err := s.Auth.Authenticate(c.Request.Context(), strings.TrimSpace(token))
	if err != nil {
		httpserver.WriteProblem(c, err)
		return
	}
	// An org that is named must be the token's: a member of one org cannot
	// learn of another by naming it.
	if org := c.GetHeader("Berth-Org"); org != "" && org != p.OrgID && org != p.OrgName {
		httpserver.WriteProblem(c, fault.Newf(fault.ErrNotFound, "the token opens no org %q", org))
		return
	}
	c.Request = c.Request.WithContext(access.WithPrincipal(c.Request.Context(), p))
}

func (s *Server) authorize(c *gin.Context) {
	route, ok := routes[c.Request.Method+" "+c.FullPath()]
	if !ok {
		httpserver.WriteProblem(c, fault.Newf(fault.ErrForbidden, "nobody may use this route"))
		return
	}
	ctx := c.Request.Context()
	err := access.Authorize(ctx, s.Store, access.PrincipalOf(ctx), route, access.Target{Param: c.Param, Query: c.Query})
	if err != nil {
		httpserver.WriteProblem(c, err)
	}
}
