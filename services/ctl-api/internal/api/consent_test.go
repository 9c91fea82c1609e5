package api_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/internal/optional"
)

// A change that two people have to approve, through the door: who may not is told
// so, the state says how it stands, and many at the same moment count once each.
func TestApprovalsOfPeople(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("initech")
	ctx := t.Context()
	person := func(name string, role ctlapi.MemberRequestRole) caller {
		return o.member(ctlapi.MemberRequest{Name: name, Kind: ctlapi.MemberRequestKindUser, Role: role})
	}
	ann, cid := person("ann", ctlapi.MemberRequestRoleAdmin), person("cid", ctlapi.MemberRequestRoleOperator)
	if status, _, answer := cid.raw(http.MethodPut, "/installs/"+o.Install+"/approval-policy", `{"approvals":1}`, "Content-Type", "application/json"); status != http.StatusForbidden {
		t.Errorf("an operator sets the policy: %d %s", status, answer)
	}
	app, err := o.PutAppApprovalPolicyWithResponse(ctx, o.App, ctlapi.ApprovalPolicyRequest{Approvals: 2, Roles: []ctlapi.ApproverRole{"admin", "operator"}, Hours: new(48)})
	must(t, app, err, http.StatusOK)
	set, err := o.PutInstallApprovalPolicyWithResponse(ctx, o.Install, ctlapi.ApprovalPolicyRequest{Approvals: 1, Roles: []ctlapi.ApproverRole{"admin"}, NoSelfApproval: true})
	must(t, set, err, http.StatusOK)
	want := ctlapi.ApprovalRules{Approvals: 2, Roles: []ctlapi.ApproverRole{"admin"}, NoSelfApproval: true, PeopleDecide: true, Hours: new(48)}
	if diff := cmp.Diff(want, set.JSON200.InForce); diff != "" {
		t.Errorf("in force (-want +got):\n%s", diff)
	}
	none, err := o.PutInstallApprovalPolicyWithResponse(ctx, o.Install, ctlapi.ApprovalPolicyRequest{Approvals: 1, Roles: []ctlapi.ApproverRole{"customer"}})
	problemOf(t, none, err, http.StatusConflict, "no_common_role")

	decide := func(c caller) (*ctlapi.DecideResponse, error) {
		return c.DecideWithResponse(ctx, o.Change, nil, ctlapi.DecisionRequest{Answer: ctlapi.DecisionAnswerApprove, EffectDigest: o.Digest})
	}
	self, err := decide(o.caller)
	problemOf(t, self, err, http.StatusForbidden, "self_approval")
	operator, err := decide(cid)
	p := problemOf(t, operator, err, http.StatusForbidden, "not_an_approver")
	if !strings.Contains(optional.Value(p.Detail), "only approvals of admin count") {
		t.Errorf("it says %q", optional.Value(p.Detail))
	}
	var group sync.WaitGroup
	for range 6 { // the same person, at the same moment
		group.Go(func() {
			if one, err := decide(ann); err != nil || one.StatusCode() != http.StatusCreated {
				t.Errorf("ann approves: %v %s", err, one.Body)
			}
		})
	}
	group.Wait()
	shown, err := o.GetChangeWithResponse(ctx, o.Change)
	must(t, shown, err, http.StatusOK)
	if a := shown.JSON200.Approvals; shown.JSON200.State != ctlapi.ChangeStateProposed || a == nil || a.Missing != 1 || !slices.Equal(a.By, []string{"ann"}) || a.NotBy != "admin" {
		t.Errorf("the change shows %+v", a)
	}
	why, err := o.WhyObjectWithResponse(ctx, o.Change)
	must(t, why, err, http.StatusOK)
	// Another install's change, another digest, and the right one, in one request.
	bea := person("bea", ctlapi.MemberRequestRoleAdmin)
	all, err := bea.DecideInstallWithResponse(ctx, o.Install, nil, ctlapi.InstallDecisionsRequest{Changes: []ctlapi.AlsoDecided{
		{ChangeID: "chg_of_nobody", EffectDigest: o.Digest}, {ChangeID: o.Change, EffectDigest: "sha256:" + strings.Repeat("cd", 32)}, {ChangeID: o.Change, EffectDigest: o.Digest},
	}})
	must(t, all, err, http.StatusOK)
	var got []string
	for _, item := range all.JSON200.Items {
		got = append(got, string(item.Outcome)+" "+item.Code)
	}
	if diff := cmp.Diff([]string{"refused not_found", "refused effect_changed", "approved "}, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if n := d.count(`select count(*) from decisions where rule = 'person'`); n != 2 {
		t.Errorf("%d votes are stored, want 2", n)
	}
}

// Freezes and pauses through the door, and who may lift them.
func TestFreezesAndPauses(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("initech")
	ctx := t.Context()
	op := o.member(ctlapi.MemberRequest{Name: "op", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator})
	now := time.Now().UTC().Truncate(time.Second)
	ends := now.Add(time.Hour)
	made, err := op.AddAppFreezeWithResponse(ctx, o.App, nil, ctlapi.FreezeRequest{Reason: "sales", StartsAt: &now, EndsAt: &ends})
	must(t, made, err, http.StatusCreated)
	bad, err := op.AddAppFreezeWithResponse(ctx, o.App, nil, ctlapi.FreezeRequest{Reason: "x", Weekly: &ctlapi.WeeklyFreeze{Days: []ctlapi.WeeklyFreezeDays{"mon"}, From: "10:00", To: "11:00", Zone: "Mars/Base"}})
	problemOf(t, bad, err, http.StatusUnprocessableEntity, "invalid")
	list, err := op.ListInstallFreezesWithResponse(ctx, o.Install)
	must(t, list, err, http.StatusOK)
	if list.JSON200.FrozenUntil == nil || !list.JSON200.FrozenUntil.Equal(ends) {
		t.Errorf("frozen until %v, want %s", list.JSON200.FrozenUntil, ends)
	}
	removed, err := op.RemoveAppFreezeWithResponse(ctx, o.App, made.JSON201.ID)
	must(t, removed, err, http.StatusForbidden)
	elsewhere, err := o.RemoveInstallFreezeWithResponse(ctx, o.Install, made.JSON201.ID)
	must(t, elsewhere, err, http.StatusNotFound)
	denied, err := op.OverrideFreezeWithResponse(ctx, o.Workflow, nil, ctlapi.FreezeOverrideRequest{Reason: "I want to"})
	must(t, denied, err, http.StatusForbidden)
	passed, err := o.OverrideFreezeWithResponse(ctx, o.Workflow, nil, ctlapi.FreezeOverrideRequest{Reason: "an outage"})
	must(t, passed, err, http.StatusOK)
	if w := passed.JSON200; w.Hold != nil || len(w.FreezeOverrides) != 1 || w.FreezeOverrides[0].Actor != "admin" || !w.FreezeOverrides[0].Until.Equal(ends) {
		t.Errorf("let through: %+v, held: %+v", w.FreezeOverrides, w.Hold)
	}
	if n := d.count(`select count(*) from chain_records where convert_from(body, 'utf8') like '%let workflow%an outage%'`); n != 1 {
		t.Errorf("the org's chain has %d records of it", n)
	}

	paused, err := op.PauseInstallWithResponse(ctx, o.Install, nil, ctlapi.PauseRequest{Reason: "an incident"})
	must(t, paused, err, http.StatusOK)
	w, err := o.GetWorkflowWithResponse(ctx, o.Workflow, nil)
	must(t, w, err, http.StatusOK)
	if hold := w.JSON200.Hold; hold == nil || hold.Reason != ctlapi.HoldReasonPausedByVendor || hold.Text != "op paused the install: an incident" {
		t.Errorf("the workflow is held by %+v", hold)
	}
	for paused, want := range map[bool]int{true: 1, false: 0} {
		list, err := o.ListInstallsWithResponse(ctx, &ctlapi.ListInstallsParams{Paused: &paused})
		must(t, list, err, http.StatusOK)
		if len(list.JSON200.Items) != want {
			t.Errorf("paused=%v lists %d installs, want %d", paused, len(list.JSON200.Items), want)
		}
	}
	resume := ctlapi.BulkRequest{Operation: ctlapi.BulkRequestOperationResume, Filter: ctlapi.BulkFilter{App: &o.App}}
	preview, err := op.CreateBulkWithResponse(ctx, &ctlapi.CreateBulkParams{DryRun: new(true)}, resume)
	must(t, preview, err, http.StatusOK)
	if c := preview.JSON200.Counts; c.Started != 1 || c.Refused != 0 {
		t.Errorf("the preview counts %+v", c)
	}
	begun, err := op.CreateBulkWithResponse(ctx, &ctlapi.CreateBulkParams{IfMatch: &preview.JSON200.Version}, resume)
	must(t, begun, err, http.StatusAccepted)
	for range 2 { // it may run twice
		if err := d.server.Bulk.Advance(ctx, o.Org, begun.JSON202.ID); err != nil {
			t.Fatal(err)
		}
	}
	done, err := op.GetBulkWithResponse(ctx, begun.JSON202.ID)
	must(t, done, err, http.StatusOK)
	if b := done.JSON200; b.State != ctlapi.BulkStateDone || b.Counts.Done != 1 || b.Items[0].Outcome != ctlapi.BulkItemOutcomeDone {
		t.Errorf("the operation is %+v", b)
	}
	install, err := o.GetInstallWithResponse(ctx, o.Install)
	must(t, install, err, http.StatusOK)
	if install.JSON200.Pause != nil {
		t.Errorf("the install is still paused: %+v", install.JSON200.Pause)
	}
}

// The hours of the app hold in installs that say nothing, and those of the install win.
func TestApprovalHours(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("initech")
	ctx := t.Context()
	hours := func() int {
		t.Helper()
		i, err := o.GetInstallWithResponse(ctx, o.Install)
		must(t, i, err, http.StatusOK)
		return i.JSON200.ApprovalHours
	}
	if got := hours(); got != 720 {
		t.Errorf("nobody said anything: %d hours", got)
	}
	put, err := o.PutAppApprovalPolicyWithResponse(ctx, o.App, ctlapi.ApprovalPolicyRequest{Approvals: 1, Hours: new(48)})
	must(t, put, err, http.StatusOK)
	for _, tt := range []struct{ set, want int }{{100, 100}, {720, 720}, {0, 48}} {
		updated, err := o.UpdateInstallWithResponse(ctx, o.Install, nil, ctlapi.InstallUpdate{ApprovalHours: &tt.set})
		must(t, updated, err, http.StatusOK)
		if got := hours(); got != tt.want {
			t.Errorf("set to %d: %d hours, want %d", tt.set, got, tt.want)
		}
	}
}
