package e2e_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
)

// TestAttackLostDisk deletes the data folder of a runner. Somebody who has no
// recovery key cannot take the machine's place, not with consent either, and an
// alarm stands. With the key a new machine takes over, opens states and
// outputs, goes on with the chain, and deploys.
func TestAttackLostDisk(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	in.change("before")
	if w := in.finished(in.deploy(true).ID, 2*time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	in.eventually(30*time.Second, "the recovery key is known", func() error {
		return in.expect(db, `select count(*)::text from berth.install_recipients where install_id = $1 and recovery_key_id is not null`, in.id, "1")
	})
	firstKey := column(t, db, `select public_key from berth.keys where purpose = 'runner' and install_id = $1`, in.id)

	// The chain names where the egress ledger of this machine stands.
	if out, err := in.onMachine(in.runnerDir(), "egress", "off", "metrics", "--reason", "audit").CombinedOutput(); err != nil {
		t.Fatalf("egress off: %v\n%s", err, out)
	}
	in.eventually(30*time.Second, "the head of the egress ledger in the copy of the chain", func() error {
		return in.expect(db, `select (count(*) > 0)::text from berth.chain_records where chain = $1 and convert_from(body, 'utf8') like '%"what":"egress ledger"%'`, in.id, "true")
	})
	thief := in.newMachine("-thief") // while the surroundings can still be read
	heir := in.newMachine("-heir")   // its secret makes the thief's worthless, as consent is given once
	agent := in.pid("runner " + in.name)
	if err := os.Remove(filepath.Join(in.runnerDir(), "trust.json")); err != nil { // supervised: it may not start again
		t.Fatal(err)
	}
	in.signal(agent, syscall.SIGKILL)
	entries, err := os.ReadDir(in.runnerDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == "install" || e.Name() == "config.json" {
			continue // what the probe's modules made stands for the customer's world, and lets engines of that user through
		}
		if err := os.RemoveAll(filepath.Join(in.runnerDir(), e.Name())); err != nil {
			t.Fatal(err)
		}
	}

	// The thief has the customer's consent (its secret), and a recovery key of its
	// own making.
	copyFile(t, filepath.Join(heir, "secrets", "enrolment"), filepath.Join(thief, "secrets", "enrolment"))
	if out, err := in.onMachine(thief).CombinedOutput(); err == nil || !strings.Contains(string(out), "handover_required") {
		t.Errorf("a machine without a handover: %v\n%s", err, out)
	}
	own := filepath.Join(t.TempDir(), "own.key")
	if out, err := in.onMachine(in.emptyTrust(thief), "recovery", "new", "--out", own).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := in.onMachine(thief, "replace", "--recovery", own).CombinedOutput(); err == nil || !strings.Contains(string(out), "recovery key of this install is") {
		t.Errorf("a machine with another recovery key: %v\n%s", err, out)
	}
	if got := column(t, db, `select kind from berth.alarms where kind = 'handover_refused'`); len(got) == 0 {
		t.Error("no alarm stands")
	}

	out, err := in.onMachine(heir, "replace", "--recovery", in.recoveryFile()).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "were opened and sealed to this machine") || !strings.Contains(string(out), "scripts that stay accepted: 1 ") {
		t.Fatalf("replace: %v\n%s", err, out)
	}
	if again, err := in.onMachine(heir, "replace", "--recovery", in.recoveryFile()).CombinedOutput(); err != nil {
		t.Errorf("replace, once more: %v\n%s", err, again)
	}
	in.startMachine(heir)
	in.change("after")
	w := in.finished(in.deploy(true).ID, 2*time.Minute)
	if w.State != "succeeded" {
		t.Fatalf("deploy on the new machine: %s", in.explain(w))
	}
	// What was accepted stays so: nobody is asked about the same scripts again.
	if got := step(w, "release").Change.State; got != "no_change" {
		t.Errorf("accepting the same release on the new machine: %s", got)
	}
	if got := in.output("one")["value"]; got != "after" {
		t.Errorf("the live value is %v", got)
	}
	if err := in.expect(db, `select reason from berth.install_recipients where install_id = $1 order by number desc limit 1`, in.id, "handover"); err != nil {
		t.Error(err)
	}
	if err := in.expect(db, `select count(*)::text from berth.alarms where kind = 'chain_fork' and runner_id = (select id from berth.runners where install_id = $1)`, in.id, "0"); err != nil {
		t.Error(err)
	}

	// The whole chain is good with the key of the first machine alone: it names the
	// recovery key, which signed for the second.
	key := filepath.Join(t.TempDir(), "first.pub")
	if err := os.WriteFile(key, []byte(firstKey[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	report, err := exec.CommandContext(t.Context(), filepath.Join(in.bin, "berth-verify"), "chain", filepath.Join(heir, "chain.jsonl"), "--key", key, "-o", "json").CombinedOutput()
	var verified struct {
		Handovers int `json:"handovers"`
	}
	if err != nil || json.Unmarshal(report, &verified) != nil || verified.Handovers != 1 {
		t.Errorf("berth-verify: %v\n%s", err, report)
	}
	in.provesOn(heir, firstKey[0])
}

// provesOn exports evidence on a machine that took over, and checks it and all that the
// runner says of itself there: the machine before is named, and stands behind its records.
func (in *install) provesOn(heir, firstKey string) {
	in.t.Helper()
	former, err := capsule.ParsePublicKey(firstKey)
	if err != nil {
		in.t.Fatal(err)
	}
	id := capsule.KeyID(former)
	says := func(wants string, args ...string) string {
		in.t.Helper()
		out, err := in.onMachine(heir, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), wants) {
			in.t.Errorf("berth-runner %v: %v, want %q\n%s", args, err, wants, out)
		}
		return string(out)
	}
	says("are of the machine before, "+id, "chain", "verify")
	says("egress ledger is good", "egress", "verify")
	says(id+" (records 1 to ", "review")
	dir := filepath.Join(in.t.TempDir(), "evidence")
	says("", "evidence", "--since", "24h", "--out", dir)
	own := filepath.Join(in.t.TempDir(), "heir.pub")
	if err := os.WriteFile(own, []byte(says("", "chain", "key")), 0o600); err != nil {
		in.t.Fatal(err)
	}
	verify := func(args ...string) (string, error) {
		out, err := exec.CommandContext(in.t.Context(), filepath.Join(in.bin, "berth-verify"), args...).CombinedOutput()
		return string(out), err
	}
	out, err := verify("evidence", dir, "--key", own)
	for _, wants := range []string{"evidence of " + in.id, id + " vouches as writer", "are of machine " + id + ", which is gone", "orders and", "with good signatures"} {
		if err != nil || !strings.Contains(out, wants) {
			in.t.Errorf("berth-verify evidence: %v, want %q\n%s", err, wants, out)
		}
	}
	if out, err := verify("chain", filepath.Join(heir, "chain.jsonl"), "--key", own, "--keys"); err != nil || !strings.Contains(out, id+" vouches as writer") {
		in.t.Errorf("berth-verify chain with the key of the machine that writes now: %v\n%s", err, out)
	}
	// A record of the machine that is gone is still found when it is changed.
	path := filepath.Join(dir, "chain.jsonl")
	text, err := os.ReadFile(path)
	if err != nil {
		in.t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(`"actor":"`), []byte(`"actor":"x`), 1), 0o600); err != nil {
		in.t.Fatal(err)
	}
	if out, err := verify("evidence", dir, "--key", own); err == nil {
		in.t.Errorf("an edited record of the first machine passes:\n%s", out)
	}
}

// TestPlanForTheMachineBefore has a job wait for a runner whose machine is gone:
// its order names that machine, and the deploy reads an output that is sealed for
// it. When another machine takes over, the job is made again for that one.
func TestPlanForTheMachineBefore(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	if w := in.finished(in.deploy(true).ID, 2*time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	in.eventually(30*time.Second, "the recovery key is known", func() error {
		return in.expect(db, `select count(*)::text from berth.install_recipients where install_id = $1 and recovery_key_id is not null`, in.id, "1")
	})
	heir := in.newMachine("-heir") // while the surroundings can still be read
	agent := in.pid("runner " + in.name)
	if err := os.Remove(filepath.Join(in.runnerDir(), "trust.json")); err != nil { // supervised: it may not start again
		t.Fatal(err)
	}
	in.signal(agent, syscall.SIGKILL)

	in.change("after")
	w := in.deploy(true, "three") // reads one's sensitive output
	// The job that compares the release's scripts waits too, unless the last claim of
	// the killed agent, which runner-api may still hold, has taken it.
	in.eventually(30*time.Second, "the plan waits", func() error {
		return in.expect(db, `select count(*)::text from berth.runner_jobs where install_id = $1 and state = 'queued' and kind = 'terraform_module'`, in.id, "1")
	})
	if out, err := in.onMachine(heir, "replace", "--recovery", in.recoveryFile()).CombinedOutput(); err != nil {
		t.Fatalf("replace: %v\n%s", err, out)
	}
	in.startMachine(heir)
	got := in.finished(w.ID, 2*time.Minute)
	if got.State != "succeeded" {
		t.Fatalf("the plan of before failed the deploy: %s", in.explain(got))
	}
	// The one that waited, and perhaps some that were made before the output was sealed again.
	if err := in.expect(db, `select (count(*) > 0)::text from berth.runner_jobs where install_id = $1 and result->>'reason' = 'machine_replaced'`, in.id, "true"); err != nil {
		t.Error(err)
	}
}

// emptyTrust takes the recovery key out of a machine's trust file.
func (in *install) emptyTrust(dir string) string {
	in.t.Helper()
	path := filepath.Join(dir, "trust.json")
	text, err := os.ReadFile(path)
	if err != nil {
		in.t.Fatal(err)
	}
	trust := map[string]any{}
	if err := json.Unmarshal(text, &trust); err != nil {
		in.t.Fatal(err)
	}
	delete(trust, "recovery")
	if text, err = json.Marshal(trust); err != nil {
		in.t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		in.t.Fatal(err)
	}
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
