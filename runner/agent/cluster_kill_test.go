package agent_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

// goOnTimeout is how soon everything continues after an agent is back, plus
// what the work itself takes.
const goOnTimeout = 15 * time.Second

// historyOfARelease is how many revisions of a release the engine keeps.
const historyOfARelease = 10

// TestAgentKilledInEachPhase kills the agent in each phase of an upgrade of a
// chart and of an apply of a manifest, on a real cluster, with the real engine.
// Each time the next agent brings the deploy to its end in time. No engine is
// started twice, no object is written twice, no release is left half done.
func TestAgentKilledInEachPhase(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("without root an engine is asked to stop when its agent dies")
	}
	for _, kind := range []jobspec.Kind{jobspec.KindHelmChart, jobspec.KindKubernetesManifest} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			c := newComponent(t, kind)
			began := time.Now()
			if !t.Run("nobody is killed", func(t *testing.T) { c.begin(t).deploys() }) {
				return
			}
			c.own = time.Since(began)
			for _, phase := range []struct {
				name string
				kill func(*upgrade)
			}{
				{"in the plan", (*upgrade).killedInThePlan},
				{"the job is accepted", (*upgrade).killedWhenAccepted},
				{"the order is used up", (*upgrade).killedWhenOrdered},
				{"the engine starts", (*upgrade).killedWhenTheEngineStarts},
				{"before the first write", func(u *upgrade) { u.killedAtTheFirstWrite(false) }},
				{"after the first write", func(u *upgrade) { u.killedAtTheFirstWrite(true) }},
				{"in the wait", (*upgrade).killedInTheWait},
				{"the engine ends while there is no agent", (*upgrade).killedBeforeTheEngineEnds},
				{"the result is not reported yet", (*upgrade).killedBeforeTheReport},
			} {
				// Each starts from what the one before left.
				if !t.Run(phase.name, func(t *testing.T) { phase.kill(c.begin(t)) }) {
					return
				}
			}
		})
	}
}

// upgrade is a deploy of the component with a value of its own, and the agent
// that works on it.
type upgrade struct {
	*change
	c       *component
	value   string
	process *exec.Cmd
	back    time.Time // when the agent was started last
	before  world
}

// begin starts an agent, and a deploy.
func (c *component) begin(t *testing.T) *upgrade {
	t.Helper()
	c.deploysOf++
	value := fmt.Sprintf("v%d", c.deploysOf)
	c.mu.Lock()
	c.value = value
	c.mu.Unlock()
	r := *c.runner
	r.t = t
	u := &upgrade{c: c, value: value, before: c.look(t), change: &change{
		runner: &r, id: id.New(id.Change), resource: c.resource, artifact: c.pack(t, value), shape: c.shape,
	}}
	u.start()
	return u
}

// start starts an agent and waits until it is connected.
func (u *upgrade) start() {
	u.t.Helper()
	u.plane.mu.Lock()
	sessions := len(u.plane.sessions)
	u.plane.mu.Unlock()
	u.back, u.process = time.Now(), u.startProcess()
	u.plane.until(u.t, "a session", func() bool { return len(u.plane.sessions) > sessions })
}

func (u *upgrade) kill() {
	u.t.Helper()
	if err := u.process.Process.Signal(syscall.SIGKILL); err != nil {
		u.t.Fatal(err)
	}
	_ = u.process.Wait()
}

// stoppedWithAnIntent stops the agent between the intent and the start of the
// engine, some milliseconds, and says whether it did. Otherwise the agent keeps running.
func (u *upgrade) stoppedWithAnIntent(job string) bool {
	u.t.Helper()
	path := filepath.Join(u.dir.Jobs(), job+".1", "attempt.json")
	in := func() bool { // later phases keep the intent
		var attempt struct {
			Phase  recovery.Phase
			Intent int64
		}
		raw, _ := os.ReadFile(path)
		return json.Unmarshal(raw, &attempt) == nil && attempt.Phase == recovery.Ordered && attempt.Intent > 0
	}
	signal := func(s syscall.Signal) {
		if err := u.process.Process.Signal(s); err != nil {
			u.t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(20 * time.Second); !in(); time.Sleep(100 * time.Microsecond) {
		if raw, _ := os.ReadFile(path); strings.Contains(string(raw), `"started"`) || strings.Contains(string(raw), `"ended"`) {
			return false
		}
		if time.Now().After(deadline) {
			return false // it went by, and is over
		}
	}
	signal(syscall.SIGSTOP)
	// What a thread was about to write is there when all of them have stopped.
	for deadline := time.Now().Add(10 * time.Second); !allStopped(u.process.Process.Pid); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			u.t.Fatal("the agent does not stop")
		}
	}
	if in() && u.enginesOf(job) == 0 {
		return true
	}
	signal(syscall.SIGCONT)
	return false
}

// allStopped says whether no thread of a process runs any more (state T of
// proc(5)).
func allStopped(pid int) bool {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if _, rest, found := strings.Cut(string(stat), ") "); err == nil && (!found || rest[0] != 'T') {
			return false
		}
	}
	return len(stats) > 0
}

