package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/roles"
)

const repairRole = "{{ .nuon.id }}-repair"

// newRoleChange is the approved run of an action that needs a role, which the accepted
// release declares, with another one that is on. It appends a line to "effects".
func newRoleChange(t *testing.T) (*change, roles.Store) {
	t.Helper()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	s := jobspec.Script{TimeoutSeconds: 60, Action: jobspec.Action{Name: "repair", BreakGlassRole: repairRole, Steps: []jobspec.ActionStep{{Name: "s", InlineContents: "append " + r.file("effects")}}}}
	r.accept(s)
	store := roles.Store{Dir: r.dir.Roles(), Now: time.Now}
	err := store.Declare([]customerrole.Role{{Written: repairRole, Name: "acme-repair", Known: true}, {Written: "other", Name: "other", Known: true}})
	if err != nil {
		t.Fatal(err)
	}
	c := newChangeOn(t, r, here, func(spec *jobspec.Spec) {
		action := s.Action
		spec.Kind, spec.Work, spec.Artifact, spec.Resource, spec.Action, spec.TimeoutSeconds = jobspec.KindAction, jobspec.Work{}, nil, nil, &action, 60
	})
	c.switchRole(store, "other", true, 0)
	return c, store
}

// switchRole switches a role as the customer does, and waits until the chain has that.
func (c *change) switchRole(store roles.Store, name string, on bool, limit time.Duration) string {
	c.t.Helper()
	done, err := store.Switch(roles.Ask{Name: name, On: on, For: limit, By: "ada"})
	if err != nil {
		c.t.Fatal(err)
	}
	c.plane.until(c.t, "the record of the switch", func() bool {
		for _, line := range c.plane.chain {
			if strings.Contains(string(line.Body), done.ID) {
				return true
			}
		}
		return false
	})
	// One with a limit may be over by now.
	for over := time.Now().Add(limit); ; {
		d, _, err := store.Read()
		if err != nil || d.On(done.Role, time.Now()) == on || limit > 0 && time.Now().After(over) {
			return done.ID
		}
	}
}

// noFence is how an action is granted: it holds no resource.
func noFence(g *given) {
	none := int64(0)
	g.Fence, g.Order.Fence = &none, 0
}

// Somebody who holds the dispatch key, and so signs what he likes, gets no action run that
// needs a role while the customer has that off.
func TestAttackRoles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		edit    func(*given)
		field   string
		outcome jobspec.Outcome
	}{
		{name: "the role is off", edit: noFence, field: "role", outcome: jobspec.OutcomeStale},
		{name: "the role left out", edit: func(g *given) { g.Spec.Action.BreakGlassRole = "" }, field: "action.break_glass_role"},
		{name: "the role swapped for one that is on", edit: func(g *given) { g.Spec.Action.BreakGlassRole = "other" }, field: "action.break_glass_role"},
		{name: "as if a switch had started it", edit: func(g *given) { g.Spec.Action.SwitchedOff = id.New(id.RoleSwitch) }, field: "role", outcome: jobspec.OutcomeStale},
		{name: "as a script of nobody's under a role", edit: func(g *given) { g.Spec.Action.Steps[0].InlineContents = "true" }, field: "script"},
		{name: "as a check", edit: func(g *given) {
			g.Spec.Operation, g.Spec.ChangeID, g.Spec.Pinned, g.Spec.Action.ReadOnly, g.Fence = jobspec.OperationRun, "", "", true, nil
			g.Order.Operation, g.Order.ChangeID, g.Order.OriginID, g.Order.Starts = "run", "", "", capsule.StartsOfReading
			g.Order.EffectDigest, g.Order.PlanBytesDigest, g.Order.Fence, g.Order.Nonce = "", "", 0, ""
		}, field: "script"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, _ := newRoleChange(t)
			if tc.outcome == "" {
				tc.outcome = jobspec.OutcomeRefused
			}
			result := c.plane.result(t, c.order(func(g *given) { noFence(g); tc.edit(g) }))
			if result.Outcome != tc.outcome || len(result.Differs) != 1 || result.Differs[0].Field != tc.field {
				t.Errorf("result = %+v, want %s because of %s", result, tc.outcome, tc.field)
			}
			if exists(c.file("effects")) {
				t.Error("the action ran")
			}
		})
	}
}

// An order is carried out while the customer has the role on, and is not good before,
// after, or once the time of the switch is over, which no report of before changes.
func TestRoleLetsAnActionRun(t *testing.T) {
	t.Parallel()
	c, store := newRoleChange(t)
	stale := func(when string) {
		t.Helper()
		result := c.plane.result(t, c.order(noFence))
		if result.Outcome != jobspec.OutcomeStale || !strings.Contains(result.Remedy, "berth-runner roles enable acme-repair") {
			t.Errorf("%s: %+v", when, result)
		}
	}
	c.switchRole(store, "acme-repair", true, time.Hour)
	c.switchRole(store, "acme-repair", false, 0)
	stale("after the customer switched it off")
	c.switchRole(store, "acme-repair", true, 200*time.Millisecond)
	c.recorded("its time was over")
	stale("after its time was over")
	c.recorded("refused: role acme-repair is off")
	c.switchRole(store, "acme-repair", true, time.Hour)
	if result := c.plane.result(t, c.order(noFence)); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("while the role is on: %+v", result)
	}
	if n := len(c.effects()); n != 1 {
		t.Errorf("it ran %d times, want once", n)
	}
}
