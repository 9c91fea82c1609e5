package why

import (
	"fmt"

	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// roleMissing explains a step whose change is approved, and whose action needs a role that
// is off or that nobody knows.
func (in Input) roleMissing(step ctldb.Step, r *Reason) {
	role := optional.Value(step.WaitOn)
	text := in.Roles[step.ID]
	if *step.WaitReason == model.WaitRoleUnknown {
		r.is(facts{CodeRoleUnknown, Operator, WakeRunner})
		if text == "" {
			text = "its role " + role + " was not known; it is about to be looked at again"
		}
		r.Reason, r.On = "its change is approved, and "+text, "operator"
		r.Unblock = fmt.Sprintf("declare the role in break_glass.toml, sync the app, then: berth deploy %s", in.Install)
		return
	}
	r.is(facts{CodeRoleOff, Customer, WakeCustomer})
	if text == "" {
		text = "role " + role + " was off; it is about to be looked at again"
	}
	r.Reason, r.On = "its change is approved, and "+text, "the customer"
	r.Unblock = "the customer runs, on the runner's machine: berth-runner roles enable " + role
}
