// Package approval knows who has to agree to a change and whether enough have: from
// the policies of app and install and from the votes, with what each voter may do
// now. It only computes.
package approval

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// Most is how many approvals a policy may ask for.
const Most = 20

// Roles are those that may decide, and so those that a policy may name.
var Roles = []auth.Role{auth.RoleAdmin, auth.RoleOperator, auth.RoleCustomer}

// Policy says who has to approve a change.
type Policy struct {
	Approvals int // 0 is 1
	// Roles are those that count; nil for all that may decide. Not nil and empty, for
	// nobody, is what policies give together that have no role in common.
	Roles  []auth.Role
	NoSelf bool // not who asked for the workflow
}

// Stricter is what two policies ask for together.
func Stricter(a, b Policy) Policy {
	out := Policy{Approvals: max(a.Approvals, b.Approvals, 1), NoSelf: a.NoSelf || b.NoSelf, Roles: a.Roles}
	switch {
	case a.Roles == nil:
		out.Roles = b.Roles
	case b.Roles != nil:
		out.Roles = []auth.Role{}
		for _, r := range a.Roles {
			if slices.Contains(b.Roles, r) {
				out.Roles = append(out.Roles, r)
			}
		}
	}
	return out
}

// DemandsPeople tells whether the policy asks for more than anybody's answer: then a
// standing answer (approve all) approves nothing, and no service account counts.
func (p Policy) DemandsPeople() bool { return p.Approvals > 1 || p.Roles != nil || p.NoSelf }

// Who names for people whose approvals count.
func (p Policy) Who() string {
	switch {
	case p.Roles == nil:
		return "anybody who may decide on it"
	case len(p.Roles) == 0:
		return "nobody: the policies of app and install have no role in common"
	}
	names := make([]string, len(p.Roles))
	for i, r := range p.Roles {
		names[i] = string(r)
	}
	return strings.Join(names, " or ")
}

// Vote is an approval of one effect, with what is so of the voter now.
type Vote struct {
	Rule    model.Rule // person or approve_all
	Account string     // id
	Name    string
	Service bool // no person
	// Removed, and TokenRevoked: the token that it was given with.
	Removed, TokenRevoked bool
	Roles                 []auth.Role // that the voter's grants give where the change is
}

// Case is one effect that people vote on.
type Case struct {
	Policy Policy
	Asker  string // who asked for the workflow, by name
	Votes  []Vote // oldest first
}

// Count is how a case stands.
type Count struct {
	Needed int
	By     []string // whose approvals count
	// Void says of each approval that does not count why.
	Void []string
}

// Missing is how many approvals are still needed.
func (c Count) Missing() int { return max(0, c.Needed-len(c.By)) }

// Count counts each person once.
func (c Case) Count() Count {
	out := Count{Needed: max(1, c.Policy.Approvals)}
	counted := map[string]bool{}
	void := map[string]string{}
	var order []string
	for _, v := range c.Votes {
		if v.Rule == model.RuleApproveAll {
			if !c.Policy.DemandsPeople() {
				return Count{}
			}
			continue
		}
		if reason := c.Void(v); reason != "" {
			if void[v.Name] == "" {
				order = append(order, v.Name)
			}
			void[v.Name] = reason
			continue
		}
		if !counted[v.Account] {
			counted[v.Account] = true
			out.By = append(out.By, v.Name)
		}
	}
	for _, name := range order {
		if !slices.Contains(out.By, name) {
			out.Void = append(out.Void, void[name])
		}
	}
	return out
}

// Void says why a vote does not count; "" for one that does.
func (c Case) Void(v Vote) string {
	may := slices.DeleteFunc(slices.Clone(v.Roles), func(r auth.Role) bool { return !r.Allows(auth.ChangesDecide) })
	counts := func(r auth.Role) bool { return c.Policy.Roles == nil || slices.Contains(c.Policy.Roles, r) }
	switch {
	case v.Removed || v.Account == "":
		return v.Name + " is no member any more"
	case v.TokenRevoked:
		return "the token with which " + v.Name + " approved was revoked"
	case len(may) == 0:
		return v.Name + " may not decide on it any more"
	case !slices.ContainsFunc(may, counts):
		return fmt.Sprintf("%s is %s, and only approvals of %s count", v.Name, may[0], c.Policy.Who())
	case c.Policy.NoSelf && v.Name == c.Asker:
		return v.Name + " asked for it, and self-approval is off"
	case c.Policy.DemandsPeople() && v.Service:
		return v.Name + " is a service account, and the policy asks for people"
	}
	return ""
}

// May refuses the vote of somebody who may decide but does not count here. Errors:
// ErrForbidden with code self_approval or not_an_approver.
func (c Case) May(v Vote) error {
	reason := c.Void(v)
	if reason == "" {
		return nil
	}
	if c.Policy.NoSelf && v.Name == c.Asker {
		return fault.With(fault.Newf(fault.ErrForbidden, "%s", reason), fault.Code("self_approval"), fault.Remedy("have %s approve it", c.others()))
	}
	return fault.With(fault.Newf(fault.ErrForbidden, "%s", reason), fault.Code("not_an_approver"), fault.Remedy("have %s approve it", c.others()))
}

func (c Case) others() string {
	if c.Policy.Roles == nil {
		return "somebody else"
	}
	return c.Policy.Who()
}

// Says is how it stands, for people: "1 of 2 approvals (ann); 1 more needed from admin".
func (c Case) Says() string {
	n := c.Count()
	by := ""
	if len(n.By) > 0 {
		by = " (" + strings.Join(n.By, ", ") + ")"
	}
	text := fmt.Sprintf("%d of %d approvals%s", len(n.By), n.Needed, by)
	if n.Missing() > 0 {
		text += fmt.Sprintf("; %d more needed from %s", n.Missing(), c.Policy.Who())
		if c.Policy.NoSelf && c.Asker != "" {
			text += ", not " + c.Asker
		}
	}
	if len(n.Void) > 0 {
		text += "; does not count: " + strings.Join(n.Void, ", ")
	}
	return text
}
