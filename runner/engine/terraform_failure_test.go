package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/berth-dev/berth/pkg/jobspec"
)

func TestStalePlanDoesNothing(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	first, second := i.plan(t, map[string]any{"text": "first"}), i.plan(t, map[string]any{"text": "second"})
	first.must(t)
	second.must(t)
	i.applyOf(t, first).must(t)
	writes := i.backend.writes
	r := i.applyOf(t, second).run(t)
	if r.Outcome != jobspec.OutcomeStale || r.Remedy == "" {
		t.Errorf("result: %+v", r)
	}
	if i.effects(t) != 1 || i.backend.writes != writes || i.backend.locked() {
		t.Errorf("effects %d, writes %d then %d, locked %v", i.effects(t), writes, i.backend.writes, i.backend.locked())
	}
}

func TestLockedStateNamesTheHolder(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	i.backend.set(func(b *backend) {
		b.lock = []byte(`{"ID":"8f2e","Operation":"OperationTypeApply","Who":"root@ship","Version":"1.11.4","Created":"2026-11-20T10:00:00Z"}`)
	})
	plan.must(t) // a plan takes no lock
	r := i.applyOf(t, plan).run(t)
	wantContains(t, "error", r.Error, "the state of component greeting is locked by root@ship, OperationTypeApply, since 2026-11-20")
	if r.Outcome != jobspec.OutcomeFailed || i.effects(t) != 0 || !i.backend.locked() {
		t.Errorf("outcome %s, effects %d, locked %v", r.Outcome, i.effects(t), i.backend.locked())
	}
}

func TestStateThatCannotBeSavedIsKept(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	plan.must(t)
	i.backend.set(func(b *backend) { b.full = true })
	apply := i.applyOf(t, plan)
	r := apply.run(t)
	wantContains(t, "error", r.Error, "terraform changed component greeting but could not save its state")
	wantContains(t, "remedy", r.Remedy, "errored.tfstate")
	wantContains(t, "kept state", apply.read(t, "out/errored.tfstate"), "terraform_data")
	private(t, apply.path)
}

// waiting is a module that waits for a file of the test after its first effect.
// It ends with the test's folder: nobody else ends it when Terraform is killed.
const waiting = `
variable "dir" { type = string }
resource "terraform_data" "first" {
  provisioner "local-exec" {
    command     = "echo first >> \"$DIR/effects\""
    environment = { DIR = var.dir }
  }
}
resource "terraform_data" "slow" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command     = "echo slow >> \"$DIR/effects\"; while [ -d \"$DIR\" ] && [ ! -e \"$DIR/go\" ]; do sleep 0.02; done; echo ended >> \"$DIR/effects\""
    environment = { DIR = var.dir }
  }
}
resource "terraform_data" "never" {
  depends_on = [terraform_data.slow]
  provisioner "local-exec" {
    command     = "echo never >> \"$DIR/effects\""
    environment = { DIR = var.dir }
  }
}
`

