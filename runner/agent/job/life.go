package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/recovery"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

const (
	// lostGrace is what an engine gets whose lease somebody else has: time to
	// write down what it knows, not to finish.
	lostGrace = 10 * time.Second
	// overtime is what an engine gets beyond its timeout, which it keeps by
	// itself and explains better than the agent could.
	overtime = 5 * time.Second
	// resourceWait is how long an engine of the same resource may take to die
	// before its successor gives up.
	resourceWait = time.Minute
)

// plannedAgain is the remedy of a stale result.
const plannedAgain = "nothing was done; the control plane plans it again"

// errDetached: the agent ends; the engine keeps running and is adopted later.
var errDetached = errors.New("the agent ends before the engine")

// engine is one that runs or has run: a child process, or one in a pod.
type engine interface {
	// Done is closed when it, and all that it started, is over.
	Done() <-chan struct{}
	// ExitCode is known after Done, -1 when it is not.
	ExitCode() int
	// Stop asks it to stop at its next safe point, and has it ended when it did
	// not within grace.
	Stop(grace time.Duration)
}

// job is one attempt while this agent works on it.
type job struct {
	deps *Deps
	dir  folder
	spec jobspec.Spec
	// fault says why the spec cannot be read, nil when it can.
	fault error
	// order is the verified one; zero before, and for scheduled runs.
	order   capsule.Order
	secrets *secrets
	logs    *logs
	log     *slog.Logger

	// hidden are the texts that were opened for the job.
	hidden     []string
	locks      []*os.File // of the directory and of the resource
	group      *process.Group
	launch     *process.Launch // the launcher that waits for its engine, nil without one
	kubeconfig string          // in/kubeconfig, "" when the engine gets none

	tick *Tick // of the attempt, which other goroutines read without its lock

	mu       sync.Mutex
	attempt  Attempt
	stopped  Stop
	engine   engine // nil before it runs
	breakOff context.CancelFunc
	stream   chan string // gets the stream's id once it is known
	proxy    *stateproxy.Proxy

	over chan struct{} // closed when the engine is over and the report on disk
	done chan struct{} // closed when nothing is left to do
}

func newJob(deps *Deps, dir folder, a Attempt) (*job, error) {
	spec, fault := a.Spec()
	j := &job{
		deps: deps, dir: dir, tick: a.Tick, spec: spec, fault: fault, attempt: a, secrets: newSecrets(),
		log:    deps.Log.With("job_id", a.Assignment.JobID, "attempt", a.Assignment.Attempt),
		stream: make(chan string, 1), over: make(chan struct{}), done: make(chan struct{}),
		breakOff: func() {},
	}
	// Without the lock, an engine that is to be adopted has it.
	lock, err := datadir.Flock(dir.lock(), errors.New("job directory is in use"))
	if err == nil {
		j.locks = append(j.locks, lock)
	}
	j.secrets.add(a.Assignment.LogToken, "log token")
	if err := j.openLogs(); err != nil {
		j.unlock()
		return nil, fmt.Errorf("log spool: %w", err)
	}
	j.logs.setToken(a.Assignment.LogToken)
	if a.Assignment.StreamID != "" {
		j.stream <- a.Assignment.StreamID
	}
	return j, nil
}

// run works on the attempt from where it stands until everything is delivered,
// or until life ends.
func (j *job) run(life context.Context, entry recovery.Decision) {
	defer close(j.done)
	defer j.unlock()
	shipped := make(chan struct{})
	go func() {
		defer close(shipped)
		select {
		case stream := <-j.stream:
			j.logs.ship(life, j.deps.Sinks, stream)
		case <-life.Done():
		}
	}()
	if j.tick != nil {
		go j.announce(life)
	}
	err := j.work(life, entry)
	if err == nil {
		j.release()
	}
	close(j.over)
	switch {
	case errors.Is(err, errDetached), life.Err() != nil:
		return
	case err != nil:
		j.log.ErrorContext(life, "attempt cannot be finished and stays for the next start", "err", err)
		return
	}
	if err := j.deliver(life); err != nil {
		if life.Err() == nil {
			j.log.ErrorContext(life, "report stays for the next start", "err", err)
		}
		return
	}
	if err := j.endLogs(life); err != nil {
		return
	}
	select {
	case <-shipped:
		j.remove(life)
	case <-life.Done():
	}
}

