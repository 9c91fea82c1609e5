package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// spy is what a module does instead of its work: look for everything that is
// not its own. It knows where it is on the machine, as any module can.
const spy = `data="${var.dir}/../.."
      say() { echo "$@" >>"${var.dir}/effects"; }
      for f in identity seal-identity salt trust.json chain.jsonl runner.json config.json secrets artifacts spool; do
        ls -d "$data/$f" >/dev/null 2>&1 && say "LEAK $f"
      done
      [ "$(ls "$data/jobs" | wc -l)" = 1 ] || say "LEAK jobs: $(ls "$data/jobs" | tr '\n' ' ')"
      ls HOSTFILE >/dev/null 2>&1 && say "LEAK /tmp"
      [ "$(ls -d /proc/[0-9]* | wc -l)" -lt 30 ] || say "LEAK /proc"
      grep -q '^NoNewPrivs:.1$' /proc/self/status || say "LEAK new privileges"
      grep -q '^CapBnd:.0000000000000000$' /proc/self/status || say "LEAK capabilities"
      { echo x >"$data/jobs/$(ls "$data/jobs" | head -1)/engine/in/x"; } 2>/dev/null && say "LEAK in/ can be written"
      say "user ${var.name} $(id -u)"
      echo "begin`

// TestAttackEngine has two modules of one install look around while both are at
// work: each sees its own folder, the scratch that they share, and nothing of
// the other's or the runner's.
func TestAttackEngine(t *testing.T) {
	t.Parallel()
	want := 2 // users of two jobs at once
	if os.Geteuid() != 0 {
		want = 1
		if out, err := exec.CommandContext(t.Context(), "unshare", "-Urpfm", "--mount-proc", "true").CombinedOutput(); err != nil {
			t.Skipf("users get no namespaces here: %v: %s", err, out)
		}
	}
	s := start(t)
	in := s.probe("acme")
	var runner ctlapi.Runner
	s.get("/runners/"+in.runner, &runner)
	if runner.Trust != "isolated" {
		t.Fatalf("the runner shows trust: %s, want isolated", runner.Trust)
	}

	file, err := os.CreateTemp("/tmp", "berth-attack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(file.Name()) })
	if err := os.Chmod(file.Name(), 0o644); err != nil {
		t.Fatal(err)
	}
	edit(t, filepath.Join(in.app, "src", "work", "main.tf"), `echo "begin`, strings.ReplaceAll(spy, "HOSTFILE", file.Name()))
	edit(t, filepath.Join(in.app, "components", "two.toml"), "v1", "spy")
	in.change("spy")
	if w := in.finished(in.deploy(true, "one", "two").ID, 2*time.Minute); w.State != "succeeded" {
		t.Fatalf("deploy: %s", in.explain(w))
	}
	users := map[string]bool{}
	for _, line := range in.effects() {
		if strings.HasPrefix(line, "LEAK") {
			t.Error(line)
		}
		if user, ok := strings.CutPrefix(line, "user "); ok {
			_, uid, _ := strings.Cut(user, " ")
			users[uid] = true
		}
	}
	if len(users) != want || users["0"] {
		t.Errorf("two jobs at once ran as the users %v, want %d", users, want)
	}
	if !slices.Contains(in.effects(), "end two spy") {
		t.Errorf("the modules did not come to their end: %v", in.effects())
	}
}
