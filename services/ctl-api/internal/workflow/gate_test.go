package workflow_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/health"
	"github.com/berth-dev/berth/services/ctl-api/internal/orders"
	"github.com/berth-dev/berth/services/ctl-api/internal/remedyask"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

const healthCheck = "files_intact"

// looked is a run of the check and what it makes of the verdict, as a runner reports it.
func (r *rig) looked(at time.Time, verdict string) {
	r.t.Helper()
	state := map[string]string{"healthy": "succeeded", "unhealthy": "failed"}[verdict]
	r.exec(`insert into action_runs (id, org_id, install_id, action, trigger, key, scheduled_at, state, error, created_by, finished_at)
		values ($1, $2, $3, $4, 'cron', $1, $5, $6, case $6 when 'failed' then 'two files are gone' end, 'runner', $5)`, id.New(id.ActionRun), r.org, r.install, healthCheck, at, state)
	r.exec(`insert into checks (org_id, install_id, name, verdict, since) values ($1, $2, $3, $4, $5)
		on conflict (org_id, install_id, name) do update set verdict = excluded.verdict, since = case when checks.verdict = excluded.verdict then checks.since else excluded.since end`,
		r.org, r.install, healthCheck, verdict, at)
}

func (r *rig) gated(workflowID string) string {
	return r.value(`select state || coalesce(' ' || wait_on, '') || coalesce(' ' || error, '') from steps where workflow_id = $1 and kind = 'gate'`, workflowID)
}

// awaited is the release that the runner looks at while a gate is open.
func (r *rig) awaited() (release string) {
	r.t.Helper()
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		install, err := tx.FindInstall(ctx, r.install)
		if err != nil {
			return err
		}
		got, open, err := health.Awaited(ctx, tx, install)
		if open && got.ReleaseID != nil {
			release = *got.ReleaseID
		}
		return err
	})
	return release
}

// The app has a deploy wait until its check was good for two minutes. A provision that is
// good waits and is done; a deploy that turns bad fails, and goes back by itself.
func TestGateThatTheAppAsksFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) {
		key := app.Component("key")
		key.Health = &appconfig.ComponentHealth{BlockDeploy: true, StabilizationWindow: place.Duration(2 * time.Minute), RequiredChecks: []string{healthCheck, "nobody knows it"}}
		if key.Berth == nil {
			key.Berth = &appconfig.BlockExtension{}
		}
		key.Berth.AutoRollback = true
	})
	finder := r.finder()
	finder.Log = slog.New(slog.DiscardHandler)
	r.engine.Failed = finder.ByItself
	now := time.Now()
	r.engine.Now = func() time.Time { return now }
	w := r.provision()
	if got := r.gated(w); got != "waiting "+healthCheck {
		t.Fatalf("the gate is %q, steps %v", got, r.steps(w))
	}
	if got := r.value(`select state || ' ' || (select state from installs) from workflows where id = $1`, w); got != "waiting provisioning" {
		t.Fatalf("behind the gate: %s", got)
	}
	if got := r.awaited(); got != r.release {
		t.Errorf("while it waits, the health of release %q is looked at, want %s", got, r.release)
	}
	began := now
	now = began.Add(90 * time.Second)
	r.looked(now, "healthy")
	r.advance(w)
	if got := r.gated(w); got != "waiting "+healthCheck {
		t.Fatalf("after 90 seconds the gate is %q", got)
	}
	now = began.Add(4 * time.Minute)
	r.looked(now, "healthy")
	r.advance(w)
	if got := r.value(`select state || ' ' || (select state from installs) from workflows where id = $1`, w); got != "succeeded live" {
		t.Fatalf("after four minutes: %s; %s", got, r.gated(w))
	}
	if got := r.awaited(); got != "" {
		t.Errorf("with no gate open, release %q is awaited", got)
	}

	// What was seen was seen before the second deploy.
	r.exec(`update action_runs set scheduled_at = scheduled_at - interval '10 minutes', finished_at = finished_at - interval '10 minutes'`)
	r.exec(`update checks set since = since - interval '10 minutes'`)
	r.engine.Now = nil
	first := r.release
	second := r.newRelease(2)
	w = r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true, Components: []string{"key"}})
	r.planned(w, "component/key", "key 2")
	r.exec(`update changes set plan = jsonb_set(plan, '{reversal}', jsonb_build_object('class', $2::text)) where id = (select change_id from steps where workflow_id = $1 and name = 'component/key')`, w, jobspec.Reversible)
	r.applied(w, "component/key", jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	r.applied(w, "check/"+healthCheck, jobspec.OutcomeSucceeded, nil)
	if got := r.awaited(); got != second {
		t.Errorf("the health of release %q is looked at, want %s", got, second)
	}
	r.looked(time.Now().Add(time.Second), "unhealthy")
	r.advance(w)
	if got := r.gated(w); !strings.HasPrefix(got, "failed ") || !strings.Contains(got, "became unhealthy after the deploy: two files are gone") {
		t.Fatalf("the gate is %q", got)
	}
	if got := r.value(`select release_id from installs`); got != first {
		t.Errorf("the install has release %s, want the first", got)
	}
	started := r.value(`select count(*)::text from workflows where kind = 'rollback' and created_by = 'berth' and params->'rollback'->>'answers' = $1 and params->'components' = '["key"]'`, w)
	if started != "1" {
		t.Errorf("%s rollbacks began by themselves, want 1", started)
	}
}

