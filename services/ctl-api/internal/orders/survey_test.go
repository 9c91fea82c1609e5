package orders_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
)

// A runner looks when the app says so, else once an hour at a minute of the component's
// own; soon after a change, and when somebody asked. What the app accepts comes along.
func TestSurvey(t *testing.T) {
	t.Parallel()
	live := time.Date(2026, 11, 20, 10, 0, 0, 500, time.UTC)
	var asked time.Time
	survey := func(edit func(*appconfig.Component)) (jobspec.Scheduled, string) {
		t.Helper()
		c := appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{ChartName: "web", Values: map[string]string{"a": "b"}}}
		edit(&c)
		spec, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		look, why, err := orders.Survey(orders.Surveyed{
			Resource: jobspec.Resource{ID: "res_1", Kind: "component", Name: "web"}, Live: orders.Revision{Spec: spec, App: &appconfig.App{}}, Change: "chg_1",
			LiveAt: live, AskedAt: asked, State: interpolate.NewState(map[string]any{"inputs": map[string]any{"inputs": map[string]any{"every": "10", "often": "1"}}}),
		})
		if err != nil {
			t.Fatal(err)
		}
		return look, why
	}
	plain, why := survey(func(*appconfig.Component) {})
	if why != "" || plain.Name() != "drift/web" || plain.Drift.Change != "chg_1" || plain.Probe.HelmChart.Values != nil {
		t.Errorf("got %+v, %q", plain, why)
	}
	if diff := cmp.Diff([]time.Time{time.Date(2026, 11, 20, 10, 1, 0, 0, time.UTC)}, plain.Drift.At); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	asked = live.Add(time.Hour)
	if look, _ := survey(func(*appconfig.Component) {}); len(look.Drift.At) != 2 || !look.Drift.At[1].Equal(asked.Truncate(time.Second)) {
		t.Errorf("somebody asked: %v", look.Drift.At)
	}
	asked = live.Add(-time.Hour)
	if look, _ := survey(func(*appconfig.Component) {}); len(look.Drift.At) != 1 {
		t.Errorf("somebody asked before the change: %v", look.Drift.At)
	}
	if minute, rest, _ := strings.Cut(plain.Cron, " "); rest != "* * * *" || minute == "*" {
		t.Errorf("schedule %q", plain.Cron)
	}
	for schedule, want := range map[string]string{
		"0 5 * * *": "0 5 * * *", "*/{{ .nuon.inputs.inputs.every }} * * * *": "*/10 * * * *",
		"*/{{ .nuon.inputs.inputs.often }} * * * *": plain.Cron, "{{ .nuon.inputs.inputs.gone }}": plain.Cron,
	} {
		look, why := survey(func(c *appconfig.Component) { c.DriftSchedule = schedule })
		if look.Cron != want || (why != "") != (want == plain.Cron) {
			t.Errorf("%q gives %q: %q", schedule, look.Cron, why)
		}
	}
	accepted, _ := survey(func(c *appconfig.Component) {
		c.Berth = &appconfig.BlockExtension{Drift: &appconfig.DriftExtension{Accept: []appconfig.DriftAccept{
			{Kind: "Deployment", Namespace: "ns", Name: "web-*", Path: "spec.replicas", Manager: "kubectl-*", Reason: "a sale", By: "ops", Until: "2027-01-31"},
			{Kind: "Deployment", Path: "spec", Reason: "no end", By: "ops", Until: "never"},
		}}}
	})
	want := []jobspec.DriftRule{{
		Kind: "Deployment", Namespace: "ns", Name: "web-*", Path: "spec.replicas", Manager: "kubectl-*", Reason: "a sale", By: "ops",
		Until: time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC),
	}}
	if diff := cmp.Diff(want, accepted.Drift.Accept); diff != "" {
		t.Errorf("accepted (-want +got):\n%s", diff)
	}
	held, why := survey(func(c *appconfig.Component) { c.HelmChart.StorageDriver = jobspec.StorageNuon })
	if held.Drift != nil || why == "" {
		t.Errorf("records with the control plane: %+v, %q", held, why)
	}
}

// Looks of many components are spread over the hour.
func TestSurveysAreSpread(t *testing.T) {
	t.Parallel()
	spec, err := json.Marshal(appconfig.Component{Name: "web", Type: appconfig.TypeHelmChart, HelmChart: &appconfig.HelmChart{ChartName: "web"}})
	if err != nil {
		t.Fatal(err)
	}
	minutes := map[string]int{}
	for i := range 600 {
		look, _, err := orders.Survey(orders.Surveyed{Resource: jobspec.Resource{ID: fmt.Sprint("res_", i)}, Live: orders.Revision{Spec: spec, App: &appconfig.App{}}, Change: "chg_1"})
		if err != nil {
			t.Fatal(err)
		}
		minutes[look.Cron]++
	}
	for cron, n := range minutes {
		if len(minutes) < 55 || n > 30 {
			t.Errorf("%d of 600 look at %q, in %d minutes", n, cron, len(minutes))
		}
	}
}

