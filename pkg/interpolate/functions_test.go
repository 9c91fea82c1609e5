package interpolate

import (
	"slices"
	"testing"
	"time"

	"github.com/Masterminds/sprig/v3"
	"github.com/google/go-cmp/cmp"
)

// TestFunctionSet pins what templates can call. When Sprig brings a new
// function, decide whether it always gives the same answer.
func TestFunctionSet(t *testing.T) {
	t.Parallel()
	const reviewed = 211 // functions of Sprig 3.3.0
	all := sprig.TxtFuncMap()
	if len(all) != reviewed {
		t.Errorf("Sprig has %d functions, %d were reviewed: look at the new ones", len(all), reviewed)
	}
	for _, name := range dropped {
		if _, ok := all[name]; !ok {
			t.Errorf("dropped lists %q, which Sprig does not have", name)
		}
		if _, ok := functionNames[name]; ok {
			t.Errorf("%q is dropped and still there", name)
		}
	}
	// What Sprig itself calls not hermetic must be dropped or replaced by ours.
	hermetic := sprig.HermeticTxtFuncMap()
	var left []string
	for name := range all {
		_, safe := hermetic[name]
		if !safe && !slices.Contains(dropped, name) {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	for _, name := range left {
		if _, replaced := dateFunctions(time.Time{})[name]; !replaced {
			t.Errorf("%q is not hermetic and not replaced", name)
		}
	}
	want := []string{"date", "dateModify", "date_modify", "htmlDate", "now"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("functions of Sprig that are not hermetic and were not dropped (-want +got):\n%s", diff)
	}
}
