package fleet

import (
	"testing"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestValuesOfAnAttribute(t *testing.T) {
	t.Parallel()
	const one, other = "(sensitive, digest 0123456789ab)", "(sensitive, digest 00112233aabb)"
	for name, tc := range map[string]struct {
		node ctlapi.PlanNode
		want string
	}{
		"a change":                      {ctlapi.PlanNode{Before: "1", After: "2"}, "1 → 2"},
		"a value that goes":             {ctlapi.PlanNode{Before: "1"}, "1 → nothing"},
		"a secret that changes":         {ctlapi.PlanNode{Hidden: true, Before: one, After: other}, one + " → " + other},
		"a secret that comes":           {ctlapi.PlanNode{Hidden: true, After: one}, one},
		"a secret that the apply makes": {ctlapi.PlanNode{Hidden: true, Before: one, KnownAfterApply: true}, one + " → (known after apply)"},
		"a runner without digests":      {ctlapi.PlanNode{Hidden: true, Before: "(sensitive)", After: "(sensitive)"}, "(sensitive)"},
		"a control plane without them":  {ctlapi.PlanNode{Hidden: true}, "(sensitive)"},
	} {
		if got := valuesOf(tc.node); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
