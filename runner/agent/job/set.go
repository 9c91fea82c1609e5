package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/ending"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/recovery"
	"github.com/berth-dev/berth/runner/agent/turns"
)

// Set is all attempts that this agent works on. Safe for concurrent use.
type Set struct {
	deps *Deps
	// life is the agent's own: attempts outlive the request that brought them.
	life  context.Context //nolint:containedctx // the set is the owner of its goroutines
	slots int

	mu      sync.Mutex
	jobs    map[string]*job
	owed    map[string]runnerapi.Attempt // without a job yet, or any more: see owed.go
	changed chan struct{}
	wg      sync.WaitGroup
}

// NewSet returns a set that works on up to slots jobs of the control plane at
// once. When life ends, engines are left to the next agent.
func NewSet(life context.Context, deps *Deps, slots int) *Set {
	deps.Turns = turns.New()
	return &Set{deps: deps, life: life, slots: slots, jobs: map[string]*job{}, owed: map[string]runnerapi.Attempt{}, changed: make(chan struct{})}
}

// Recover takes over what an earlier agent left. It returns the scheduled runs
// among it, so that none is started twice.
func (s *Set) Recover() ([]jobdir.Tick, error) {
	entries, err := os.ReadDir(s.deps.Dir.Jobs())
	if err != nil {
		return nil, err
	}
	var ticks []jobdir.Tick
	for _, entry := range entries {
		dir := jobdir.Folder{Path: filepath.Join(s.deps.Dir.Jobs(), entry.Name())}
		a, found, err := dir.Load()
		if err == nil && found {
			err = a.Belongs(entry.Name())
		}
		if err != nil {
			s.setAside(dir, entry.Name(), err)
			continue
		}
		if !found { // never finished being made: the attempt does not exist
			if err := errors.Join(os.RemoveAll(s.deps.Dir.Spool(entry.Name())), dir.Remove()); err != nil {
				s.deps.Log.Error("job directory without an attempt cannot be removed", "dir", dir.Path, "err", err)
			}
			continue
		}
		if a.Tick != nil {
			ticks = append(ticks, *a.Tick)
		}
		j, err := newJob(s.deps, dir, a)
		if err != nil {
			s.later(dir, a, err)
			continue
		}
		s.add(j, recovery.Decide(j.facts()))
	}
	return ticks, nil
}

// facts looks for what recovery.Decide wants to know.
func (j *job) facts() recovery.Facts {
	f := recovery.Facts{Phase: j.attempt.Phase, Mutates: j.mutates()}
	_, f.HasResult, _ = j.dir.ReadOut("out/result.json", maxResult)
	if f.Phase != recovery.Starting && f.Phase != recovery.Started {
		return f
	}
	if j.attempt.Pod { // it lives until its adoption shows that it does not
		f.Alive = true
		j.relock()
		return f
	}
	if j.attempt.Process != nil {
		f.Alive = process.Alive(*j.attempt.Process)
	} else if pid, found := process.Find("run", j.dir.Engine()); found {
		j.attempt.Process, f.Alive = &pid, true
	}
	if f.Alive && j.attempt.Isolation.Hidden { // such an engine holds no lock of the agent's
		j.relock()
	}
	if !f.Alive && len(j.locks) == 0 {
		// The engine is over, but something that it started holds its lock:
		// without a process namespace that can be. It has to go first.
		if p := j.attempt.Process; p != nil && !j.attempt.Isolation.PIDNamespace {
			_ = syscall.Kill(-p.PID, syscall.SIGKILL)
		}
	}
	return f
}

// Start begins an attempt. One that is known already is not begun again.
func (s *Set) Start(a runnerapi.Assignment) error {
	if !id.Valid(id.Job, a.JobID) || a.Attempt < 1 {
		return fmt.Errorf("%q is not a job, or %d not an attempt", a.JobID, a.Attempt) // both become file names
	}
	text := a.Spec
	a.Spec = nil
	err := s.start(jobdir.Attempt{Assignment: a, SpecText: text, Phase: recovery.Claimed})
	if err != nil {
		err = s.deps.Disk.Failed(err)
		s.turnDown(a, err)
	}
	return err
}

// StartTick begins a scheduled run under the given id. recorded is called once
// the run exists on disk, before its engine begins.
func (s *Set) StartTick(runID string, tick jobdir.Tick, spec jobspec.Spec, recorded func() error) error {
	text, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("spec of the run: %w", err)
	}
	a := jobdir.Attempt{
		Assignment: runnerapi.Assignment{JobID: runID, Attempt: 1, Operation: string(spec.Operation)},
		SpecText:   text, Tick: &tick, Phase: recovery.Claimed,
	}
	dir := jobdir.Folder{Path: filepath.Join(s.deps.Dir.Jobs(), a.Name())}
	err = dir.Make(a, s.deps.Engine.Isolation.GID)
	if err == nil {
		if err = recorded(); err == nil {
			return s.start(a)
		}
	}
	// The tick was not begun: the scheduler checks it again, or reports it as
	// missed.
	return errors.Join(fmt.Errorf("job directory: %w", s.deps.Disk.Failed(err)), os.RemoveAll(dir.Path))
}