// hold stops the next such request, until the test releases it or ends.
func (u *upgrade) hold(at string) (h *hold, release func()) {
	u.t.Helper()
	h = &hold{at: at, reached: make(chan struct{}), release: make(chan struct{})}
	release = sync.OnceFunc(func() { close(h.release) })
	u.t.Cleanup(release)
	u.c.held.Store(h)
	return h, release
}

func (u *upgrade) reaches(h *hold) {
	u.t.Helper()
	select {
	case <-h.reached:
	case <-time.After(time.Minute):
		u.t.Fatalf("the engine never came to %s", h.at)
	}
}

func (u *upgrade) givePlan() (job string) { return u.plane.give(u.spec(jobspec.OperationPlan)) }

// planned waits for a plan, which becomes that of the change.
func (u *upgrade) planned(job string) {
	u.t.Helper()
	u.succeeded(job)
	u.plane.mu.Lock()
	defer u.plane.mu.Unlock()
	u.plan = u.plane.plans[job]
}

// giveApply gives the approved change out as a job, after a last edit by the
// test; nil makes none.
func (u *upgrade) giveApply(edit func(*given)) (job string) {
	u.t.Helper()
	u.c.fence++
	return u.order(func(g *given) {
		g.Order.Fence, *g.Fence = u.c.fence, u.c.fence
		if edit != nil {
			edit(g)
		}
	})
}

// succeeded waits for the one result of a job, which came in time.
func (u *upgrade) succeeded(job string) {
	u.t.Helper()
	if result := u.plane.result(u.t, job); result.Outcome != jobspec.OutcomeSucceeded {
		u.t.Fatalf("result = %+v", result)
	}
	took := time.Since(u.back)
	if limit := goOnTimeout + u.c.own; u.c.own > 0 && took > limit {
		u.t.Errorf("the result came %s after the agent was back, want at most %s", took, limit)
	}
	u.gone(job)
	u.plane.mu.Lock()
	defer u.plane.mu.Unlock()
	if n := len(u.plane.results[job]); n != 1 {
		u.t.Errorf("%d results of %s were reported, want one", n, job)
	}
}

// applied waits for the end of an apply and checks what it did.
func (u *upgrade) applied(job string) {
	u.t.Helper()
	u.succeeded(job)
	u.wasDone(job)
}

// wasDone checks that the deploy was done, once.
func (u *upgrade) wasDone(job string) {
	u.t.Helper()
	want := u.before
	want.Generation++
	want.Value, want.Template = u.value, u.value
	if u.c.kind == jobspec.KindHelmChart {
		for i := range want.Releases {
			want.Releases[i] = "superseded"
		}
		want.Releases = append(want.Releases, "deployed")
		want.Releases = want.Releases[max(0, len(want.Releases)-historyOfARelease):]
	}
	if diff := cmp.Diff(want, u.c.look(u.t)); diff != "" {
		u.t.Errorf("in the cluster (-want +got):\n%s", diff)
	}
	u.c.mu.Lock()
	if n := u.c.writes[u.value]; n != 1 {
		u.t.Errorf("the Deployment was written %d times, want once", n)
	}
	u.c.mu.Unlock()
	if n := u.enginesOf(job); n != 1 {
		u.t.Errorf("%d engines were started for %s, want one", n, job)
	}
}

