package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// member makes an account with a token and a role in the whole org.
func (r *rig) member(name string, role auth.Role) auth.Principal {
	r.t.Helper()
	account, token := "acc_"+name, "tok_"+name
	r.exec(`insert into accounts (id, org_id, kind, name) values ($1, $2, 'user', $3)`, account, r.org, name)
	r.exec(`insert into tokens (id, org_id, account_id, name, prefix, hash) values ($1, $2, $3, 'test', 'brt_', $4)`, token, r.org, account, []byte(name))
	r.exec(`insert into grants (id, org_id, account_id, role) values ($1, $2, $3, $4)`, "grt_"+name, r.org, account, string(role))
	return auth.Principal{Kind: auth.KindUser, OrgID: r.org, AccountID: account, AccountName: name, TokenID: token, Grants: []auth.Grant{{Role: role}}}
}

// policy sets that of the install.
func (r *rig) policy(approvals int, noSelf bool, roles ...string) {
	r.t.Helper()
	r.exec(`insert into approval_policies (about, org_id, install_id, approvals, roles, no_self_approval, updated_by) values ($1, $2, $1, $3, $4, $5, 'ada')
		on conflict (org_id, about) do update set approvals = $3, roles = $4, no_self_approval = $5`, r.install, r.org, approvals, append([]string{}, roles...), noSelf)
}

// proposed starts a deploy of the greeting and plans it.
func (r *rig) proposed(asker, what string) (w string) {
	r.t.Helper()
	w = r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}, Actor: asker})
	r.planned(w, "component/greeting", what)
	return w
}

// change is a value of the change that the greeting is at.
func (r *rig) change(w, column string) string {
	r.t.Helper()
	return r.value(`select `+column+` from changes c join steps s on s.change_id = c.id where s.workflow_id = $1 and s.name = 'component/greeting'`, w)
}

func (r *rig) vote(w string, by auth.Principal) error {
	r.t.Helper()
	id, digest := r.change(w, "c.id"), r.change(w, "c.effect_digest")
	return r.ctl.Tx(r.t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
		return workflow.Decide(ctx, tx, workflow.Answer{ChangeID: id, Answer: model.Approve, EffectDigest: digest, By: by})
	})
}

func (r *rig) voted(w string, by auth.Principal) {
	r.t.Helper()
	if err := r.vote(w, by); err != nil {
		r.t.Fatalf("%s approves: %v", by.AccountName, err)
	}
	r.advance(w)
}

func (r *rig) is(w, want string) {
	r.t.Helper()
	if got := r.change(w, "c.state"); got != want {
		r.t.Fatalf("the change is %s, want %s (%s); steps: %v", got, want, r.change(w, "coalesce(c.error, '')"), r.steps(w))
	}
}

func code(err error) string { return fault.From(err).Code }

func TestTwoPeopleHaveToApprove(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bob, cid := r.member("bob", auth.RoleOperator), r.member("cid", auth.RoleAdmin)
	r.provision()
	r.policy(2, true, "admin", "operator")
	w := r.proposed("ada", "new text")
	if err := r.vote(w, r.ada); code(err) != "self_approval" {
		t.Errorf("who asked for it approves it: %v", err)
	}
	other := r.ada
	other.TokenID = "tok_other"
	if err := r.vote(w, other); code(err) != "self_approval" {
		t.Errorf("the same with another token: %v", err)
	}
	r.voted(w, bob)
	r.voted(w, bob) // again: it counts once
	r.is(w, "proposed")
	r.voted(w, cid)
	r.is(w, "executing")
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "new"))
	r.is(w, "applied")
	// One no ends it, whoever has said yes.
	w = r.proposed("ada", "newer text")
	r.voted(w, bob)
	if err := r.answered(w, "component/greeting", model.Deny, ""); err != nil {
		t.Fatal(err)
	}
	r.advance(w)
	r.is(w, "denied")
	// A retry begins with no vote: what was denied is asked again.
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		_, err := workflow.Retry(ctx, tx, r.value(`select id from steps where workflow_id = $1 and name = 'component/greeting'`, w), "ada")
		return err
	})
	r.advance(w)
	r.planned(w, "component/greeting", "newer text")
	r.voted(w, cid)
	r.is(w, "proposed")
	r.voted(w, bob)
	r.is(w, "executing")
}

