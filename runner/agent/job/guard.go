package job

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/weakened"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/order"
)

// held is what rules say of a plan.
type held struct {
	guards.Judged
	none  bool // no rules were held against it
	timed bool
}

func (h held) denied() bool { return h.Judgement.Answer == policy.Deny }

func (h held) judgement() *policy.Judgement {
	if h.none {
		return nil
	}
	return &h.Judgement
}

// bind makes what the rules say a part of the effect.
func (h held) bind(e *capsule.Effect) {
	if !h.none {
		e.GuardrailsDigest, e.Verdict = h.Digest, h.Verdict
	}
}

// hold holds the vendor's rules and the customer's guardrails against a plan. The guardrails
// are for what changes something; the plan of an image is all that there is of it.
func (j *job) hold(ctx context.Context, result jobspec.Result, p guards.Plan) held {
	if j.deps.Guards == nil {
		return held{none: true}
	}
	image := j.kind().Artifact == jobspec.ArtifactImage && j.kind().Component
	p.Guarded = !result.NoChange || image
	h := held{Judged: j.deps.Guards.Judge(ctx, p)}
	h.none = h.Digest == "" && len(p.Rules) == 0
	h.timed = j.deps.Guards.Set().Timed() || slices.ContainsFunc(p.Rules, guardrail.LooksAtClock)
	j.redact(&h.Judgement)
	for _, line := range guardrail.Against(h.Judgement, policy.Warn) {
		j.remark("guardrails: " + line)
	}
	return h
}

// planCase is what a plan is judged by: the documents that the engine pinned, and those that
// the agent makes itself.
func (j *job) planCase(ctx context.Context, canonical []byte) (c policy.Case, doubts []string, err error) {
	if j.kind().ByAgent {
		if j.spec.Release != nil {
			c.Documents = []policy.Document{guardrail.ReleaseDocument(j.spec, j.deps.Scripts.List())}
		}
		return c, nil, nil
	}
	c, found, err := j.readCase("out/pinned/")
	switch {
	case err != nil || !found:
		// The vendor's rules as they came: doubt about each is better than none of them.
		c = policy.Case{Rules: j.spec.Policies}
		return c, []string{"the engine left no documents that can be read, so nothing of this plan was judged"}, nil //nolint:nilerr // it is a doubt
	case j.spec.Kind != jobspec.KindAction:
		doubts = guardrail.Doubts(j.spec, canonical, c.Documents)
		if len(doubts) == 0 && j.kind().Artifact == jobspec.ArtifactImage {
			c.Documents, err = j.imageDocuments(ctx, c.Documents)
		}
		return c, doubts, err
	}
	pinned, _, err := j.dir.ReadOut("out/pinned/"+jobspec.PinnedAction, maxPlan)
	if err != nil {
		return c, nil, err
	}
	c.Documents, err = j.scriptDocuments(pinned)
	return c, nil, err
}

func (j *job) readCase(folder string) (c policy.Case, found bool, err error) {
	found, err = j.dir.ReadOutJSON(folder+policy.PinnedCase, maxPlan, &c)
	return c, found, err
}

func (j *job) scriptDocuments(pinned []byte) ([]policy.Document, error) {
	_, accepted := j.deps.Scripts.Find(*j.spec.Action, j.spec.TimeoutSeconds)
	return guardrail.PlannedScripts(j.spec, pinned, accepted)
}

// redact takes secrets out of a judgement: messages may quote documents.
func (j *job) redact(of *policy.Judgement) {
	for _, list := range [][]policy.Verdict{of.Vendor, of.Guardrails} {
		for i := range list {
			v := &list[i]
			for _, text := range []*string{&v.Message, &v.Document, &v.Rule} {
				*text = j.secrets.set.String(*text)
			}
		}
	}
}

