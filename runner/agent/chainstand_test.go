package agent_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// copied waits until the control plane has the whole chain.
func (c *change) copied() {
	c.t.Helper()
	want := c.lines()
	c.plane.until(c.t, "the copy of the chain", func() bool { return len(c.plane.chain) == want })
}

func (c *change) lines() int {
	raw, err := os.ReadFile(c.dir.Chain())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		c.t.Fatal(err)
	}
	return bytes.Count(raw, []byte("\n"))
}

// decide writes the customer's decision and waits until mutations go on.
func (c *change) decide(action, reason string) {
	c.t.Helper()
	var p agent.ChainProblem
	if found, err := datadir.ReadJSON(c.dir.ChainProblem(), &p); err != nil || !found {
		c.t.Fatalf("no problem is shown: %v", err)
	}
	if err := datadir.WriteJSON(c.dir.ChainDecision(), agent.ChainDecision{Problem: p.ID, Action: action, Reason: reason}); err != nil {
		c.t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		if _, err := os.Stat(c.dir.ChainProblem()); errors.Is(err, os.ErrNotExist) {
			return
		}
		if _, err := datadir.ReadJSON(c.dir.ChainProblem(), &p); err == nil && p.Refused != "" {
			c.t.Fatalf("%s: %s", action, p.Refused)
		}
		if time.Now().After(deadline) {
			c.t.Fatal("the decision is not carried out")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// report is what the verifier says of the chain.
func (c *change) report(heads ...chain.SignedHead) chain.Report {
	c.t.Helper()
	keys, err := c.dir.Keys()
	if err != nil {
		c.t.Fatal(err)
	}
	f, err := os.Open(c.dir.Chain())
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	report, err := chain.Verify(f, chain.VerifyOptions{Keys: map[string]ed25519.PublicKey{capsule.KeyID(keys.Public()): keys.Public()}, Heads: heads})
	if err != nil {
		c.t.Fatal(err)
	}
	return report
}

// another is one more approved change of the same runner, of another resource.
func (c *change) another() (job string) {
	c.t.Helper()
	c.plane.change(func() { c.plane.state = nil })
	return newChangeOn(c.t, c.runner, func(*runner) {}, func(*jobspec.Spec) {}).order(asItIs)
}

// A chain that was removed, cut or replaced stops mutations until the customer
// decides, and the chain tells of the decision.
func TestChainThatWasCutStopsMutations(t *testing.T) {
	t.Parallel()
	remove := func(t *testing.T, paths ...string) {
		for _, path := range paths {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		}
	}
	cut := func(t *testing.T, c *change, keep int) {
		raw, err := os.ReadFile(c.dir.Chain())
		if err == nil {
			err = os.WriteFile(c.dir.Chain(), bytes.Join(bytes.SplitAfter(raw, []byte("\n"))[:keep], nil), 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
	for _, tc := range []struct {
		name   string
		attack func(t *testing.T, c *change)
		// lost: the control plane has nothing of the chain either.
		lost   bool
		action string
		names  string
	}{
		{name: "removed", attack: func(t *testing.T, c *change) { remove(t, c.dir.Chain()) }, action: agent.ChainRestore, names: "is missing"},
		{name: "removed with the second copy", attack: func(t *testing.T, c *change) { remove(t, c.dir.Chain(), c.dir.ChainHead()) }, action: agent.ChainAccept, names: "is missing"},
		{name: "removed everywhere", lost: true, attack: func(t *testing.T, c *change) { remove(t, c.dir.Chain(), c.dir.ChainHead()) }, action: agent.ChainAccept, names: "is missing"},
		{name: "last record cut off, also at the control plane", attack: func(t *testing.T, c *change) {
			cut(t, c, 1)
			c.plane.change(func() { c.plane.chain = c.plane.chain[:1] })
		}, action: agent.ChainAccept, names: "ends at record 1"},
		{name: "an older backup, and another record after it", attack: func(t *testing.T, c *change) {
			cut(t, c, 1)
			remove(t, c.dir.ChainHead())
			keys, err := c.dir.Keys()
			if err != nil {
				t.Fatal(err)
			}
			// A process that another test is just starting may still hold the file.
			w, err := chain.Open(c.dir.Chain(), chain.Signer{Chain: c.plane.installID, Key: keys.Sign})
			for end := time.Now().Add(10 * time.Second); errors.Is(err, chain.ErrBusy) && time.Now().Before(end); {
				time.Sleep(10 * time.Millisecond)
				w, err = chain.Open(c.dir.Chain(), chain.Signer{Chain: c.plane.installID, Key: keys.Sign})
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Append(t.Context(), chain.Record{Actor: "runner", Kind: chain.Event, What: "fork"}); err != nil {
				t.Error(err)
			}
			_ = w.Close()
		}, action: agent.ChainAccept, names: "ends at record 2"},
		{name: "damaged in the middle", attack: func(t *testing.T, c *change) {
			damage(t, c.dir.Chain(), func(raw []byte) []byte {
				lines := bytes.SplitAfter(raw, []byte("\n"))
				return bytes.Join([][]byte{lines[0], []byte("garbage\n"), lines[1]}, nil)
			})
			config := agent.Config{Data: c.dir.Path(), Engine: c.binary, Executable: c.binary, EngineUID: c.uid, Version: "1.2.0"}
			if err := agent.Run(t.Context(), config); !errors.Is(err, agent.ErrDamaged) {
				t.Fatalf("err = %v, want ErrDamaged", err)
			}
			var p agent.ChainProblem
			if found, err := datadir.ReadJSON(c.dir.ChainProblem(), &p); err != nil || !found {
				t.Fatalf("no problem is shown: %v", err)
			}
			if err := datadir.WriteJSON(c.dir.ChainDecision(), agent.ChainDecision{Problem: p.ID, Action: agent.ChainAccept, Reason: "seen"}); err != nil {
				t.Fatal(err)
			}
		}, action: agent.ChainRestore, names: "ends at record 1"},
		{name: "an older backup of both files", attack: func(t *testing.T, c *change) {
			cut(t, c, 1)
			remove(t, c.dir.ChainHead())
		}, action: agent.ChainRestore, names: "ends at record 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var stop func() error
			c := newChange(t, func(r *runner) { stop = r.start() })
			if result := c.plane.result(t, c.order(asItIs)); result.Outcome != jobspec.OutcomeSucceeded {
				t.Fatalf("result = %+v", result)
			}
			c.records(2)
			// A script is accepted while that can be recorded.
			if result := c.plane.result(t, c.plane.give(script("print hello"))); result.Outcome != jobspec.OutcomeSucceeded {
				t.Fatalf("result = %+v", result)
			}
			// What an agent records when it ends is copied by the next one.
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			stop = c.start()
			c.copied()
			before := c.plane.chain
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			tc.attack(t, c)
			if tc.lost {
				c.plane.change(func() { c.plane.chain = nil })
			}
			stop = c.start()
			c.plane.until(t, "the third session", func() bool { return len(c.plane.sessions) == 3 })
			nonces, _ := os.ReadFile(c.dir.Nonces())
			result := c.plane.result(t, c.another())
			if result.Outcome != jobspec.OutcomeRefused || !strings.Contains(result.Error, tc.names) || !strings.Contains(result.Remedy, "chain accept") {
				t.Fatalf("result = %+v, want it refused because the chain %s", result, tc.names)
			}
			if now, _ := os.ReadFile(c.dir.Nonces()); len(c.effects()) != 1 || !bytes.Equal(now, nonces) {
				t.Errorf("effects %v, want only the one from before, and no order used up", c.effects())
			}
			if result := c.plane.result(t, c.plane.give(script("print hello"))); result.Outcome != jobspec.OutcomeSucceeded {
				t.Errorf("a check does not go on: %+v", result)
			}
			c.plane.until(t, "the problem", func() bool {
				last := c.plane.asked[len(c.plane.asked)-1]
				return last.Problem != nil && strings.Contains(*last.Problem, tc.names)
			})

			c.decide(tc.action, "the disk was restored")
			if result := c.plane.result(t, c.another()); result.Outcome != jobspec.OutcomeSucceeded {
				t.Fatalf("result after the decision = %+v", result)
			}
			report := c.report()
			if !report.OK() || len(report.Decisions) != map[string]int{agent.ChainAccept: 1}[tc.action] {
				t.Errorf("report = %+v", report)
			}
			if tc.action == agent.ChainAccept && report.OK() && report.Decisions[0].Reason != "the disk was restored" {
				t.Errorf("decisions = %+v", report.Decisions)
			}
			c.copied()
			if kept := len(c.plane.chain); !tc.lost && kept < len(before) && !strings.Contains(tc.name, "also at") {
				t.Errorf("the copy went from %d to %d records", len(before), kept)
			}
			if n := min(len(before), len(c.plane.chain)); !tc.lost && !strings.Contains(tc.name, "also at") && !slices.EqualFunc(before[:n], c.plane.chain[:n], func(a, b runnerapi.ChainRecord) bool { return bytes.Equal(a.Body, b.Body) }) {
				t.Error("the copy is another one")
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			// It is decided once: the next start goes on.
			c.start()
			if result := c.plane.result(t, c.another()); result.Outcome != jobspec.OutcomeSucceeded {
				t.Errorf("result after a restart = %+v", result)
			}
		})
	}
}