// Many people at once, each twice: each counts once, and it is approved once.
func TestVotesAtTheSameMomentCountOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	const people = 8
	r.policy(people, false)
	w := r.proposed("ada", "new text")
	var voters []auth.Principal
	for i := range people {
		voters = append(voters, r.member(fmt.Sprintf("voter%d", i), auth.RoleOperator))
	}
	id, digest := r.change(w, "c.id"), r.change(w, "c.effect_digest")
	all := func(voters []auth.Principal) {
		t.Helper()
		var group sync.WaitGroup
		for _, by := range append(voters, voters...) {
			group.Go(func() {
				err := r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
					return workflow.Decide(ctx, tx, workflow.Answer{ChangeID: id, Answer: model.Approve, EffectDigest: digest, By: by})
				})
				if err != nil && code(err) != "not_proposed" { // it was approved meanwhile
					t.Errorf("%s: %v", by.AccountName, err)
				}
			})
		}
		group.Wait()
	}
	all(voters[:people-1])
	r.advance(w)
	r.is(w, "proposed")
	if got := r.value(`select count(*)::text from decisions where change_id = $1 and rule = 'person'`, id); got != fmt.Sprint(people-1) {
		t.Errorf("%s votes are stored, want %d", got, people-1)
	}
	all(voters)
	r.advance(w)
	r.is(w, "executing")
	if got := r.value(`select count(*)::text from decisions where change_id = $1 and rule = 'person'`, id); got != fmt.Sprint(people) {
		t.Errorf("%s votes are stored, want %d", got, people)
	}
}

// The votes are for one effect: the same one, planned again, keeps them; another one
// begins without.
func TestVotesAreForAnEffect(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bob, cid := r.member("bob", auth.RoleOperator), r.member("cid", auth.RoleOperator)
	r.provision()
	r.policy(2, false)
	again := func(w, what string) {
		t.Helper()
		if err := r.answered(w, "component/greeting", model.PlanAgain, ""); err != nil {
			t.Fatal(err)
		}
		r.advance(w)
		r.planned(w, "component/greeting", what)
	}
	w := r.proposed("ada", "new text")
	r.voted(w, bob)
	again(w, "new text")
	r.is(w, "proposed")
	r.voted(w, cid) // the second of two
	r.is(w, "executing")
	r.applied(w, "component/greeting", jobspec.OutcomeStale, nil)
	r.planned(w, "component/greeting", "new text")
	r.is(w, "executing") // kept
	r.applied(w, "component/greeting", jobspec.OutcomeStale, nil)
	r.planned(w, "component/greeting", "other text")
	r.is(w, "proposed")
	r.voted(w, bob)
	r.is(w, "proposed")
}

