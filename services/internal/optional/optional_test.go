package optional_test

import (
	"testing"

	"github.com/berth-dev/berth/services/internal/optional"
)

func TestThereAndBack(t *testing.T) {
	t.Parallel()
	if p := optional.Of(""); p != nil {
		t.Errorf("Of of nothing is %q", *p)
	}
	if got := optional.Value[string](nil); got != "" {
		t.Errorf("Value of nil is %q", got)
	}
	if p := optional.Of("x"); p == nil || optional.Value(p) != "x" {
		t.Errorf("x comes back as %v", p)
	}
}
