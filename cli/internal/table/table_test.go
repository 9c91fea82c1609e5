package table_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/goldentest"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/cli/internal/table"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return now.Add(-d) }

// lists is what berth … list prints of some things, and -o wide.
func lists[T any](view output.View[T], items ...T) func(*strings.Builder) error {
	return func(w *strings.Builder) error {
		for _, format := range []output.Format{output.Table, output.Wide} {
			if err := output.List(w, output.Options{Format: format}, items, view); err != nil {
				return err
			}
			w.WriteByte('\n')
		}
		return output.List(w, output.Options{Format: output.Table}, nil, view)
	}
}

const digest = "sha256:60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"

func TestTables(t *testing.T) {
	t.Parallel()
	hello, acme := ctlapi.Ref{ID: "app_1", Name: "hello"}, ctlapi.Ref{ID: "ins_1", Name: "acme"}
	three := &ctlapi.NumberRef{ID: "rel_3", Number: 3}
	install := ctlapi.Install{
		ID: "ins_1", Name: "acme", App: hello, Customer: ctlapi.Ref{Name: "Acme Corp"}, State: ctlapi.InstallStateLive, Health: "healthy",
		Release: three, CreatedAt: ago(72 * time.Hour), Stack: ctlapi.StackKindLocal, ApprovalOption: ctlapi.ApprovalOptionPrompt, WorkflowID: new("wfl_1"),
	}
	alarmed, alone := install, install
	alarmed.Name, alarmed.OpenAlarms, alarmed.Release, alarmed.WorkflowID = "globex", 2, nil, nil
	alone.Name, alone.OpenAlarms = "initech", 1
	denied := ctlapi.Workflow{
		ID: "wfl_3", Number: 3, Install: acme, Kind: ctlapi.WorkflowKindDeploy, State: ctlapi.WorkflowStateFailed, Ended: new(ctlapi.EndedDenied), EndedBy: new("alice"),
		Error: new("component/api was not done: denied by alice"), CreatedAt: ago(time.Hour), CreatedBy: "ada",
	}
	expired := denied
	expired.ID, expired.Ended, expired.EndedBy, expired.Error = "wfl_4", new(ctlapi.EndedExpired), nil, new("component/api was not done: nobody decided in time")
	for name, print := range map[string]func(*strings.Builder) error{
		"app": lists(table.App(now), ctlapi.App{ID: "app_1", Name: "hello", DisplayName: "Hello", Description: "Says hello.", Release: three, CreatedAt: ago(time.Hour)}),
		"variable": lists(table.Variable(now, false),
			ctlapi.AppVariable{Name: "key", Sensitive: true, UpdatedAt: ago(time.Minute), UpdatedBy: "ada", Version: 2, ReadBy: []ctlapi.AppVariableReader{
				{Kind: ctlapi.AppVariableReaderKindAction, Name: "restart"}, {Name: "web"},
			}}),
		"variable_with_value": lists(table.Variable(now, true),
			ctlapi.AppVariable{Name: "key", Sensitive: true, Value: new("never shown"), UpdatedAt: ago(time.Minute)},
			ctlapi.AppVariable{Name: "region", Value: new("eu"), UpdatedAt: ago(time.Minute)}),
		"config": lists(table.Config(now), ctlapi.Config{ID: "cfg_1", App: hello, Number: 3, Release: three, Digest: digest, CreatedAt: ago(time.Hour), CreatedBy: "ada"}),
		"config_item": lists(table.ConfigItem(),
			ctlapi.ConfigItem{Component: "api", Type: "helm_chart", Dependencies: []string{"db", "net"}, BuildState: ctlapi.BuildStateSucceeded, BuildID: "bld_1",
				Source: &ctlapi.BuildSource{Kind: "git", Repo: new("acme/app"), Directory: new("infra"), Ref: new("main")}},
			ctlapi.ConfigItem{Component: "db", Source: &ctlapi.BuildSource{Kind: "git", Repo: new("acme/app"), Directory: new("."), Digest: new(digest)}},
			ctlapi.ConfigItem{Component: "net", Source: &ctlapi.BuildSource{Kind: "local", Digest: new(digest)}}),
		"build": lists(table.Build(now),
			ctlapi.Build{ID: "bld_1", App: hello, Component: ctlapi.Ref{Name: "api"}, State: ctlapi.BuildStateFailed, Reason: "source changed", CreatedAt: ago(time.Minute),
				StartedAt: new(ago(50 * time.Second)), FinishedAt: new(ago(8 * time.Second)), Error: new("exit\nstatus 1")},
			ctlapi.Build{ID: "bld_2", App: hello, State: ctlapi.BuildStateQueued, CreatedAt: ago(time.Second), Wait: &ctlapi.BuildWait{Reason: "a build runner"}}),
		"release":       lists(table.Release(now), ctlapi.Release{SyncedBy: "ci", Origin: &ctlapi.Origin{Message: "Ask for the port, since some customers have another server on it\n\nMore.", Commit: "9f86d081884c7d65", Author: "Ann", Modified: true}, ID: "rel_3", App: hello, Number: 3, Config: *three, Digest: digest, CreatedAt: ago(time.Hour)}),
		"release_item":  lists(table.ReleaseItem(), ctlapi.ReleaseItem{Component: "api", Type: "helm_chart", BuildID: "bld_1", Artifact: ctlapi.Artifact{Digest: digest}}),
		"manifest_item": lists(table.ManifestItem(), ctlapi.ManifestItem{Kind: "script", Name: "restart", Digest: digest}),
		"install":       lists(table.Install(now), install, alarmed, alone),
		"input": lists(table.Input(),
			ctlapi.InputValue{Name: "key", Sensitive: true, From: ctlapi.InputValueFromSet, Value: new("never shown"), Required: true},
			ctlapi.InputValue{Name: "other_key", Sensitive: true, From: ctlapi.InputValueFromNone},
			ctlapi.InputValue{Name: "port", From: ctlapi.InputValueFromDefault, Value: new("80"), Type: "number"}),
		"resource": lists(table.Resource(now),
			ctlapi.Resource{Name: "sandbox", Kind: "sandbox", State: "live", UpdatedAt: ago(time.Hour)},
			ctlapi.Resource{Name: "extra", Kind: "component", Type: "helm_chart", State: "absent", SwitchedOff: true, UpdatedAt: ago(time.Hour)},
			ctlapi.Resource{Name: "old", Kind: "component", Type: "helm_chart", State: "live", SwitchedOff: true, LiveRelease: three, UpdatedAt: ago(time.Hour)},
			ctlapi.Resource{Name: "api", Kind: "component", Type: "helm_chart", State: "live", LiveRelease: three, LiveChangeID: new("chg_1"), LiveArtifactDigest: new(digest), UpdatedAt: ago(time.Minute)}),
		"check": lists(table.Check(now), ctlapi.Check{Name: "answers", Verdict: "unhealthy", Since: ago(time.Hour), Recent: []ctlapi.CheckOutcome{{Ok: true}, {Ok: false}}}),
		"stack": lists(table.Stack(now), ctlapi.Stack{ID: "stk_1", Kind: ctlapi.StackKindKubernetes, Version: 2, State: "active", CreatedAt: ago(time.Hour), Runner: &ctlapi.Runner{ID: "rnr_1", Online: true, State: ctlapi.RunnerStateActive}},
			ctlapi.Stack{ID: "stk_2", Kind: ctlapi.StackKindLocal, CreatedAt: ago(time.Hour)}),
		"workflow": lists(table.Workflow(now),
			ctlapi.Workflow{ID: "wfl_1", Install: acme, Kind: ctlapi.WorkflowKindDeploy, PlanOnly: true, State: ctlapi.WorkflowStateWaiting, Release: three, Wait: &ctlapi.Waiting{Reason: "needs a decision"}, CreatedAt: ago(time.Minute), CreatedBy: "ada"},
			ctlapi.Workflow{ID: "wfl_2", Install: acme, Kind: ctlapi.WorkflowKindProvision, State: ctlapi.WorkflowStateFailed, Error: new("component/api failed"), CreatedAt: ago(time.Hour)},
			denied, expired),
		"history": lists(table.Timeline(now),
			ctlapi.TimelineEntry{Seq: 9, At: ago(time.Minute), Kind: "inputs.changed", Text: "inputs set, version 3: size", Actor: new("ada")},
			ctlapi.TimelineEntry{Seq: 7, At: ago(time.Hour), Kind: "change.failed", Text: "deploy of api failed: exit status 1", Resource: new("api"), Release: three, WorkflowID: new("wfl_1"), ChangeID: new("chg_1")}),
		"state_version": lists(table.StateVersion(now),
			ctlapi.StateVersion{Version: 3, CreatedAt: ago(time.Minute), Cause: "plan of component/api", InputsVersion: 2, Release: three, Changes: []ctlapi.TreeChange{
				{Path: "a"}, {Path: "b"}, {Path: "c"}, {Path: "d"}, {Path: "e"},
			}, Because: []ctlapi.TimelineEntry{{Text: "deploy of api applied"}, {Text: "inputs set, version 2: size"}}},
			ctlapi.StateVersion{Version: 2, CreatedAt: ago(time.Hour), Cause: "settings", Changes: []ctlapi.TreeChange{{Path: "runner.id"}}},
			ctlapi.StateVersion{Version: 1, CreatedAt: ago(time.Hour), Cause: "plan of sandbox", Changes: []ctlapi.TreeChange{{Path: "runner.id"}}}),
		"tree_change": lists(table.TreeChange(),
			ctlapi.TreeChange{Path: "inputs.inputs.size", Op: "changed", Old: new(json.RawMessage(`"1"`)), New: new(json.RawMessage(`"2"`))},
			ctlapi.TreeChange{Path: "inputs.inputs.key", Op: "replaced", Old: new(json.RawMessage(`"(sealed)"`)), New: new(json.RawMessage(`"(sealed)"`))},
			ctlapi.TreeChange{Path: "components.api.outputs.ports", Op: "added", New: new(json.RawMessage(`[1,2]`))},
			ctlapi.TreeChange{Path: "sandbox.outputs.empty", Op: "removed", Old: new(json.RawMessage(`""`))}),
		"snapshot_resource": lists(table.SnapshotResource(),
			ctlapi.SnapshotResource{Kind: "component", Name: "api", State: "live", Health: "healthy", Drift: "none", Release: three, InputsVersion: new(2), ArtifactDigest: new(digest)},
			ctlapi.SnapshotResource{Kind: "sandbox", Name: "sandbox", State: "absent", Health: "unknown", Drift: "unknown"}),
		"change": lists(table.Change(now),
			ctlapi.ChangeSummary{ID: "chg_1", Install: acme, Resource: &ctlapi.ResourceRef{Name: "api"}, Kind: ctlapi.ChangeKindDeploy, State: ctlapi.ChangeStateProposed,
				Counts: &ctlapi.PlanCounts{Create: 1}, EffectDigest: new(digest), CreatedAt: ago(time.Minute)},
			ctlapi.ChangeSummary{ID: "chg_2", Install: acme, Kind: ctlapi.ChangeKindAccept, State: ctlapi.ChangeStatePreparing, CreatedAt: ago(time.Minute)}),
		"action": lists(table.Action(now),
			ctlapi.Action{Name: "answers", HealthCheck: true, Triggers: []ctlapi.ActionTrigger{{Type: "cron", CronSchedule: new("* * * * *")}, {Type: "post-deploy-component", Component: new("api")}},
				LastRun: &ctlapi.ActionRun{State: "succeeded", CreatedAt: ago(time.Minute)}},
			ctlapi.Action{Name: "backup", Unattended: true, Triggers: []ctlapi.ActionTrigger{{Type: "cron", CronSchedule: new("0 3 * * *"), NextAt: new(now.Add(2 * time.Hour))}}},
			ctlapi.Action{Name: "restart", Description: "Restarts it."}),
		"action_run": lists(table.ActionRun(now), ctlapi.ActionRun{ID: "arn_1", Install: acme, Action: "answers", Trigger: "cron", State: "failed", Error: new("exit status 1"), StreamID: new("str_1"), CreatedAt: ago(time.Minute)},
			ctlapi.ActionRun{ID: "arn_2", Install: acme, Action: "count", Trigger: "manual", State: "succeeded", MetricsKept: new(3), CreatedAt: ago(time.Minute)},
			ctlapi.ActionRun{ID: "arn_3", Install: acme, Action: "count", Trigger: "manual", State: "succeeded", MetricsError: new("step \"x\": line 2 is not in the Prometheus text format"), CreatedAt: ago(time.Minute)}),
		"metric": lists(table.Metric(now, true),
			ctlapi.Metric{ID: "ser_1", Series: `queue_length{queue="mail"}`, Action: "look", Kind: "gauge", Help: new("Mails that wait."), Value: 12, At: ago(3 * time.Minute), RunID: "arn_1", Recent: &[]float64{12, 3, 0, 7}},
			ctlapi.Metric{ID: "ser_2", Series: "rows", Action: "script/count", Kind: "untyped", Value: 1e21, At: ago(time.Hour), RunID: "arn_2"}),
		"remediation": lists(table.Remediation(now),
			ctlapi.Remediation{ID: "rmd_1", Check: "component/web", Action: "restart", State: "helped", Attempts: 1, AttemptsOf: 3, BeganAt: ago(12 * time.Minute), ChangedAt: ago(9 * time.Minute), EndedAt: new(ago(time.Minute))},
			ctlapi.Remediation{ID: "rmd_2", Check: "answers", Action: "restart", State: "needs_attention", Attempts: 3, AttemptsOf: 3, Reverted: true, Why: new("answers is still unhealthy after 3 of 3 attempts"), BeganAt: ago(2 * time.Hour), ChangedAt: ago(time.Hour)}),
		"metric_point": lists(table.MetricPoint(false), ctlapi.MetricPoint{At: ago(time.Minute), Value: 1.5, RunID: new("arn_1")}),
		"metric_step":  lists(table.MetricPoint(true), ctlapi.MetricPoint{At: ago(time.Hour), Value: 3, Min: new(1.0), Max: new(4.0), Mean: new(2.25), Count: new(60)}),
		"run_metric":   lists(table.RunMetric(), ctlapi.RunMetric{ID: "ser_1", Series: `rows{table="a"}`, Kind: "gauge", Value: 7}),
		"alert": lists(table.Alert(now, true),
			ctlapi.Alert{ID: "alt_1", Kind: "unhealthy", Severity: "critical", State: "open", Install: acme, Subject: "component/web", Text: "component/web is unhealthy", Since: ago(time.Hour), Release: three,
				Relapses: 2, AcknowledgedBy: new("ada"), AcknowledgedAt: new(ago(time.Minute)), Note: new("restoring"), IncidentID: new("inc_1")},
			ctlapi.Alert{ID: "alt_2", Kind: "runner_silent", Severity: "critical", State: "held", Install: acme, Text: "nothing was heard of the runner", Since: ago(time.Minute),
				Held: &ctlapi.AlertHeld{Because: "too_early", Until: now}, RunnerVersion: new("v1.2")},
			ctlapi.Alert{ID: "alt_3", Kind: "expiring", Severity: "warning", State: "closed", Install: acme, Text: "the role repair goes off", Since: ago(time.Hour), ClosedAt: new(ago(time.Minute)), ClosedBecause: new(ctlapi.AlertClosedBecauseGone)}),
		"alert_mute": lists(table.AlertMute(true), ctlapi.AlertMute{ID: "mut_1", Install: &acme, Kind: new(ctlapi.AlertKindUnhealthy), Subject: new("component/web"), Until: now, CreatedBy: "ada", Reason: "moving", RemovedBy: new("bob")},
			ctlapi.AlertMute{ID: "mut_2", Kind: new(ctlapi.AlertKindDrift), Until: now, CreatedBy: "ada", Reason: "known"}, ctlapi.AlertMute{ID: "mut_3", Install: &acme, Until: now, CreatedBy: "ada", Reason: "known"}),
		"incident": lists(table.Incident(now, true), ctlapi.Incident{ID: "inc_1", Kind: "unhealthy", About: "component/web", App: new("shop"), Release: three, Alerts: 200, OpenAlerts: 3, OpenedAt: ago(time.Hour)},
			ctlapi.Incident{ID: "inc_2", Kind: "runner_silent", About: "runner", RunnerVersion: new("v1.2"), Alerts: 2, OpenedAt: ago(time.Hour), ClosedAt: &now}),
		"alarm": lists(table.Alarm(now, false), ctlapi.Alarm{ID: "alm_1", Kind: "copied_runner", Install: &acme, Cause: "two machines", About: "rnr_1", Remedy: "look", RunnerID: "rnr_1", CreatedAt: ago(time.Hour),
			AcknowledgedAt: new(ago(time.Minute)), AcknowledgedBy: new("ada"), Reason: new("restored")}, ctlapi.Alarm{ID: "alm_2", CreatedAt: ago(time.Hour)}),
		"terraform_state": lists(table.TerraformState(now),
			ctlapi.TerraformState{Kind: "component", Name: "api", Level: new(ctlapi.TerraformStateLevelAddresses), TerraformVersion: new("1.11.4"), Counts: &map[string]int{"a": 2, "b": 1},
				Current: &ctlapi.TerraformStateVersion{Serial: 12, WrittenAt: ago(time.Hour), Bytes: new(int64(70 << 10)), ChangeID: new("chg_1"), Lineage: "lin"}},
			ctlapi.TerraformState{Kind: "component", Name: "db", Lock: &ctlapi.TerraformLock{JobID: "job_1", Alive: true}},
			ctlapi.TerraformState{Kind: "sandbox", Name: "sandbox", Lock: &ctlapi.TerraformLock{JobID: "job_2"}}),
		"terraform_state_version": lists(table.TerraformStateVersion(now),
			ctlapi.TerraformStateVersion{ID: "tfs_2", Serial: 13, Kind: "orphaned", Reason: new("the state is not locked"), WrittenAt: ago(time.Minute), JobID: "job_2", Digest: digest},
			ctlapi.TerraformStateVersion{ID: "tfs_1", Serial: 12, Kind: "current", WrittenAt: ago(time.Hour), Bytes: new(int64(700)), ChangeID: new("chg_1"), Lineage: "lin", JobID: "job_1", Digest: digest}),
		"terraform_object": lists(table.TerraformObject(), ctlapi.TerraformObject{Address: "terraform_data.a"}, ctlapi.TerraformObject{Address: "module.x.terraform_data.b[0]", Tainted: new(true)}),
		"webhook": lists(table.Webhook(now),
			ctlapi.Webhook{ID: "whk_1", Name: "pager", URL: "https://hooks.example.com/berth", State: ctlapi.WebhookStateEnabled, Secrets: 1, Position: 1042, CreatedAt: ago(time.Hour), SucceededAt: new(ago(time.Minute)), Secret: new("never shown")},
			ctlapi.Webhook{ID: "whk_2", Name: "gold", URL: "https://hooks.example.com/gold", State: ctlapi.WebhookStateFailed, Kinds: []string{"workflow.*", "health.changed"}, Apps: []string{"app_1"}, Installs: []string{"ins_1"},
				Labels: ctlapi.Labels{"tier": "gold"}, Secrets: 2, Pending: 3, Dead: 7, FailingSince: new(ago(73 * time.Hour)), CreatedAt: ago(100 * time.Hour)}),
		"delivery": lists(table.Delivery(now),
			ctlapi.WebhookDelivery{ID: "dlv_3", EventID: "evt_3", Kind: "webhook.ping", Cause: ctlapi.WebhookDeliveryCauseTest, State: ctlapi.WebhookDeliveryStateDelivered, Attempts: 1, Status: new(204), CreatedAt: ago(time.Second)},
			ctlapi.WebhookDelivery{ID: "dlv_2", EventID: "evt_2", Seq: new(int64(42)), Kind: "workflow.failed", Cause: ctlapi.WebhookDeliveryCauseEvent, State: ctlapi.WebhookDeliveryStatePending, Attempts: 3, Status: new(503),
				NextAt: new(now.Add(2 * time.Minute)), Error: new("the receiver answered 503"), Response: new("try\nlater"), CreatedAt: ago(time.Minute)},
			ctlapi.WebhookDelivery{ID: "dlv_1", EventID: "evt_1", Seq: new(int64(41)), Kind: "change.proposed", Cause: ctlapi.WebhookDeliveryCauseReplay, State: ctlapi.WebhookDeliveryStateDead, Attempts: 13, Error: new("connection refused"), CreatedAt: ago(80 * time.Hour)}),
		"install_role": lists(table.InstallRole(now),
			ctlapi.InstallRole{Name: "acme-repair", Known: true, Written: "{{ .nuon.id }}-repair", Kind: "break_glass", On: true, Since: new(ago(time.Hour)), Until: new(now.Add(time.Hour)), SwitchedBy: "ada",
				Reason: "ticket 4711", Description: "Repairs.", Actions: []string{"repair", "tidy"}},
			ctlapi.InstallRole{Name: "{{ .x }}-audit", Written: "{{ .x }}-audit", Kind: "custom", Actions: []string{}},
			ctlapi.InstallRole{Name: "look", Known: true, Written: "look", Kind: "custom", Since: new(ago(48 * time.Hour)), SwitchedBy: "berth-runner", Reason: "its time was over", Actions: []string{}}),
		"org": lists(table.Org(now), ctlapi.Org{ID: "org_1", Name: "vendor", CreatedAt: ago(time.Hour)}),
		"token": lists(table.Token(now),
			ctlapi.Token{ID: "tok_1", Name: "ci", Account: ctlapi.Ref{Name: "ada"}, Prefix: "brt_abc", CreatedAt: ago(time.Hour), LastUsedAt: new(ago(time.Minute))},
			ctlapi.Token{ID: "tok_2", Name: "old", ExpiresAt: new(ago(time.Minute)), CreatedAt: ago(time.Hour)},
			ctlapi.Token{ID: "tok_3", Name: "lost", ExpiresAt: new(ago(time.Minute)), RevokedAt: new(ago(time.Minute)), CreatedAt: ago(time.Hour)}),
		"browser_session": lists(table.BrowserSession(now),
			ctlapi.BrowserSession{ID: "bss_1", Account: ctlapi.Ref{Name: "ada"}, UserAgent: "Mozilla/5.0 (X11; Linux x86_64)", CreatedAt: ago(25 * time.Hour), LastUsedAt: ago(time.Minute), EndsAt: now.Add(71 * time.Hour)}),
		"customer": lists(table.Customer(now), ctlapi.Customer{ID: "cus_1", Name: "acme", Labels: ctlapi.Labels{"tier": "gold", "region": "eu"}, CreatedAt: ago(time.Hour)}),
		"runner": lists(table.Runner(now),
			ctlapi.Runner{ID: "rnr_1", Name: "acme", Kind: "install", State: ctlapi.RunnerStateActive, Online: true, Install: &acme, Slots: 5, Epoch: 7, LastSeenAt: new(ago(time.Second))},
			ctlapi.Runner{ID: "rnr_3", Name: "globex", Switch: "pause", SwitchReason: new("change freeze"), SwitchSince: new(ago(2 * time.Hour))},
			ctlapi.Runner{ID: "rnr_2", Name: "builds", Problem: new("no engine")}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got strings.Builder
			if err := print(&got); err != nil {
				t.Fatal(err)
			}
			goldentest.File(t, "testdata/"+name+".txt", got.String())
		})
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for want, install := range map[string]ctlapi.Install{
		"": {ApprovalOption: ctlapi.ApprovalOptionPrompt},
		"labels: env=prod, tier=gold; switched: cache on, metrics off; every change is approved by itself": {
			Labels: ctlapi.Labels{"tier": "gold", "env": "prod"}, ComponentToggles: ctlapi.ComponentToggles{"metrics": false, "cache": true},
			ApprovalOption: ctlapi.ApprovalOptionApproveAll,
		},
		"roles on: acme-repair, audit": {RolesOn: []string{"acme-repair", "audit"}, ApprovalOption: ctlapi.ApprovalOptionPrompt},
	} {
		if got := table.Settings(install); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
