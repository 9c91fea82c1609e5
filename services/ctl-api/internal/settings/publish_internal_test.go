package settings

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Settings schedule checks, and the actions whose scripts are accepted to run by
// themselves; of an action that runs by a decision or under a break-glass role they
// say nothing.
func TestScheduleOfAnApp(t *testing.T) {
	t.Parallel()
	action := func(name string, edit func(*appconfig.Action), triggers ...appconfig.Trigger) appconfig.Action {
		a := appconfig.Action{Name: name, Timeout: place.Duration(time.Minute), Triggers: triggers, Steps: []appconfig.Step{{Name: "one", Command: "true"}}}
		edit(&a)
		return a
	}
	nightly := appconfig.Trigger{Type: appconfig.TriggerCron, CronSchedule: "0 3 * * *"}
	app := &appconfig.App{Actions: []appconfig.Action{
		action("backup", func(*appconfig.Action) {}, nightly),
		action("answers", func(a *appconfig.Action) { a.Labels = map[string]string{"type": "health-check"} }, nightly),
		action("rescue", func(a *appconfig.Action) { a.BreakGlassRole = "rescue" }, nightly),
		action("rescued", func(a *appconfig.Action) {
			a.Labels, a.BreakGlassRole = map[string]string{"type": "health-check"}, "rescue"
		}, nightly),
		action("seed", func(*appconfig.Action) {}, appconfig.Trigger{Type: appconfig.TriggerManual}),
	}}
	list, remedies, err := schedule(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(remedies) != 0 {
		t.Errorf("nothing is healed, and remedies are %+v", remedies)
	}
	got := map[string]bool{} // whether it may change something
	for _, s := range list {
		got[s.Name()] = s.Unattended
		if s.Unattended == s.HealthCheck || s.Script().Unattended != s.Unattended {
			t.Errorf("%s is scheduled as %+v", s.Name(), s)
		}
	}
	if diff := cmp.Diff(map[string]bool{"backup": true, "answers": false}, got); diff != "" {
		t.Errorf("scheduled (-want +got):\n%s", diff)
	}
}

// What heals a check is among the remedies, scheduled or not.
func TestRemediesAreCarried(t *testing.T) {
	t.Parallel()
	eachMinute := []appconfig.Trigger{{Type: appconfig.TriggerCron, CronSchedule: "* * * * *"}}
	app := &appconfig.App{Actions: []appconfig.Action{
		{Name: "answers", Triggers: eachMinute, Berth: &appconfig.ActionExtension{HealthCheck: &appconfig.HealthCheck{Remediation: "repair", RemediationRevert: "undo", RemediationAttempts: 2}}},
		{Name: "repair", Triggers: eachMinute}, {Name: "undo"}, {Name: "other"},
	}}
	scheduled, remedies, err := schedule(app, nil)
	if err != nil {
		t.Fatal(err)
	}
	// One that is scheduled too is the same script in both places, the one that was accepted.
	at := slices.IndexFunc(scheduled, func(s jobspec.Scheduled) bool { return s.Name() == "repair" })
	if diff := cmp.Diff(remedies[0], scheduled[at].Script()); diff != "" {
		t.Errorf("the scheduled remedy (-remedy +scheduled):\n%s", diff)
	}
	var names []string
	for _, s := range remedies {
		names = append(names, s.Action.Name)
	}
	if diff := cmp.Diff([]string{"repair", "undo"}, names); diff != "" {
		t.Errorf("remedies (-want +got):\n%s", diff)
	}
}