func (s *Set) start(a jobdir.Attempt) error {
	s.mu.Lock()
	_, known := s.jobs[a.Name()]
	s.mu.Unlock()
	if known {
		return nil
	}
	dir := jobdir.Folder{Path: filepath.Join(s.deps.Dir.Jobs(), a.Name())}
	if err := dir.Open(s.deps.Engine.Isolation.GID); err != nil {
		return fmt.Errorf("job directory: %w", err)
	}
	// The attempt and the spool of its log go to disk at the same time.
	recorded := make(chan error, 1)
	go func() { recorded <- dir.Record(a) }()
	j, err := newJob(s.deps, dir, a)
	if notRecorded := <-recorded; notRecorded != nil {
		if err == nil {
			j.discard()
		}
		return fmt.Errorf("job directory: %w", notRecorded)
	}
	if err != nil {
		return err
	}
	s.add(j, "")
	return nil
}

func (s *Set) add(j *job, entry recovery.Decision) {
	name := j.attempt.Name()
	s.mu.Lock()
	s.jobs[name] = j
	s.notify()
	s.mu.Unlock()
	if entry == recovery.Adopt && j.mutates() {
		s.deps.Turns.Hold(name, j.turn())
	}
	s.wg.Go(func() { j.run(s.life, entry) })
	s.wg.Go(func() {
		<-j.over
		s.mu.Lock()
		s.notify() // a slot is free
		s.mu.Unlock()
		<-j.done
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.jobs, name)
		s.notify()
	})
}

// notify tells everybody who waits that something changed. s.mu is held.
func (s *Set) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Free is how many more jobs fit, with a channel that is closed when that may
// have changed.
func (s *Set) Free() (int, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := 0
	for _, j := range s.jobs {
		if j.tick == nil && !isClosed(j.over) {
			used++
		}
	}
	return max(s.slots-used, 0), s.changed
}

// Running is the number of engines that run or are about to.
func (s *Set) Running() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, j := range s.jobs {
		if !isClosed(j.over) {
			n++
		}
	}
	return n
}

// Busy reports whether a run of the action is under way.
func (s *Set) Busy(action string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if j.tick != nil && slices.Contains(j.tick.Names(), action) && !isClosed(j.over) {
			return true
		}
	}
	return false
}

// Knows says whether anything is left of the run that has this id.
func (s *Set) Knows(runID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, known := s.jobs[(&jobdir.Attempt{Assignment: runnerapi.Assignment{JobID: runID, Attempt: 1}}).Name()]
	return known
}

// Changing says what changes the install now, or is about to; "" for nothing.
func (s *Set) Changing() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.jobs)) {
		if j := s.jobs[name]; j.mutates() && !isClosed(j.over) {
			return j.what()
		}
	}
	return ""
}

// Changes reports whether a job that may change the resource is under way. The sandbox is
// under all others.
func (s *Set) Changes(resource string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if r := j.spec.Resource; r != nil && (r.ID == resource || r.Kind == "sandbox") && j.mutates() && !isClosed(j.over) {
			return true
		}
	}
	return false
}

// Held are the attempts whose leases this agent needs: their engines run, or
// their reports are still to be delivered.
func (s *Set) Held() []runnerapi.Attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := []runnerapi.Attempt{}
	for _, name := range slices.Sorted(maps.Keys(s.jobs)) {
		j := s.jobs[name]
		j.mu.Lock()
		if j.tick == nil && j.attempt.Phase != recovery.Delivered && j.stopped != ending.Lost {
			held = append(held, j.attempt.Key())
		}
		j.mu.Unlock()
	}
	for _, name := range slices.Sorted(maps.Keys(s.owed)) {
		held = append(held, s.owed[name])
	}
	return held
}

// Changed is closed when an attempt comes, ends or goes.
func (s *Set) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// Stop asks one attempt to end.
func (s *Set) Stop(a runnerapi.Attempt, why ending.Stop) {
	s.mu.Lock()
	j := s.jobs[(&jobdir.Attempt{Assignment: runnerapi.Assignment{JobID: a.JobID, Attempt: a.Attempt}}).Name()]
	s.mu.Unlock()
	if j != nil {
		j.stop(why)
	}
}

// StopAll asks every attempt to end.
func (s *Set) StopAll(why ending.Stop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range s.jobs {
		if !isClosed(j.over) {
			j.stop(why)
		}
	}
}

// Resume tells the attempts what a new session says of them.
func (s *Set) Resume(answers []runnerapi.ResumedJob) {
	for _, r := range answers {
		key := runnerapi.Attempt{JobID: r.JobID, Attempt: r.Attempt}
		if r.State == runnerapi.ResumedStateVoid {
			s.Stop(key, ending.Lost)
			continue
		}
		s.mu.Lock()
		j := s.jobs[(&jobdir.Attempt{Assignment: runnerapi.Assignment{JobID: r.JobID, Attempt: r.Attempt}}).Name()]
		s.mu.Unlock()
		if j != nil {
			j.resume(r)
		}
	}
}

// Quiet waits until no engine runs any more, up to limit.
func (s *Set) Quiet(limit time.Duration) bool {
	return s.until(limit, func() bool { return s.Running() == 0 })
}

// Gone waits until nothing is left of any attempt, up to limit.
func (s *Set) Gone(limit time.Duration) bool {
	return s.until(limit, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.jobs) == 0
	})
}

func (s *Set) until(limit time.Duration, reached func() bool) bool {
	deadline := time.After(limit)
	for {
		changed := s.Changed()
		if reached() {
			return true
		}
		select {
		case <-changed:
		case <-deadline:
			return false
		}
	}
}

// Wait waits for all that the set still does. Call it after life has ended.
func (s *Set) Wait() { s.wg.Wait() }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
