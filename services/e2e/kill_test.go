package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestKill kills each part in turn, in the middle of an apply, and sees that
// the workflow goes on by itself or offers a retry that works, within 15 s of
// the part being back, without anybody freeing a lock; that no two engines ever
// worked on one resource; that no line of the log is lost.
func TestKill(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	tests := []struct {
		part   string
		pid    func() int
		signal syscall.Signal
	}{
		{part: "engine", pid: func() int { return s.oneProcess("berth-engine run") }, signal: syscall.SIGKILL},
		{part: "agent", pid: func() int { return s.pid("runner acme") }, signal: syscall.SIGKILL},
		{part: "runner-api", pid: func() int { return s.pid("runner-api") }, signal: syscall.SIGKILL},
		{part: "ctl-api", pid: func() int { return s.pid("ctl-api") }, signal: syscall.SIGKILL},
		{part: "builder", pid: func() int { return s.pid("builder") }, signal: syscall.SIGKILL},
		{part: "log-ingest", pid: func() int { return s.pid("log-ingest") }, signal: syscall.SIGKILL},
		// SIGQUIT is Postgres' immediate shutdown: it recovers from its log.
		{part: "postgres", pid: func() int { return s.pid("postgres") }, signal: syscall.SIGQUIT},
	}
	for _, tt := range tests {
		t.Run(tt.part, func(t *testing.T) {
			in := &install{system: s.with(t), name: in.name, app: in.app, id: in.id, runner: in.runner, files: in.files}
			value := "killed " + tt.part
			in.change(value)
			w := in.deploy(true, "one")
			in.sinceEffect("begin one " + value)
			pid := tt.pid()
			in.signal(pid, tt.signal)
			t.Logf("%s (pid %d) killed in the middle of the apply", tt.part, pid)
			if tt.part != "engine" {
				in.back(tt.part)
			}
			back := time.Now()
			got := in.settled(w.ID)
			if got.State == "failed" {
				failed := step(got, "component/one")
				t.Logf("the step offers a retry: %s", in.explain(got))
				in.post("/steps/"+failed.ID+"/retry", nil, nil)
				got = in.finished(w.ID, time.Minute)
			}
			if got.State != "succeeded" {
				t.Fatalf("workflow: %s", in.explain(got))
			}
			t.Logf("went on %s after it was back: %s", time.Since(back).Round(100*time.Millisecond), in.explain(got))

			effects := in.effects()
			if i := slices.IndexFunc(effects, func(e string) bool { return strings.HasPrefix(e, "DOUBLE") }); i >= 0 {
				t.Errorf("two engines at once: %v", effects)
			}
			begun := count(effects, "begin one "+value)
			uncertain := 0
			for _, c := range in.changes("uncertain") {
				if c.WorkflowID == w.ID {
					uncertain++
				}
			}
			// Only an attempt whose outcome nobody knows may be followed by
			// another one, and then it shows as uncertain.
			if begun > 1+uncertain {
				t.Errorf("%d effects with %d uncertain outcomes: %v", begun, uncertain, effects)
			}
			if tt.part == "engine" && uncertain == 0 {
				t.Errorf("the killed engine's change is not shown as uncertain: %s", in.explain(got))
			}
			in.logsAreWhole(t, w.ID, "one "+value+" line ")
		})
	}
	s.nobodyIsDisputed()
}

// nobodyIsDisputed: no runner was ever taken for two processes with one key.
func (s *system) nobodyIsDisputed() {
	s.t.Helper()
	db := s.database()
	if disputed := column(s.t, db, `select id || ': ' || disputed_reason from berth.runners where disputed_since is not null`); len(disputed) > 0 {
		s.t.Errorf("disputed: %v", disputed)
	}
	if alarms := column(s.t, db, `select runner_id from berth.alarms where kind = 'runner_disputed'`); len(alarms) > 0 {
		s.t.Errorf("alarms about disputes: %v", alarms)
	}
}

// logsAreWhole checks that each log of a workflow has all numbered lines, each
// once and in order; one that ended in a kill has the lines up to there.
func (in *install) logsAreWhole(t *testing.T, workflowID, marker string) {
	t.Helper()
	full := 0
	for _, state := range []string{"applied", "uncertain", "failed"} {
		for _, c := range in.changes(state) {
			if c.WorkflowID != workflowID {
				continue
			}
			for _, stream := range streams(c) {
				var complete bool
				in.eventually(goOnTimeout, "the log "+stream+" is complete", func() error {
					if _, complete = in.log(stream); !complete {
						return errors.New("lines are missing")
					}
					return nil
				})
				lines, _ := in.log(stream)
				next := 1
				for _, line := range lines {
					_, rest, ok := strings.Cut(line, marker)
					if !ok {
						continue
					}
					var n, of int
					if _, err := fmt.Sscanf(rest, "%d of %d", &n, &of); err != nil {
						continue
					}
					if n != next {
						t.Errorf("stream %s: line %d where %d was due", stream, n, next)
					}
					next = n + 1
				}
				if next == 21 {
					full++
				}
			}
		}
	}
	if full == 0 {
		t.Errorf("no log of workflow %s has all 20 numbered lines", workflowID)
	}
}

// settled waits until a workflow ended, within the time in which everything
// goes on after a kill, and the time that the apply itself takes.
func (in *install) settled(workflowID string) ctlapi.Workflow {
	in.t.Helper()
	const applyTime = 10 * time.Second // 20 lines at 0.1 s, plan, apply, and a busy machine
	return in.finished(workflowID, goOnTimeout+2*applyTime)
}

// back waits until a killed part answers again.
func (in *install) back(name string) {
	in.t.Helper()
	if name == "agent" {
		name = "runner acme"
	}
	in.eventually(goOnTimeout, name+" is back", func() error {
		p, ok := in.part(name)
		if !ok || !p.Ready {
			return fmt.Errorf("not ready: %+v", in.parts())
		}
		if name == "ctl-api" || name == "postgres" {
			return in.call(http.MethodGet, "/me", nil, nil)
		}
		return nil
	})
}

func (s *system) pid(prefix string) int {
	s.t.Helper()
	p, ok := s.part(prefix)
	if !ok || p.PID == 0 {
		s.t.Fatalf("no process of %s: %+v", prefix, s.parts())
	}
	return p.PID
}

func (s *system) oneProcess(word string) int {
	s.t.Helper()
	pids := s.processes(word)
	if len(pids) == 0 {
		s.t.Fatalf("no process %q", word)
	}
	return pids[0]
}

// with is the same system, reporting to a sub-test.
func (s *system) with(t *testing.T) *system {
	sub := *s
	sub.t = t
	return &sub
}

func count(all []string, want string) int {
	n := 0
	for _, s := range all {
		if s == want {
			n++
		}
	}
	return n
}
