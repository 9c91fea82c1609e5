package flow_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestWhatIsSkippedWithAStep(t *testing.T) {
	t.Parallel()
	step := func(name string, kind flow.StepKind, state model.StepState, needs ...string) flow.Step {
		return flow.Step{Name: name, Kind: kind, State: state, Needs: needs}
	}
	steps := []flow.Step{
		step("release", flow.StepAccept, model.StepFailed), step("db", flow.StepDeploy, model.StepFailed), step("api", flow.StepDeploy, model.StepPending, "db"),
		step("seed", flow.StepAction, model.StepPending, "api"), step("web", flow.StepDeploy, model.StepPending, "seed"), step("assets", flow.StepDeploy, model.StepPending),
		step("done", flow.StepDeploy, model.StepSucceeded, "db"), step("check/up", flow.StepCheck, model.StepPending, "web", "assets"),
		step("old", flow.StepTeardown, model.StepFailed), step("first", flow.StepAction, model.StepFailed), step("gone", flow.StepTeardown, model.StepPending, "first"),
	}
	for _, tt := range []struct {
		name string
		want []string // nil for refused
	}{
		{"db", []string{"db", "api", "seed", "web"}}, // the checks tell what the rest is worth
		{"check/up", []string{"check/up"}},
		{"release", nil},
		{"old", nil},
		{"first", nil}, // what it guards is a removal
	} {
		got, ok := flow.SkippedWith(steps, tt.name)
		if !slices.Equal(got, tt.want) || ok != (tt.want != nil) {
			t.Errorf("with %s: %q, %t, want %q", tt.name, got, ok, tt.want)
		}
	}
}

// A denial can skip its step, alone or with what needs it, where the rest makes sense.
func TestSkippedByDenial(t *testing.T) {
	t.Parallel()
	steps := []flow.Step{
		{Name: "release", Kind: flow.StepAccept, State: model.StepWaiting},
		{Name: "sandbox", Kind: flow.StepDeploy, State: model.StepWaiting},
		{Name: "a", Kind: flow.StepDeploy, State: model.StepPending, Needs: []string{"sandbox"}},
		{Name: "b", Kind: flow.StepDeploy, State: model.StepPending, Needs: []string{"a"}},
		{Name: "free", Kind: flow.StepAction, State: model.StepPending},
		{Name: "check", Kind: flow.StepCheck, State: model.StepPending, Needs: []string{"b", "free"}},
	}
	for _, tc := range []struct {
		denied string
		then   model.DeniedThen
		others string
		ok     bool
	}{
		{"a", "", "", true},
		{"release", "", "", true},
		{"release", model.ThenSkip, "", false},
		{"sandbox", model.ThenSkip, "", false},
		{"sandbox", model.ThenSkipDependents, "a b", true},
		{"a", model.ThenSkip, "", true},
		{"a", model.ThenSkipDependents, "b", true},
		{"free", model.ThenSkipDependents, "", true},
	} {
		i := slices.IndexFunc(steps, func(s flow.Step) bool { return s.Name == tc.denied })
		others, err := flow.SkippedByDenial(steps, steps[i], tc.then)
		if got := strings.Join(others, " "); got != tc.others || (err == nil) != tc.ok {
			t.Errorf("%s denied with %q: %q, %v", tc.denied, tc.then, got, err)
		}
	}
}
