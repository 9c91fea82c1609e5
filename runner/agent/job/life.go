package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/telemetry"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

const (
	// overtime is what an engine gets beyond its timeout, which it keeps by
	// itself and explains better than the agent could.
	overtime = 5 * time.Second
	// resourceWait is how long an engine of the same resource may take to die
	// before its successor gives up.
	resourceWait = time.Minute
)

// errDetached: the agent ends; the engine keeps running and is adopted later.
var errDetached = errors.New("the agent ends before the engine")

// run works on the attempt from where it stands until everything is delivered,
// or until life ends.
func (j *job) run(life context.Context, entry recovery.Decision) {
	defer close(j.done)
	defer j.unlock()
	j.inherited = entry != ""
	shipped := make(chan struct{})
	go func() {
		defer close(shipped)
		select {
		case stream := <-j.stream:
			j.logs.ship(life, j.deps.Sinks, stream)
		case <-life.Done():
		}
	}()
	if j.tick != nil && (j.inherited || !j.mutates()) { // else once it has its turn
		go j.announce(life, jobspec.Run{State: "running"})
	}
	err := j.work(life, entry)
	j.closeHosts()
	if err == nil {
		j.release()
	}
	j.deps.Turns.Leave(j.attempt.Name())
	j.seen()
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
	case entry == recovery.Uncertain && j.spec.Kind == jobspec.KindRunnerUpdate:
		return j.finishUpdate(life)
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
		j.logs.follow(life, j.dir.Stdout(), j.dir.Stderr())
		j.logs.drain()
		if err := j.stored(life, "state proxy", func() error { return j.openProxy(life) }); err != nil {
			return err
		}
		return j.finishEngine(life, -1)
	}
}

// neverStarted is the result of an attempt whose engine provably did not begin.
func (j *job) neverStarted() jobspec.Result {
	// The order may be used up: giving the job out again would be refused. A new
	// plan brings a new order.
	return ending.BeforeEngine(j.attempt.Phase == recovery.Ordered && j.tick == nil)
}

// begin works on an attempt for the first time.
func (j *job) begin(life context.Context) error {
	ctx, cancel := context.WithTimeout(life, j.startsWithin())
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
		j.freeState(life)
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
	if j.kind().ByAgent || j.spec.JudgesOnly() {
		return j.doByItself(ctx, life)
	}
	for _, ready := range []func() error{
		func() error { return j.admitLive(ctx) }, func() error { return j.admitRelease(ctx) }, func() error { return j.admitScript(ctx) }, func() error { return j.admitRole(ctx) }, func() error { return j.admitRun(ctx) }, j.admitImage, j.roomFor, j.confine,
		func() error { return j.findTerraform(ctx) }, j.launchAhead,
	} {
		if err := ready(); err != nil {
			return nil, err
		}
	}
	defer j.cancelLaunch() // when it does not come to an engine
	j.remark("preparing " + j.what())
	if err := j.prepare(ctx); err != nil {
		return nil, err
	}
	if j.mutates() {
		if err := j.takeTurn(ctx, life); err != nil {
			return nil, err
		}
		if err := j.lockResource(ctx); err != nil {
			return nil, err
		}
		if err := j.roomFor(); err != nil { // the last look before the order is used up
			return nil, err
		}
		if err := j.askStopped(); err != nil { // a session may have opened meanwhile
			return nil, err
		}
		commit := j.obey
		if j.tick != nil {
			commit = j.commitTick
		}
		if err := commit(ctx); err != nil {
			return nil, err
		}
	}
	if err := j.openProxy(life); err != nil {
		return nil, err
	}
	if err := j.openHosts(life); err != nil {
		return nil, err
	}
	if err := j.bringPluginState(ctx); err != nil {
		return nil, err
	}
	if err := j.expose(); err != nil {
		return nil, fmt.Errorf("give the job directory to the engine's user: %w", err)
	}
	if err := j.askSwitch(); err != nil { // a last look: the switch is above everything
		return nil, err
	}
	if err := j.admitRole(ctx); err != nil { // the customer may have switched it off meanwhile
		return nil, err
	}
	if err := j.admitRelease(ctx); err != nil { // or revoked the release
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
	if err := j.openHosts(life); err != nil { // its plugin finds nothing open, and says so
		j.log.ErrorContext(life, "way to a plugin's hosts cannot be opened again", "err", err)
	}
	j.logs.follow(life, j.dir.Stdout(), j.dir.Stderr())
	if id := j.attempt.Process; id != nil {
		p, found, err := process.Adopt(*id, j.attempt.Isolation, process.FindGroup(j.attempt.Name()))
		if err != nil {
			return err
		}
		if found {
			if err := j.deps.Disk.Insist(func() error { return j.advance(recovery.Started) }); err != nil {
				j.log.ErrorContext(life, "attempt cannot be written", "err", err) // it is on disk as one that starts
			}
			j.remark("the runner was restarted and continues this job")
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
	endToken := j.keepToken(life)
	defer endToken()
	timer := time.NewTimer(j.attempt.Deadline.Sub(j.deps.Now()))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			j.stop(ending.Timeout)
			continue
		case <-life.Done():
			return errDetached
		case <-p.Done():
		}
		break
	}
	endToken()
	j.closeHosts()
	j.logs.drain()
	if reason, never := neverBegan(p); never {
		return j.finishUnbegun(life, reason)
	}
	return j.finishEngine(life, p.ExitCode())
}

// failure is the result of an attempt that did not get as far as an engine.
func (j *job) failure(err error) jobspec.Result {
	var r *refusal
	if errors.As(err, &r) {
		return j.missedNow(r.result)
	}
	if r, full := j.noRoom(err); full {
		return r
	}
	used := j.attempt.Phase == recovery.Ordered && j.tick == nil // the order cannot be given again
	switch why := j.why(); {
	case why == ending.Shutdown:
		return ending.BeforeEngine(used)
	case why == ending.Cancel, why != "" && used:
		return jobspec.Result{Outcome: jobspec.OutcomeCancelled, Error: "stopped before the engine began"}
	case why != "":
		return jobspec.Result{Outcome: jobspec.OutcomeNotStarted, Error: "stopped before the engine began (" + string(why) + ")"}
	case errors.Is(err, context.DeadlineExceeded):
		return jobspec.Result{Outcome: jobspec.OutcomeFailed, Error: fmt.Sprintf("was not ready to start within %s: %v", j.startsWithin().Round(time.Second), err)}
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
