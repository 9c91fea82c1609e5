package auth

import (
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/httpserver"
)

// Routes says for every operation of a contract which permission it asks for.
// The same table drives the middleware and the generated tenancy test.
type Routes map[string]Permission

// Check names the operations without a row and the rows without an operation.
func (r Routes) Check(spec *openapi3.T) error {
	known := map[string]bool{}
	var faults []string
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			known[op.OperationID] = true
			if _, ok := r[op.OperationID]; !ok {
				faults = append(faults, fmt.Sprintf("%s %s (%s) has no permission", method, path, op.OperationID))
			}
		}
	}
	for id := range r {
		if !known[id] {
			faults = append(faults, fmt.Sprintf("%s is not an operation", id))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	slices.Sort(faults)
	return fmt.Errorf("table of routes: %s", strings.Join(faults, "; "))
}

// Authorize is the middleware for httpserver.Config.Middleware: it finds out
// who asks, refuses who may not, and puts the principal into the context. It
// panics at start-up when the table does not fit the contract.
func (r Routes) Authorize(spec *openapi3.T, authenticator Authenticator) gin.HandlerFunc {
	if err := r.Check(spec); err != nil {
		panic("auth: " + err.Error())
	}
	return func(c *gin.Context) {
		permission, ok := r[httpserver.OperationID(c)]
		if !ok {
			httpserver.WriteProblem(c, fault.Newf(fault.ErrForbidden, "nobody may use this route"))
			return
		}
		if err := refuseTokenInURL(c.Request.URL.Query()); err != nil {
			httpserver.WriteProblem(c, err)
			return
		}
		if permission == Public {
			if err := httpserver.Unproven(c); err != nil {
				httpserver.WriteProblem(c, err)
			}
			return
		}
		bearer, err := Bearer(c.Request)
		if err != nil {
			httpserver.WriteProblem(c, err)
			return
		}
		principal, err := authenticator.Authenticate(c.Request.Context(), bearer)
		if err != nil {
			httpserver.WriteProblem(c, err)
			return
		}
		if !principal.May(permission) {
			httpserver.WriteProblem(c, Forbidden(permission))
			return
		}
		if err := httpserver.Proven(c, principal.ID()); err != nil {
			httpserver.WriteProblem(c, err)
			return
		}
		c.Request = c.Request.WithContext(NewContext(c.Request.Context(), principal))
	}
}
