package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Of charts, manifests and modules that are live, and of the sandbox, the API says what the last look found; a person may
// have the runner look, and lists tell where something drifted.
func TestDrift(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := with(with(hello(), "components/chart.toml", `name = "chart"
type = "kubernetes_manifest"
drift_schedule = "*/{{ .nuon.inputs.inputs.greeting }} * * * *"
namespace = "shop"
manifest = """
apiVersion: v1
kind: ConfigMap
metadata: {name: one}
"""
[[berth.drift.accept]]
kind = "ConfigMap"
path = "data"
reason = "a test"
by = "ops@shop.test"
until = "2100-01-31"
`), "components/plain.toml", `name = "plain"
type = "kubernetes_manifest"
namespace = "shop"
manifest = """
apiVersion: v1
kind: ConfigMap
metadata: {name: two}
"""
`)
	c.released("hello", folder)
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	install := made.JSON201.ID
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.db.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`update installs set state = 'live', release_id = (select id from releases limit 1) where id = $1`, install)
	exec(`update resources set state = 'live', type = 'kubernetes_manifest', live_release_id = (select id from releases limit 1), live_change_id = 'chg_' || name where name in ('chart', 'plain')`)
	get := func(component string) []ctlapi.ComponentDrift {
		t.Helper()
		params := &ctlapi.GetDriftParams{}
		if component != "" {
			params.Component = &component
		}
		got, err := c.GetDriftWithResponse(t.Context(), "acme", params)
		must(t, got, err, http.StatusOK)
		return got.JSON200.Components
	}
	got := get("")
	if len(got) != 2 || got[0].Name != "chart" || got[0].State != ctlapi.ComponentDriftStateUnknown || got[0].Why == nil || got[1].Why != nil || !strings.HasSuffix(*got[0].Schedule, " * * * *") || !strings.HasSuffix(*got[1].Schedule, " * * * *") { // minutes of their own, which may be the same
		t.Fatalf("nobody has looked: %+v", got)
	}

	asked, err := c.AskForDriftWithResponse(t.Context(), "acme", ctlapi.DriftQuestion{Component: new("plain")})
	must(t, asked, err, http.StatusAccepted)
	if names := asked.JSON202.Components; len(names) != 1 || names[0] != "plain" {
		t.Errorf("asked for %v", names)
	}
	if n := d.count(`select count(*) from resources where drift_asked_at is not null`); n != 1 {
		t.Errorf("%d resources are asked for", n)
	}
	missing, err := c.AskForDriftWithResponse(t.Context(), "acme", ctlapi.DriftQuestion{Component: new("web")}) // a Terraform module
	if err == nil && missing.StatusCode() != http.StatusNotFound {
		t.Errorf("a component that no runner looks at: %d", missing.StatusCode())
	}

	look := func(component string, minute int, report *jobspec.Drift, failed string) {
		t.Helper()
		var raw, problem any
		if report != nil {
			encoded, err := json.Marshal(report)
			if err != nil {
				t.Fatal(err)
			}
			raw = encoded
		} else {
			problem = failed
		}
		exec(`insert into drift_looks (org_id, install_id, resource_id, scheduled_at, change_id, run_id, looked_at, error, report)
			select org_id, install_id, id, $2, live_change_id, 'arn_1', $2, $3, $4 from resources where name = $1`,
			component, time.Date(2026, 11, 20, 10, minute, 0, 0, time.UTC), problem, raw)
	}
	report := &jobspec.Drift{Change: "chg_plain", Looked: 60, Class: "human_edit", Digest: "sha256:1"}
	for range 60 {
		report.Objects = append(report.Objects, jobspec.DriftObject{Address: "ConfigMap a", Differences: []jobspec.DriftDifference{{Path: "data", Class: "human_edit"}}})
	}
	look("plain", 1, report, "")
	if got := get("plain"); len(got) != 1 || got[0].State != ctlapi.ComponentDriftStateSuspected || len(got[0].Found.Objects) != 60 {
		t.Errorf("one look: %+v", got)
	}
	if got := get(""); len(got[1].Found.Objects) != 25 || got[1].Found.More != 35 {
		t.Errorf("%d objects are listed, %d more", len(got[1].Found.Objects), got[1].Found.More)
	}
	exec(`insert into drift_episodes (id, org_id, install_id, resource_id, change_id, class, digest, opened_at, seen_at)
		select 'drf_1', org_id, install_id, id, live_change_id, 'human_edit', 'sha256:1', now(), now() from resources where name = 'plain'`)
	exec(`update resources set drift = 'drifted' where name = 'plain'`)
	if got := get("plain")[0]; got.State != ctlapi.ComponentDriftStateDrifted || got.Episode == nil || got.Episode.ID != "drf_1" {
		t.Errorf("drifted: %+v", got)
	}
	look("plain", 2, nil, "the cluster does not answer")
	if got := get("plain")[0]; got.State != ctlapi.ComponentDriftStateFailed || *got.Why != "the cluster does not answer" || got.Found == nil || got.Episode == nil {
		t.Errorf("a look failed: %+v", got)
	}

	// The sandbox is looked at too, once there is a state; and not in a rehearsal.
	exec(`update resources set state = 'live', live_release_id = (select id from releases limit 1), live_change_id = 'chg_sandbox' where kind = 'sandbox'`)
	if got := get("sandbox"); len(got) != 1 || got[0].State != ctlapi.ComponentDriftStateNotLookedAt || got[0].Why == nil {
		t.Errorf("without a state: %+v", got)
	}
	exec(`insert into runner_jobs (id, org_id, runner_id, install_id, kind, operation, mutates, state, spec, fence, attempt, timeout_seconds)
		select 'job_1', org_id, (select id from runners where install_id = $1), install_id, 'terraform_module', 'apply', true, 'succeeded', '{}', 1, 1, 60 from resources where kind = 'sandbox'`, install)
	exec(`insert into tf_states (id, org_id, resource_id, serial, lineage, body, digest, job_id, attempt, fence)
		select 'tfs_1', org_id, id, 7, 'lin', 'sealed', 'sha256:7', 'job_1', 1, 1 from resources where kind = 'sandbox'`)
	if got := get("sandbox"); len(got) != 1 || got[0].State != ctlapi.ComponentDriftStateUnknown || got[0].Schedule == nil || got[0].Type != "terraform_module" {
		t.Errorf("the sandbox: %+v", got)
	}
	asked, err = c.AskForDriftWithResponse(t.Context(), "acme", ctlapi.DriftQuestion{Component: new("sandbox")})
	must(t, asked, err, http.StatusAccepted)
	if names := asked.JSON202.Components; len(names) != 1 || names[0] != "sandbox" {
		t.Errorf("asked for %v", names)
	}

	list, err := c.ListDriftWithResponse(t.Context(), &ctlapi.ListDriftParams{Class: new(ctlapi.DriftClassHumanEdit)})
	must(t, list, err, http.StatusOK)
	if items := list.JSON200.Items; len(items) != 1 || items[0].Install.Name != "acme" || items[0].Component.Name != "plain" {
		t.Errorf("list %+v", items)
	}
	list, err = c.ListDriftWithResponse(t.Context(), &ctlapi.ListDriftParams{Class: new(ctlapi.DriftClassReal)})
	must(t, list, err, http.StatusOK)
	if items := list.JSON200.Items; len(items) != 0 {
		t.Errorf("of another class: %+v", items)
	}
	shown, err := c.GetInstallWithResponse(t.Context(), "acme")
	must(t, shown, err, http.StatusOK)
	if shown.JSON200.Drifted != 1 {
		t.Errorf("drifted = %d", shown.JSON200.Drifted)
	}
	exec(`update drift_episodes set closed_at = now(), closed_by = 'clean'`)
	for closed, want := range map[bool]int{false: 0, true: 1} {
		list, err = c.ListDriftWithResponse(t.Context(), &ctlapi.ListDriftParams{Closed: &closed})
		must(t, list, err, http.StatusOK)
		if len(list.JSON200.Items) != want {
			t.Errorf("closed=%v: %+v", closed, list.JSON200.Items)
		}
	}
}
