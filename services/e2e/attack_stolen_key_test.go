package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAttackStolenKey starts a second agent on a copy of a running runner's data
// directory. Both sides must say so, neither agent gets work any more, and the
// customer's recovery key ends it: another machine takes over, with keys that the
// thief does not have, and deploys.
func TestAttackStolenKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	in.eventually(30*time.Second, "the recovery key is known", func() error {
		return in.expect(db, `select count(*)::text from berth.install_recipients where install_id = $1 and recovery_key_id is not null`, in.id, "1")
	})
	if err := in.expect(db, `select (disputed_since is null)::text from berth.runners where id = $1`, in.runner, "true"); err != nil {
		t.Errorf("before: %v", err)
	}
	heir := in.newMachine("-heir") // while the surroundings can still be read

	// The thief copies all that the machine has, while it runs. A copy from before the chain's
	// last record would write nothing into its own: such a chain is behind, and says so.
	thief := in.runnerDir() + "-thief"
	in.eventually(time.Minute, "a copy of all, with the whole chain", func() error { // a file may go while cp looks at it
		if err := os.RemoveAll(thief); err != nil {
			return err
		}
		out, err := exec.CommandContext(t.Context(), "cp", "-a", in.runnerDir(), thief).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		time.Sleep(3 * time.Second) // the last deploy brings settings, which are a record
		copied, err := os.ReadFile(filepath.Join(thief, "chain.jsonl"))
		if err != nil {
			return err
		}
		chain, err := os.ReadFile(filepath.Join(in.runnerDir(), "chain.jsonl"))
		if err == nil && !bytes.Equal(copied, chain) {
			err = fmt.Errorf("the chain went on after the copy, from %d to %d bytes", len(copied), len(chain))
		}
		return err
	})
	if err := os.RemoveAll(filepath.Join(thief, "install")); err != nil { // it is the customer's world, the same for both
		t.Fatal(err)
	}
	epoch := in.epoch()
	thiefEnded := in.startMachine(thief)

	in.eventually(30*time.Second, "the runner is disputed", func() error {
		return in.expect(db, `select (disputed_since is not null)::text from berth.runners where id = $1`, in.runner, "true")
	})
	in.eventually(30*time.Second, "the org's chain has the alarm", func() error {
		return in.expect(db, `select count(*)::text from berth.chain_records where chain = (select org_id from berth.installs where id = $1)
			and convert_from(body, 'UTF8') like '%runner_disputed%'`, in.id, "1")
	})
	for _, dir := range []string{in.runnerDir(), thief} {
		// Each hears of it with its next session, before which it may wait as long as a back-off grows.
		in.eventually(90*time.Second, "the install's chain tells of it, at "+filepath.Base(dir), func() error {
			raw, err := os.ReadFile(filepath.Join(dir, "chain.jsonl"))
			if err == nil && !strings.Contains(string(raw), "another process holds the key of this runner") {
				err = errors.New("no such record")
			}
			return err
		})
		out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), "--data", dir, "status").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "changes are stopped since") || !strings.Contains(string(out), "berth-runner replace") {
			t.Errorf("status of %s: %v\n%s", filepath.Base(dir), err, out)
		}
	}
	key := filepath.Join(t.TempDir(), "machine.pub")
	if err := os.WriteFile(key, []byte(column(t, db, `select public_key from berth.keys where purpose = 'runner' and install_id = $1`, in.id)[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	verified, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-verify"), "chain", filepath.Join(in.runnerDir(), "chain.jsonl"), "--key", key).CombinedOutput()
	if err != nil || !strings.Contains(string(verified), "another process held the key of the machine") {
		t.Errorf("berth-verify: %v\n%s", err, verified)
	}

	// Nobody gets work: neither a change nor what would bring secrets to the thief.
	in.change("while two hold the key")
	since := column(t, db, `select now()::text`)[0]
	w := in.deploy(true, "one")
	for _, command := range [][]string{{"runners", "list"}, {"installs", "show", "acme"}, {"why", w.ID}} {
		in.eventually(30*time.Second, strings.Join(command, " ")+" tells of it", func() error {
			out, _, _ := s.run(command...)
			if !strings.Contains(out, "is disputed since") || !strings.Contains(out, "berth-runner replace") {
				return fmt.Errorf("it says:\n%s", out)
			}
			return nil
		})
	}
	in.eventually(30*time.Second, "both opened sessions again", func() error {
		if n := in.epoch(); n < epoch+4 {
			return fmt.Errorf("epoch %d", n)
		}
		return nil
	})
	if leased := column(t, db, `select j.operation from berth.leases l join berth.runner_jobs j on j.id = l.job_id where l.granted_at > '`+since+`'`); len(leased) > 0 {
		t.Errorf("leased while disputed: %v", leased)
	}
	if got := count(in.effects(), "begin one while two hold the key"); got != 0 {
		t.Errorf("the component was changed %d times", got)
	}

	// The way back.
	if out, err := in.onMachine(heir, "replace", "--recovery", in.recoveryFile()).CombinedOutput(); err != nil {
		t.Fatalf("replace: %v\n%s", err, out)
	}
	in.startMachine(heir)
	if err := in.expect(db, `select (disputed_since is null)::text from berth.runners where id = $1`, in.runner, "true"); err != nil {
		t.Errorf("after the replacement: %v", err)
	}
	// What was planned for the machine before is not done by another one without a
	// question: a retry plans it again.
	got := in.finished(w.ID, 2*time.Minute)
	for _, failed := range got.Steps {
		if failed.State == "failed" {
			t.Logf("retried: %s", in.explain(got))
			in.post("/steps/"+failed.ID+"/retry", nil, nil)
			got = in.finished(w.ID, 2*time.Minute)
		}
	}
	if got.State != "succeeded" {
		t.Fatalf("deploy after the replacement: %s", in.explain(got))
	}
	if got := in.output("one")["value"]; got != "while two hold the key" {
		t.Errorf("the live value is %v", got)
	}
	for _, command := range [][]string{{"runners", "list"}, {"installs", "show", "acme"}} {
		if out := s.must(command...); strings.Contains(out, "is disputed since") {
			t.Errorf("%v still tells of it:\n%s", command, out)
		}
	}
	// Neither of the two is this install's machine any more, and both end.
	gone, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	select {
	case <-thiefEnded:
	case <-gone.Done():
		t.Error("the thief's agent goes on")
	}
	in.eventually(2*time.Minute, "the first machine's agent ended", func() error {
		raw, err := os.ReadFile(filepath.Join(in.dir, "log", "runner-"+in.runner+".log"))
		if err == nil && !strings.Contains(string(raw), "another machine has replaced this one") {
			err = errors.New("its log does not say so")
		}
		return err
	})
}
