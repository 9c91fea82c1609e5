package httpserver

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/routers"
	"github.com/gin-gonic/gin"

	"github.com/berth-dev/berth/services/internal/fault"
)

// operation is one route of the contract.
type operation struct {
	id    string
	route routers.Route // what the validator needs
}

// operations by method and gin's path.
type operations map[string]*operation

const operationKey = "berth.operation"

var pathParam = regexp.MustCompile(`\{([^}]+)\}`)

// operationsOf reads the contract. Without one there are no operations.
func operationsOf(spec *openapi3.T, basePath string) operations {
	ops := operations{}
	if spec == nil {
		return ops
	}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID == "" {
				panic(fmt.Sprintf("httpserver: %s %s has no operationId", method, path))
			}
			// Who may call it is decided before; left in, the validator would
			// read whole bodies into memory for it.
			open := *op
			open.Security = &openapi3.SecurityRequirements{}
			ops[method+" "+basePath+pathParam.ReplaceAllString(path, ":$1")] = &operation{
				id:    op.OperationID,
				route: routers.Route{Spec: spec, Path: path, PathItem: item, Method: method, Operation: &open},
			}
		}
	}
	return ops
}

// find puts the operation into the request. A route that the contract does not
// know is not served.
func (ops operations) find(c *gin.Context) {
	op := ops[c.Request.Method+" "+c.FullPath()]
	if op == nil {
		WriteProblem(c, fault.With(fault.Newf(fault.ErrNotFound, "there is no route %s", c.Request.URL.Path), fault.Code("no_route")))
		return
	}
	c.Set(operationKey, op)
}

// mustBeServed panics when the contract promises what nobody handles.
func (ops operations) mustBeServed(engine *gin.Engine) {
	served := map[string]bool{}
	for _, route := range engine.Routes() {
		served[route.Method+" "+route.Path] = true
	}
	var missing []string
	for key := range ops {
		if !served[key] {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		panic("httpserver: operations without a handler: " + strings.Join(missing, ", "))
	}
}

func operationOf(c *gin.Context) *operation {
	op, _ := c.Value(operationKey).(*operation)
	return op
}

// OperationID is what the contract calls the request's route, or "" for one
// that is not in it.
func OperationID(c *gin.Context) string {
	if op := operationOf(c); op != nil {
		return op.id
	}
	return ""
}

// otherTypes are the types that a body may have, when this is none of them, else "".
func (o *operation) otherTypes(contentType string) string {
	body := o.route.Operation.RequestBody
	if body == nil || body.Value == nil || body.Value.Content.Get(contentType) != nil {
		return ""
	}
	return strings.Join(slices.Sorted(maps.Keys(body.Value.Content)), " or ")
}

// streams reports whether a body of this type is handed to the handler as a
// stream: then it is neither read nor validated before.
func (o *operation) streams(contentType string) bool {
	body := o.route.Operation.RequestBody
	if body == nil || body.Value == nil {
		return false
	}
	_, declared := body.Value.Content[contentType]
	return declared && contentType != "application/json" && !strings.HasSuffix(contentType, "+json")
}
