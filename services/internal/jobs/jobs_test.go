package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/services/internal/jobs"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// patience is spent only when the test is about to fail.
const patience = 30 * time.Second

type workflowArgs struct {
	WorkflowID string `json:"workflow_id"`
}

func (workflowArgs) Kind() string { return "workflow_advance" }

type installArgs struct {
	InstallID string `json:"install_id"`
}

func (installArgs) Kind() string { return "install_advance" }

type buildArgs struct {
	BuildID string `json:"build_id"`
}

func (buildArgs) Kind() string { return "build_advance" }

// worked is what a worker saw of its job.
type worked struct {
	Args  any
	Trace string
}

// workers send what they work to the channel; fail decides what they return.
func workers(seen chan<- worked, fail func(attempt int) error) *river.Workers {
	ws := river.NewWorkers()
	addWorker[workflowArgs](ws, seen, fail)
	addWorker[installArgs](ws, seen, fail)
	addWorker[buildArgs](ws, seen, fail)
	return ws
}

func addWorker[A river.JobArgs](ws *river.Workers, seen chan<- worked, fail func(attempt int) error) {
	river.AddWorker(ws, river.WorkFunc(func(ctx context.Context, job *river.Job[A]) error {
		seen <- worked{Args: job.Args, Trace: trace.SpanContextFromContext(ctx).TraceID().String()}
		return fail(job.Attempt)
	}))
}

func succeed(int) error { return nil }

