package agent_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// named is what the requests for sessions said of themselves: `b after a`.
func (p *plane) named() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	letters := map[string]string{}
	letter := func(id *string) string {
		if id == nil {
			return "nothing"
		}
		if letters[*id] == "" {
			letters[*id] = string(rune('a' + len(letters)))
		}
		return letters[*id]
	}
	var out []string
	for _, s := range p.sessions {
		before := letter(s.Before)
		out = append(out, letter(s.Opening)+" after "+before)
	}
	return out
}

// Each session names the one before, an answer that was lost is asked for again,
// and one that is over is left alone without forgetting which was the last.
func TestASessionNamesTheOneBefore(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.plane.sessionAnswers = []string{"", "lost", "lost", "", "opening_over", ""}
	for _, sessions := range []int{1, 4, 6} {
		stop := r.start()
		r.plane.until(t, "a session", func() bool { return len(r.plane.asked) > 0 && len(r.plane.sessions) == sessions })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.plane.change(func() { r.plane.asked = nil })
	}
	got, want := strings.Join(r.plane.named(), ", "), "a after nothing, b after a, b after a, b after a, c after b, d after b"
	if got != want {
		t.Errorf("asked for %s; want %s", got, want)
	}
}

// A second agent on the same data directory is refused before it asks for a
// session: that is no dispute.
func TestTwoAgentsOnOneDirectory(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	r.plane.until(t, "a session", func() bool { return len(r.plane.asked) > 0 })
	before, err := os.ReadFile(r.dir.Session())
	if err != nil {
		t.Fatal(err)
	}
	config := agent.Config{Data: r.dir.Path(), Engine: r.binary, Executable: r.binary, EngineUID: r.uid, Version: "1.2.0"}
	if err := agent.Run(t.Context(), config); !errors.Is(err, datadir.ErrBusy) {
		t.Errorf("the second agent ended with %v, want it busy", err)
	}
	after, err := os.ReadFile(r.dir.Session())
	if err != nil || string(after) != string(before) || len(r.plane.named()) != 1 {
		t.Errorf("sessions %v, file %q (%v), before %q", r.plane.named(), after, err, before)
	}
}

// An agent whose session another process ended opens the next one, stops mutations
// for good, on record, and ends once another machine took over.
func TestAnotherProcessHoldsTheKey(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		shows func(p *plane)
	}{
		{"its session is ended", func(p *plane) { p.overtake = 1 }},
		{"its next session is ended before it is used", func(p *plane) { p.unknown, p.overtakeHead = 1, 1 }},
		{"its next session is disputed", func(p *plane) {
			p.disputed = &runnerapi.Dispute{Since: time.Now(), Reason: "an agent opened a session that does not follow the last one"}
			p.unknown = 1
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var stop func() error
			c := newChange(t, func(r *runner) { stop = r.start() })
			c.plane.change(func() { tc.shows(c.plane) })
			c.plane.until(t, "the next session", func() bool { return len(c.plane.sessions) >= 2 })
			c.plane.until(t, "the problem", func() bool {
				last := c.plane.asked[len(c.plane.asked)-1]
				return last.Problem != nil && strings.Contains(*last.Problem, "the key of this runner")
			})
			refused := func(when string) {
				t.Helper()
				result := c.plane.result(t, c.another())
				if result.Outcome != jobspec.OutcomeRefused || !strings.Contains(result.Remedy, "berth-runner replace") || strings.Contains(result.Remedy, "chain accept") {
					t.Errorf("%s: result = %+v, want it refused with the remedy", when, result)
				}
			}
			refused("at once")
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			c.plane.change(func() { c.plane.disputed = nil }) // whatever it says later
			stop = c.start()
			refused("after a restart")
			if len(c.effects()) != 0 {
				t.Errorf("effects %v", c.effects())
			}
			if report := c.report(); !report.OK() || len(report.Disputes) != 1 || report.Disputes[0].Detail == "" {
				t.Errorf("report = %+v, want one dispute on record", report)
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}

			// The key counts no more: nothing is left to do for this agent.
			c.plane.change(func() {
				c.plane.sessionAnswers = append(make([]string, len(c.plane.sessions)), "signature_refused")
			})
			config := agent.Config{Data: c.dir.Path(), Engine: c.binary, Executable: c.binary, EngineUID: c.uid, Version: "1.2.0"}
			if err := agent.Run(t.Context(), config); !errors.Is(err, agent.ErrSuperseded) {
				t.Errorf("the agent ended with %v, want ErrSuperseded", err)
			}
		})
	}
}

// What runs when another process takes the session over is ended, not left to
// change things without a lease.
func TestWhatRunsEndsWithTheKey(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	r.start()
	job := r.plane.give(script("touch "+r.file("runs"), "wait "+r.file("never")))
	r.appears(r.file("runs"))
	r.plane.change(func() { r.plane.overtake, r.plane.answers[job] = 1, runnerapi.LeaseAnswerLost })
	r.plane.until(t, "the next session", func() bool { return len(r.plane.sessions) > 1 })
	deadline := time.Now().Add(30 * time.Second)
	for {
		left, err := filepath.Glob(filepath.Join(r.dir.Jobs(), job+".*"))
		if err == nil && len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the job is still there: %v, %v", left, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// overtook answers a question for the chain's head, if its session is over.
func (p *plane) overtook(w http.ResponseWriter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.overtakeHead == 0 || len(p.sessions) < 2 {
		return false
	}
	p.overtakeHead--
	refuse(w, http.StatusUnauthorized, "session_overtaken", "another one was opened")
	return true
}

// next is how the plane answers the session that was just asked for.
func (p *plane) next() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.sessions) - 1; n < len(p.sessionAnswers) {
		return p.sessionAnswers[n]
	}
	return ""
}

// ends answers a claim of a session that is over, if it is.
func (p *plane) ends(w http.ResponseWriter) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.overtake > 0:
		p.overtake--
		refuse(w, http.StatusUnauthorized, "session_overtaken", "another one was opened")
		return true
	case p.unknown > 0:
		p.unknown--
		refuse(w, http.StatusUnauthorized, "unauthenticated", "the session is not known")
		return true
	}
	return false
}
