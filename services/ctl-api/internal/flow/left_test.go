package flow_test

import (
	"testing"

	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestLeft(t *testing.T) {
	t.Parallel()
	apply := func(state model.ChangeState, release string) flow.Apply {
		return flow.Apply{State: state, ReleaseID: release}
	}
	for _, tt := range []struct {
		name    string
		applies []flow.Apply
		want    string
	}{
		{name: "nothing was ever ordered"},
		{name: "it failed half way", applies: []flow.Apply{apply(model.ChangeFailed, "r1")}, want: "r1"},
		{name: "nobody knows how it ended", applies: []flow.Apply{apply(model.ChangeUncertain, "r1")}, want: "r1"},
		{name: "it has not ended", applies: []flow.Apply{apply(model.ChangeExecuting, "r1")}, want: "r1"},
		{name: "the runner would not do it", applies: []flow.Apply{apply(model.ChangeRefused, "r1")}},
		{name: "the plan was too old", applies: []flow.Apply{apply(model.ChangeStale, "r1")}},
		{
			name: "it failed, and what came later did nothing", want: "r1",
			applies: []flow.Apply{apply(model.ChangeFailed, "r1"), apply(model.ChangeStale, "r2"), apply(model.ChangeRefused, "r2")},
		},
		{name: "it failed with two releases", applies: []flow.Apply{apply(model.ChangeFailed, "r1"), apply(model.ChangeFailed, "r2")}, want: "r2"},
		{name: "a state of a later version", applies: []flow.Apply{apply("half_done", "r1")}, want: "r1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := flow.Left(tt.applies); got != tt.want {
				t.Errorf("removed with release %q, want %q", got, tt.want)
			}
		})
	}
}