// enginesOf is how many engines were started for a job.
func (u *upgrade) enginesOf(job string) int {
	u.t.Helper()
	raw, err := os.ReadFile(u.file("started"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		u.t.Fatal(err)
	}
	return strings.Count(string(raw), job+"\n")
}

// says waits until an attempt's engine wrote a text.
func (u *upgrade) says(job, text string) {
	u.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		var all []byte
		for _, name := range []string{"stdout.log", "stderr.log"} {
			raw, err := os.ReadFile(filepath.Join(u.dir.Jobs(), job+".1", name))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				u.t.Fatal(err)
			}
			all = append(all, raw...)
		}
		if strings.Contains(string(all), text) {
			return
		}
		if time.Now().After(deadline) {
			u.t.Fatalf("the engine never said %q:\n%s", text, all)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (u *upgrade) deploys() {
	u.t.Helper()
	u.planned(u.givePlan())
	u.applied(u.giveApply(nil))
}

func (u *upgrade) killedInThePlan() {
	u.t.Helper()
	h, release := u.hold(atDryRun)
	job := u.givePlan()
	u.reaches(h)
	u.kill()
	u.start()
	release()
	u.planned(job)
	if n := u.enginesOf(job); n != 1 {
		u.t.Errorf("%d engines planned, want one", n)
	}
	u.applied(u.giveApply(nil))
}

// Nothing was begun, so the control plane gives the same job out again.
func (u *upgrade) killedWhenAccepted() {
	u.t.Helper()
	u.planned(u.givePlan())
	lock, err := datadir.Flock(u.dir.ResourceLock(u.resource.ID), errors.New("an engine has the resource"))
	if err != nil {
		u.t.Fatal(err)
	}
	defer lock.Close()
	job := u.giveApply(nil)
	u.appears(filepath.Join(u.dir.Jobs(), job+".1", "engine", "job.json")) // the last thing before the lock
	u.kill()
	if err := lock.Close(); err != nil {
		u.t.Fatal(err)
	}
	u.start()
	if result := u.plane.result(u.t, job); result.Outcome != jobspec.OutcomeNotStarted {
		u.t.Fatalf("result = %+v, want it not started", result)
	}
	u.gone(job)
	u.untouched(job)
	u.giveApply(func(g *given) {
		g.Order.JobID, g.JobID, g.Spec.JobID, g.Attempt = job, job, job, 2
	})
	u.plane.until(u.t, "the second result", func() bool { return len(u.plane.results[job]) > 1 })
	u.plane.mu.Lock()
	result := u.plane.results[job][1].Result
	u.plane.mu.Unlock()
	if result.Outcome != jobspec.OutcomeSucceeded {
		u.t.Fatalf("result = %+v", result)
	}
	u.wasDone(job)
}

// untouched checks that a job did nothing.
func (u *upgrade) untouched(job string) {
	u.t.Helper()
	if diff := cmp.Diff(u.before, u.c.look(u.t)); diff != "" {
		u.t.Errorf("nothing was started, and in the cluster changed (-before +after):\n%s", diff)
	}
	if n := u.enginesOf(job); n != 0 {
		u.t.Errorf("%d engines were started", n)
	}
}

// The order cannot be given again: the job fails, saying that nothing was done,
// and the change is planned and ordered again.
func (u *upgrade) killedWhenOrdered() {
	u.t.Helper()
	var job string
	for try := 1; ; try++ {
		u.planned(u.givePlan())
		job = u.giveApply(nil)
		if u.stoppedWithAnIntent(job) {
			break
		}
		if try == 20 {
			u.t.Fatal("the agent was never caught between the intent and the start of the engine")
		}
		u.applied(job)
		u.kill()
		*u = *u.c.begin(u.t)
	}
	u.kill()
	u.start()
	result := u.plane.result(u.t, job)
	if result.Outcome != jobspec.OutcomeStale || !strings.Contains(result.Remedy, "nothing was done") {
		u.t.Fatalf("result = %+v, want it stale with nothing done: a new plan follows", result)
	}
	u.gone(job)
	u.untouched(job)
	before := u.plan
	u.id = id.New(id.Change)
	u.deploys()
	if before.Summary.Text != u.plan.Summary.Text || before.Effect.ArtifactDigest != u.plan.Effect.ArtifactDigest {
		u.t.Errorf("the plan is another one:\n%+v\n%+v", before, u.plan)
	}
}

func (u *upgrade) killedWhenTheEngineStarts() {
	u.t.Helper()
	u.planned(u.givePlan())
	u.touch("hold")
	job := u.giveApply(nil)
	u.plane.until(u.t, "the claim", func() bool { return len(u.plane.queue) == 0 })
	for deadline := time.Now().Add(time.Minute); u.enginesOf(job) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			u.t.Fatal("no engine was started")
		}
	}
	u.kill()
	u.start()
	if err := os.Remove(u.file("hold")); err != nil {
		u.t.Fatal(err)
	}
	u.applied(job)
}

func (u *upgrade) killedAtTheFirstWrite(done bool) {
	u.t.Helper()
	u.planned(u.givePlan())
	at := beforeWrite
	if done {
		at = afterWrite
	}
	h, release := u.hold(at)
	job := u.giveApply(nil)
	u.reaches(h)
	u.kill()
	u.start()
	release()
	u.applied(job)
}

// waits brings an apply to where it waits for pods.
func (u *upgrade) waits() (job string) {
	u.t.Helper()
	u.planned(u.givePlan())
	u.c.closed.Store(true)
	u.t.Cleanup(func() { u.c.closed.Store(false) })
	job = u.giveApply(nil)
	u.says(job, "waiting for Deployment")
	return job
}

func (u *upgrade) killedInTheWait() {
	u.t.Helper()
	job := u.waits()
	u.kill()
	u.start()
	u.c.closed.Store(false)
	u.applied(job)
}

func (u *upgrade) killedBeforeTheEngineEnds() {
	u.t.Helper()
	job := u.waits()
	u.kill()
	u.c.closed.Store(false)
	u.appears(filepath.Join(u.dir.Jobs(), job+".1", "engine", "out", "result.json"))
	u.start()
	u.applied(job)
}

// The control plane is away when the apply ends.
func (u *upgrade) killedBeforeTheReport() {
	u.t.Helper()
	job := u.waits()
	u.plane.change(func() { u.plane.away = true })
	u.plane.CloseClientConnections()
	u.c.closed.Store(false)
	u.hasPhase(job, `"phase": "ended"`)
	u.kill()
	u.plane.change(func() { u.plane.away = false })
	u.start()
	u.applied(job)
}
