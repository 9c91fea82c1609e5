package follow_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// serves is a control plane with one workflow, which has every change in it.
func serves(t *testing.T, w ctlapi.Workflow) *api.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var answer any = w
		switch {
		case r.URL.Path == "/workflows":
			answer = ctlapi.WorkflowPage{Items: []ctlapi.Workflow{{ID: w.ID}}}
		case strings.HasPrefix(r.URL.Path, "/changes/"):
			answer = ctlapi.Change{ID: strings.TrimPrefix(r.URL.Path, "/changes/"), WorkflowID: w.ID}
		}
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(answer)
	}))
	t.Cleanup(server.Close)
	client, err := api.New(api.Options{URL: server.URL, Token: "brt_test"})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func idsOf(all []ctlapi.Change) []string {
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return ids
}

func TestWhatIsDecidedTogether(t *testing.T) {
	t.Parallel()
	step := func(id string, kind ctlapi.ChangeKind, state ctlapi.ChangeState) ctlapi.Step {
		return ctlapi.Step{State: ctlapi.StepStateWaiting, Change: &ctlapi.ChangeSummary{ID: id, Kind: kind, State: state}}
	}
	open := ctlapi.Workflow{ID: "wfl_1", State: ctlapi.WorkflowStateWaiting, Steps: []ctlapi.Step{
		step("chg_1", ctlapi.ChangeKindAccept, ctlapi.ChangeStateProposed), step("chg_2", ctlapi.ChangeKindDeploy, ctlapi.ChangeStateProposed),
		step("chg_3", ctlapi.ChangeKindDeploy, ctlapi.ChangeStateProposed),
	}}
	accepted := open
	accepted.Steps = []ctlapi.Step{step("chg_1", ctlapi.ChangeKindAccept, ctlapi.ChangeStateApproved), open.Steps[1]}
	deploy := ctlapi.Change{ID: "chg_2", WorkflowID: "wfl_1", Kind: ctlapi.ChangeKindDeploy, State: ctlapi.ChangeStateProposed}
	applied, accept := deploy, deploy
	applied.State = ctlapi.ChangeStateApplied
	accept.ID, accept.Kind = "chg_1", ctlapi.ChangeKindAccept
	for _, tc := range []struct {
		name   string
		w      ctlapi.Workflow
		change ctlapi.Change
		want   []string
	}{
		{"a change and its release", open, deploy, []string{"chg_2", "chg_1"}},
		{"the release is accepted already", accepted, deploy, []string{"chg_2"}},
		{"the change was decided before", open, applied, []string{"chg_2"}},
		{"the release itself", open, accept, []string{"chg_1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := follow.Together(t.Context(), serves(t, tc.w), &tc.change)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, idsOf(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	all, err := follow.Proposed(t.Context(), serves(t, open), &open)
	if diff := cmp.Diff([]string{"chg_1", "chg_2", "chg_3"}, idsOf(all)); diff != "" || err != nil {
		t.Errorf("all that is proposed: %v (-want +got):\n%s", err, diff)
	}
}

func TestWhatWasPlanned(t *testing.T) {
	t.Parallel()
	w := ctlapi.Workflow{ID: "wfl_1", PlanOnly: true, Steps: []ctlapi.Step{
		{Change: &ctlapi.ChangeSummary{ID: "chg_1", Counts: &ctlapi.PlanCounts{NoChange: true}}},
		{Change: &ctlapi.ChangeSummary{ID: "chg_2", Counts: &ctlapi.PlanCounts{Create: 1}}},
		{Change: &ctlapi.ChangeSummary{ID: "chg_3"}}, {},
	}}
	got, err := follow.Planned(t.Context(), serves(t, w), &w)
	if diff := cmp.Diff([]string{"chg_2"}, idsOf(got.Changes)); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestToRetry(t *testing.T) {
	t.Parallel()
	step := func(id string, state ctlapi.StepState) ctlapi.Step { return ctlapi.Step{ID: id, State: state} }
	w := ctlapi.Workflow{ID: "wfl_1", State: ctlapi.WorkflowStateFailed, Steps: []ctlapi.Step{
		step("stp_1", ctlapi.StepStateSucceeded), step("stp_2", ctlapi.StepStateFailed), step("stp_3", ctlapi.StepStateFailed), step("stp_4", ctlapi.StepStateCancelled),
	}}
	well := ctlapi.Workflow{ID: "wfl_2", State: ctlapi.WorkflowStateSucceeded, Steps: w.Steps[:1]}
	for _, tc := range []struct {
		name  string
		w     ctlapi.Workflow
		what  string
		want  []string
		wrong string
	}{
		{"a step", w, "stp_9", []string{"stp_9"}, ""},
		{"a workflow", w, "wfl_1", []string{"stp_2", "stp_3"}, ""},
		{"an install", w, "acme", []string{"stp_2", "stp_3"}, ""},
		{"nothing failed", well, "acme", nil, "no step of wfl_2 has failed: it is succeeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := follow.ToRetry(t.Context(), serves(t, tc.w), tc.what)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if tc.wrong == "" && err != nil || tc.wrong != "" && (err == nil || err.Error() != tc.wrong) {
				t.Errorf("got error %v, want %q", err, tc.wrong)
			}
		})
	}
}