// Who deploys says how long it has to be healthy; what the install says counts otherwise. A
// person may go on without it.
func TestGateThatIsAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	r.exec(`update installs set health_hold_seconds = 300, approval_option = 'approve_all'`)
	deploy := func(hold *time.Duration) string {
		t.Helper()
		w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"card"}, Hold: hold})
		r.planned(w, "component/card", "")
		r.applied(w, "check/"+healthCheck, jobspec.OutcomeSucceeded, nil)
		return w
	}
	spec := `select coalesce((select params->'gate'->>'hold_seconds' from steps where workflow_id = $1 and kind = 'gate'), 'none')`
	for _, tt := range []struct {
		hold *time.Duration
		want string
	}{{nil, "300"}, {new(time.Minute), "60"}, {new(time.Duration(0)), "none"}} {
		w := deploy(tt.hold)
		if got := r.value(spec, w); got != tt.want {
			t.Errorf("with hold %v the gate is %q, want %q", tt.hold, got, tt.want)
		}
		if tt.want == "none" {
			continue
		}
		// Nobody looks: at the end of its time it fails.
		now := time.Now().Add(24 * time.Hour)
		r.engine.Now = func() time.Time { return now }
		r.advance(w)
		if got := r.gated(w); !strings.Contains(got, "it was not healthy for") {
			t.Fatalf("the gate is %q", got)
		}
		r.engine.Now = nil
		r.tx(func(ctx context.Context, tx *database.Tx) error {
			_, err := workflow.Skip(ctx, tx, r.value(`select id from steps where workflow_id = $1 and kind = 'gate'`, w), "ada")
			return err
		})
		r.advance(w)
		if got := r.value(`select state from workflows where id = $1`, w); got != "succeeded" {
			t.Errorf("without the gate it is %s", got)
		}
	}
	preview := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"card"}, PlanOnly: true})
	if got := r.value(spec, preview); got != "none" {
		t.Errorf("a preview has a gate: %s", got)
	}
}

// The probes of a component that is waited for are waited for too. No workflow runs them: the
// runner's schedule does.
func TestGateWaitsForProbes(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) {
		app.Component("card").Health = &appconfig.ComponentHealth{BlockDeploy: true, Probes: []map[string]string{{"type": "tcp", "target": "db:5432"}, {"type": "exec"}}}
	})
	r.provision()
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"card"}, ApproveAll: true})
	if got := r.value(`select params->'gate'->>'checks' from steps where workflow_id = $1 and kind = 'gate'`, w); got != `["probe.card.tcp-1"]` {
		t.Errorf("the gate looks at %s", got)
	}
	if got := r.value(`select string_agg(name, ' ' order by idx) from steps where workflow_id = $1 and kind = 'check'`, w); got != "check/"+healthCheck {
		t.Errorf("checks of the workflow: %s", got)
	}
}

