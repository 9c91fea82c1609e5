package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/explain"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/sweep"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// stuck are the workflows that the sweep's query lists.
func (r *rig) stuck() (ids []string) {
	r.t.Helper()
	err := r.ctl.System(r.t.Context(), func(ctx context.Context, tx *database.Tx) (err error) {
		ids, err = tx.StuckWorkflows(ctx)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return ids
}

// values are the rows of a query with one text column.
func (r *rig) values(sql string, args ...any) (all []string) {
	r.t.Helper()
	rows, err := r.admin.Query(r.t.Context(), sql, args...)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var v string
		if err := rows.Scan(&v); err != nil {
			r.t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

const open = `select id from workflows where state in ('queued', 'running', 'waiting') order by id`

// Whatever happens, and whatever wake-up is lost on the way, the query lists every
// workflow in which something is to be done; the sweep moves it until nothing is, and
// then every open workflow says why it waits. The rows are real, the history is random.
func TestNoWorkflowIsStuckForEver(t *testing.T) {
	t.Parallel()
	const moves = 160
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	r := newRig(t, func(app *appconfig.App) { app.Component("card").Toggleable = true; app.Actions = nil })
	r.provisionWithoutChecks()
	r.reviews = true
	sweeper := sweep.New(slog.New(slog.DiscardHandler), sweep.Workflows(r.ctl, r.engine))
	listed, overdue := 0, 0
	for move := range moves {
		what := r.happens(rnd)
		r.exec(`delete from river_ctl.river_job`)
		found := r.stuck()
		for _, id := range r.values(open) {
			do, err := r.engine.Overdue(t.Context(), id)
			if err != nil {
				t.Fatalf("seed %d, move %d (%s): %v", seed, move, what, err)
			}
			if do == "" {
				continue
			}
			if overdue++; !slices.Contains(found, id) {
				t.Fatalf("seed %d, move %d (%s): %s is to be done in %s, which is not listed: %v", seed, move, what, do, id, r.steps(id))
			}
		}
		listed += len(found)
		if move%2 == 0 {
			continue // the next thing happens before anybody looks
		}
		for again := true; again; {
			n, err := sweeper.Round(t.Context())
			if err != nil {
				t.Fatalf("seed %d, move %d (%s): %v", seed, move, what, err)
			}
			r.exec(`delete from river_ctl.river_job`)
			again = n > 0
		}
		for _, id := range r.values(open) {
			r.tx(func(ctx context.Context, tx *database.Tx) error {
				a, err := explain.Workflow(ctx, tx, id, time.Now())
				if err == nil && len(a.Reasons) == 0 {
					err = fmt.Errorf("seed %d, move %d (%s): %s does not say why it waits: %v", seed, move, what, id, r.steps(id))
				}
				return err
			})
		}
	}
	t.Logf("seed %d: %d times something was to be done, %d were listed", seed, overdue, listed)
	if overdue == 0 {
		t.Error("nothing was ever to be done")
	}
}

// happens has something happen to the install that a person or its runner could do, and
// wakes nobody.
func (r *rig) happens(rnd *rand.Rand) string {
	r.t.Helper()
	one := func(sql string) string {
		all := r.values(sql)
		if len(all) == 0 {
			return ""
		}
		return all[rnd.IntN(len(all))]
	}
	try := func(what string, fn func(ctx context.Context, tx *database.Tx) error) string {
		err := r.ctl.Tx(r.t.Context(), r.org, fn)
		if err != nil && !errors.Is(err, fault.ErrConflict) && !errors.Is(err, fault.ErrInvalid) {
			r.t.Fatalf("%s: %v", what, err)
		}
		return what
	}
	switch n := rnd.IntN(20); {
	case n < 3 && len(r.values(open)) < 4:
		req := workflow.Request{
			InstallID: r.install, Actor: "ada", ApproveAll: rnd.IntN(2) == 0, Confirm: "acme",
			Kind:      []flow.Kind{flow.KindDeploy, flow.KindDeploy, flow.KindReprovision, flow.KindToggle, flow.KindTeardown}[rnd.IntN(5)],
			OnFailure: []model.OnFailure{model.FailureStops, model.FailureContinues}[rnd.IntN(2)],
		}
		if req.Kind == flow.KindTeardown || req.Kind == flow.KindDeploy && rnd.IntN(2) == 0 {
			req.Components = []string{[]string{"card", "key"}[rnd.IntN(2)]}
		}
		return try("start "+string(req.Kind), func(ctx context.Context, tx *database.Tx) error {
			_, err := workflow.Start(ctx, tx, req)
			return err
		})
	case n < 4:
		on := rnd.IntN(2) == 0
		r.exec(fmt.Sprintf(`update installs set toggles = '{"card": %t}', toggles_version = toggles_version + 1`, on))
		return "toggle"
	case n < 5:
		id := one(open)
		if id == "" {
			return "nothing"
		}
		return try("cancel", func(ctx context.Context, tx *database.Tx) error { return workflow.Cancel(ctx, tx, id, "ada") })
	case n < 7:
		id := one(`select id from workflows where state in ('failed', 'cancelled')`)
		if id == "" {
			return "nothing"
		}
		return try("retry", func(ctx context.Context, tx *database.Tx) error { return workflow.RetryAll(ctx, tx, id, "ada") })
	case n < 8:
		id := one(`select id from steps where state = 'failed'`)
		if id == "" {
			return "nothing"
		}
		return try("skip", func(ctx context.Context, tx *database.Tx) error {
			_, err := workflow.Skip(ctx, tx, id, "ada")
			return err
		})
	case n < 12:
		change := one(`select id from changes where state = 'proposed'`)
		if change == "" {
			return "nothing"
		}
		a := workflow.Answer{
			ChangeID: change, By: r.ada, EffectDigest: r.value(`select effect_digest from changes where id = $1`, change),
			Answer: []model.Answer{model.Approve, model.Approve, model.Approve, model.Deny, model.PlanAgain}[rnd.IntN(5)],
		}
		return try(string(a.Answer), func(ctx context.Context, tx *database.Tx) error { return workflow.Decide(ctx, tx, a) })
	case n < 13:
		r.exec(`update runners set state = case state when 'active' then 'pending' else 'active' end`)
		return "the runner comes or goes"
	}
	job := one(`select id from runner_jobs where state = 'queued'`)
	if job == "" {
		return "nothing"
	}
	r.ends(job, rnd)
	return "a job ends"
}

// ends is a job that the runner has ended, one way or another.
func (r *rig) ends(job string, rnd *rand.Rand) {
	r.t.Helper()
	if r.value(`select (cancel_requested_at is not null)::text from runner_jobs where id = $1`, job) == "true" {
		r.exec(`update runner_jobs set state = 'cancelled', result = '{"outcome": "cancelled"}', finished_at = now() where id = $1`, job)
		return
	}
	if r.value(`select operation from runner_jobs where id = $1`, job) != "plan" {
		outcome := []string{"succeeded", "succeeded", "succeeded", "failed", "stale", "uncertain"}[rnd.IntN(6)]
		state := "failed"
		if outcome == "succeeded" {
			state = outcome
		}
		r.exec(`update runner_jobs set state = $2, result = jsonb_build_object('outcome', $3::text), finished_at = now() where id = $1`, job, state, outcome)
		return
	}
	if rnd.IntN(8) == 0 {
		r.exec(`update runner_jobs set state = 'failed', result = '{"outcome": "failed", "error": "no route to host"}', finished_at = now() where id = $1`, job)
		return
	}
	step, what := r.value(`select s.name from steps s join runner_jobs j on j.step_id = s.id where j.id = $1`, job), fmt.Sprint(rnd.IntN(3)) // 0: no change
	effect := capsule.Effect{OrgID: r.org, InstallID: r.install, ChangeKind: "deploy", Component: step, PlanDigest: what}
	raw, err := json.Marshal(map[string]any{
		"outcome": "succeeded", "no_change": what == "0",
		"plan": map[string]any{"effect": effect, "effect_digest": effect.Digest(), "pinned": "sha256:pin", "plan_bytes_digest": "sha256:pin",
			"summary": jobspec.PlanSummary{NoChange: what == "0", Create: 1}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.exec(`update runner_jobs set state = 'succeeded', result = $2, finished_at = now() where id = $1`, job, raw)
}

// A round over many open workflows that all wait for a decision is one query that lists
// none of them, and those whose wake-up was lost are found among them.
func TestARoundAmongManyWorkflows(t *testing.T) {
	t.Parallel()
	const many = 5000
	r := newRig(t, func(app *appconfig.App) { app.Actions = nil })
	r.provisionWithoutChecks()
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"key"}})
	r.planned(w, "component/key", "new")
	if got := r.steps(w)["component/key"]; got != "waiting proposed" {
		t.Fatalf("the key is %s", got)
	}
	r.exec(`alter table workflows disable trigger user; alter table steps disable trigger user; alter table changes disable trigger user`)
	for _, table := range []string{"workflows", "steps", "changes"} {
		r.copies(table, w, many-1)
	}
	r.exec(`analyze`)
	r.exec(`delete from river_ctl.river_job`)
	began := time.Now()
	found := r.stuck()
	took := time.Since(began)
	if len(found) != 0 {
		t.Errorf("%d of %d workflows that wait for a decision are listed: %v", len(found), many, found[0])
	}
	before, sample := time.Now(), r.values(open)[:50]
	for _, id := range sample {
		if do, err := r.engine.Overdue(t.Context(), id); do != "" || err != nil {
			t.Errorf("workflow %s: %s, %v", id, do, err)
		}
	}
	t.Logf("%d open workflows: the query took %s; a look under the row of each, %s", many, took.Round(time.Millisecond), (time.Since(before) * many / time.Duration(len(sample))).Round(time.Second))
	lost := r.values(`update changes set state = 'approved' where id in (select id from changes where state = 'proposed' order by id limit 3) returning workflow_id`)
	found = r.stuck()
	slices.Sort(lost)
	if !slices.Equal(found, lost) {
		t.Errorf("listed are %v, want %v", found, lost)
	}
}

// copies adds rows to a table like those of a workflow, as rows of other workflows.
func (r *rig) copies(table, workflowID string, count int) {
	r.t.Helper()
	columns := r.values(`select column_name::text from information_schema.columns where table_schema = 'berth' and table_name = $1 and is_generated = 'NEVER' order by ordinal_position`, table)
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = "x." + c
		if c == "id" || c == "workflow_id" || c == "step_id" || c == "change_id" || c == "wait_on" || c == "origin_id" {
			values[i] = `case when x.` + c + ` is not null then x.` + c + ` || '_' || n end`
		}
		if c == "number" {
			values[i] = "x.number + n"
		}
	}
	where := "x.workflow_id = $1"
	if table == "workflows" {
		where = "x.id = $1"
	}
	r.exec(`insert into `+table+` (`+strings.Join(columns, ", ")+`) select `+strings.Join(values, ", ")+` from `+table+` x, generate_series(1, $2::int) n where `+where, workflowID, count)
}
