package access_test

import (
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/internal/auth"
)

// Every operation of the contract has a row, and every row an operation, whose
// path has the object that it is bound to.
func TestRoutesFitTheContract(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	if err := access.Permissions().Check(spec); err != nil {
		t.Error(err)
	}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			route := access.Routes[op.OperationID]
			if p := route.Where.ParamOf(); p != "" && !strings.Contains(path, "{"+p+"}") {
				t.Errorf("%s is bound to %q, which is not in its path %s", op.OperationID, p, path)
			}
			if reads := strings.HasSuffix(string(route.Permission), ":read"); reads != (method == "GET") && route.Permission != auth.Self && route.Permission != auth.Public {
				t.Errorf("%s is a %s and asks for %s", op.OperationID, method, route.Permission)
			}
		}
	}
}