// tellJudgement writes down what a plan hands in, with what the rules say of it and whether
// the customer is asked. A plan that the guardrails deny is refused.
func (j *job) tellJudgement(told runnerapi.Plan, record order.Record) error {
	told.Judgement = record.Judgement
	if p, permitted := j.permitted(); permitted && record.Answer() == policy.Ask {
		said := *record.Judgement
		said.Answer = policy.Warn
		told.Judgement = &said
		j.remark(fmt.Sprintf("guardrails: asked for nothing, since the customer permitted to remove this until %s", p.Until.UTC().Format("2006-01-02 15:04 MST")))
	}
	if err := datadir.WriteJSON(j.dir.Plan(), told); err != nil {
		return err
	}
	if record.Answer() != policy.Deny {
		return nil
	}
	return refuse(jobspec.OutcomeRefused, explainRemedy(record.ChangeID), "the customer's guardrails deny this change: %s",
		strings.Join(guardrail.Against(*record.Judgement, policy.Deny), "; "))
}

// maxAsked is how much people are told of what guardrails ask, in bytes.
const maxAsked = 900

func explainRemedy(change string) string {
	return "the customer can see why and how to loosen it: berth-runner guardrails explain " + change
}

// handDenied hands in the plan that guardrails denied, before its result: so the vendor sees
// which. Whether it is taken changes nothing.
func (j *job) handDenied(life context.Context, result jobspec.Result) error {
	if j.spec.Operation != jobspec.OperationPlan || result.Outcome != jobspec.OutcomeRefused {
		return nil
	}
	var plan runnerapi.Plan
	found, err := datadir.ReadJSON(j.dir.Plan(), &plan)
	if err != nil || !found || plan.Judgement == nil || plan.Judgement.Answer != policy.Deny {
		return nil //nolint:nilerr // the result says in words what is left of it
	}
	err = control.Retry(life, j.log, "hand in denied plan", func(ctx context.Context) error {
		return j.deps.API.Plan(ctx, j.spec.JobID, plan)
	})
	if err != nil && (life.Err() != nil || control.Away(err)) {
		return err
	}
	if err != nil {
		j.log.WarnContext(life, "denied plan was not taken", "err", err)
	}
	return nil
}

// guardedNow fills in what the guardrails are now. The verdict is that of the plan as long as
// they are the same: the documents are pinned with the plan, and the engine that judges them
// comes with the one that the effect names by digest. Rules that look at the clock are asked
// again, see judgeAgain.
func (j *job) guardedNow(record order.Record, e *capsule.Effect) {
	if j.deps.Guards != nil && (record.Judgement != nil || !j.deps.Guards.Set().Empty()) {
		e.GuardrailsDigest, e.Verdict = j.deps.Guards.Set().Digest(), record.Effect.Verdict
	}
}

// moved says why a change is stale.
func moved(differs []jobspec.Difference) string {
	guardrails := func(d jobspec.Difference) bool { return d.Field == "guardrails_digest" || d.Field == "verdict" }
	if slices.ContainsFunc(differs, guardrails) {
		return "the customer's guardrails changed since the plan"
	}
	return "the live state moved since the plan"
}

// guardrailsAsk says whether the guardrails ask the customer about a planned change, and the
// customer has not permitted it as one of many.
func (j *job) guardrailsAsk(record order.Record) (ask bool, what string) {
	if _, permitted := j.permitted(); permitted || record.Answer() != policy.Ask || weakened.Is(weakened.Guardrails) {
		return false, ""
	}
	return true, jobspec.CutText(strings.Join(guardrail.Against(*record.Judgement, policy.Ask), "; "), maxAsked)
}

// agreedTo is the last look of the guardrails before an apply: where they ask, somebody has
// agreed to exactly this effect. Kinds of objects that were in it are not asked about again.
func (j *job) agreedTo(record order.Record) error {
	if ask, _ := j.guardrailsAsk(record); !ask {
		return nil
	}
	if j.consent == nil {
		r := refuse(jobspec.OutcomeRefused, explainRemedy(record.ChangeID), "the customer has not agreed to this change, and guardrails ask for that: %s",
			strings.Join(guardrail.Against(*record.Judgement, policy.Ask), "; "))
		r.result.Differs = []jobspec.Difference{{Field: "consent", Want: "that the customer agrees", Got: "nobody did"}}
		return r
	}
	return j.deps.Guards.Remember(record.Kinds, record.ChangeID, j.deps.Now().UTC())
}

