package job

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/order"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/providers"
	"github.com/berth-dev/berth/runner/agent/recovery"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

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
	dir  jobdir.Folder
	spec jobspec.Spec
	// fault says why the spec cannot be read, nil when it can.
	fault error
	// order is the verified one; zero before, and for scheduled runs.
	order   capsule.Order
	consent *chain.Consent // of the customer's side, nil where nobody was asked
	secrets *secrets
	logs    *logs
	log     *slog.Logger

	// hidden are the texts that were opened for the job.
	hidden     []string
	made       []byte     // access of a plan to the cluster that a component makes
	locks      []*os.File // of the directory and of the resource
	group      *process.Group
	launch     *process.Launch // the launcher that waits for its engine, nil without one
	kubeconfig string          // in/kubeconfig, "" when the engine gets none
	until      time.Time       // when the token of a cloud in it ends; zero after a restart

	buildKit []string // environment of a build of an image
	image    string   // that the engine is started in, "" for where the runner's engines are

	// paths are what a plugin is shown of the machine.
	paths []shownPath

	terraformGone string // why the plan's Terraform cannot be used, "" when it can

	// inherited: an earlier agent began the attempt.
	inherited bool

	// Of the attempt, which other goroutines read without its lock:
	id   string // the job
	tick *jobdir.Tick

	mu       sync.Mutex
	attempt  jobdir.Attempt
	stopped  ending.Stop
	engine   engine // nil before it runs
	breakOff context.CancelFunc
	seen     func()      // the release of this job was decided about, or will not be
	stream   chan string // gets the stream's id once it is known
	proxy    *stateproxy.Proxy
	// closeHosts ends the way to a plugin's hosts, and waits for its last log line.
	closeHosts func()
	// providers are those that the engine finds in the cache.
	providers providers.Given

	over chan struct{} // closed when the engine is over and the report on disk
	done chan struct{} // closed when nothing is left to do
}

func newJob(deps *Deps, dir jobdir.Folder, a jobdir.Attempt) (*job, error) {
	spec, fault := a.Spec()
	j := &job{
		deps: deps, dir: dir, id: a.Assignment.JobID, tick: a.Tick, spec: spec, fault: fault, attempt: a, secrets: newSecrets(),
		log:    deps.Log.With("job_id", a.Assignment.JobID, "attempt", a.Assignment.Attempt),
		stream: make(chan string, 1), over: make(chan struct{}), done: make(chan struct{}),
		breakOff: func() {}, seen: func() {}, closeHosts: func() {},
	}
	// Without the lock, an engine that is to be adopted has it.
	lock, err := datadir.Flock(dir.Lock(), errors.New("job directory is in use"))
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
	if deps.Offers != nil && spec.Release != nil && spec.Operation == jobspec.OperationPlan && !spec.Destroy {
		j.seen = deps.Offers.Coming()
	}
	return j, nil
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
func (j *job) advance(phase recovery.Phase, with ...func(*jobdir.Attempt)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	next := j.attempt
	next.Phase = phase
	for _, change := range with {
		change(&next)
	}
	err := j.dir.Write(next)
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
	if err := j.dir.Write(j.attempt); err != nil {
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
