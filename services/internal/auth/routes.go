package auth

import (
	"fmt"
	"net/http"
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
	return r.AuthorizeWith(spec, authenticator, Bearer)
}

// AuthorizeWith is Authorize where credential finds the credential of a request.
func (r Routes) AuthorizeWith(spec *openapi3.T, authenticator Authenticator, credential Credential) gin.HandlerFunc {
	if err := r.Check(spec); err != nil {
		panic("auth: " + err.Error())
	}
	return func(c *gin.Context) {
		permission, ok := r[httpserver.OperationID(c)]
		if !ok {
			httpserver.WriteProblem(c, fault.Newf(fault.ErrForbidden, "nobody may use this route"))
			return
		}
		if permission == Public {
			err := refuseTokenInURL(c.Request.URL.Query())
			if err == nil {
				err = httpserver.Unproven(c)
			}
			if err != nil {
				httpserver.WriteProblem(c, err)
			}
			return
		}
		admit(c, permission, authenticator, credential)
	}
}

// RefuseSecretInURL refuses a request with a secret in its query, on routes outside of the
// contract that ask for no credential, such as pages.
func RefuseSecretInURL(c *gin.Context) {
	if err := refuseTokenInURL(c.Request.URL.Query()); err != nil {
		httpserver.WriteProblem(c, err)
	}
}

// Admit lets those through who have the permission, on a route that is not in the
// contract.
func Admit(permission Permission, authenticator Authenticator, credential Credential) gin.HandlerFunc {
	return func(c *gin.Context) { admit(c, permission, authenticator, credential) }
}

func admit(c *gin.Context, permission Permission, authenticator Authenticator, credential Credential) {
	principal, err := identify(c.Request, authenticator, credential)
	if err == nil && !principal.May(permission) {
		err = Forbidden(permission)
	}
	if err == nil {
		err = httpserver.Proven(c, principal.ID())
	}
	if err != nil {
		httpserver.WriteProblem(c, err)
		return
	}
	c.Request = c.Request.WithContext(NewContext(c.Request.Context(), principal))
}

func identify(r *http.Request, authenticator Authenticator, credential Credential) (p Principal, err error) {
	if err := refuseTokenInURL(r.URL.Query()); err != nil {
		return p, err
	}
	secret, err := credential(r)
	if err != nil {
		return p, err
	}
	return authenticator.Authenticate(r.Context(), secret)
}