// judgeAgain asks rules that look at the clock once more, about the same documents. What the
// plan pinned has been unpacked.
func (j *job) judgeAgain(ctx context.Context, record order.Record) error {
	if !record.Timed || j.deps.Guards == nil {
		return nil
	}
	p := guards.Plan{Guarded: true}
	switch c, found, err := j.readCase("in/pinned/"); {
	case j.spec.Release != nil:
		p.Documents = []policy.Document{guardrail.ReleaseDocument(j.spec, j.deps.Scripts.List())}
	case j.kind().ByAgent:
	case err != nil || !found:
		return refuse(jobspec.OutcomeRefused, "plan the change again", "what the plan was judged by cannot be read")
	default:
		p.Case = c
		if record.Footprint != nil {
			p.Documents = append(p.Documents, guardrail.FootprintDocument(j.spec, *record.Footprint))
		}
	}
	if j.spec.Kind == jobspec.KindAction {
		pinned, _, err := j.dir.ReadOut("in/pinned/"+jobspec.PinnedAction, maxPlan)
		if err != nil {
			return err
		}
		if p.Documents, err = j.scriptDocuments(pinned); err != nil {
			return err
		}
	}
	now := j.deps.Guards.Judge(ctx, p)
	j.redact(&now.Judgement)
	switch {
	case now.Judgement.Answer == policy.Deny:
		return refuse(jobspec.OutcomeRefused, explainRemedy(record.ChangeID), "the customer's guardrails deny this change now: %s",
			strings.Join(guardrail.Against(now.Judgement, policy.Deny), "; "))
	case now.Verdict != record.Effect.Verdict:
		r := refuse(jobspec.OutcomeStale, "plan the change again", "rules judge this change otherwise than when it was planned: verdict")
		r.result.Differs = []jobspec.Difference{{Field: "verdict", Want: record.Effect.Verdict, Got: now.Verdict}}
		return r
	}
	return nil
}

// permitted says whether the customer permitted to remove what this job tears down.
func (j *job) permitted() (p guards.Permit, permitted bool) {
	if !j.spec.Destroy || j.spec.Resource == nil || j.deps.Guards == nil {
		return p, false
	}
	component := ""
	if j.spec.Resource.Kind == "component" {
		component = j.spec.Resource.Name
	}
	p, permitted, err := j.deps.Guards.Permits(component, j.deps.Now())
	if err != nil {
		j.log.Warn("permission to remove what holds data cannot be read", "err", err)
	}
	return p, permitted
}

// admitRun holds the guardrails against the scripts of a run that no plan comes before: a
// check, or a tick of the schedule. Nobody is there to be asked.
func (j *job) admitRun(ctx context.Context) error {
	alone := j.spec.Operation == jobspec.OperationRun || j.spec.Operation == jobspec.OperationTick
	if j.deps.Guards == nil || j.spec.Action == nil || !alone {
		return nil
	}
	documents := guardrail.RunScripts(j.spec, j.attempt.Script != "")
	raw, err := json.Marshal(documents)
	if err != nil {
		return err
	}
	judgement := j.deps.Guards.Run(ctx, capsule.DigestBytes(raw), documents)
	j.redact(&judgement)
	for _, line := range guardrail.Against(judgement, policy.Warn) {
		j.remark("guardrails: " + line)
	}
	if judgement.Answer != policy.Ask && judgement.Answer != policy.Deny {
		return nil
	}
	r := refuse(jobspec.OutcomeRefused, "the customer can see the guardrails and loosen them: berth-runner guardrails list",
		"the customer's guardrails do not let this script run by itself: %s", strings.Join(guardrail.Against(judgement, policy.Ask), "; "))
	if j.attempt.Tick != nil {
		r.result.Outcome = jobspec.OutcomeNotStarted
	}
	return r
}
