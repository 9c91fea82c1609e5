package main

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/runnerapi"
)

// A switch counts once, also when it is reported again, and makes one event; the install is
// woken only when something is new.
func TestRolesAreRecordedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	enrolled := 1 // that woke the install too
	first := heldRoles(id.New(id.RoleSwitch))
	second := heldRoles(first.Switches[0].ID)
	second.Roles[0].SwitchID = nil
	second.Switches = append(second.Switches, runnerapi.RoleSwitch{ID: id.New(id.RoleSwitch), Role: "repair", Name: "repair", At: time.Now(), By: "berth-runner", Reason: new("its time was over")})
	none := second
	none.Roles = []runnerapi.RoleState{}
	for i, tc := range []struct {
		report                       runnerapi.RolesReport
		switches, roles, on, wakeUps int
	}{{first, 1, 1, 1, 1}, {first, 1, 1, 1, 1}, {second, 2, 1, 0, 2}, {second, 2, 1, 0, 2}, {none, 2, 0, 0, 3}} {
		if status, answer := a.send(http.MethodPut, "/roles", tc.report); status != http.StatusNoContent {
			t.Fatalf("report %d: %d %s", i, status, answer)
		}
		got := one[string](w, `select format('%s %s %s %s %s',
			(select count(*) from role_switches where org_id = $1), (select count(*) from install_roles where org_id = $1),
			(select count(*) from install_roles where org_id = $1 and switch_id is not null),
			(select count(*) from river_ctl.river_job where kind = 'install_advance' and args ->> 'install_id' = $2),
			(select count(*) from (select kind, org_id from event_outbox union all select kind, org_id from events) e where e.org_id = $1 and kind like 'role.%'))`, a.o.id, a.o.install)
		if want := fmt.Sprint(tc.switches, tc.roles, tc.on, enrolled+tc.wakeUps, tc.switches); got != want {
			t.Errorf("after report %d: switches, roles, on, wake-ups, events are %s, want %s", i, got, want)
		}
	}
	late := heldRoles(id.New(id.RoleSwitch))
	late.Switches[0].At = time.Now().Add(time.Hour)
	if status, answer := a.send(http.MethodPut, "/roles", late); status != http.StatusNoContent {
		t.Errorf("of a clock that is ahead: %d %s", status, answer)
	}
	if !one[bool](w, `select switched_at <= now() from role_switches where id = $1`, late.Switches[0].ID) {
		t.Error("a switch is dated in the future")
	}
}