// A runner plans a Terraform module, and the sandbox, every six hours when the app says
// nothing. It is told which state is live, and of the module only which program it needs:
// what that reads is what the live change was planned with.
func TestSurveyOfModules(t *testing.T) {
	t.Parallel()
	mark := &jobspec.StateMark{Lineage: "lin", Serial: 7, Digest: "sha256:7"}
	survey := func(name string, block any, edit func(*orders.Surveyed)) (jobspec.Scheduled, string) {
		t.Helper()
		spec, err := json.Marshal(block)
		if err != nil {
			t.Fatal(err)
		}
		s := orders.Surveyed{
			Resource: jobspec.Resource{ID: "res_1", Kind: "component", Name: name}, Live: orders.Revision{Spec: spec, App: &appconfig.App{}}, Change: "chg_1",
			LiveAt: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), State: interpolate.NewState(map[string]any{}), Mark: mark,
		}
		if _, is := block.(appconfig.Sandbox); is {
			s.Resource.Kind, s.Live.Sandbox = jobspec.ResourceSandbox, true
		}
		edit(&s)
		look, why, err := orders.Survey(s)
		if err != nil {
			t.Fatal(err)
		}
		return look, why
	}
	asItIs := func(*orders.Surveyed) {}
	module := appconfig.Component{Name: "db", Type: appconfig.TypeTerraformModule, TerraformModule: &appconfig.TerraformModule{
		TerraformVersion: "1.11.4", Vars: map[string]string{"password": "{{ .nuon.secrets.db.value }}"}, EnvVars: map[string]string{"A": "b"},
	}}
	look, why := survey("db", module, asItIs)
	want := &jobspec.TerraformModule{TerraformVersion: "1.11.4"}
	if diff := cmp.Diff(want, look.Probe.TerraformModule); diff != "" || why != "" || look.Name() != "drift/db" {
		t.Errorf("%s, %q (-want +got):\n%s", look.Name(), why, diff)
	}
	if diff := cmp.Diff(mark, look.Drift.State); diff != "" || look.TimeoutSeconds != 1800 {
		t.Errorf("state, and timeout %d (-want +got):\n%s", look.TimeoutSeconds, diff)
	}
	if fields := strings.Fields(look.Cron); len(fields) != 5 || !strings.HasSuffix(fields[1], "/6") || fields[0] == "*" {
		t.Errorf("schedule %q", look.Cron)
	}

	sandbox := appconfig.Sandbox{Type: appconfig.SandboxTypeTerraform, TerraformVersion: "1.11.4", Vars: map[string]string{"a": "b"}, DriftSchedule: "0 5 * * *", Berth: &appconfig.BlockExtension{
		Drift: &appconfig.DriftExtension{Accept: []appconfig.DriftAccept{
			{Kind: "aws_s3_bucket", Namespace: "ns", Name: "module.logs.aws_s3_bucket.main", Path: "tags", Manager: "m", Reason: "a sale", By: "ops", Until: "2027-01-31"},
		}},
	}}
	look, why = survey("sandbox", sandbox, asItIs)
	rules := []jobspec.DriftRule{{
		Kind: "aws_s3_bucket", Namespace: "ns", Name: "module.logs.aws_s3_bucket.main", Path: "tags", Manager: "m", Reason: "a sale", By: "ops", Until: time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC),
	}}
	if diff := cmp.Diff(rules, look.Drift.Accept); diff != "" || look.Cron != "0 5 * * *" || look.Name() != "drift/sandbox/sandbox" || why != "" {
		t.Errorf("%s at %q, %q (-want +got):\n%s", look.Name(), look.Cron, why, diff)
	}
	if of, ok := jobspec.DriftNamed(look.Name()); !ok || of.Kind != jobspec.ResourceSandbox || of.Name != "sandbox" {
		t.Errorf("the sandbox's name is read as %+v", of)
	}

	for name, edit := range map[string]func(*orders.Surveyed){
		"no state":  func(s *orders.Surveyed) { s.Mark = nil },
		"rehearsal": func(s *orders.Surveyed) { s.Rehearsed = true },
	} {
		if look, why := survey("db", module, edit); look.Drift != nil || why == "" {
			t.Errorf("%s: %+v, %q", name, look, why)
		}
	}
}
