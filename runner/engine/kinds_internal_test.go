package engine

import (
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// The engine does what jobspec.Kinds says of each kind, and nothing else.
func TestOperationsOfEachKind(t *testing.T) {
	t.Parallel()
	for kind, info := range jobspec.Kinds {
		for _, op := range info.Operations {
			if operations[kind][op] == nil != info.ByAgent {
				t.Errorf("%s of %s: done by the agent %t, and the engine has it %t", op, kind, info.ByAgent, operations[kind][op] != nil)
			}
		}
	}
	for kind, ops := range operations {
		for op := range ops {
			if !jobspec.Kinds[kind].Has(op) {
				t.Errorf("%s of %s is not in jobspec.Kinds: no runner is asked for it", op, kind)
			}
		}
	}
}