// Attack: whoever loses the right between their approval and the apply has approved
// nothing, and nothing is applied.
func TestApproversMustStillHaveTheRight(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, sql, back, says string }{
		{"removed", `update accounts set disabled_at = now() where name = 'bob'`, `update accounts set disabled_at = null where name = 'bob'`, "bob is no member any more"},
		{"demoted", `update grants set role = 'viewer' where account_id = 'acc_bob'`, `update grants set role = 'operator' where account_id = 'acc_bob'`, "bob may not decide on it any more"},
		{"confined to another place", `update grants set customer_id = 'cus_other' where account_id = 'acc_bob'`, `update grants set customer_id = null where account_id = 'acc_bob'`, "bob may not decide on it any more"},
		{"token revoked", `update tokens set revoked_at = now() where account_id = 'acc_bob'`, `update tokens set revoked_at = null where account_id = 'acc_bob'`, "the token with which bob approved was revoked"},
		{"role of no worth by now", `insert into approval_policies (about, org_id, install_id, roles, updated_by) select id, org_id, id, '{admin}', 'ada' from installs`, `update approval_policies set roles = '{}'`, "only approvals of admin count"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			bob := r.member("bob", auth.RoleOperator)
			r.provision()
			r.exec(`insert into customers (id, org_id, name) values ('cus_other', $1, 'other')`, r.org)
			w := r.proposed("ada", "new text")
			// It is approved, and something keeps it from being applied at once.
			r.exec(`update installs set paused_at = now(), paused_by = 'ada', pause_reason = 'wait'`)
			r.voted(w, bob)
			r.is(w, "approved")
			r.exec(tt.sql)
			r.exec(`update installs set paused_at = null, paused_by = null, pause_reason = null`)
			r.advance(w)
			r.is(w, "proposed")
			if got := r.change(w, "c.error"); !strings.Contains(got, tt.says) {
				t.Errorf("the change says %q, want %q", got, tt.says)
			}
			if got := r.steps(w)["component/greeting"]; !strings.HasPrefix(got, "waiting") {
				t.Errorf("the step is %s", got)
			}
			if got := r.value(`select count(*)::text from runner_jobs where workflow_id = $1 and mutates`, w); got != "0" {
				t.Errorf("%s jobs that change something were made", got)
			}
			// With the right again the vote counts again, without a new one.
			r.exec(tt.back)
			r.advance(w)
			r.is(w, "executing")
		})
	}
}

// The right is looked at once more under the install's row: it is lost after the
// engine has decided to apply.
func TestRightLostBetweenLookAndGrant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bob := r.member("bob", auth.RoleOperator)
	r.provision()
	w := r.proposed("ada", "new text")
	if err := r.vote(w, bob); err != nil {
		t.Fatal(err)
	}
	holder, err := r.admin.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // committed below
	if _, err := holder.Exec(t.Context(), `select 1 from installs where id = $1 for no key update`, r.install); err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() { moved <- r.engine.Advance(t.Context(), w) }()
	deadline := time.Now().Add(20 * time.Second)
	for r.value(`select count(*)::text from pg_stat_activity where wait_event_type = 'Lock' and query like '%LockInstallRow%'`) == "0" {
		if time.Now().After(deadline) {
			t.Fatal("the engine never came to the install's row")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := holder.Exec(t.Context(), `update accounts set disabled_at = now() where name = 'bob'`); err != nil {
		t.Fatal(err)
	}
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	r.is(w, "proposed")
	if got := r.value(`select count(*)::text from runner_jobs where workflow_id = $1 and mutates`, w); got != "0" {
		t.Errorf("%s jobs that change something were made", got)
	}
}

// A standing answer approves nothing where a policy asks for people, and the policy
// counts from when it is set.
func TestApproveAllIsNoWayAroundAPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	bob := r.member("bob", auth.RoleOperator)
	r.provision()
	r.exec(`update installs set approval_option = 'approve_all'`)
	r.policy(1, true)
	w := r.proposed("ada", "new text")
	r.is(w, "proposed")
	for name, err := range map[string]error{
		"a standing answer for the workflow": r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
			return workflow.ApproveAll(ctx, tx, workflow.Standing{WorkflowID: w, Actor: "ada"})
		}),
		"a workflow that brings one": r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
			_, err := workflow.Start(ctx, tx, workflow.Request{InstallID: r.install, Kind: flow.KindDeploy, ApproveAll: true, Actor: "ada"})
			return err
		}),
	} {
		if code(err) != "people_decide" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// One from before the policy, in the row: it counts for nothing either.
	r.exec(`update workflows set approve_all = true where id = $1`, w)
	r.advance(w)
	r.is(w, "proposed")
	r.exec(`update accounts set kind = 'service' where name = 'bob'`)
	if err := r.vote(w, bob); code(err) != "not_an_approver" {
		t.Errorf("a machine is a person: %v", err)
	}
	r.exec(`update accounts set kind = 'user' where name = 'bob'`)
	r.voted(w, bob)
	r.is(w, "executing")
}

