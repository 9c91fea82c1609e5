package clearanceapi

import (
	"context"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/approval"
	"github.com/berth-dev/berth/services/ctl-api/internal/clearance"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// defaultHours is how long a change waits where nobody says so.
const defaultHours = 720

// GetAppApprovalPolicy answers what is set about an app.
func (h *Clearance) GetAppApprovalPolicy(ctx context.Context, req apigen.GetAppApprovalPolicyRequestObject) (apigen.GetAppApprovalPolicyResponseObject, error) {
	out, err := h.policy(ctx, req.App, "")
	return apigen.GetAppApprovalPolicy200JSONResponse(out), err
}

// GetInstallApprovalPolicy answers what is set about an install, and what holds.
func (h *Clearance) GetInstallApprovalPolicy(ctx context.Context, req apigen.GetInstallApprovalPolicyRequestObject) (apigen.GetInstallApprovalPolicyResponseObject, error) {
	out, err := h.policy(ctx, "", req.Install)
	return apigen.GetInstallApprovalPolicy200JSONResponse(out), err
}

func (h *Clearance) policy(ctx context.Context, app, install string) (out apigen.ApprovalPolicy, err error) {
	err = h.Read(ctx, func(ctx context.Context, tx *database.Tx) error {
		s, err := h.scopeOf(ctx, tx, app, install)
		if err != nil {
			return err
		}
		out, err = policyView(ctx, tx, s)
		return err
	})
	return out, err
}

// PutAppApprovalPolicy sets who has to approve the changes of an app's installs.
func (h *Clearance) PutAppApprovalPolicy(ctx context.Context, req apigen.PutAppApprovalPolicyRequestObject) (apigen.PutAppApprovalPolicyResponseObject, error) {
	out, err := h.putPolicy(ctx, req.App, "", *req.Body)
	return apigen.PutAppApprovalPolicy200JSONResponse(out), err
}

// PutInstallApprovalPolicy sets who has to approve the changes of an install.
func (h *Clearance) PutInstallApprovalPolicy(ctx context.Context, req apigen.PutInstallApprovalPolicyRequestObject) (apigen.PutInstallApprovalPolicyResponseObject, error) {
	out, err := h.putPolicy(ctx, "", req.Install, *req.Body)
	return apigen.PutInstallApprovalPolicy200JSONResponse(out), err
}

func (h *Clearance) putPolicy(ctx context.Context, app, install string, wish apigen.ApprovalPolicyRequest) (out apigen.ApprovalPolicy, err error) {
	err = h.Write(ctx, func(ctx context.Context, tx *database.Tx) (string, error) {
		s, err := h.scopeOf(ctx, tx, app, install)
		if err != nil {
			return "", err
		}
		if s.install != nil && wish.Hours != nil {
			return "", fault.With(fault.Newf(fault.ErrInvalid, "hours is for the policy of an app"), fault.Remedy("set approval_hours of the install: `berth installs set %s approval-time=48h`", s.install.Name))
		}
		ids, err := s.lock(ctx, tx)
		if err != nil {
			return "", err
		}
		put := ctldb.PutPolicyParams{
			Approvals: int32(wish.Approvals), Roles: []string{}, NoSelfApproval: wish.NoSelfApproval, UpdatedBy: auth.PrincipalOf(ctx).AccountName,
		}
		put.AppID, put.InstallID = s.ids()
		if wish.Hours != nil {
			put.Hours = optional.Of(int32(*wish.Hours))
		}
		for _, r := range wish.Roles {
			put.Roles = append(put.Roles, string(r))
		}
		slices.Sort(put.Roles)
		put.Roles = slices.Compact(put.Roles)
		row, err := tx.PutPolicy(ctx, put)
		if err != nil {
			return "", err
		}
		if err := commonRole(ctx, tx, s, clearance.Policy(row)); err != nil {
			return "", err
		}
		if err := clearance.Wake(ctx, tx, ids...); err != nil {
			return "", err
		}
		out, err = policyView(ctx, tx, s)
		return fmt.Sprintf("set the approval policy of %s to %d approvals of %s, self-approval %s", s.name(), row.Approvals, clearance.Policy(row).Who(), onOff(!row.NoSelfApproval)), err
	})
	return out, err
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// commonRole refuses a policy that would leave nobody who may approve.
func commonRole(ctx context.Context, tx *database.Tx, s scope, set approval.Policy) error {
	refuse := func(install string) error {
		return fault.With(fault.Newf(fault.ErrConflict, "the policies of app %s and install %s would have no role in common: nobody could approve", s.app.Name, install),
			fault.Code("no_common_role"), fault.Remedy("see `berth approvals show --install %s`", install))
	}
	if s.install != nil {
		policy, _, err := clearance.PolicyOf(ctx, tx, *s.install)
		if err == nil && policy.Roles != nil && len(policy.Roles) == 0 {
			err = refuse(s.install.Name)
		}
		return err
	}
	rows, err := tx.PoliciesOfInstallsOfApp(ctx, s.app.ID)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if both := approval.Stricter(set, clearance.Policy(r.ApprovalPolicy)); both.Roles != nil && len(both.Roles) == 0 {
			return refuse(r.Name)
		}
	}
	return nil
}

func policyView(ctx context.Context, tx *database.Tx, s scope) (apigen.ApprovalPolicy, error) {
	var out apigen.ApprovalPolicy
	of := ctldb.PoliciesOfParams{AppID: s.app.ID, InstallID: s.app.ID}
	about := s.app.ID
	policy, hours := approval.Stricter(approval.Policy{}, approval.Policy{}), defaultHours
	if s.install != nil {
		of.InstallID, about = s.install.ID, s.install.ID
		var err error
		if policy, hours, err = clearance.PolicyOf(ctx, tx, *s.install); err != nil {
			return out, err
		}
	}
	rows, err := tx.PoliciesOf(ctx, of)
	if err != nil {
		return out, err
	}
	for _, r := range rows {
		if r.About != about {
			continue
		}
		set := rulesView(approval.Stricter(clearance.Policy(r), approval.Policy{}))
		if r.Hours != nil {
			set.Hours = optional.Of(int(*r.Hours))
		}
		out.Set, out.UpdatedBy, out.UpdatedAt = &set, &r.UpdatedBy, &r.UpdatedAt
		if s.install == nil {
			policy = clearance.Policy(r)
			if r.Hours != nil {
				hours = int(*r.Hours)
			}
		}
	}
	out.InForce = rulesView(policy)
	out.InForce.Hours = &hours
	return out, nil
}

func rulesView(p approval.Policy) apigen.ApprovalRules {
	return apigen.ApprovalRules{Approvals: p.Approvals, Roles: rolesView(p.Roles), NoSelfApproval: p.NoSelf, PeopleDecide: p.DemandsPeople()}
}

func rolesView(roles []auth.Role) []apigen.ApproverRole {
	out := make([]apigen.ApproverRole, len(roles))
	for i, r := range roles {
		out[i] = apigen.ApproverRole(r)
	}
	return out
}

// ApprovalsView is how the vote on a change stands.
func ApprovalsView(c approval.Case) *apigen.Approvals {
	n := c.Count()
	out := &apigen.Approvals{
		Needed: n.Needed, By: append([]string{}, n.By...), Missing: n.Missing(), Roles: rolesView(c.Policy.Roles), Void: append([]string{}, n.Void...), Summary: c.Says(),
	}
	if c.Policy.NoSelf {
		out.NotBy = c.Asker
	}
	return out
}
