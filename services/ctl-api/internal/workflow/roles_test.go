package workflow_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/explain"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/roles"
	"github.com/berth-dev/berth/services/ctl-api/internal/roleswitch"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

const repairRole = "{{ .nuon.id }}-repair"

// withRoles is a live install with a break-glass role and a custom one, and actions for
// them. Every change is approved.
func withRoles(t *testing.T) *rig {
	t.Helper()
	action := func(name, role string, triggers ...appconfig.Trigger) appconfig.Action {
		return appconfig.Action{
			Name: name, BreakGlassRole: role, Timeout: place.Duration(time.Minute), Steps: []appconfig.Step{{Name: "s", Command: "true"}}, Triggers: triggers,
		}
	}
	on, off := appconfig.TriggerRoleEnabled, appconfig.TriggerRoleDisabled
	r := newRig(t, func(app *appconfig.App) {
		app.BreakGlass = []appconfig.Role{{Type: appconfig.RoleBreakGlass, Name: "{{.nuon.install.id}}-repair"}}
		app.Permissions = []appconfig.Role{{Type: appconfig.RoleCustom, Name: "{{ .nuon.inputs.inputs.gone }}-audit"}}
		app.Actions = []appconfig.Action{
			action("repair", repairRole, appconfig.Trigger{Type: "manual"}, appconfig.Trigger{Type: "post-deploy-component"}),
			action("second", "", appconfig.Trigger{Type: on, Index: 2}),
			action("first", repairRole, appconfig.Trigger{Type: on, Index: 1}),
			action("audit", "{{ .nuon.inputs.inputs.gone }}-audit", appconfig.Trigger{Type: on}),
			action("tidy", repairRole, appconfig.Trigger{Type: off}),
			action("lost", "nobody-declares-it", appconfig.Trigger{Type: "manual"}),
		}
	})
	r.provisionWithoutChecks()
	r.exec(`update installs set approval_option = 'approve_all'`)
	return r
}

// told is a report of the runner: the role as it stands, and the switch that made it so.
func (r *rig) told(switchID string, on bool) {
	r.t.Helper()
	r.exec(`insert into role_switches (org_id, install_id, id, role, name, enabled, switched_at, switched_by) values ($1, $2, $3, $4, 'acme-repair', $5, now(), 'customer')
		on conflict do nothing`, r.org, r.install, switchID, repairRole, on)
	r.exec(`insert into install_roles (org_id, install_id, written, name, known, kind, switch_id) values ($1, $2, $3, 'acme-repair', true, 'break_glass', case when $4 then $5 end)
		on conflict (org_id, install_id, written) do update set switch_id = excluded.switch_id`, r.org, r.install, repairRole, on, switchID)
}

func (r *rig) switches() *roleswitch.Starter {
	return &roleswitch.Starter{Store: r.ctl, Log: slog.New(slog.DiscardHandler), Start: func(ctx context.Context, tx *database.Tx, installID string, s roles.Switch) (string, error) {
		return workflow.Start(ctx, tx, workflow.Request{InstallID: installID, Kind: flow.KindRoleSwitch, RoleSwitch: &s, Actor: "the customer"})
	}}
}

// started are the workflows of switches, the oldest first.
func (r *rig) started() []string {
	return strings.Fields(r.value(`select coalesce(string_agg(id, ' ' order by number), '') from workflows where kind = 'role_switch'`))
}

func (r *rig) why(id string) (codes, text string) {
	r.t.Helper()
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		a, err := explain.Workflow(ctx, tx, id, time.Now())
		for _, reason := range a.Reasons {
			codes += string(reason.Code) + " " + string(reason.Who) + " "
			text += reason.Reason + " | " + reason.Unblock + "\n"
		}
		return err
	})
	return strings.TrimSpace(codes), text
}

func TestActionWaitsForItsRole(t *testing.T) {
	t.Parallel()
	r := withRoles(t)
	r.told("rsw_1", false)
	w := r.start(workflow.Request{Kind: flow.KindActionRun, Action: "repair"})
	r.planned(w, "action/repair", "repair")
	if got := r.steps(w)["action/repair"]; got != "waiting approved" {
		t.Errorf("with its role off it is %q", got)
	}
	if codes, text := r.why(w); codes != "role_off customer" || !strings.Contains(text, "role acme-repair is off") || !strings.Contains(text, "berth-runner roles enable acme-repair") {
		t.Errorf("it waits for %s: %s", codes, text)
	}
	if stuck := r.value(`select berth.stuck_workflows()::text`); stuck != "{}" {
		t.Errorf("the sweep takes it for stuck: %s", stuck)
	}
	r.told("rsw_2", true)
	if stuck := r.value(`select berth.stuck_workflows()::text`); !strings.Contains(stuck, w) {
		t.Errorf("the sweep does not see that it can go on: %s", stuck)
	}
	r.advance(w)
	r.applied(w, "action/repair", jobspec.OutcomeSucceeded, nil)
	want := map[string]string{"runner": "succeeded", "release": "succeeded no_change", "action/repair": "succeeded applied"}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("with its role on (-want +got):\n%s", diff)
	}
	if n := r.value(`select count(*)::text from steps where name like 'post-deploy-component%'`); n != "0" {
		t.Errorf("a deploy runs an action that needs a role: %s times", n)
	}
	// The runner found the role off after all: it waits again, without another approval.
	w = r.start(workflow.Request{Kind: flow.KindActionRun, Action: "repair"})
	r.planned(w, "action/repair", "repair")
	r.told("rsw_3", false)
	r.applied(w, "action/repair", jobspec.OutcomeStale, nil)
	r.planned(w, "action/repair", "repair")
	if got := r.steps(w)["action/repair"]; got != "waiting approved" {
		t.Errorf("refused by the runner, it is %q", got)
	}
}