// While the install is paused or frozen, plans are made, approved and not carried
// out; what runs goes on. They move when it ends.
func TestHolds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	now := time.Now().UTC()
	r.engine.Now = func() time.Time { return now }
	pause := func(reason string) {
		t.Helper()
		r.tx(func(ctx context.Context, tx *database.Tx) error {
			_, err := clearance.Pause(ctx, tx, clearance.Pausing{InstallID: r.install, Actor: "ada", Reason: reason})
			return err
		})
	}
	waits := func(w, want string) {
		t.Helper()
		r.is(w, "approved")
		if got := r.value(`select wait_reason || ' ' || wait_on from workflows where id = $1`, w); got != want {
			t.Fatalf("the workflow waits for %q, want %q", got, want)
		}
	}
	running := r.proposed("ada", "first")
	r.voted(running, r.ada)
	r.is(running, "executing")
	pause("an incident")
	r.applied(running, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "first"))
	r.is(running, "applied")

	w := r.proposed("ada", "second")
	r.voted(w, r.ada)
	waits(w, "paused_by_vendor operator")
	pause("")
	r.advance(w)
	r.is(w, "executing")
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "second"))

	r.exec(`insert into freezes (id, org_id, app_id, reason, starts_at, ends_at, created_by) select 'frz_1', org_id, app_id, 'sales', $1, $2, 'ada' from installs`, now.Add(-time.Hour), now.Add(time.Hour))
	w = r.proposed("ada", "third")
	r.voted(w, r.ada)
	waits(w, "freeze frz_1")
	if got := r.value(`select (wait_retry_at = $2)::text from steps where workflow_id = $1 and state = 'waiting'`, w, now.Add(time.Hour).Truncate(time.Microsecond)); got != "true" {
		t.Errorf("it does not look again when the freeze ends")
	}
	now = now.Add(time.Hour) // nobody does anything but the wake-up of the end
	r.advance(w)
	r.is(w, "executing")
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "third"))

	r.exec(`update freezes set ends_at = $1`, now.Add(time.Hour))
	w = r.proposed("ada", "fourth")
	r.voted(w, r.ada)
	waits(w, "freeze frz_1")
	r.exec(`insert into freeze_overrides (org_id, workflow_id, freeze_id, install_id, until, reason, actor) values ($1, $2, 'frz_1', $3, $4, 'a fix', 'ada')`, r.org, w, r.install, now.Add(time.Hour))
	r.advance(w)
	r.is(w, "executing")
}

// A pause that is set after the engine has decided to apply, before it has the
// install's row, holds.
func TestPauseBetweenLookAndGrant(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	w := r.proposed("ada", "new text")
	if err := r.vote(w, r.ada); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	moved := make(chan error, 1)
	err := r.ctl.Tx(ctx, r.org, func(ctx context.Context, tx *database.Tx) error {
		if _, err := clearance.Pause(ctx, tx, clearance.Pausing{InstallID: r.install, Actor: "ada", Reason: "stop"}); err != nil {
			return err
		}
		go func() { moved <- r.engine.Advance(t.Context(), w) }()
		for r.value(`select count(*)::text from pg_stat_activity where wait_event_type = 'Lock' and query like '%LockInstallRow%'`) == "0" {
			if ctx.Err() != nil {
				return errors.New("the engine never came to the install's row")
			}
			time.Sleep(5 * time.Millisecond)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-moved; err != nil {
		t.Fatal(err)
	}
	r.is(w, "approved")
	if got := r.value(`select coalesce(wait_reason, '') from workflows where id = $1`, w); got != "paused_by_vendor" {
		t.Errorf("the workflow waits for %q", got)
	}
}
