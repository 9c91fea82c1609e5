package api

import (
	"context"
	"net/http"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/alertapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearanceapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/csvlist"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/driftapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/eventapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/fleetapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/healthapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/loginapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/metricsapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/policyapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/snapshot"
	"github.com/berth-dev/berth/services/ctl-api/internal/timelineapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

// Middleware is what every request passes before it is validated: who asks, may
// they, may they there, and has this been asked before.
func (s *Server) Middleware(spec *openapi3.T) []gin.HandlerFunc {
	return []gin.HandlerFunc{
		func(c *gin.Context) { c.Request = s.Sites.Context(c.Request) },
		access.Permissions().AuthorizeWith(spec, s.Auth, s.Sites.Credential), s.confine, csvlist.Answer, auth.Idempotent(memory{s}), nameAttempt,
	}
}

// Register adds the handlers of all routes.
func (s *Server) Register(router gin.IRouter) {
	s.Handlers = &eventapi.Handlers{Read: s.read, Write: s.write, Listener: s.Listener, Webhooks: s.Webhooks}
	s.Fleet = &fleetapi.Fleet{Read: s.read, Write: s.write, Bulk: s.Bulk, Now: s.Now, RegistryURL: s.RegistryURL}
	s.Clearance = &clearanceapi.Clearance{Read: s.read, Write: s.write, Approve: approve, Workflow: s.workflowView, Install: oneInstall, Now: s.Now}
	s.Policies = &policyapi.Policies{Read: s.read, Write: s.write, Change: changeView, Now: s.Now, Retry: func(ctx context.Context, tx *database.Tx, stepID, actor string) error {
		_, err := workflow.Retry(ctx, tx, stepID, actor)
		return err
	}}
	s.Numbers = &metricsapi.Numbers{Read: s.read, Now: s.Now}
	s.Health = &healthapi.Health{Read: s.read, Now: s.Now}
	s.Alerts = &alertapi.Alerts{Read: s.read, Write: s.write, Now: s.Now}
	s.Drift = &driftapi.Drift{Read: s.read, Write: s.write, Now: s.Now}
	s.Logins = &loginapi.Logins{Read: s.read, Write: s.write, Store: s.Store, Keys: s.Keys, Sites: s.Sites, Provider: s.Provider, Me: s.meView, Revoked: s.revoked}
	s.Past = &timelineapi.Past{Read: s.read, Snapshots: snapshot.Reader{Sealed: s.Installs.SealedNames}, Now: s.Now}
	strict := apigen.NewStrictHandlerWithOptions(s, nil, apigen.StrictGinServerOptions{
		RequestErrorHandlerFunc:  httpserver.RequestError,
		HandlerErrorFunc:         httpserver.HandlerError,
		ResponseErrorHandlerFunc: httpserver.ResponseError,
	})
	apigen.RegisterHandlersWithOptions(router, strict, apigen.GinServerOptions{ErrorHandler: httpserver.ParamError})
}

// orgHeader names the org to work in; it can only be the token's own.
const orgHeader = "Berth-Org"

// confine holds the caller to the reach of their grants.
func (s *Server) confine(c *gin.Context) {
	ctx := c.Request.Context()
	p := auth.PrincipalOf(ctx)
	if err := s.checkOrg(ctx, c.GetHeader(orgHeader)); err != nil {
		httpserver.WriteProblem(c, err)
		return
	}
	route := access.Routes[httpserver.OperationID(c)]
	if err := access.Confine(ctx, s.Store, p, access.Target{Route: route, Param: c.Param, Query: c.Query}); err != nil {
		httpserver.WriteProblem(c, err)
	}
}

func (s *Server) checkOrg(ctx context.Context, named string) error {
	if org := auth.PrincipalOf(ctx).OrgID; org == "" || named == "" || named == org { // no org: a public route
		return nil
	}
	return s.read(ctx, func(ctx context.Context, tx *database.Tx) error {
		org, err := tx.GetOrg(ctx)
		if err == nil && org.Name != named {
			return fault.Newf(fault.ErrNotFound, "this token has no access to org %q", named)
		}
		return err
	})
}

// nameAttempt lets Server.write know the request's Idempotency-Key.
func nameAttempt(c *gin.Context) {
	if key := c.GetHeader(auth.IdempotencyHeader); key != "" && c.Request.Method == http.MethodPost {
		c.Request = c.Request.WithContext(context.WithValue(c.Request.Context(), idempotencyKey{}, key))
	}
}
