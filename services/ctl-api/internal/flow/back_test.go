package flow_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
)

func TestBack(t *testing.T) {
	t.Parallel()
	at := func(release, inputs int32, good bool) flow.Past {
		return flow.Past{ReleaseID: fmt.Sprint("rel", release), Number: release, InputsVersion: inputs, Good: good}
	}
	good := func(release, inputs int32) flow.Past { return at(release, inputs, true) }
	bad := func(release, inputs int32) flow.Past { return at(release, inputs, false) }
	rolled := func(p flow.Past) flow.Past { p.Rollback = true; return p }
	for _, tt := range []struct {
		name     string
		past     []flow.Past // newest first
		release  string
		from, to int32 // release * 10 + inputs; 0 for none
	}{
		{"the release before", []flow.Past{good(3, 1), good(2, 1), good(1, 1)}, "", 31, 21},
		{"a failed deploy goes back to what ran", []flow.Past{bad(3, 1), good(2, 1), good(1, 1)}, "", 31, 21},
		{"two of them, too", []flow.Past{bad(4, 1), bad(3, 1), good(2, 1)}, "", 41, 21},
		{"not to what never ran", []flow.Past{good(3, 1), bad(2, 1), good(1, 1)}, "", 31, 11},
		{"with the inputs of then", []flow.Past{bad(2, 2), good(1, 1)}, "", 22, 11},
		{"with the last good inputs of then", []flow.Past{bad(2, 3), good(1, 2), good(1, 1)}, "", 23, 12},
		{"inputs that failed", []flow.Past{bad(1, 2), good(1, 1)}, "", 12, 11},
		{"inputs that came out are no reason", []flow.Past{good(2, 2), good(2, 1), good(1, 1)}, "", 22, 11},
		{"the same failed again: nothing to gain from it", []flow.Past{bad(1, 1), good(1, 1)}, "", 11, 0},
		{"after a rollback, further back", []flow.Past{rolled(good(2, 3)), bad(3, 2), good(2, 1), good(1, 1)}, "", 23, 11},
		{"a rollback that failed is tried again", []flow.Past{rolled(bad(2, 3)), bad(3, 2), good(2, 1)}, "", 32, 21},
		{"a deploy that failed after a rollback", []flow.Past{bad(4, 3), rolled(good(2, 3)), bad(3, 2), good(2, 1)}, "", 43, 23},
		{"the first release", []flow.Past{good(1, 1)}, "", 11, 0},
		{"nothing yet", nil, "", 0, 0},
		{"to a release", []flow.Past{good(3, 2), good(2, 1), good(1, 1)}, "rel1", 32, 11},
		{"to the newest good one of a release", []flow.Past{good(3, 4), bad(1, 3), good(1, 2), good(1, 1)}, "rel1", 34, 12},
		{"to a later release, after a rollback", []flow.Past{rolled(good(1, 3)), good(2, 2), good(1, 1)}, "rel2", 13, 22},
		{"to what is there", []flow.Past{good(2, 2), good(2, 1)}, "rel2", 22, 22},
		{"to what failed only", []flow.Past{bad(2, 1), good(1, 1)}, "rel2", 21, 0},
		{"to what was never there", []flow.Past{good(1, 1)}, "rel9", 11, 0},
	} {
		from, to, found := flow.Back(tt.past, tt.release)
		if got := from.Number*10 + from.InputsVersion; got != tt.from {
			t.Errorf("%s: from %d, want %d", tt.name, got, tt.from)
		}
		if got := to.Number*10 + to.InputsVersion; got != tt.to || found != (tt.to != 0) {
			t.Errorf("%s: to %d, %t, want %d", tt.name, got, found, tt.to)
		}
	}
}

func TestWhatGoesBackByItself(t *testing.T) {
	t.Parallel()
	failed := flow.Tried{Name: "api", Failed: true, Asked: true, Class: jobspec.Reversible}
	but := func(change func(*flow.Tried)) flow.Tried { next := failed; change(&next); return next }
	for _, tt := range []struct {
		name     string
		kind     flow.Kind
		answered bool
		tried    []flow.Tried
		want     []string
	}{
		{"a deploy that failed", flow.KindDeploy, false, []flow.Tried{failed}, []string{"api"}},
		{"and only what failed of it", flow.KindInputUpdate, false, []flow.Tried{failed, but(func(t *flow.Tried) { t.Name, t.Failed = "web", false })}, []string{"api"}},
		{"once", flow.KindDeploy, true, []flow.Tried{failed}, nil},
		{"never of a rollback", flow.KindRollback, false, []flow.Tried{failed}, nil},
		{"never of a removal", flow.KindTeardown, false, []flow.Tried{failed}, nil},
		{"not when nobody asks for it", flow.KindDeploy, false, []flow.Tried{but(func(t *flow.Tried) { t.Asked = false })}, nil},
		{"not when it loses data", flow.KindDeploy, false, []flow.Tried{but(func(t *flow.Tried) { t.Class = jobspec.ReverseLoses })}, nil},
		{"not when it cannot be done", flow.KindDeploy, false, []flow.Tried{but(func(t *flow.Tried) { t.Class = jobspec.Irreversible })}, nil},
		{"not when the plan does not tell", flow.KindDeploy, false, []flow.Tried{but(func(t *flow.Tried) { t.Class = jobspec.ReverseUnknown })}, nil},
		{"not from a runner that says nothing", flow.KindDeploy, false, []flow.Tried{but(func(t *flow.Tried) { t.Class = "" })}, nil},
	} {
		if got := flow.ByItself(tt.kind, tt.answered, tt.tried); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
