package gate_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/runner-api/internal/apigen"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
)

// A new route must say what it asks for, and the contract must say the same.
func TestRoutesAreThoseOfTheContract(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	contract := map[string]bool{} // operation, needs a session
	for _, item := range spec.Paths.Map() {
		for _, operation := range item.Operations() {
			// The document asks for a session; an empty list on an operation lifts that.
			contract[operation.OperationID] = operation.Security == nil
		}
	}
	routes := map[string]bool{}
	for operation, route := range gate.Routes {
		routes[operation] = route.Proof == gate.LiveSession
	}
	if diff := cmp.Diff(contract, routes); diff != "" {
		t.Errorf("contract and routes (-contract +routes):\n%s", diff)
	}
	if got := len(spec.Security); got != 1 || !slices.Contains([]string{"session"}, onlyKey(spec.Security[0])) {
		t.Errorf("the contract asks for %v by default, want a session", spec.Security)
	}
}

func onlyKey[V any](m map[string]V) string {
	for k := range m {
		return k
	}
	return ""
}