func TestStopInTheMiddleOfAnApplySavesTheState(t *testing.T) {
	t.Parallel()
	i := newInstall(t, waiting)
	plan := i.plan(t, nil)
	plan.must(t)
	apply := i.applyOf(t, plan)
	cmd := apply.start(t)
	waitFor(t, "the second effect", contains(filepath.Join(i.dir, "effects"), "slow"))
	stop(t, cmd)
	waitFor(t, "terraform to hear of it", contains(filepath.Join(apply.path, "stdout.log"), "nterrupt"))
	if err := os.WriteFile(filepath.Join(i.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := apply.finish(t, cmd)
	s := i.backend.stored(t)
	if r.Outcome != jobspec.OutcomeCancelled || i.backend.locked() || len(s.Resources) == 0 || r.Serial != s.Serial || r.Lineage != s.Lineage {
		t.Errorf("result %+v, locked %v, state %+v\n%s", r, i.backend.locked(), s, apply.log(t))
	}
	if contains(filepath.Join(i.dir, "effects"), "never")() {
		t.Error("the apply went on after it was stopped")
	}
	next := i.plan(t, nil)
	next.must(t)
	if got := next.summary(t); got.NoChange {
		t.Error("the next plan has nothing to do")
	}
	i.applyOf(t, next).must(t)
}

// An engine that is stopped before its first effect says that it did nothing.
func TestStopBeforeAnApplyBegins(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	plan.must(t)
	apply := i.applyOf(t, plan)
	slow := filepath.Join(t.TempDir(), "terraform")
	text := fmt.Sprintf("#!/bin/bash\ntouch %q\nif [ \"$1\" = init ]; then exec sleep 60; fi\nexec %q \"$@\"\n", slow+".begun", apply.env["BERTH_TERRAFORM"])
	if err := os.WriteFile(slow, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	apply.env["BERTH_TERRAFORM"] = slow
	cmd := apply.start(t)
	waitFor(t, "terraform to be started", func() bool { _, err := os.Stat(slow + ".begun"); return err == nil })
	stop(t, cmd)
	r := apply.finish(t, cmd)
	if want := "stopped on request: the apply of component greeting was not begun"; r.Outcome != jobspec.OutcomeNotStarted || r.Error != want || i.effects(t) != 0 {
		t.Errorf("result %+v, want %q", r, want)
	}
}

func TestKilledEngineLeavesNoResultAndNoTerraform(t *testing.T) {
	t.Parallel()
	i := newInstall(t, waiting)
	plan := i.plan(t, nil)
	plan.must(t)
	apply := i.applyOf(t, plan)
	cmd := apply.start(t)
	waitFor(t, "the second effect", contains(filepath.Join(i.dir, "effects"), "slow"))
	children := childrenOf(t, cmd.Process.Pid)
	if len(children) == 0 {
		t.Fatal("the engine has no children while it applies")
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	// What terraform itself started ends with the pid namespace of the agent;
	// here it ends by the file.
	if err := os.WriteFile(filepath.Join(i.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, pid := range children {
		waitFor(t, "terraform to end", func() bool { return !alive(pid) })
	}
	if _, err := os.Stat(filepath.Join(apply.path, "out/result.json")); !os.IsNotExist(err) {
		t.Errorf("there is a result: %v", err)
	}
	if !i.backend.locked() {
		t.Error("the lock is gone though nobody freed it")
	}
	if contains(filepath.Join(i.dir, "effects"), "never")() {
		t.Error("the apply went on")
	}
}

func TestStopWhileThePlanWaitsForTheState(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	i.backend.set(func(b *backend) { b.hold = true })
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	cmd := plan.start(t)
	waitFor(t, "terraform to ask for the state", func() bool {
		i.backend.mu.Lock()
		defer i.backend.mu.Unlock()
		return i.backend.holding
	})
	stop(t, cmd)
	if r := plan.finish(t, cmd); r.Outcome != jobspec.OutcomeCancelled {
		t.Errorf("result %+v", r)
	}
}

func TestStateIsReadWhenTheAgentIsBack(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `output "text" { value = "ahoy" }`)
	plan := i.plan(t, nil)
	plan.must(t)
	i.backend.set(func(b *backend) { b.leave = true })
	apply := i.applyOf(t, plan)
	cmd := apply.start(t)
	waitFor(t, "the apply to be complete", contains(filepath.Join(apply.path, "stdout.log"), "Apply complete!"))
	i.backend.set(func(b *backend) { b.away = false })
	if r := apply.finish(t, cmd); r.Outcome != jobspec.OutcomeSucceeded || string(r.Outputs["text"].Value) != `"ahoy"` {
		t.Errorf("result %+v", r)
	}
}

func TestTerraformThatIsKilledIsNoSuccess(t *testing.T) {
	t.Parallel()
	i := newInstall(t, waiting)
	plan := i.plan(t, nil)
	plan.must(t)
	apply := i.applyOf(t, plan)
	cmd := apply.start(t)
	waitFor(t, "the second effect", contains(filepath.Join(i.dir, "effects"), "slow"))
	for _, pid := range childrenOf(t, cmd.Process.Pid) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(i.dir, "go"), nil, 0o600); err != nil { // for the script that is left
		t.Fatal(err)
	}
	r := apply.finish(t, cmd)
	wantContains(t, "error", r.Error, "what it did last may be missing in its state")
	if r.Outcome != jobspec.OutcomeFailed {
		t.Errorf("outcome %s", r.Outcome)
	}
}

func TestFailedApplyTellsWhat(t *testing.T) {
	t.Parallel()
	i := newInstall(t, `
resource "terraform_data" "good" {}
resource "terraform_data" "bad" {
  depends_on = [terraform_data.good]
  provisioner "local-exec" { command = "echo it broke; exit 3" }
}
`)
	plan := i.plan(t, nil)
	plan.must(t)
	apply := i.applyOf(t, plan)
	r := apply.run(t)
	wantContains(t, "error", r.Error, "terraform apply of component greeting: terraform_data.bad: local-exec provisioner error (main.tf:")
	wantContains(t, "log", apply.log(t), "terraform_data.bad: | it broke")
	if s := i.backend.stored(t); r.Outcome != jobspec.OutcomeFailed || r.Serial != s.Serial || s.Serial == 0 {
		t.Errorf("result %+v, state %+v", r, s)
	}
}

func TestApplyRefusesAnotherTerraform(t *testing.T) {
	t.Parallel()
	i := newInstall(t, greeting)
	plan := i.plan(t, map[string]any{"text": "ahoy"})
	plan.must(t)
	apply := i.applyOf(t, plan)
	pinned := apply.read(t, "in/pinned/terraform.json")
	var p map[string]any
	if err := json.Unmarshal([]byte(pinned), &p); err != nil {
		t.Fatal(err)
	}
	p["terraform_version"] = "1.5.0"
	changed, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	apply.write(t, "in/pinned/terraform.json", string(changed))
	r := apply.run(t)
	if r.Outcome != jobspec.OutcomeRefused || len(r.Differs) != 1 || r.Differs[0].Want != "terraform 1.5.0" || i.effects(t) != 0 {
		t.Errorf("result %+v", r)
	}
}