// A remediation that the app asks about is a run of the action that waits for a decision: one for
// each time that the check is unhealthy.
func TestRemediationThatIsAskedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(app *appconfig.App) {
		app.Actions = append(app.Actions, appconfig.Action{
			Name: "repair", Timeout: place.Duration(time.Minute), Triggers: []appconfig.Trigger{{Type: appconfig.TriggerManual}},
			Steps: []appconfig.Step{{Name: "repair", InlineContents: &place.Text{Contents: "true\n"}}},
		})
		app.Action(healthCheck).Berth = &appconfig.ActionExtension{HealthCheck: &appconfig.HealthCheck{
			UnhealthyAfter: 1, HealthyAfter: 1, Remediation: "repair", RemediationMode: appconfig.RemediationAsk,
		}}
	})
	r.provision()
	asks := &remedyask.Starter{Store: r.ctl, Log: slog.New(slog.DiscardHandler), Start: func(ctx context.Context, tx *database.Tx, installID, check, action string) error {
		_, err := workflow.Start(ctx, tx, workflow.Request{InstallID: installID, Kind: flow.KindActionRun, Action: action, Remedy: check, Actor: "berth"})
		return err
	}}
	asked := func() string {
		t.Helper()
		for range 2 { // the second time, there is nothing left to ask
			if err := asks.Advance(t.Context(), r.install); err != nil {
				t.Fatal(err)
			}
		}
		return r.value(`select count(*)::text from workflows where kind = 'action_run' and created_by = 'berth' and params->>'remedy' = $1`, healthCheck)
	}
	if got := asked(); got != "0" {
		t.Fatalf("nothing is wrong, and people are asked %s times", got)
	}
	r.looked(time.Now().Add(-time.Second), "unhealthy")
	if got := asked(); got != "1" {
		t.Fatalf("asked %s times, want once", got)
	}
	w := r.value(`select id from workflows where params->>'remedy' = $1`, healthCheck)
	r.advance(w)
	r.planned(w, "action/repair", "repair")
	if got := r.value(`select s.reason || ': ' || c.state from steps s join changes c on c.id = s.change_id where s.workflow_id = $1 and s.name = 'action/repair'`, w); got != healthCheck+" is unhealthy, and the app asks whether it shall run then: proposed" {
		t.Errorf("the step is %q", got)
	}
	// While that is open, and until it was healthy in between, nobody is asked again.
	r.looked(time.Now(), "healthy")
	r.looked(time.Now(), "unhealthy")
	if got := asked(); got != "1" {
		t.Errorf("asked %s times while the first question is open", got)
	}
	r.exec(`update workflows set state = 'cancelled', finished_at = now() where id = $1`, w)
	r.exec(`update checks set since = clock_timestamp() where name = $1`, healthCheck)
	if got := asked(); got != "2" {
		t.Errorf("asked %s times after it was unhealthy again, want 2", got)
	}
	scripts, err := orders.Scripts(&appconfig.App{Actions: []appconfig.Action{
		{Name: "look", Berth: &appconfig.ActionExtension{HealthCheck: &appconfig.HealthCheck{Remediation: "repair", RemediationMode: appconfig.RemediationAsk}}, Triggers: []appconfig.Trigger{{Type: appconfig.TriggerCron, CronSchedule: "* * * * *"}}, Steps: []appconfig.Step{{Name: "a", Command: "true"}}},
		{Name: "repair", Steps: []appconfig.Step{{Name: "a", Command: "true"}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scripts {
		if len(s.Heals) > 0 {
			t.Errorf("the runner would start %s by itself: %+v", s.Action.Name, s.Heals)
		}
	}
}
