package workflow_test

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
)

// spans records what is traced in this test binary; the store traces each
// statement inside of a span.
var spans = sync.OnceValue(func() *tracetest.SpanRecorder {
	recorder := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(recorder)))
	return recorder
})

var statementName = regexp.MustCompile(`-- name: (\w+)`)

// transactions advances a workflow and lists the statements of each transaction
// that it took: generated ones by name, others by their first word.
func (r *rig) transactions(workflowID string) [][]string {
	r.t.Helper()
	recorder := spans()
	ctx, root := otel.Tracer("test").Start(r.t.Context(), r.t.Name())
	if err := r.engine.Advance(ctx, workflowID); err != nil {
		r.t.Fatalf("Advance: %v", err)
	}
	root.End()
	var done []trace.ReadOnlySpan
	for _, span := range recorder.Ended() {
		if span.SpanContext().TraceID() == root.SpanContext().TraceID() {
			done = append(done, span)
		}
	}
	slices.SortStableFunc(done, func(a, b trace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	var all [][]string
	for _, span := range done {
		text, ran := statementOf(span)
		if !ran {
			continue
		}
		name := strings.ToLower(strings.Fields(text)[0])
		if m := statementName.FindStringSubmatch(text); m != nil {
			name = m[1]
		}
		if name == "begin" {
			all = append(all, nil)
		}
		last := len(all) - 1
		all[last] = append(all[last], name)
	}
	return all
}

// statementOf is the text of the statement that a span is of; ran is false for
// other spans, and for one that only prepares a statement.
func statementOf(span trace.ReadOnlySpan) (text string, ran bool) {
	for _, attr := range span.Attributes() {
		switch {
		case attr.Key == "db.query.text":
			text, ran = attr.Value.AsString(), true
		case strings.Contains(string(attr.Key), "prepare"):
			return "", false
		}
	}
	return text, ran
}

// A look is one transaction: it locks the workflow's row, and three statements read
// all that is decided from. The moves from the result of one job to the next job share
// a transaction, which holds the install's row as well and reads it once more; after a move only what it
// moved is read again. Their events are stored together at its end.
func TestMovesShareATransaction(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	look := []string{"begin", "select", "LockWorkflow", "InstallToMove", "StepsToMove", "JobsToMove"}
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	idle := append(slices.Clone(look), "commit")
	if diff := cmp.Diff([][]string{idle}, r.transactions(w)); diff != "" {
		t.Errorf("an Advance with nothing to do (-want +got):\n%s", diff)
	}

	// The plan of the sandbox comes in: proposed, approved, executing; then nothing.
	jobID, _ := r.openJob(w, "sandbox")
	r.exec(`update runner_jobs set state = 'succeeded', finished_at = now(),
		result = '{"outcome": "succeeded", "plan": {"effect": {}, "effect_digest": "sha256:e", "pinned": "sha256:p", "plan_bytes_digest": "sha256:p", "summary": {}}}' where id = $1`, jobID)
	moves := r.transactions(w)
	if len(moves) != 1 {
		t.Fatalf("%d transactions, want one for the three moves and the last look: %v", len(moves), moves)
	}
	hold := append(slices.Clone(look), "select", "LockInstallRow", "InstallToMove")
	if diff := cmp.Diff(hold, moves[0][:len(hold)]); diff != "" {
		t.Errorf("the moves do not begin with one look and the install's lock (-want +got):\n%s", diff)
	}
	counts := map[string]int{}
	for _, name := range moves[0] {
		counts[name]++
	}
	for name, want := range map[string]int{
		"LockWorkflow": 1, "InstallToMove": 3, "LockInstallRow": 1, "ProposeChange": 1, "ApproveChange": 1, "ExecuteChange": 1, "StepsToMove": 4, "JobsToMove": 4,
		"AppendWorkflowEvents": 1, "commit": 1,
	} {
		if counts[name] != want {
			t.Errorf("%s runs %d times, want %d: %v", name, counts[name], want, moves[0])
		}
	}
	if got := r.steps(w)["sandbox"]; got != "running executing" {
		t.Errorf("the sandbox is %q, want running executing", got)
	}
}

// A move that fails does not take those before it with it: they are done, and the
// workflow goes on from there once the cause is gone.
func TestMovesBeforeOneThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	r.planned(w, "sandbox", "sb")
	r.exec(`update configs set body = '[]'`) // so that no component can be planned
	jobID, _ := r.openJob(w, "sandbox")
	r.exec(`update runner_jobs set state = 'succeeded', finished_at = now(), result = '{"outcome": "succeeded"}' where id = $1`, jobID)
	if err := r.engine.Advance(t.Context(), w); err == nil {
		t.Fatal("Advance plans a component of a damaged config")
	}
	if got := r.steps(w)["sandbox"]; got != "succeeded applied" {
		t.Errorf("the sandbox is %q, want succeeded applied", got)
	}
	if got := r.value(`select count(*)::text from resources where locked_by is not null`); got != "0" {
		t.Errorf("%s resources are held, want none", got)
	}
}

func TestAdvanceOfWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.engine.Advance(t.Context(), id.New(id.Workflow)); err != nil {
		t.Errorf("a wake-up that outlived its workflow: %v", err)
	}
}

// A row of our own that is not what we write is an error, not an empty one.
func TestDamagedRowIsAnError(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	w := r.start(workflow.Request{Kind: flow.KindProvision})
	r.arrive()
	r.exec(`update workflows set trace = '["no", "object"]' where id = $1`, w)
	if err := r.engine.Advance(t.Context(), w); err == nil || !strings.Contains(err.Error(), "read trace of workflow "+w) {
		t.Errorf("Advance of a workflow with a damaged trace: %v", err)
	}
	if got := r.steps(w)["stack"]; got != "waiting" {
		t.Errorf("the step is %q, want waiting as before", got)
	}
}

// BenchmarkLook is an Advance that finds nothing to do, next to the jobs that
// other workflows of the install have left: what each wake-up costs at least.
func BenchmarkLook(b *testing.B) {
	r := newRig(b)
	r.reviews = true // advance asks nothing else
	r.arrive()
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	r.leaveBehind(10_000)
	for b.Loop() {
		r.advance(w)
	}
}

// leaveBehind makes finished jobs of another workflow.
func (r *rig) leaveBehind(jobs int) {
	old := id.New(id.Workflow)
	r.exec(`insert into workflows (id, org_id, install_id, number, kind, inputs_version, state, created_by) values ($1, $2, $3, 1000, 'deploy', 1, 'succeeded', 'test')`, old, r.org, r.install)
	r.exec(`insert into runner_jobs (id, org_id, runner_id, install_id, workflow_id, kind, operation, spec, state, result, timeout_seconds)
		select 'job_old' || n, $1, $2, $3, $4, 'action', 'run', '{}', 'succeeded', jsonb_build_object('outcome', 'succeeded', 'text', repeat('x', 500)), 60 from generate_series(1, $5) n`,
		r.org, r.runner, r.install, old, jobs)
	r.exec(`analyze runner_jobs`)
}
