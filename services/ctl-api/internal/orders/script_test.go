package orders_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/internal/fault"
)

func TestScriptCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		script orders.Script
		want   string // part of the message; "" for none
	}{
		{"a script", orders.Script{Text: "echo hi", Env: map[string]string{"A_1": "x"}, Secret: []string{"TOKEN"}}, ""},
		{"an image by digest", orders.Script{Text: "x", Image: "docker.io/library/bash@sha256:" + strings.Repeat("a", 64)}, ""},
		{"an image that a template gives", orders.Script{Text: "x", Image: "{{ .nuon.components.tools.outputs.image.ref }}"}, ""},
		{"an image by tag", orders.Script{Text: "x", Image: "docker.io/library/bash:5"}, "image"},
		{"nothing to run", orders.Script{Text: " \n"}, "empty"},
		{"a program", orders.Script{Text: "\x7fELF\x00"}, "zero byte"},
		{"a variable with a bad name", orders.Script{Text: "x", Env: map[string]string{"A-B": "x"}}, `"A-B"`},
		{"a secret with a bad name", orders.Script{Text: "x", Secret: []string{"1A"}}, `"1A"`},
		{"a variable that is given twice", orders.Script{Text: "x", Env: map[string]string{"A": "x"}, Secret: []string{"A"}}, "twice"},
	} {
		err := tt.script.Check()
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestScriptOrder(t *testing.T) {
	t.Parallel()
	app := &appconfig.App{
		KubernetesContexts: []appconfig.KubernetesContext{{Name: "edge", Component: "cluster"}},
		Components:         []appconfig.Component{{Name: "cluster"}},
	}
	s := orders.Script{Name: "fix", Text: "echo $TOKEN", Env: map[string]string{"A": "1"}, Secret: []string{"TOKEN"}, Sealed: []byte("sealed"), Context: "edge"}
	want := &jobspec.Action{
		Name: "script/fix", AdHoc: true, Cluster: &jobspec.Cluster{Context: "edge", Component: "cluster"},
		Steps: []jobspec.ActionStep{{Name: "script", InlineContents: "echo $TOKEN", EnvVars: map[string]string{"A": "1", "TOKEN": "{{ .nuon.script.env.TOKEN }}"}}},
	}
	if diff := cmp.Diff(want, s.Order(app)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if raw, _ := json.Marshal(s.Order(app)); strings.Contains(string(raw), "sealed") {
		t.Errorf("the order holds what is sealed at rest: %s", raw)
	}
	s.Context = ""
	if !s.Order(app).Steps[0].NoKubeConfig {
		t.Error("a script that asked for no cluster gets a kubeconfig")
	}
	if err := s.Fits(app); err != nil {
		t.Errorf("Fits: %v", err)
	}
	s.Context = "egde"
	if err := s.Fits(app); !errors.Is(err, fault.ErrInvalid) || !strings.Contains(err.Error(), "edge") {
		t.Errorf("Fits of a context that is not there: %v", err)
	}
}

// What heals a check is the script of an action, with the numbers of the check's table; an
// action that heals nothing has the digest that it always had.
func TestHeals(t *testing.T) {
	t.Parallel()
	table := func(attempts int) *appconfig.HealthCheck {
		return &appconfig.HealthCheck{
			UnhealthyAfter: 4, HealthyAfter: 3, Remediation: "repair", RemediationRevert: "undo",
			RemediationAttempts: attempts, RemediationCooldown: place.Duration(5 * time.Minute),
		}
	}
	cron := []appconfig.Trigger{{Type: appconfig.TriggerCron, CronSchedule: "* * * * *"}, {Type: appconfig.TriggerCron, CronSchedule: "0 3 * * *"}}
	app := &appconfig.App{
		Actions: []appconfig.Action{
			{Name: "answers", Triggers: cron, Berth: &appconfig.ActionExtension{HealthCheck: table(2)}},
			{Name: "by-hand", Berth: &appconfig.ActionExtension{HealthCheck: table(9)}},
			{Name: "repair", Triggers: cron}, {Name: "undo"}, {Name: "other"},
		},
		Components: []appconfig.Component{
			{Name: "web", HelmChart: &appconfig.HelmChart{}, Berth: &appconfig.BlockExtension{HealthCheck: table(1)}},
			{Name: "data", Berth: &appconfig.BlockExtension{HealthCheck: table(9)}},
		},
	}
	list, err := orders.Scripts(app)
	if err != nil {
		t.Fatal(err)
	}
	heal := func(check string, attempts int, reverts bool) jobspec.Heal {
		return jobspec.Heal{Check: check, Reverts: reverts, UnhealthyAfter: 4, HealthyAfter: 3, Attempts: attempts, CooldownSeconds: 300}
	}
	want := map[string][]jobspec.Heal{
		"repair * * * * *": {heal("answers", 2, false), heal("component/web", 1, false)},
		"undo ":            {heal("answers", 2, true), heal("component/web", 1, true)},
	}
	got := map[string][]jobspec.Heal{}
	for _, s := range list {
		if len(s.Heals) > 0 {
			got[s.Action.Name+" "+s.Cron] = s.Heals
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("heals (-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(list[len(list)-1])
	if err != nil || strings.Contains(string(raw), "heals") {
		t.Errorf("a script that heals nothing: %s, %v", raw, err)
	}
}
