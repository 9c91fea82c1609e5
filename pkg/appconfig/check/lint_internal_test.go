package check

import (
	"os"
	"testing"
)

// TestKitchenSinkHasLintRules holds that the example has what lint.toml may hold,
// and that all of it is understood.
func TestKitchenSinkHasLintRules(t *testing.T) {
	t.Parallel()
	lint, about := ReadLint(os.DirFS("../../../examples/kitchen-sink"))
	if len(about) > 0 || len(lint.Checks) == 0 || len(lint.rules) < 2 {
		t.Errorf("checks %v, rules %v, and it says %v", lint.Checks, lint.rules, about)
	}
}
