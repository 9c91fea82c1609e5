// Package policyapi answers the routes about what rules say of changes: the reports of the
// vendor's policies and the customer's guardrails, and overrides. It is mounted by package
// api.
package policyapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/paging"
	"github.com/berth-dev/berth/services/ctl-api/internal/policies"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// OverrideTime is how long an override counts.
const OverrideTime = 30 * 24 * time.Hour

// Policies are the routes. Read and Write are as in package eventapi.
type Policies struct {
	Read  func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) error) error
	Write func(ctx context.Context, fn func(ctx context.Context, tx *database.Tx) (what string, err error)) error
	// Change shows one, Retry begins a step again.
	Change func(ctx context.Context, tx *database.Tx, id string) (apigen.Change, error)
	Retry  func(ctx context.Context, tx *database.Tx, stepID, actor string) error
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

func (h *Policies) now() time.Time {
	if h.Now != nil {
		return h.Now().UTC()
	}
	return time.Now().UTC()
}

// ListPolicyReports answers what policies and guardrails say of changes.
func (h *Policies) ListPolicyReports(ctx context.Context, req apigen.ListPolicyReportsRequestObject) (apigen.ListPolicyReportsResponseObject, error) {
	p := req.Params
	limit := paging.Limit(p.Limit)
	out := apigen.ListPolicyReports200JSONResponse{Items: []apigen.PolicyReport{}}
	params := ctldb.ListPolicyReportsParams{
		ChangeID: p.Change, Side: (*string)(p.Side), Policy: p.Policy, Answer: (*string)(p.Answer), Most: int32(limit + 1),
	}
	if p.After != nil {
		parts := strings.SplitN(*p.After, "/", 3)
		if len(parts) != 3 {
			return nil, fault.Newf(fault.ErrInvalid, "after is not the next of a page of reports")
		}
		params.AfterChange, params.AfterSide, params.AfterPolicy = &parts[0], &parts[1], &parts[2]
	}
	err := h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		if err := narrow(ctx, tx, p, &params); err != nil {
			return err
		}
		rows, err := tx.ListPolicyReports(ctx, params)
		if err != nil {
			return err
		}
		rows, out.Next = paging.Page(rows, limit, func(r ctldb.ListPolicyReportsRow) string {
			return r.PolicyReport.ChangeID + "/" + r.PolicyReport.Side + "/" + r.PolicyReport.Policy
		})
		for _, row := range rows {
			view, err := reportView(row)
			if err != nil {
				return err
			}
			out.Items = append(out.Items, view)
		}
		return nil
	})
	return out, err
}

// narrow finds the install and the app that a list is limited to.
func narrow(ctx context.Context, tx *database.Tx, p apigen.ListPolicyReportsParams, params *ctldb.ListPolicyReportsParams) error {
	if p.Install != nil {
		install, err := installs.Find(ctx, tx, *p.Install)
		if err != nil {
			return err
		}
		params.InstallID = &install.ID
	}
	if p.App != nil {
		app, err := tx.FindApp(ctx, *p.App)
		if errors.Is(err, fault.ErrNotFound) {
			err = fault.Newf(fault.ErrNotFound, "there is no app %q", *p.App)
		}
		if err != nil {
			return err
		}
		params.AppID = &app.ID
	}
	return nil
}

// Of completes the view of a change with what rules say of its plan, overrides and the
// customer's consent.
func Of(ctx context.Context, tx *database.Tx, c ctldb.Change, view *apigen.Change) error {
	rows, err := tx.ListPolicyReports(ctx, ctldb.ListPolicyReportsParams{ChangeID: &c.ID, Most: maxPolicies})
	if err != nil {
		return err
	}
	for _, row := range rows {
		report, err := reportView(row)
		if err != nil {
			return err
		}
		view.Policies = append(view.Policies, report)
	}
	if c.EffectDigest != nil {
		overrides, err := tx.OverridesOfEffect(ctx, ctldb.OverridesOfEffectParams{InstallID: c.InstallID, EffectDigest: *c.EffectDigest})
		if err != nil {
			return err
		}
		if len(overrides) > 0 {
			view.PolicyOverride = overrideView(overrides[0])
		}
	}
	consents, err := tx.ConsentOfChange(ctx, c.ID)
	if err != nil {
		return err
	}
	for _, k := range consents {
		if c.EffectDigest == nil || k.EffectDigest != *c.EffectDigest {
			continue // of an earlier plan
		}
		view.Consent = &apigen.CustomerConsent{
			State: apigen.CustomerConsentState(k.State), Why: optional.Of(k.Why), By: k.AnsweredBy, At: k.AnsweredAt, Until: k.Until, ToldAt: k.ToldAt, Still: optional.Of(int(k.Still)),
		}
	}
	return nil
}

// maxPolicies is how many reports the view of a change has at most; the list has all.
const maxPolicies = 500

