package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestAttackChain removes the record of an install with the second copy of its
// head: nothing is changed until the customer decides, both sides say why, and
// the record that is restored is the one from before.
func TestAttackChain(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	path := filepath.Join(in.runnerDir(), "chain.jsonl")
	copied := func() error {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return in.expect(db, `select seq::text from berth.chain_heads where chain = $1`, in.id, fmt.Sprint(strings.Count(string(raw), "\n")))
	}
	s.eventually(time.Minute, "the chain is copied", copied)
	in.restartAgent() // what an agent records when it ends is copied by the next one
	s.eventually(time.Minute, "the chain is copied", copied)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	runner := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), append([]string{"--data", in.runnerDir()}, args...)...).CombinedOutput()
		return string(out), err
	}
	if out, err := runner("status"); err != nil || strings.Contains(out, "changes are stopped") {
		t.Fatalf("status before: %v\n%s", err, out)
	}

	epoch, agent := in.epoch(), in.pid("runner "+in.name)
	for _, name := range []string{"chain.jsonl", "chain-head"} {
		if err := os.Remove(filepath.Join(in.runnerDir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	s.signal(agent, syscall.SIGKILL)
	s.eventually(time.Minute, "the agent is back", func() error {
		if in.epoch() == epoch {
			return errors.New("no new session")
		}
		return nil
	})
	in.change("after the attack")
	w := in.deploy(true, "one")
	in.refused(w.ID, "component/one")
	if got := count(in.effects(), "begin one after the attack"); got != 0 {
		t.Errorf("the component was changed %d times", got)
	}
	if err := in.expect(db, `select string_agg(kind, ' ') from berth.alarms where runner_id = $1 and kind like 'chain%'`, in.runner, "chain_behind"); err != nil {
		t.Error(err)
	}
	if out := s.must("runners", "list"); !strings.Contains(out, "mutations are stopped") {
		t.Errorf("runners list does not say why:\n%s", out)
	}
	if out, err := runner("status"); err != nil || !strings.Contains(out, "changes are stopped") {
		t.Errorf("status: %v\n%s", err, out)
	}

	if out, err := runner("chain", "restore"); err != nil || !strings.Contains(out, "the control plane's copy") {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	in.retry(w.ID, "component/one")
	if got := in.finished(w.ID, 2*time.Minute); got.State != "succeeded" {
		t.Fatalf("workflow: %s", in.explain(got))
	}
	after, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(after), string(before)) {
		t.Errorf("the restored chain is another one: %v", err)
	}
	if out, err := runner("chain", "verify"); err != nil {
		t.Errorf("verify: %v\n%s", err, out)
	}
}