// work brings the attempt to its end: the report is on disk afterwards.
func (j *job) work(life context.Context, entry recovery.Decision) error {
	switch {
	case entry == recovery.Forget:
		return nil
	case entry == recovery.Report && j.attempt.Phase == recovery.Ended:
		result, err := j.loadReport()
		if err == nil {
			return j.finishAgain(life, result)
		}
		j.reportLost(life, err) // the engine's own word is still there
	case entry == "":
		return j.begin(life)
	case entry == recovery.Uncertain && j.kind().ByAgent:
		return j.finish(life, j.acceptedAfterAll(), nil)
	}
	// Register again what the first agent knew, before any line is read.
	if err := j.learnAgain(); err != nil {
		j.log.WarnContext(life, "sealed values cannot be opened again", "err", err)
	}
	if err := j.hideAccessAgain(); err != nil {
		j.log.WarnContext(life, "kubeconfig cannot be read again", "err", err)
	}
	j.log.InfoContext(life, "attempt of an earlier agent", "decision", string(entry), "phase", string(j.attempt.Phase))
	switch entry {
	case recovery.Adopt:
		return j.adopt(life)
	case recovery.NotStarted:
		return j.finish(life, j.neverStarted(), nil)
	default: // report, uncertain
		j.logs.follow(life, j.dir.stdout(), j.dir.stderr())
		j.logs.drain()
		if err := j.stored(life, "state proxy", func() error { return j.openProxy(life) }); err != nil {
			return err
		}
		return j.finishEngine(life, -1)
	}
}

// neverStarted is the result of an attempt whose engine provably did not begin.
func (j *job) neverStarted() jobspec.Result {
	r := jobspec.Result{Outcome: jobspec.OutcomeNotStarted, Error: "the agent stopped before the engine began"}
	if j.attempt.Phase == recovery.Ordered {
		// The order may be used up: giving the job out again would be refused. A new
		// plan brings a new order.
		r.Outcome, r.Remedy = jobspec.OutcomeStale, plannedAgain
	}
	return r
}

// begin works on an attempt for the first time.
func (j *job) begin(life context.Context) error {
	ctx, cancel := context.WithTimeout(life, j.spec.Timeout())
	defer cancel()
	j.mu.Lock()
	j.breakOff = cancel
	stopped := j.stopped
	j.mu.Unlock()
	if stopped != "" {
		cancel()
	}
	ctx, span := j.startSpan(ctx)
	defer span.End()
	p, err := j.start(ctx, life)
	if err != nil {
		if errors.Is(err, errDetached) || life.Err() != nil && j.why() == "" {
			return errDetached
		}
		return j.finish(life, j.failure(err), nil)
	}
	return j.await(life, p)
}

// start prepares everything and starts the engine.
func (j *job) start(ctx, life context.Context) (engine, error) {
	if err := j.admit(ctx); err != nil {
		return nil, err
	}
	if err := j.askStopped(); err != nil {
		return nil, err
	}
	if j.kind().ByAgent {
		return j.reviewRelease(ctx, life)
	}
	if err := j.admitScript(ctx); err != nil {
		return nil, err
	}
	if err := j.roomFor(); err != nil {
		return nil, err
	}
	if err := j.confine(); err != nil {
		return nil, err
	}
	if err := j.launchAhead(); err != nil {
		return nil, err
	}
	defer j.cancelLaunch() // when it does not come to an engine
	j.remark("preparing " + j.what())
	if err := j.prepare(ctx); err != nil {
		return nil, err
	}
	if j.mutates() {
		if err := j.lockResource(ctx); err != nil {
			return nil, err
		}
		if err := j.roomFor(); err != nil { // the last look before the order is used up
			return nil, err
		}
		if err := j.askStopped(); err != nil { // a session may have opened meanwhile
			return nil, err
		}
		if err := j.obey(ctx); err != nil {
			return nil, err
		}
	}
	if err := j.openProxy(life); err != nil {
		return nil, err
	}
	if err := j.expose(); err != nil {
		return nil, fmt.Errorf("give the job directory to the engine's user: %w", err)
	}
	if err := j.askSwitch(); err != nil { // a last look: the switch is above everything
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if j.deps.Engine.InPods {
		return j.launchPod(ctx, life)
	}
	return j.becomeEngine(ctx, life)
}

// adopt takes over an engine that an earlier agent started.
func (j *job) adopt(life context.Context) error {
	if err := j.stored(life, "state proxy", func() error { return j.openProxy(life) }); err != nil {
		return err
	}
	if j.attempt.Pod {
		return j.adoptPod(life)
	}
	j.logs.follow(life, j.dir.stdout(), j.dir.stderr())
	if id := j.attempt.Process; id != nil {
		p, found, err := process.Adopt(*id, j.attempt.Isolation, process.FindGroup(j.attempt.Name()))
		if err != nil {
			return err
		}
		if found {
			if err := j.deps.Disk.Insist(func() error { return j.advance(recovery.Started) }); err != nil {
				j.log.ErrorContext(life, "attempt cannot be written", "err", err) // it is on disk as one that starts
			}
			j.remark("the runner was started again and goes on with this job")
			return j.await(life, p)
		}
	}
	j.logs.drain() // it ended between the two looks
	return j.finishEngine(life, -1)
}

// await waits for the engine and finishes the attempt.
func (j *job) await(life context.Context, p engine) error {
	j.mu.Lock()
	j.engine = p
	stopped := j.stopped
	j.mu.Unlock()
	if stopped != "" {
		p.Stop(j.grace(stopped))
	}
	timer := time.NewTimer(j.attempt.Deadline.Sub(j.deps.Now()))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			j.stop(StopTimeout)
			continue
		case <-life.Done():
			return errDetached
		case <-p.Done():
		}
		break
	}
	j.logs.drain()
	if reason, never := neverBegan(p); never {
		return j.finishUnbegun(life, reason)
	}
	return j.finishEngine(life, p.ExitCode())
}

