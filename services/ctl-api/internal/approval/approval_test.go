package approval_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/approval"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/model"
)

func vote(name string, roles ...auth.Role) approval.Vote {
	return approval.Vote{Rule: model.RulePerson, Account: "acc_" + name, Name: name, Roles: roles}
}

func with(v approval.Vote, change func(*approval.Vote)) approval.Vote {
	change(&v)
	return v
}

func TestCount(t *testing.T) {
	t.Parallel()
	const admin, operator, viewer, customer = auth.RoleAdmin, auth.RoleOperator, auth.RoleViewer, auth.RoleCustomer
	two := approval.Policy{Approvals: 2}
	ann, bob, eve := vote("ann", admin), vote("bob", operator), vote("eve", viewer)
	all := approval.Vote{Rule: model.RuleApproveAll, Name: "bob"}
	for _, tt := range []struct {
		name    string
		policy  approval.Policy
		asker   string
		votes   []approval.Vote
		by      []string
		missing int
		void    string // part of the only reason
	}{
		{name: "without a policy, one is needed", missing: 1},
		{name: "and anybody's is enough", votes: []approval.Vote{bob}, by: []string{"bob"}},
		{name: "of somebody who asked for it too", asker: "bob", votes: []approval.Vote{bob}, by: []string{"bob"}},
		{name: "a standing answer is enough", votes: []approval.Vote{all}},
		{name: "a machine is enough", votes: []approval.Vote{with(bob, func(v *approval.Vote) { v.Service = true })}, by: []string{"bob"}},
		{name: "one of two", policy: two, votes: []approval.Vote{ann}, by: []string{"ann"}, missing: 1},
		{name: "two of two", policy: two, votes: []approval.Vote{ann, bob}, by: []string{"ann", "bob"}},
		{name: "twice the same person is one", policy: two, votes: []approval.Vote{ann, ann}, by: []string{"ann"}, missing: 1},
		{name: "a standing answer is none of two", policy: two, votes: []approval.Vote{all, ann}, by: []string{"ann"}, missing: 1},
		{name: "nor is a machine", policy: two, votes: []approval.Vote{ann, with(bob, func(v *approval.Vote) { v.Service = true })}, by: []string{"ann"}, missing: 1, void: "service account"},
		{name: "a viewer's does not count", votes: []approval.Vote{eve}, missing: 1, void: "eve may not decide"},
		{name: "nor that of somebody without a grant there", votes: []approval.Vote{vote("bob")}, missing: 1, void: "bob may not decide"},
		{name: "nor a removed member's", votes: []approval.Vote{with(ann, func(v *approval.Vote) { v.Removed = true })}, missing: 1, void: "ann is no member"},
		{name: "nor one by a revoked token", votes: []approval.Vote{with(ann, func(v *approval.Vote) { v.TokenRevoked = true })}, missing: 1, void: "token with which ann"},
		{name: "but one by another token of the same person", votes: []approval.Vote{with(ann, func(v *approval.Vote) { v.TokenRevoked = true }), ann}, by: []string{"ann"}},
		{name: "a role that does not count", policy: approval.Policy{Roles: []auth.Role{admin}}, votes: []approval.Vote{bob, ann}, by: []string{"ann"}, void: "bob is operator"},
		{name: "one of several roles does", policy: approval.Policy{Roles: []auth.Role{customer, operator}}, votes: []approval.Vote{bob}, by: []string{"bob"}},
		{name: "no role counts", policy: approval.Policy{Roles: []auth.Role{}}, votes: []approval.Vote{ann}, missing: 1, void: "nobody"},
		{name: "self-approval is off", policy: approval.Policy{NoSelf: true}, asker: "ann", votes: []approval.Vote{ann}, missing: 1, void: "ann asked for it"},
		{name: "and another one counts", policy: approval.Policy{NoSelf: true}, asker: "ann", votes: []approval.Vote{ann, bob}, by: []string{"bob"}, void: "ann asked for it"},
	} {
		n := approval.Case{Policy: tt.policy, Asker: tt.asker, Votes: tt.votes}.Count()
		if diff := cmp.Diff(tt.by, n.By); diff != "" || n.Missing() != tt.missing {
			t.Errorf("%s: missing %d, want %d; by (-want +got): %s", tt.name, n.Missing(), tt.missing, diff)
		}
		if void := strings.Join(n.Void, "|"); (void == "") != (tt.void == "") || !strings.Contains(void, tt.void) {
			t.Errorf("%s: void %q, want %q", tt.name, void, tt.void)
		}
	}
}

func TestStricter(t *testing.T) {
	t.Parallel()
	roles := func(r ...auth.Role) []auth.Role { return append([]auth.Role{}, r...) }
	for _, tt := range []struct {
		name    string
		a, b    approval.Policy
		want    approval.Policy
		demands bool
	}{
		{name: "nothing said", want: approval.Policy{Approvals: 1}},
		{name: "more approvals", a: approval.Policy{Approvals: 3}, b: approval.Policy{Approvals: 2}, want: approval.Policy{Approvals: 3}, demands: true},
		{name: "one names roles", a: approval.Policy{Roles: roles("admin")}, want: approval.Policy{Approvals: 1, Roles: roles("admin")}, demands: true},
		{name: "both do", a: approval.Policy{Roles: roles("admin", "operator")}, b: approval.Policy{Roles: roles("operator", "customer")}, want: approval.Policy{Approvals: 1, Roles: roles("operator")}, demands: true},
		{name: "none in common is nobody", a: approval.Policy{Roles: roles("admin")}, b: approval.Policy{Roles: roles("customer")}, want: approval.Policy{Approvals: 1, Roles: roles()}, demands: true},
		{name: "self-approval is off where one says so", a: approval.Policy{NoSelf: true}, want: approval.Policy{Approvals: 1, NoSelf: true}, demands: true},
	} {
		for _, got := range []approval.Policy{approval.Stricter(tt.a, tt.b), approval.Stricter(tt.b, tt.a)} {
			if diff := cmp.Diff(tt.want, got); diff != "" || got.DemandsPeople() != tt.demands {
				t.Errorf("%s: demands people %v; (-want +got):\n%s", tt.name, got.DemandsPeople(), diff)
			}
		}
	}
}
