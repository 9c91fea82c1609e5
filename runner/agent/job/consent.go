package job

import (
	"context"

	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/weakened"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/order"
)

// consentFor writes down what a plan asks of the customer's side, and returns what the
// plan's report says of that; nil when nobody is asked.
func (j *job) consentFor(record order.Record, plan jobspec.PlanSummary) (*runnerapi.Consent, error) {
	if j.deps.Consents == nil || plan.NoChange {
		return nil, nil
	}
	change := j.changeOf(record, consent.Describe(record.Effect.ChangeKind, record.Effect.Component, plan))
	if actor := j.order.Actor; actor != "" {
		change.Requesters = []string{actor}
	}
	stand, err := j.deps.Consents.Plan(change, plan)
	if err != nil || stand.State == consent.NotAsked {
		return nil, err
	}
	report := consents.Report(change, stand)
	return &report, nil
}

func (j *job) changeOf(record order.Record, facts consent.Facts) consents.Change {
	facts.GuardrailAsks, facts.Asked = j.guardrailsAsk(record)
	return consents.Change{
		ID: record.ChangeID, OriginID: record.OriginID, Effect: record.EffectDigest, Resource: record.Effect.ResourceID,
		Facts: facts, PlannedAt: record.PlannedAt,
	}
}

// agree refuses an effect that the customer's side has to agree to and has not. done is
// to be called once the intent is in the chain, or will not be.
func (j *job) agree(ctx context.Context, record order.Record) (done func(), err error) {
	if j.deps.Consents == nil || weakened.Is(weakened.Consent) {
		return func() {}, nil
	}
	change, found, err := j.deps.Consents.Change(record.ChangeID)
	if err != nil {
		return nil, err
	}
	if own := j.changeOf(record, change.Facts); !found || change.Effect != own.Effect || change.OriginID != own.OriginID {
		// Of a plan of an earlier runner nobody knows what it does.
		change = j.changeOf(record, consent.Facts{ChangeKind: record.Effect.ChangeKind, Component: record.Effect.Component, Delete: 1, Other: 1})
	} else {
		change.Facts = own.Facts
	}
	answer, err := j.deps.Consents.Grant(j.spec.JobID, change, j.order.Actor)
	return j.heed(ctx, answer, err)
}

// agreeToTick is agree for a scheduled run: its script is what was agreed to.
func (j *job) agreeToTick(ctx context.Context) (done func(), err error) {
	if j.deps.Consents == nil {
		return func() {}, nil
	}
	answer, err := j.deps.Consents.GrantTick(j.spec.JobID, j.tick.Script, j.spec.Action.Name, j.deps.Now())
	return j.heed(ctx, answer, err)
}

func (j *job) heed(ctx context.Context, answer consents.Answer, err error) (done func(), _ error) {
	if err != nil {
		return nil, err
	}
	if refused := answer.Refusal; refused != nil {
		j.recordEvent(ctx, string(refused.Outcome), "consent for "+j.what()+": "+refused.Text)
		r := refuse(refused.Outcome, refused.Remedy, "%s", refused.Text)
		r.result.Differs = []jobspec.Difference{{Field: "consent", Want: string(consent.Given), Got: string(refused.State)}}
		return nil, r
	}
	j.consent = answer.Agreed
	return answer.Done, nil
}
