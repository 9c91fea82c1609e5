package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/internal/optional"
)

// What rules say of a change, and an override of what the vendor's policies deny, through
// the door.
func TestPoliciesOfChanges(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("initech")
	ctx := t.Context()
	op := o.member(ctlapi.MemberRequest{Name: "op", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator})
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.db.Admin().Exec(ctx, sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(`insert into policy_reports (org_id, install_id, change_id, side, policy, engine, answer, passed, failed, warned, errored, skipped, unknown, findings, findings_left)
		values ($1, $2, $3, 'vendor', 'no-privileged', 'e 1', 'deny', 2, 1, 0, 0, 0, 0,
		  '[{"policy":"no-privileged","document":"Pod shop/web","component":"web","result":"fail","on":"deny","message":"privileged"}]', 3),
		  ($1, $2, $3, 'customer', 'keeps-data', 'e 1', 'ask', 0, 0, 0, 0, 0, 1, '[]', 0)`, o.Org, o.Install, o.Change)
	exec(`insert into consents (org_id, install_id, change_id, effect_digest, state, why, answered_by) values ($1, $2, $3, $4, 'needed', 'keeps-data asks', '{}')`, o.Org, o.Install, o.Change, o.Digest)

	shown, err := op.GetChangeWithResponse(ctx, o.Change)
	must(t, shown, err, http.StatusOK)
	if c := shown.JSON200; len(c.Policies) != 3 || c.Consent == nil || c.Consent.State != ctlapi.CustomerConsentStateNeeded || optional.Value(c.Consent.Why) != "keeps-data asks" {
		t.Errorf("the change shows %+v, consent %+v", c.Policies, c.Consent)
	}
	list := func(p ctlapi.ListPolicyReportsParams) (names []string, next string) {
		t.Helper()
		p.Install = &o.Install
		got, err := op.ListPolicyReportsWithResponse(ctx, &p)
		must(t, got, err, http.StatusOK)
		for _, r := range got.JSON200.Items {
			names = append(names, string(r.Side)+" "+r.Policy+" "+string(r.Answer))
		}
		return names, got.JSON200.Next
	}
	one := 1
	first, next := list(ctlapi.ListPolicyReportsParams{Limit: &one})
	second, next2 := list(ctlapi.ListPolicyReportsParams{Limit: &one, After: &next})
	third, last := list(ctlapi.ListPolicyReportsParams{After: &next2})
	want := []string{"customer keeps-data ask", "vendor no-privileged deny", "vendor policy of initech allow"}
	if diff := cmp.Diff(want, append(append(first, second...), third...)); diff != "" || last != "" {
		t.Errorf("page by page, the last says %q (-want +got):\n%s", last, diff)
	}
	denies := ctlapi.PolicyAnswerDeny
	if got, _ := list(ctlapi.ListPolicyReportsParams{Answer: &denies}); !cmp.Equal(got, want[1:2]) {
		t.Errorf("those that deny: %v", got)
	}
	bad, err := op.ListPolicyReportsWithResponse(ctx, &ctlapi.ListPolicyReportsParams{Install: &o.Install, After: new("nonsense")})
	problemOf(t, bad, err, http.StatusUnprocessableEntity, "invalid")

	request := ctlapi.PolicyOverrideRequest{EffectDigest: o.Digest, Reason: "seen in ticket 4711"}
	open, err := o.OverridePoliciesWithResponse(ctx, o.Change, nil, request)
	problemOf(t, open, err, http.StatusConflict, "not_denied")
	exec(`update changes set state = 'denied', denied_by = 'the vendor''s policies', wait_reason = null, wait_on = null, wait_deadline = null where id = $1`, o.Change)
	exec(`update steps set state = 'failed', change_id = $2 where id = $1`, o.Step, o.Change)
	exec(`update workflows set state = 'failed' where id = $1`, o.Workflow)
	may, err := op.OverridePoliciesWithResponse(ctx, o.Change, nil, request)
	must(t, may, err, http.StatusForbidden)
	other, err := o.OverridePoliciesWithResponse(ctx, o.Change, nil, ctlapi.PolicyOverrideRequest{EffectDigest: "sha256:" + strings.Repeat("cd", 32), Reason: "x"})
	problemOf(t, other, err, http.StatusConflict, "effect_changed")
	passed, err := o.OverridePoliciesWithResponse(ctx, o.Change, nil, request)
	must(t, passed, err, http.StatusCreated)
	if got := passed.JSON201.PolicyOverride; got == nil || got.Actor != "admin" || got.Reason != request.Reason {
		t.Errorf("the override shows %+v", got)
	}
	if n := d.count(`select count(*) from steps s join workflows w on w.id = s.workflow_id where s.state = 'pending' and s.retried_at is not null and w.state = 'running'`); n != 1 {
		t.Errorf("%d steps are tried again, want 1", n)
	}
	if n := d.count(`select count(*) from chain_records where convert_from(body, 'utf8') like '%which policies deny: seen in ticket 4711%'`); n != 1 {
		t.Errorf("the org's chain has %d records of it", n)
	}
	again, err := o.OverridePoliciesWithResponse(ctx, o.Change, nil, request)
	problemOf(t, again, err, http.StatusConflict, "overridden")
	if got, err := op.ListPolicyReportsWithResponse(ctx, &ctlapi.ListPolicyReportsParams{Install: &o.Install, Answer: &denies}); err != nil || got.JSON200 == nil || got.JSON200.Items[0].Override == nil {
		t.Errorf("the report does not show the override: %v %s", err, got.Body)
	}

	app, err := op.ListAppPoliciesWithResponse(ctx, o.App)
	must(t, app, err, http.StatusOK)
	if len(app.JSON200.Items) != 0 || app.JSON200.Config == nil {
		t.Errorf("the app has no policies: %+v", app.JSON200)
	}
}
