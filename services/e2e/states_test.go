package e2e_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// customer runs a command of the customer, on the runner's machine.
func (in *install) customer(args ...string) (string, error) {
	in.t.Helper()
	args = append([]string{"--data", in.runnerDir()}, args...)
	out, err := exec.CommandContext(in.t.Context(), filepath.Join(in.bin, "berth-runner"), args...).CombinedOutput()
	return string(out), err
}

// TestStates: the vendor sees addresses and history of a state, never its contents, and
// nobody frees the lock of a running apply but the customer, by force. Then what that
// apply still brings changes nothing, and the next change begins from the state before.
func TestStates(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()

	for _, one := range []struct {
		args []string
		want string
	}{
		{[]string{"states", "list", "acme"}, "one "},
		{[]string{"states", "list", "acme", "one"}, "terraform_data."},
		{[]string{"states", "history", "acme", "one"}, "current"},
		{[]string{"states", "show", "acme", "one"}, "berth-runner state show one"},
		{[]string{"states", "unlock", "acme", "one"}, "nobody holds the lock"},
	} {
		if out := s.must(one.args...); !strings.Contains(out, one.want) || strings.Contains(out, canary) {
			t.Errorf("berth %s lacks %q:\n%s", strings.Join(one.args, " "), one.want, out)
		}
	}
	refused := func(args ...string) (string, int) {
		out, said, code := s.run(args...)
		return out + said, code
	}
	if out, code := refused("states", "pull", "acme", "one"); code == 0 || !strings.Contains(out, "berth-runner state pull one") {
		t.Errorf("pull: exit %d\n%s", code, out)
	}
	before := column(t, db, `select s.job_id from berth.tf_states s join berth.resources r on r.id = s.resource_id where r.install_id = $1 and r.name = 'one' and s.kind = 'current'`, in.id)

	in.change("held")
	release := in.hold()
	w := in.deploy(true, "one")
	in.sinceEffect("begin one held")
	job := in.onlyJob(db, `operation = 'apply' and state = 'leased'`)
	if out := s.must("states", "show", "acme", "one"); !strings.Contains(out, "job "+job+", which has not ended") {
		t.Errorf("the vendor does not see who holds the lock:\n%s", out)
	}
	if out, code := refused("states", "unlock", "acme", "one"); code == 0 || !strings.Contains(out, "still running") {
		t.Errorf("the vendor frees the lock of a running apply: exit %d\n%s", code, out)
	}
	if out, err := in.customer("state", "unlock", "one"); err == nil || !strings.Contains(out, "is still running on this machine") || !strings.Contains(out, "--force") {
		t.Errorf("the customer without force: %v\n%s", err, out)
	}
	if out, err := in.customer("state", "unlock", "one", "--force"); err == nil || !strings.Contains(out, "--confirm one") {
		t.Errorf("force without a confirmation: %v\n%s", err, out)
	}
	if out, err := in.customer("state", "unlock", "one", "--force", "--confirm", "one"); err != nil || !strings.Contains(out, "the lock of one is free") {
		t.Fatalf("by force: %v\n%s", err, out)
	}
	release()
	ended := in.finished(w.ID, 2*time.Minute)
	t.Logf("the workflow of the apply: %s", in.explain(ended))
	if n := column(t, db, `select count(*)::text from berth.tf_states where job_id = $1 and kind <> 'orphaned'`, job); n[0] != "0" {
		t.Errorf("the apply wrote a state: %v; the one before was of %v", n, before)
	}
	var kept []string
	for _, dir := range []string{"jobs", "evidence"} {
		found, err := filepath.Glob(filepath.Join(in.runnerDir(), dir, job+".1", "refused-state-*.json"))
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, found...)
	}
	if len(kept) == 0 {
		t.Error("what the apply brought is not kept on the machine")
	}
	in.eventually(30*time.Second, "the record is in the install's chain", func() error {
		n := column(t, db, `select count(*)::text from berth.chain_records where chain = $1 and convert_from(body, 'UTF8') like '%freed by force%'`, in.id)
		if n[0] != "1" {
			return fmt.Errorf("%s records", n[0])
		}
		return nil
	})
	in.change("after")
	if got := in.finished(in.deploy(true, "one").ID, 2*time.Minute); got.State != "succeeded" {
		t.Fatalf("the next change: %s", in.explain(got))
	}
	if got := in.output("one")["value"]; got != "after" {
		t.Errorf("the live value is %v", got)
	}
	in.eventually(10*time.Second, "no lock is left", func() error {
		if out := s.must("states", "unlock", "acme", "one"); !strings.Contains(out, "nobody holds the lock") {
			return errors.New(out)
		}
		return nil
	})
}