func TestUnknownRoleWaitsWithAReason(t *testing.T) {
	t.Parallel()
	r := withRoles(t)
	r.told("rsw_1", true)
	for _, tc := range []struct{ action, says string }{{"lost", "nobody-declares-it"}, {"audit", "is rendered from what the install did not have"}} {
		r.exec(`insert into install_roles (org_id, install_id, written, name, known, kind) values ($1, $2, '{{ .nuon.inputs.inputs.gone }}-audit', '{{ .nuon.inputs.inputs.gone }}-audit', false, 'custom')
			on conflict do nothing`, r.org, r.install)
		w := r.start(workflow.Request{Kind: flow.KindActionRun, Action: tc.action})
		r.planned(w, "action/"+tc.action, tc.action)
		if codes, text := r.why(w); codes != "role_unknown operator" || !strings.Contains(text, tc.says) || !strings.Contains(text, "berth deploy acme") {
			t.Errorf("%s waits for %s: %s", tc.action, codes, text)
		}
		if stuck := r.value(`select berth.stuck_workflows()::text`); stuck != "{}" {
			t.Errorf("%s: the sweep takes it for stuck: %s", tc.action, stuck)
		}
	}
}

// Each switch starts one workflow with the actions that it is for, in the order of the
// customer's switches, however often it is looked at, and by however many.
func TestRoleSwitchStartsItsActions(t *testing.T) {
	t.Parallel()
	r := withRoles(t)
	r.told("rsw_1", true)
	r.told("rsw_2", false) // both while the control plane was away
	r.told("rsw_1", false)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := r.switches().Advance(t.Context(), r.install); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ids := r.started()
	if len(ids) != 2 {
		t.Fatalf("two switches started %d workflows", len(ids))
	}
	if got := r.value(`select string_agg(id || ' ' || workflow_id, ', ' order by n) from role_switches where handled_at is not null`); got != "rsw_1 "+ids[0]+", rsw_2 "+ids[1] {
		t.Errorf("handled: %s; want them in order, with %v", got, ids)
	}
	r.told("rsw_2", true) // on again, so that both can run
	for i, want := range []string{"role-enabled/first role-enabled/second", "role-disabled/tidy"} {
		r.advance(ids[i])
		if got := r.value(`select string_agg(name, ' ' order by idx) from steps where workflow_id = $1 and action is not null`, ids[i]); got != want {
			t.Errorf("switch %d starts %q, want %q", i+1, got, want)
		}
		if by := r.value(`select created_by from workflows where id = $1`, ids[i]); by != "the customer" {
			t.Errorf("switch %d was made by %q", i+1, by)
		}
	}
	r.ran(ids[0], "role-enabled/first")
	r.ran(ids[0], "role-enabled/second")
	// The role is off by now: what it starts runs all the same, and says why.
	r.told("rsw_2", false)
	r.planned(ids[1], "role-disabled/tidy", "tidy")
	_, spec := r.openJob(ids[1], "role-disabled/tidy")
	if spec.Action.SwitchedOff != "rsw_2" || spec.Action.BreakGlassRole != repairRole {
		t.Errorf("the order of what a role that went off starts: %+v", spec.Action)
	}
	r.applied(ids[1], "role-disabled/tidy", jobspec.OutcomeSucceeded, nil)
	for _, id := range ids {
		if state := r.value(`select state from workflows where id = $1`, id); state != "succeeded" {
			t.Errorf("workflow %s is %s", id, state)
		}
	}
	if got := r.value(`select string_agg(action || ' ' || trigger, ', ' order by action) from action_runs where workflow_id = any ($1)`, ids); got != "first role-enabled, second role-enabled, tidy role-disabled" {
		t.Errorf("runs: %s", got)
	}
	// Nothing to start is done with too; and people cannot ask for such a workflow.
	r.exec(`update installs set state = 'deprovisioned'`)
	r.told("rsw_3", true)
	if err := r.switches().Advance(t.Context(), r.install); err != nil {
		t.Fatal(err)
	}
	if got := r.value(`select count(*) filter (where handled_at is null) || ' open, ' || count(workflow_id) from role_switches`); got != "0 open, 2" {
		t.Errorf("after a switch with nothing to start: %s", got)
	}
	r.exec(`update installs set state = 'live'`)
	err := r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
		_, err := workflow.Start(ctx, tx, workflow.Request{InstallID: r.install, Kind: flow.KindRoleSwitch, Actor: "ada"})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "by the customer's switch") {
		t.Errorf("a person started the actions of a switch: %v", err)
	}
}

// The acceptance brings the names of roles as far as the install's state knows them, and
// of what is sealed nothing.
func TestRolesAreNamed(t *testing.T) {
	t.Parallel()
	r := withRoles(t)
	var spec jobspec.Spec
	if err := json.Unmarshal([]byte(r.value(`select spec::text from runner_jobs where spec ->> 'kind' = 'release' order by id limit 1`)), &spec); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, role := range spec.Release.Roles {
		got[role.Name] = role.Known
	}
	if diff := cmp.Diff(map[string]bool{r.install + "-repair": true, "{{ .nuon.inputs.inputs.gone }}-audit": false}, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
}
