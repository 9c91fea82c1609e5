package e2e_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// What a person gives a script; nobody else may see it.
const scriptSecret = "script/51ce+77aa&kept=at?home for one run"

// TestRunScript takes scripts that are part of no release through their life: planned,
// shown, denied without a trace, approved, run next to a killed agent.
func TestRunScript(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	s.must("apps", "variables", "set", "probe", "token="+plainText, "--plain")
	s.env = append(s.env, "API_TOKEN="+scriptSecret)
	accepted := in.acceptedScripts(filepath.Join(s.dir, "runners", in.runner))
	ran := filepath.Join(in.files, "script-ran")
	file := filepath.Join(t.TempDir(), "requeue.sh")
	script := fmt.Sprintf(`set -eu
echo "the token is $API_TOKEN" in {{ .nuon.install.name }}
echo run >> %s
echo "queue=$QUEUE" >> "$BERTH_ACTIONS_OUTPUT_FILEPATH"
echo "token=$API_TOKEN" >> "$BERTH_ACTIONS_OUTPUT_FILEPATH"
echo "used{token=\"$API_TOKEN\"} 1" >> "$BERTH_METRICS"
`, ran)
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"actions", "run-script", "acme", file, "--env", "QUEUE=mail", "--sensitive-env", "API_TOKEN"}

	if out, _, code := s.run(append(args, "--plan")...); code != 2 {
		t.Fatalf("a plan alone: exit %d\n%s", code, out)
	}
	if _, errOut, code := s.run("actions", "run-script", "acme", file, "--sensitive-env", "API_TOKEN=hunter2"); code != 64 || !strings.Contains(errOut, "cannot be an argument") {
		t.Errorf("a secret as an argument: exit %d\n%s", code, errOut)
	}

	// Somebody denies it: nothing is left.
	s.must(args...)
	denied := in.newestWorkflow()
	change := in.proposed(denied.ID, "script")
	shown := s.must("changes", "show", change.ID)
	for _, want := range []string{"echo run >> " + ran, "in acme", "API_TOKEN, QUEUE", "timeout", "5m0s", "holds", "sandbox"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the change does not show %q:\n%s", want, shown)
		}
	}
	in.decide(change, "deny")
	if w := in.finished(denied.ID, time.Minute); w.State != "failed" || w.Ended == nil || *w.Ended != ctlapi.EndedDenied {
		t.Errorf("after the denial: %s %v", w.State, w.Ended)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Fatal("a denied script ran")
	}

	// Somebody approves it: it runs once, and what it gives is shown.
	out, errOut, code := s.run(append(args, "--auto-approve", "--log")...)
	if code != 0 {
		t.Fatalf("run-script: exit %d\n%s%s", code, out, errOut)
	}
	if !strings.Contains(out, "queue=mail") || !strings.Contains(errOut, "the token is (redacted) in acme") {
		t.Errorf("what it gave is not shown:\n%s\n%s", out, errOut)
	}
	if out := s.must("metrics", "acme"); !strings.Contains(out, `used{token="(redacted)"}`) {
		t.Errorf("its number is not shown:\n%s", out)
	}
	if got := readLines(t, ran); len(got) != 1 {
		t.Errorf("it ran %d times, want once", len(got))
	}
	if now := in.acceptedScripts(filepath.Join(s.dir, "runners", in.runner)); !slices.Equal(now, accepted) {
		t.Errorf("the runner accepted scripts for good: %v, before %v", now, accepted)
	}
	if runs := s.must("actions", "runs", "--install", "acme", "--action", "script/requeue"); !strings.Contains(runs, "succeeded") {
		t.Errorf("the run is not listed:\n%s", runs)
	}
	var state map[string]any
	s.get("/installs/acme/state", &state)
	if strings.Contains(fmt.Sprint(state), "script/requeue") {
		t.Error("the state tree has the outputs of a script that nothing declares")
	}

	// The agent is killed in the middle of a run, and a deploy waits meanwhile.
	slow := filepath.Join(t.TempDir(), "slow.sh")
	if err := os.WriteFile(slow, []byte(fmt.Sprintf("echo begin >> %s\nwhile [ ! -e %s ]; do sleep 0.1; done\necho end >> %s\n", ran, ran+".go", ran)), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("actions", "run-script", "acme", slow)
	w := in.newestWorkflow()
	in.decide(in.proposed(w.ID, "script"), "approve")
	in.eventually(time.Minute, "the script begins", func() error {
		if slices.Contains(readLines(t, ran), "begin") {
			return nil
		}
		return fmt.Errorf("%s", in.explain(in.workflow(w.ID)))
	})
	in.change("v9")
	deploy := in.deploy(true, "one")
	in.eventually(time.Minute, "the deploy waits for the script", func() error {
		if step := step(in.workflow(deploy.ID), "component/one"); step.Wait != nil && step.Wait.Reason == "lock" {
			return nil
		}
		return fmt.Errorf("%s", in.explain(in.workflow(deploy.ID)))
	})
	if why := s.must("why", deploy.ID); !strings.Contains(why, "script, run_script by") || !strings.Contains(why, "holds the resource") {
		t.Errorf("why does not say what the deploy waits for:\n%s", why)
	}
	s.signal(s.pid("runner acme"), syscall.SIGKILL)
	in.back("agent")
	if err := os.WriteFile(ran+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if w = in.settled(w.ID); w.State != "succeeded" {
		t.Errorf("the script after the kill: %s", in.explain(w))
	}
	if w = in.finished(deploy.ID, 2*time.Minute); w.State != "succeeded" {
		t.Errorf("the deploy after the script: %s", in.explain(w))
	}
	if got := readLines(t, ran); !slices.Equal(got, []string{"run", "begin", "end"}) {
		t.Errorf("effects = %v, want each once", got)
	}

	places := in.searchAll(t, db)
	for _, name := range slices.Sorted(maps.Keys(places)) {
		for _, where := range places[name].found[scriptSecret] {
			t.Errorf("the script's secret is in the %s: %s", name, where)
		}
	}
}

// newestWorkflow is the one that was started last.
func (in *install) newestWorkflow() ctlapi.Workflow {
	in.t.Helper()
	var page ctlapi.WorkflowPage
	in.get("/workflows?limit=1&install="+in.name, &page)
	if len(page.Items) == 0 {
		in.t.Fatal("there is no workflow")
	}
	return page.Items[0]
}

func readLines(t *testing.T, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return strings.Fields(string(raw))
}
