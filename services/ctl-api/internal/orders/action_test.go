package orders_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/fault"
)

func TestScriptsOfAnApp(t *testing.T) {
	t.Parallel()
	app, diags := check.Folder(os.DirFS("../../../../examples/hello"), appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		t.Fatal(diags)
	}
	app.Actions = append(app.Actions, appconfig.Action{
		Name: "clean", Role: "maintenance", Timeout: place.Duration(time.Minute),
		Inputs:   []appconfig.ActionInput{{Name: "PATH"}, {Name: "AGE"}},
		Triggers: []appconfig.Trigger{{Type: appconfig.TriggerCron, CronSchedule: "0 3 * * *"}, {Type: appconfig.TriggerCron, CronSchedule: "0 4 * * *"}},
		Steps:    []appconfig.Step{{Name: "one", Command: "true"}},
	}, appconfig.Action{
		Name: "rescue", BreakGlassRole: "rescue", Timeout: place.Duration(time.Minute),
		Triggers: []appconfig.Trigger{{Type: appconfig.TriggerCron, CronSchedule: "0 5 * * *"}},
		Steps:    []appconfig.Step{{Name: "one", Command: "true"}},
	})
	list, err := orders.Scripts(app)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, strings.Join([]string{s.Action.Name, s.Cron, s.Role, strings.Join(s.Inputs, "+"), map[bool]string{true: "check"}[s.HealthCheck] + map[bool]string{true: "by itself"}[s.Unattended]}, "|"))
	}
	want := []string{"files_intact|* * * * *|||check", "clean|0 3 * * *|maintenance|AGE+PATH|by itself", "clean|0 4 * * *|maintenance|AGE+PATH|by itself", "rescue|0 5 * * *|||"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scripts (-want +got):\n%s", diff)
	}
}

func TestInputsOfAnAction(t *testing.T) {
	t.Parallel()
	action := &appconfig.Action{Name: "greet", Inputs: []appconfig.ActionInput{{Name: "who", Required: true}, {Name: "how"}}}
	for _, tt := range []struct {
		name    string
		action  *appconfig.Action
		given   map[string]string
		problem string
	}{
		{"all given", action, map[string]string{"who": "Ann", "how": "loud"}, ""},
		{"an optional one left out", action, map[string]string{"who": "Ann"}, ""},
		{"a required one may be given as empty", action, map[string]string{"who": ""}, ""},
		{"a required one is missing", action, nil, `action greet needs input "who": --input who=…`},
		{"a misspelt one", action, map[string]string{"hwo": "Ann"}, `action greet has no input "hwo"; did you mean who?, and needs input "who": --input who=…`},
		{"one that is like no other", action, map[string]string{"who": "Ann", "version": "2"}, `action greet has no input "version"; it has: who, how`},
		{"an action without inputs", &appconfig.Action{Name: "check"}, map[string]string{"x": "1"}, `action check has no input "x"`},
		{"and nothing given", &appconfig.Action{Name: "check"}, nil, ""},
	} {
		err := orders.CheckInputs(tt.action, tt.given)
		if tt.problem == "" && err == nil {
			continue
		}
		if err == nil || err.Error() != tt.problem || !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: error %v, want %s", tt.name, err, tt.problem)
		}
	}
	want := map[string]string{"who": "Ann", "how": ""}
	if diff := cmp.Diff(want, orders.AllInputs(action, map[string]string{"who": "Ann"})); diff != "" {
		t.Errorf("without a value, an input is empty (-want +got):\n%s", diff)
	}
}
