package follow

import (
	"context"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// Answer is what is to be done about a change.
type Answer int

// The answers.
const (
	Later Answer = iota // nobody decides here
	Approve
	Deny
	PlanAgain // withdraw it and make a new plan
)

// Decision answers changes. The note is kept with it. Then is what becomes of the
// steps of denied changes, empty for: they fail.
type Decision struct {
	Answer Answer
	Then   ctlapi.DecisionRequestThen
	Note   string
}

// Decide answers changes of one workflow at once, naming the effects that were
// shown.
func Decide(ctx context.Context, client *api.Client, shown []ctlapi.Change, d Decision) error {
	body := ctlapi.DecisionRequest{Answer: ctlapi.DecisionAnswerApprove, EffectDigest: api.Value(shown[0].EffectDigest), Note: d.Note}
	switch d.Answer {
	case Deny:
		body.Answer, body.Then = ctlapi.DecisionAnswerDeny, api.Optional(d.Then)
	case PlanAgain:
		body.Answer = ctlapi.DecisionAnswerPlanAgain
	}
	for _, other := range shown[1:] {
		body.Also = append(body.Also, ctlapi.AlsoDecided{ChangeID: other.ID, EffectDigest: api.Value(other.EffectDigest)})
	}
	_, err := client.DecideWithResponse(ctx, shown[0].ID, &ctlapi.DecideParams{}, body)
	return err
}

// Together returns a change and what is decided with it: the acceptance of its
// workflow's release, when that waits for a decision too.
func Together(ctx context.Context, client *api.Client, change *ctlapi.Change) ([]ctlapi.Change, error) {
	all := []ctlapi.Change{*change}
	if change.State != ctlapi.ChangeStateProposed || change.Kind == ctlapi.ChangeKindAccept {
		return all, nil
	}
	w, err := client.Workflow(ctx, change.WorkflowID)
	if err != nil {
		return nil, err
	}
	for _, open := range Undecided(*w) {
		if open.Kind == ctlapi.ChangeKindAccept {
			release, err := client.Change(ctx, open.ID)
			if err != nil {
				return nil, err
			}
			return append(all, *release), nil
		}
	}
	return all, nil
}

// Proposed returns, whole, the changes of a workflow that wait for a decision.
func Proposed(ctx context.Context, client *api.Client, w *ctlapi.Workflow) ([]ctlapi.Change, error) {
	return whole(ctx, client, Undecided(*w))
}

// Preview is a workflow that only planned, with what it would change.
type Preview struct {
	ctlapi.Workflow
	Changes []ctlapi.Change `json:"changes"`
}

// Planned reads, whole, what a workflow that only planned would change.
func Planned(ctx context.Context, client *api.Client, w *ctlapi.Workflow) (Preview, error) {
	var found []ctlapi.ChangeSummary
	for _, s := range w.Steps {
		if s.Change != nil && changesSomething(s.Change.Counts) {
			found = append(found, *s.Change)
		}
	}
	all, err := whole(ctx, client, found)
	return Preview{Workflow: *w, Changes: append([]ctlapi.Change{}, all...)}, err
}

func whole(ctx context.Context, client *api.Client, summaries []ctlapi.ChangeSummary) ([]ctlapi.Change, error) {
	var all []ctlapi.Change
	for _, summary := range summaries {
		change, err := client.Change(ctx, summary.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, *change)
	}
	return all, nil
}