func reportView(row ctldb.ListPolicyReportsRow) (apigen.PolicyReport, error) {
	r := row.PolicyReport
	view := apigen.PolicyReport{
		ChangeID: r.ChangeID, Install: apigen.Ref{ID: r.InstallID, Name: row.Install}, WorkflowID: optional.Of(row.WorkflowID), Step: optional.Of(row.Step),
		Side: apigen.PolicySide(r.Side), Policy: r.Policy, Engine: r.Engine, Answer: apigen.PolicyAnswer(r.Answer), Severity: optional.Of(r.Severity),
		Counts:       apigen.PolicyCounts{Pass: int(r.Passed), Fail: int(r.Failed), Warn: int(r.Warned), Error: int(r.Errored), Skip: int(r.Skipped), Unknown: int(r.Unknown)},
		FindingsLeft: int(r.FindingsLeft), Findings: []apigen.PolicyFinding{}, JudgedAt: r.JudgedAt,
	}
	var findings []policy.Verdict
	if err := json.Unmarshal(r.Findings, &findings); err != nil {
		return view, fmt.Errorf("findings of %s: %w", r.Policy, err)
	}
	view.Findings = findingViews(findings)
	if row.OverriddenBy != nil {
		view.Override = &apigen.PolicyOverride{
			Actor: *row.OverriddenBy, Reason: optional.Value(row.OverrideReason), CreatedAt: optional.Value(row.OverriddenAt), Until: optional.Value(row.OverriddenUntil),
		}
	}
	return view, nil
}

func findingViews(findings []policy.Verdict) []apigen.PolicyFinding {
	views := make([]apigen.PolicyFinding, 0, len(findings))
	for _, v := range findings {
		views = append(views, apigen.PolicyFinding{
			Document: v.Document, Component: optional.Of(v.Component), Rule: optional.Of(v.Rule), Result: apigen.PolicyFindingResult(v.Result),
			On: optional.Of(apigen.PolicyAnswer(v.On)), Message: optional.Of(v.Message),
		})
	}
	return views
}

// OfBuild is what policies say of the image of a build.
func OfBuild(j policy.Judgement) []apigen.BuildPolicy {
	var views []apigen.BuildPolicy
	for _, r := range policies.Of(j) {
		if r.Side != policies.Vendor {
			continue
		}
		views = append(views, apigen.BuildPolicy{
			Policy: r.Policy, Engine: j.Engine, Answer: apigen.PolicyAnswer(r.Answer), Severity: optional.Of(r.Severity),
			Counts: apigen.PolicyCounts{
				Pass: r.Counts[policy.Pass], Fail: r.Counts[policy.Fail], Warn: r.Counts[policy.Warning],
				Error: r.Counts[policy.Error], Skip: r.Counts[policy.Skip], Unknown: r.Counts[policy.Unknown],
			},
			Findings: findingViews(r.Findings), FindingsLeft: r.Left,
		})
	}
	return views
}

func overrideView(o ctldb.PolicyOverride) *apigen.PolicyOverride {
	return &apigen.PolicyOverride{Actor: o.Actor, Reason: o.Reason, CreatedAt: o.CreatedAt, Until: o.Until}
}

// OverridePolicies lets an effect pass that policies of the vendor deny, and has its step
// planned again.
func (h *Policies) OverridePolicies(ctx context.Context, req apigen.OverridePoliciesRequestObject) (apigen.OverridePoliciesResponseObject, error) {
	var out apigen.Change
	err := h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		c, err := tx.LockChange(ctx, req.Change)
		if errors.Is(err, fault.ErrNotFound) {
			err = fault.Newf(fault.ErrNotFound, "there is no change %q", req.Change)
		}
		if err != nil {
			return "", err
		}
		if err := mayOverride(c, req.Body.EffectDigest); err != nil {
			return "", err
		}
		who := auth.PrincipalOf(ctx)
		n, err := tx.InsertPolicyOverride(ctx, ctldb.InsertPolicyOverrideParams{
			InstallID: c.InstallID, ChangeID: c.ID, EffectDigest: req.Body.EffectDigest, Reason: req.Body.Reason, Actor: who.AccountName,
			AccountID: optional.Of(who.AccountID), Until: h.now().Add(OverrideTime),
		})
		if err != nil {
			return "", err
		}
		if n == 0 {
			return "", fault.With(fault.Newf(fault.ErrConflict, "somebody has overridden the denial of change %s before", c.ID), fault.Code("overridden"))
		}
		if err := h.again(ctx, tx, c, who.AccountName); err != nil {
			return "", err
		}
		out, err = h.Change(ctx, tx, c.ID)
		return "let effect " + req.Body.EffectDigest + " pass, which policies deny: " + req.Body.Reason, err
	})
	return apigen.OverridePolicies201JSONResponse(out), err
}

// mayOverride refuses an override of what no policy denied, or of another effect.
func mayOverride(c ctldb.Change, effectDigest string) error {
	if c.State != model.ChangeDenied || optional.Value(c.DeniedBy) != flow.ByPolicies {
		return fault.With(fault.Newf(fault.ErrConflict, "change %s is %s, and no policy denied it", c.ID, c.State), fault.Code("not_denied"))
	}
	if effectDigest != optional.Value(c.EffectDigest) {
		return fault.With(
			fault.Newf(fault.ErrConflict, "change %s has the effect %s, not %s", c.ID, optional.Value(c.EffectDigest), effectDigest),
			fault.Code("effect_changed"), fault.Remedy("review the change again, then decide"))
	}
	return nil
}

// again retries the step of a change while it is at that change. Otherwise the next
// workflow with the same effect passes.
func (h *Policies) again(ctx context.Context, tx *database.Tx, c ctldb.Change, actor string) error {
	step, err := tx.GetStep(ctx, c.StepID)
	if err != nil {
		return fmt.Errorf("read step: %w", err)
	}
	if step.State != model.StepFailed || optional.Value(step.ChangeID) != c.ID {
		return nil
	}
	return h.Retry(ctx, tx, step.ID, actor)
}
