package roles_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/customerrole"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/roles"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const repair = "{{ .nuon.id }}-repair" // a role as an app writes it

// script is an accepted script.
func script(name, role, command string, whenOff bool) scripts.Accepted {
	s := jobspec.Script{
		Action:         jobspec.Action{Name: name, BreakGlassRole: role, Steps: []jobspec.ActionStep{{Name: "s", Command: command}}},
		TimeoutSeconds: 60, Inputs: []string{"reason"}, WhenRoleIsOff: whenOff,
	}
	digest, err := s.Digest()
	if err != nil {
		panic(err)
	}
	return scripts.Accepted{Digest: digest, Script: s}
}

// find is what scripts.Set.Find does.
func find(list []scripts.Accepted) func(jobspec.Action, int) (scripts.Accepted, bool) {
	return func(action jobspec.Action, timeout int) (scripts.Accepted, bool) {
		for _, a := range list {
			asked := a.Script
			asked.Action, asked.TimeoutSeconds = action, timeout
			if digest, err := asked.Digest(); err == nil && digest == a.Digest {
				return a, true
			}
		}
		return scripts.Accepted{}, false
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	accepted := []scripts.Accepted{
		script("repair", repair, "fix", false), script("tidy", repair, "tidy", true), script("plain", "", "look", false),
		script("audit", "acme-audit", "read", false), script("lost", "gone", "x", false),
		{Script: jobspec.Script{Plugin: "ansible", Action: jobspec.Action{Name: "repair"}}},
	}
	declared := []customerrole.Role{
		{Written: repair, Name: "acme-repair", Known: true}, {Written: "other", Name: "other", Known: true},
		{Written: "{{ .nuon.id }}-audit", Name: "acme-audit", Known: true},
	}
	sw := func(id, role string, on bool, more ...func(*roles.Logged)) roles.Logged {
		l := roles.Logged{Recorded: true, Switch: customerrole.Switch{ID: id, Role: role, Name: "acme-repair", On: on, At: noon.Add(-time.Hour)}}
		for _, change := range more {
			change(&l)
		}
		return l
	}
	until := func(at time.Time) func(*roles.Logged) { return func(l *roles.Logged) { l.Until = at } }
	order := func(of int, change ...func(*jobspec.Action)) jobspec.Action {
		a := accepted[of].Script.Action
		for _, c := range change {
			c(&a)
		}
		return a
	}
	role := func(name string) func(*jobspec.Action) { return func(a *jobspec.Action) { a.BreakGlassRole = name } }
	on := []roles.Logged{sw("rsw_1", repair, true)}
	off := []roles.Logged{sw("rsw_1", repair, true), sw("rsw_2", repair, false)}
	const refused, stale = jobspec.OutcomeRefused, jobspec.OutcomeStale
	for _, tc := range []struct {
		name   string
		action jobspec.Action
		log    []roles.Logged
		op     jobspec.Operation // apply when it is left out
		want   jobspec.Outcome   // "" for none
		field  string
	}{
		{"on", order(0), on, "", "", ""},
		{"on, with an input that it takes", order(0, func(a *jobspec.Action) { a.Inputs = map[string]string{"reason": "x"} }), on, "", "", ""},
		{"on, with another input", order(0, func(a *jobspec.Action) { a.Inputs = map[string]string{"PATH": "x"} }), on, "", refused, "action.inputs"},
		{"an action without a role", order(2), nil, "", "", ""},
		{"an action without a role that was never accepted", jobspec.Action{Name: "new"}, nil, "", "", ""},
		{"never switched on", order(0), nil, "", stale, "role"},
		{"switched off again", order(0), off, "", stale, "role"},
		{"planned while it is off: a plan runs nothing", order(0), nil, jobspec.OperationPlan, "", ""},
		{"another role is on", order(0), []roles.Logged{sw("rsw_1", "other", true)}, "", stale, "role"},

		// A control plane that leaves the role out, or names another one.
		{"the role removed", order(0, role("")), on, "", refused, "action.break_glass_role"},
		{"the role removed, in the plan", order(0, role("")), on, jobspec.OperationPlan, refused, "action.break_glass_role"},
		{"the role swapped for one that is on", order(0, role("other")), []roles.Logged{sw("rsw_1", "other", true)}, "", refused, "action.break_glass_role"},
		{"the name of an accepted script, another text", order(0, func(a *jobspec.Action) { a.Steps = []jobspec.ActionStep{{Name: "s", Command: "rm"}} }), on, "", refused, "script"},
		{"a script that nobody accepted, under a role", jobspec.Action{Name: "new", BreakGlassRole: repair}, on, "", refused, "script"},
		{"an ad-hoc script under a role", order(0, func(a *jobspec.Action) { a.AdHoc = true }), on, "", refused, "script"},
		{"a role that no accepted release declares", order(4), on, "", refused, "action.break_glass_role"},

		// Old switches, and clocks.
		{"its time is over", order(0), []roles.Logged{sw("rsw_1", repair, true, until(noon))}, "", stale, "role"},
		{"its time is not over", order(0), []roles.Logged{sw("rsw_1", repair, true, until(noon.Add(time.Second)))}, "", "", ""},
		{"the clock was set back before the switch", order(0), []roles.Logged{sw("rsw_1", repair, true, until(noon.Add(3*time.Hour)), func(l *roles.Logged) { l.At = noon.Add(2 * time.Hour) })}, "", stale, "role"},
		{"the chain does not have it yet", order(0), []roles.Logged{sw("rsw_1", repair, true, func(l *roles.Logged) { l.Recorded = false })}, "", stale, "role"},
		{"switched off, and the chain does not have that yet", order(0), []roles.Logged{sw("rsw_1", repair, true), sw("rsw_2", repair, false, func(l *roles.Logged) { l.Recorded = false })}, "", stale, "role"},

		// What a role that went off starts.
		{"after it went off", order(1, func(a *jobspec.Action) { a.SwitchedOff = "rsw_2" }), off, "", "", ""},
		{"after a switch that never was", order(1, func(a *jobspec.Action) { a.SwitchedOff = "rsw_9" }), off, "", stale, "role"},
		{"after a switch by which it went on", order(1, func(a *jobspec.Action) { a.SwitchedOff = "rsw_1" }), off, "", stale, "role"},
		{"after another role went off", order(1, func(a *jobspec.Action) { a.SwitchedOff = "rsw_2" }), []roles.Logged{sw("rsw_2", "other", false)}, "", stale, "role"},
		{"a script that was not accepted for that", order(0, func(a *jobspec.Action) { a.SwitchedOff = "rsw_2" }), off, "", stale, "role"},

		// A literal name finds a role by what that is called here.
		{"by its name here", order(3), []roles.Logged{sw("rsw_1", "{{ .nuon.id }}-audit", true, func(l *roles.Logged) { l.Name = "acme-audit" })}, "", "", ""},
		{"by a name that the role got after it was switched", order(3), []roles.Logged{sw("rsw_1", "{{ .nuon.id }}-audit", true, func(l *roles.Logged) { l.Name = "acme-harmless" })}, "", stale, "role"},
	} {
		op := tc.op
		if op == "" {
			op = jobspec.OperationApply
		}
		got := roles.Judge(roles.Asked{
			Spec: jobspec.Spec{Kind: jobspec.KindAction, Operation: op, Action: &tc.action, TimeoutSeconds: 60}, Scripts: accepted, Find: find(accepted),
			Roles: roles.Document{Declared: declared, Log: tc.log}, Now: noon,
		})
		switch {
		case got == nil && tc.want != "", got != nil && (got.Outcome != tc.want || got.Differs.Field != tc.field || got.Text == "" || got.Remedy == ""):
			t.Errorf("%s: %+v, want %q because of %q", tc.name, got, tc.want, tc.field)
		}
	}
	if got := roles.Judge(roles.Asked{Spec: jobspec.Spec{Kind: jobspec.KindHelmChart, Operation: jobspec.OperationApply}}); got != nil {
		t.Errorf("a chart needs no role: %+v", got)
	}
}

// A plugin plans and applies while all of its roles are on, and is built at any time.
func TestJudgePlugin(t *testing.T) {
	t.Parallel()
	declared := []customerrole.Role{{Written: repair, Name: "acme-repair", Known: true}, {Written: "deploy", Name: "deploy", Known: true}}
	sw := func(role, name string, on bool) roles.Logged {
		return roles.Logged{Recorded: true, Switch: customerrole.Switch{ID: "rsw_1", Role: role, Name: name, On: on, At: noon.Add(-time.Hour)}}
	}
	both := []roles.Logged{sw(repair, "acme-repair", true), sw("deploy", "deploy", true)}
	for _, tc := range []struct {
		name  string
		roles []string
		log   []roles.Logged
		op    jobspec.Operation
		want  jobspec.Outcome // "" for none
		field string
	}{
		{"without a role", nil, nil, jobspec.OperationPlan, "", ""},
		{"all are on", []string{"deploy", repair}, both, jobspec.OperationApply, "", ""},
		{"all are on, named as here", []string{"acme-repair"}, both, jobspec.OperationPlan, "", ""},
		{"one is off, at the plan", []string{"deploy", repair}, both[1:], jobspec.OperationPlan, jobspec.OutcomeRefused, "role"},
		{"one is off, at the apply", []string{"deploy", repair}, both[:1], jobspec.OperationApply, jobspec.OutcomeRefused, "role"},
		{"switched off again", []string{"deploy"}, append(both[1:2:2], sw("deploy", "deploy", false)), jobspec.OperationPlan, jobspec.OutcomeRefused, "role"},
		{"switched on under another name than it claims now", []string{"acme-repair"}, []roles.Logged{sw(repair, "other", true)}, jobspec.OperationPlan, jobspec.OutcomeRefused, "role"},
		{"a role of no release", []string{"gone"}, both, jobspec.OperationPlan, jobspec.OutcomeRefused, "plugin.roles"},
		{"a build", []string{"deploy"}, nil, jobspec.OperationBuild, "", ""},
	} {
		spec := jobspec.Spec{Kind: jobspec.KindPlugin, Operation: tc.op, Work: jobspec.Work{Plugin: &jobspec.Plugin{Type: "greeting", Roles: tc.roles}}}
		got := roles.JudgePlugin(roles.Asked{Spec: spec, Roles: roles.Document{Declared: declared, Log: tc.log}, Now: noon})
		switch {
		case tc.want == "" && got != nil:
			t.Errorf("%s: %+v", tc.name, got)
		case tc.want != "" && (got == nil || got.Outcome != tc.want || got.Differs.Field != tc.field || got.Remedy == ""):
			t.Errorf("%s: %+v, want %s by %s", tc.name, got, tc.want, tc.field)
		}
	}
}