func TestInsertIsPartOfItsTransaction(t *testing.T) {
	t.Parallel()
	st := pgtest.New(t).AsRole(store.RoleCtl)
	seen := make(chan worked, 10)
	c := start(t, st, store.RiverCtl, workers(seen, succeed))

	rollback := errors.New("roll back")
	err := st.Tx(t.Context(), "org_1", func(ctx context.Context, tx *store.Tx) error {
		if err := c.Insert(ctx, tx, workflowArgs{"wfl_rolled_back"}); err != nil {
			return err
		}
		return rollback
	})
	if !errors.Is(err, rollback) {
		t.Fatal(err)
	}
	traceID := "0af7651916cd43dd8448eb211c80319c"
	err = st.Tx(traced(t.Context(), t, traceID), "org_1", func(ctx context.Context, tx *store.Tx) error {
		return c.Insert(ctx, tx, workflowArgs{"wfl_1"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(worked{Args: workflowArgs{"wfl_1"}, Trace: traceID}, next(t, seen)); diff != "" {
		t.Errorf("first job worked (-want +got):\n%s", diff)
	}
}

// A service wakes another through a function of fixed kind; the job, its trace
// and the other's worker are as if that one had inserted it.
func TestWakeUpsAcrossServices(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	ctl, builder := make(chan worked, 10), make(chan worked, 10)
	start(t, pg.AsRole(store.RoleCtl), store.RiverCtl, workers(ctl, succeed))
	start(t, pg.AsRole(store.RoleBuilder), store.RiverBuilder, workers(builder, succeed))
	traceID := "4bf92f3577b34da6a3ce929d0e0e4736"
	tests := []struct {
		name string
		by   store.Role
		wake func(ctx context.Context, tx *store.Tx) error
		at   <-chan worked
		want any
	}{
		{"runner-api wakes a workflow", store.RoleRunner, func(ctx context.Context, tx *store.Tx) error { return ctldb.New(tx.DB()).WakeWorkflow(ctx, "wfl_1") }, ctl, workflowArgs{"wfl_1"}},
		{"runner-api wakes an install", store.RoleRunner, func(ctx context.Context, tx *store.Tx) error { return ctldb.New(tx.DB()).WakeInstall(ctx, "ins_1") }, ctl, installArgs{"ins_1"}},
		{"ctl-api wakes a build", store.RoleCtl, func(ctx context.Context, tx *store.Tx) error { return ctldb.New(tx.DB()).WakeBuild(ctx, "bld_1") }, builder, buildArgs{"bld_1"}},
		{"runner-api wakes a build", store.RoleRunner, func(ctx context.Context, tx *store.Tx) error { return ctldb.New(tx.DB()).WakeBuild(ctx, "bld_2") }, builder, buildArgs{"bld_2"}},
	}
	for _, tt := range tests { // in order: they share the channels
		if err := pg.AsRole(tt.by).Tx(traced(t.Context(), t, traceID), "org_1", tt.wake); err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(worked{Args: tt.want, Trace: traceID}, next(t, tt.at)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestFailedJobsRunAgain(t *testing.T) {
	t.Parallel()
	st := pgtest.New(t).AsRole(store.RoleCtl)
	seen := make(chan worked, 10)
	c := start(t, st, store.RiverCtl, workers(seen, func(attempt int) error {
		if attempt == 1 {
			panic("a bug")
		}
		if attempt == 2 {
			return errors.New("not yet")
		}
		return nil
	}))
	err := st.Tx(t.Context(), "org_1", func(ctx context.Context, tx *store.Tx) error {
		return c.Insert(ctx, tx, workflowArgs{"wfl_1"})
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		next(t, seen)
	}
}

// The jobs of a process that was killed are worked by another one soon, not
// after River's hour.
func TestJobsOfAKilledProcessAreTakenUp(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := pg.Admin().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	// What a killed ctl-api leaves: a job in work, and its leadership.
	exec(`insert into river_ctl.river_job (kind, max_attempts, args, state, attempt, attempted_at, attempted_by)
	      values ('workflow_advance', 100, '{"workflow_id": "wfl_1"}', 'running', 1, now() - interval '1 minute', '{riv_dead}')`)
	exec(`insert into river_ctl.river_leader (elected_at, expires_at, leader_id) values (now() - interval '1 minute', now() + interval '1 hour', 'riv_dead')`)

	seen := make(chan worked, 10)
	start(t, pg.AsRole(store.RoleCtl), store.RiverCtl, workers(seen, succeed))
	if diff := cmp.Diff(any(workflowArgs{"wfl_1"}), next(t, seen).Args); diff != "" {
		t.Errorf("job (-want +got):\n%s", diff)
	}
	deadline := time.Now().Add(patience)
	for {
		var leader string
		if err := pg.Admin().QueryRow(t.Context(), `select coalesce(max(leader_id), '') from river_ctl.river_leader`).Scan(&leader); err != nil {
			t.Fatal(err)
		}
		if leader != "riv_dead" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the dead leader is still in office")
		}
		<-time.After(50 * time.Millisecond)
	}
}

// A slow job of a living process is not taken away from it.
func TestJobsOfALivingProcessAreLeftAlone(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	st := pg.AsRole(store.RoleCtl)
	started, finish := make(chan worked, 10), make(chan struct{})
	ws := river.NewWorkers()
	river.AddWorker(ws, river.WorkFunc(func(ctx context.Context, job *river.Job[workflowArgs]) error {
		started <- worked{Args: job.Args}
		select {
		case <-finish:
		case <-ctx.Done():
		}
		return nil
	}))
	slow := start(t, st, store.RiverCtl, ws)
	err := st.Tx(t.Context(), "org_1", func(ctx context.Context, tx *store.Tx) error {
		return slow.Insert(ctx, tx, workflowArgs{"wfl_slow"})
	})
	if err != nil {
		t.Fatal(err)
	}
	next(t, started)
	// It looks older than it is, and an orphan next to it shows that a sweep
	// took place.
	for _, sql := range []string{
		`update river_ctl.river_job set attempted_at = now() - interval '1 minute'`,
		`insert into river_ctl.river_job (kind, max_attempts, args, state, attempt, attempted_at, attempted_by)
		 values ('workflow_advance', 100, '{"workflow_id": "wfl_orphan"}', 'running', 1, now() - interval '1 minute', '{riv_dead}')`,
	} {
		if _, err := pg.Admin().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(any(workflowArgs{"wfl_orphan"}), next(t, started).Args); diff != "" {
		t.Errorf("job taken up (-want +got):\n%s", diff)
	}
	close(finish)
	if len(started) > 0 {
		t.Errorf("also taken up: %v", next(t, started))
	}
}

func start(t *testing.T, st *store.Store, schema string, ws *river.Workers) *jobs.Client {
	t.Helper()
	c, err := jobs.New(st, jobs.Config{Schema: schema, Workers: ws, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run jobs: %v", err)
		}
	})
	return c
}

func next(t *testing.T, seen <-chan worked) worked {
	t.Helper()
	select {
	case w := <-seen:
		return w
	case <-time.After(patience):
		t.Fatal("no job was worked")
		return worked{}
	}
}

func traced(ctx context.Context, t *testing.T, traceID string) context.Context {
	t.Helper()
	id, err := trace.TraceIDFromHex(traceID)
	if err != nil {
		t.Fatal(err)
	}
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: id, SpanID: trace.SpanID{1}, TraceFlags: trace.FlagsSampled, Remote: true,
	}))
}
