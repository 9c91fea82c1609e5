package job

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/pause"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/jobdir"
	"github.com/berth-dev/berth/runner/agent/process"
	"github.com/berth-dev/berth/runner/agent/recovery"
)

// owe keeps the lease of an attempt while do works for it without a job, and
// forgets it afterwards.
func (s *Set) owe(a *jobdir.Attempt, do func()) {
	name := a.Name()
	s.mu.Lock()
	if a.Tick == nil {
		s.owed[name] = a.Key()
	}
	s.mu.Unlock()
	s.wg.Go(func() {
		do()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.owed, name)
		s.notify()
	})
}

// turnDown gives back an attempt that could not even be written down. Nothing
// is on disk of it, so the report is kept in memory: should the agent die before
// it is delivered, its next session does not name the attempt, which says the
// same.
func (s *Set) turnDown(a runnerapi.Assignment, why error) {
	attempt := jobdir.Attempt{Assignment: a}
	dir := filepath.Join(s.deps.Dir.Jobs(), attempt.Name())
	if err := os.RemoveAll(dir); err != nil {
		s.deps.Log.Error("job directory cannot be removed", "dir", dir, "err", err)
	}
	now := s.deps.Now().UTC()
	report := runnerapi.ResultReport{Attempt: a.Attempt, Fence: a.Fence, Result: jobspec.Result{
		JobID: a.JobID, Attempt: a.Attempt, Outcome: jobspec.OutcomeNotStarted, Error: jobspec.CutText(why.Error(), maxError), StartedAt: now, FinishedAt: now,
	}}
	s.owe(&attempt, func() {
		err := control.Retry(s.life, s.deps.Log, "report result", func(ctx context.Context) error {
			return s.deps.API.Result(ctx, a.JobID, report)
		})
		if err != nil && s.life.Err() == nil {
			s.deps.Log.Error("job that could not be begun was not given back", "job_id", a.JobID, "err", err)
		}
	})
}

// later takes over an attempt of an earlier agent once that works: now it does
// not, for want of room. Its lease is kept meanwhile.
func (s *Set) later(dir jobdir.Folder, a jobdir.Attempt, why error) {
	log := s.deps.Log.With("job_id", a.Assignment.JobID, "attempt", a.Assignment.Attempt)
	log.Error("attempt cannot be taken over yet", "err", why)
	s.owe(&a, func() {
		for try := 0; pause.For(s.life, control.Backoff(try)) == nil; try++ {
			j, err := newJob(s.deps, dir, a)
			if err == nil {
				log.Info("attempt is taken over")
				s.add(j, recovery.Decide(j.facts()))
				return
			}
		}
	})
}

// setAside moves a job directory that tells nothing to the evidence. The control
// plane learns by the next session that the attempt is gone, and closeIntents
// answers its intent. An engine that still runs in it can neither be asked nor
// store its state: it is stopped first.
func (s *Set) setAside(dir jobdir.Folder, name string, why error) {
	log := s.deps.Log.With("dir", dir.Path)
	move := func() {
		to, err := s.deps.Dir.SetAside(dir.Path, name, why)
		if to == "" && err != nil {
			log.Error("job directory is damaged and stays as it is", "err", errors.Join(why, err))
			return
		}
		log.Error("job directory was damaged and is set aside", "err", why, "set_aside", to)
		if _, err := s.deps.Dir.SetAside(s.deps.Dir.Spool(name), name, why); err != nil {
			log.Error("its log spool stays", "err", err)
		}
	}
	if s.deps.Chain != nil {
		if _, err := s.deps.Chain.Append(s.life, chain.Record{
			Actor: "runner", Kind: chain.Event, What: "damaged job directory was set aside", Detail: name + ": " + why.Error(),
		}); err != nil {
			log.Error("chain cannot be written", "err", err)
		}
	}
	id, running := process.Find("run", dir.Engine())
	if !running {
		if !datadir.Held(dir.Lock()) {
			move()
			return
		}
		log.Error("job directory is damaged, and something still works in it: it stays until the next start", "err", why)
		return
	}
	p, found, err := process.Adopt(id, s.deps.Engine.Isolation, process.FindGroup(name))
	if err != nil || !found {
		log.Error("engine of a damaged job directory cannot be stopped", "pid", id.PID, "err", err)
		return
	}
	s.wg.Go(func() {
		p.Stop(s.deps.Engine.Grace)
		select {
		case <-p.Done():
		case <-s.life.Done():
			return
		case <-time.After(2 * s.deps.Engine.Grace):
		}
		move()
	})
}
