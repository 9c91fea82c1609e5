package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// gatherRoles reads which actions need a role and, of a switch, which actions it starts.
func gatherRoles(ctx context.Context, tx *database.Tx, b basis, r release) error {
	r.in.Roles = map[string]string{}
	for i := range r.app.Actions {
		if a := &r.app.Actions[i]; a.BreakGlassRole != "" {
			r.in.Roles[a.Name] = customerrole.Canonical(a.BreakGlassRole)
		}
	}
	if b.RoleSwitch == nil {
		return nil
	}
	known, err := roles.Read(ctx, tx.Queries, b.install.ID)
	if err != nil {
		return err
	}
	r.in.Switch, r.in.Switched = string(b.RoleSwitch.Trigger()), b.RoleSwitch.Name
	for i := range r.app.Actions {
		a := &r.app.Actions[i]
		for _, t := range a.Triggers {
			if t.Type == b.RoleSwitch.Trigger() && known.About(*b.RoleSwitch, a) {
				r.in.Hooks = append(r.in.Hooks, flow.PlanHook{Action: a.Name, Trigger: string(t.Type), Index: t.Index})
			}
		}
	}
	return nil
}

// readRoles reads the roles of the install, when a step has an approved change that needs
// one.
func (r *rows) readRoles(ctx context.Context, tx *database.Tx) (err error) {
	r.roles = nil
	if slices.ContainsFunc(r.steps, func(row ctldb.StepsToMoveRow) bool { return roleOf(row) != "" }) {
		r.roles, err = roles.Read(ctx, tx.Queries, r.workflow.InstallID)
	}
	return err
}

// roleOf is the role that the approved change of a step needs; "" for none.
func roleOf(row ctldb.StepsToMoveRow) string {
	if row.ChangeState != string(model.ChangeApproved) {
		return ""
	}
	return roles.OfStep(row.Step)
}

// roleHold is why the approved change of a step is not carried out yet; nil when it needs
// no role, or that is on.
func (r *rows) roleHold(row ctldb.StepsToMoveRow) *flow.Hold {
	if role := roleOf(row); role != "" {
		return r.roles.Hold(role)
	}
	return nil
}

// errSealed is why a name is not rendered that reads a sealed value.
var errSealed = errors.New("it is sealed")

// nameRoles renders the names of a release's roles with the install's state, as far as it
// can: what is sealed is not opened here, so it names nothing.
func nameRoles(list []customerrole.Role, tree json.RawMessage) error {
	if len(list) == 0 {
		return nil
	}
	var state map[string]any
	if err := json.Unmarshal(tree, &state); err != nil {
		return fmt.Errorf("read state tree: %w", err)
	}
	shown, _ := seal.RedactLeaves(state).(map[string]any)
	for i := range list {
		list[i].Name, list[i].Known = customerrole.Named(list[i].Written, func(template string) (string, error) {
			text, err := interpolate.Render(template, interpolate.NewState(shown), interpolate.Options{File: "the name of a role"})
			if err == nil && strings.Contains(text, seal.Redacted) {
				err = errSealed
			}
			return text, err
		})
	}
	return nil
}

// switchedOff is the switch by which the role of an action went off that is run because of
// that; "" for any other run. The runner checks it.
func switchedOff(p requestParams, action *jobspec.Action) string {
	if s := p.RoleSwitch; s != nil && s.Trigger() == appconfig.TriggerRoleDisabled && action.BreakGlassRole != "" {
		return s.ID
	}
	return ""
}
