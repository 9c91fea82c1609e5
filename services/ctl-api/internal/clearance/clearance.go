// Package clearance reads what has to be so before a change is carried out: the policy
// of approval and the votes, freezes and their overrides, the vendor's pause. What
// follows from them is decided in packages approval, freeze and flow.
package clearance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/approval"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/freeze"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Clearance is what holds for the changes of one workflow.
type Clearance struct {
	Policy approval.Policy
	// Hold is nil when changes may be carried out now.
	Hold *flow.Hold
	// Overrides let the workflow through freezes.
	Overrides []ctldb.FreezeOverride

	asker string
	votes map[string][]approval.Vote // by change
	// hours is how long proposals of the install wait.
	hours int
	now   time.Time
}

// Read reads it, as it is now.
func Read(ctx context.Context, tx *database.Tx, w ctldb.Workflow, install ctldb.Install, now time.Time) (*Clearance, error) {
	c := &Clearance{asker: w.CreatedBy, votes: map[string][]approval.Vote{}, now: now}
	var hours int
	var err error
	if c.Policy, hours, err = PolicyOf(ctx, tx, install); err != nil {
		return nil, err
	}
	c.hours = hours
	rows, err := tx.VotesOfWorkflow(ctx, w.ID)
	if err != nil {
		return nil, fmt.Errorf("read votes: %w", err)
	}
	for _, r := range rows {
		c.votes[r.ChangeID] = append(c.votes[r.ChangeID], approval.Vote{
			Rule: r.Rule, Account: r.AccountID, Name: r.Actor, Service: r.AccountKind == "service", Removed: r.Removed, TokenRevoked: r.TokenRevoked, Roles: rolesOf(r.Roles),
		})
	}
	if c.Overrides, err = tx.OverridesOfWorkflow(ctx, w.ID); err != nil {
		return nil, fmt.Errorf("read overrides: %w", err)
	}
	c.Hold, err = HoldOf(ctx, tx, install, c.Overrides, now)
	return c, err
}

// ReadOf reads what holds for a change.
func ReadOf(ctx context.Context, tx *database.Tx, c ctldb.Change, now time.Time) (*Clearance, error) {
	w, err := tx.GetWorkflow(ctx, c.WorkflowID)
	if err != nil {
		return nil, fmt.Errorf("read workflow: %w", err)
	}
	install, err := tx.FindInstall(ctx, c.InstallID)
	if err != nil {
		return nil, fmt.Errorf("read install: %w", err)
	}
	return Read(ctx, tx, w, install, now)
}

// PolicyOf is the policy in force for an install, and for how many hours its
// proposals wait.
func PolicyOf(ctx context.Context, tx *database.Tx, install ctldb.Install) (approval.Policy, int, error) {
	rows, err := tx.PoliciesOf(ctx, ctldb.PoliciesOfParams{InstallID: install.ID, AppID: install.AppID})
	if err != nil {
		return approval.Policy{}, 0, fmt.Errorf("read policies of approval: %w", err)
	}
	policy, hours := approval.Stricter(approval.Policy{}, approval.Policy{}), int(install.ApprovalHours)
	for _, r := range rows {
		policy = approval.Stricter(policy, Policy(r))
		if r.Hours != nil && !install.ApprovalHoursOwn {
			hours = int(*r.Hours)
		}
	}
	return policy, hours, nil
}

// Policy is what a row says.
func Policy(r ctldb.ApprovalPolicy) approval.Policy {
	p := approval.Policy{Approvals: int(r.Approvals), NoSelf: r.NoSelfApproval}
	if len(r.Roles) > 0 {
		p.Roles = rolesOf(r.Roles)
	}
	return p
}

func rolesOf(names []string) []auth.Role {
	roles := make([]auth.Role, len(names))
	for i, n := range names {
		roles[i] = auth.Role(n)
	}
	return roles
}

// HoldOf says what keeps the changes of an install from being carried out at a time;
// nil for nothing. Overrides are those of the workflow.
func HoldOf(ctx context.Context, tx *database.Tx, install ctldb.Install, overrides []ctldb.FreezeOverride, now time.Time) (*flow.Hold, error) {
	if install.PausedAt != nil {
		return &flow.Hold{Reason: model.WaitPaused, On: "operator", Text: fmt.Sprintf("%s paused the install: %s", *install.PausedBy, *install.PauseReason)}, nil
	}
	rows, err := tx.FreezesOf(ctx, ctldb.FreezesOfParams{InstallID: &install.ID, AppID: &install.AppID, After: now})
	if err != nil {
		return nil, fmt.Errorf("read freezes: %w", err)
	}
	windows, err := Windows(rows)
	if err != nil {
		return nil, err
	}
	windows = slices.DeleteFunc(windows, func(w freeze.Window) bool {
		return slices.ContainsFunc(overrides, func(o ctldb.FreezeOverride) bool { return o.FreezeID == w.ID && now.Before(o.Until) })
	})
	if in, until, ok := freeze.At(windows, now); ok {
		text := fmt.Sprintf("a freeze holds until %s: %s", until.Format(time.RFC3339), in.Reason)
		return &flow.Hold{Reason: model.WaitFreeze, On: in.ID, Until: until, Text: text}, nil
	}
	return nil, nil
}

// Windows are the windows of rows.
func Windows(rows []ctldb.Freeze) ([]freeze.Window, error) {
	out := make([]freeze.Window, len(rows))
	for i, r := range rows {
		weekly, err := freeze.Read(r.Weekly)
		if err != nil {
			return nil, err
		}
		out[i] = freeze.Window{ID: r.ID, Reason: r.Reason, Starts: optional.Value(r.StartsAt), Ends: optional.Value(r.EndsAt), Weekly: weekly}
	}
	return out, nil
}

// Case is how the vote on a change stands.
func (c *Clearance) Case(changeID string) approval.Case {
	return approval.Case{Policy: c.Policy, Asker: c.asker, Votes: c.votes[changeID]}
}

// Vote is that of a principal on a change in an install.
func Vote(p auth.Principal, at auth.Location) approval.Vote {
	v := approval.Vote{Rule: model.RulePerson, Account: p.AccountID, Name: p.AccountName}
	for _, g := range p.Grants {
		if g.Includes(at) {
			v.Roles = append(v.Roles, g.Role)
		}
	}
	return v
}

// Fill completes a change as flow.Next looks at it.
func (c *Clearance) Fill(change *flow.Change) {
	count := c.Case(change.ID).Count()
	change.Votes, change.Missing, change.Void = len(count.By), count.Missing(), count.Void
	change.ReopenedUntil = flow.ApprovalDeadline(c.now, c.hours)
}
