package flow

import "github.com/berth-dev/berth/services/internal/model"

// Who denies a change without being a person of the control plane, by the name under
// which a denied change says it.
const (
	ByPolicies = "the vendor's policies"
	ByCustomer = "the customer"
)

// ConsentHold has an approved change wait for the customer, whose runner would refuse to
// carry it out; nil when it asks for nothing, or the customer agreed.
func (c *Change) ConsentHold() *Hold {
	if c == nil || c.Consent != model.ConsentNeeded {
		return nil
	}
	return &Hold{Reason: model.WaitConsent, On: "customer", Text: orElse(c.ConsentText, "the customer has to agree to it")}
}

// deniedByCustomer ends a change to which the customer's side said no.
func deniedByCustomer(c *Change) Decision {
	return Decision{
		Do: DoSettleChange, ChangeState: model.ChangeDenied, EndedBy: ByCustomer, Error: orElse(c.ConsentText, "the customer denied it"),
		Remedy: "talk to the customer, then retry the step, which makes a new plan",
	}
}

// deniedByPolicy ends a plan that policies of the vendor deny.
func deniedByPolicy(c *Change) Decision {
	return Decision{
		Do: DoDenyPlan, EndedBy: ByPolicies, Error: c.Plan.PolicyDenies,
		Remedy: "change what the policy names and sync, or have an admin override it: berth policies override " + c.ID + " --reason TEXT",
	}
}