// stop asks the attempt to end. The first reason counts, but a lost lease is
// above all: nothing is reported then.
func (j *job) stop(why Stop) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped != "" && why != StopLost {
		return
	}
	j.stopped = why
	if j.engine == nil {
		j.breakOff()
		return
	}
	j.log.Info("engine is asked to stop", "reason", string(why))
	j.engine.Stop(j.grace(why))
}

func (j *job) grace(why Stop) time.Duration {
	if why == StopLost {
		return min(lostGrace, j.deps.Engine.Grace)
	}
	return j.deps.Engine.Grace
}

func (j *job) why() Stop {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stopped
}

// failure is the result of an attempt that did not get as far as an engine.
func (j *job) failure(err error) jobspec.Result {
	var r *refusal
	if errors.As(err, &r) {
		return r.result
	}
	if r, full := j.noRoom(err); full {
		return r
	}
	used := j.attempt.Phase == recovery.Ordered // the order cannot be given again
	switch why := j.why(); {
	case why == StopCancel, why != "" && used:
		return jobspec.Result{Outcome: jobspec.OutcomeCancelled, Error: "stopped before the engine began"}
	case why != "":
		return jobspec.Result{Outcome: jobspec.OutcomeNotStarted, Error: "stopped before the engine began (" + string(why) + ")"}
	case errors.Is(err, context.DeadlineExceeded):
		return jobspec.Result{Outcome: jobspec.OutcomeFailed, Error: fmt.Sprintf("was not ready to start within %s: %v", j.spec.Timeout(), err)}
	}
	return jobspec.Result{Outcome: jobspec.OutcomeFailed, Error: err.Error()}
}

// startSpan continues the trace of the caller who asked for the job.
func (j *job) startSpan(ctx context.Context) (context.Context, trace.Span) {
	carried := map[string]string{}
	if t := j.attempt.Assignment.Trace; t.Traceparent != nil {
		carried["traceparent"] = *t.Traceparent
		if t.Tracestate != nil {
			carried["tracestate"] = *t.Tracestate
		}
	}
	ctx = telemetry.Extract(ctx, carried)
	return otel.Tracer("github.com/berth-dev/berth/runner/agent").Start(ctx, "job "+string(j.spec.Operation),
		trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithAttributes(attribute.String("job_id", j.spec.JobID), attribute.String("install_id", j.spec.InstallID)))
}

// learn registers values that became known while the engine runs.
func (j *job) learn(value any, late bool) {
	if j.secrets.add(value, "") && late {
		if err := j.logs.spool.NoteLateRedaction(); err != nil {
			j.log.Warn("late redaction cannot be noted", "err", err)
		}
	}
}

// advance writes the phase down, with what belongs to it. A phase that could not
// be written was not reached, unless what it names has happened already.
func (j *job) advance(phase recovery.Phase, with ...func(*Attempt)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	next := j.attempt
	next.Phase = phase
	for _, change := range with {
		change(&next)
	}
	err := j.dir.write(next)
	if err == nil || phase.Happened() {
		j.attempt = next
	}
	return err
}

// resume takes the log token of a new session.
func (j *job) resume(r runnerapi.ResumedJob) {
	if r.LogToken == nil {
		return
	}
	j.secrets.add(*r.LogToken, "log token")
	j.logs.setToken(*r.LogToken)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.attempt.Assignment.LogToken = *r.LogToken
	if err := j.dir.write(j.attempt); err != nil {
		j.log.Warn("attempt cannot be written", "err", err)
	}
}

// kind is what there is to know of the job's kind.
func (j *job) kind() jobspec.KindInfo { return jobspec.Kinds[j.spec.Kind] }

// mutates says whether the job may change something, by the runner's own table.
func (j *job) mutates() bool { return order.Mutates(j.spec) }

func (j *job) remark(text string) { j.logs.remark(text, j.deps.Now()) }

// discard lets go of an attempt that could not be written down.
func (j *job) discard() {
	if err := j.logs.spool.Remove(); err != nil {
		j.log.Warn("log spool cannot be removed", "err", err)
	}
	j.unlock()
}

func (j *job) unlock() {
	for _, lock := range j.locks {
		_ = lock.Close()
	}
	j.locks = nil
}
