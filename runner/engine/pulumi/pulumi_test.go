package pulumi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// A resource from its first plan to its removal.
func TestLife(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.spec.EnvVars = map[string]string{"GREETING": "hello {{ .nuon.name }}"}
	result, summary := s.plan()
	if diff := cmp.Diff([]string{"create lab:index:File::a", "create lab:index:File::secret"}, objects(summary)); diff != "" || result.NoChange {
		t.Errorf("first plan (-want +got):\n%s", diff)
	}
	if s.content("a") != "" || s.backend.kept(t).Serial != 0 {
		t.Error("the plan changed something")
	}
	result = s.apply()
	if s.content("a") != "one" || s.content("secret") != secretText {
		t.Errorf("files: %q, %q", s.content("a"), s.content("secret"))
	}
	secret, greeting := result.Outputs["secret"], result.Outputs["greeting"]
	if !secret.Sensitive || string(secret.Value) != `"`+secretText+`"` || greeting.Sensitive || string(greeting.Value) != `"hello acme"` {
		t.Errorf("outputs = %+v", result.Outputs)
	}
	first := s.backend.kept(t)
	if result.Serial != first.Serial || result.Lineage != first.Lineage || !first.Outputs["secret"].Sensitive || len(first.Resources) != 2 {
		t.Errorf("result %s %d, state %+v", result.Lineage, result.Serial, first)
	}

	if result, summary = s.plan(); !result.NoChange || !summary.NoChange || string(result.Outputs["greeting"].Value) != `"hello acme"` {
		t.Errorf("second plan: %+v, %+v", result, summary)
	}

	// An output, a text and a path change; the path needs another file. Somebody
	// else's text is found, and shown as what was before.
	write(t, s.path("a"), "drift")
	s.spec.EnvVars["GREETING"] = "bye"
	s.keeps(map[string]file{"a": {Text: "two"}, "secret": {Path: s.path("moved")}})
	_, summary = s.plan()
	if diff := cmp.Diff([]string{"update lab:index:File::a", "replace lab:index:File::secret"}, objects(summary)); diff != "" {
		t.Fatalf("third plan (-want +got):\n%s", diff)
	}
	want := []jobspec.FieldChange{{Path: "text", Before: `"drift"`, After: `"two"`}}
	if diff := cmp.Diff(want, summary.Objects[0].Fields); diff != "" || summary.Objects[1].Reason != "forced by path" || summary.Update != 1 || summary.Replace != 1 {
		t.Errorf("fields (-want +got):\n%s\n%+v", diff, summary)
	}
	if i := slices.IndexFunc(summary.Outputs, func(f jobspec.FieldChange) bool { return f.Path == "greeting" }); i < 0 || summary.Outputs[i].Before != `"hello acme"` || summary.Outputs[i].After != `"bye"` {
		t.Errorf("outputs = %+v", summary.Outputs)
	}
	result = s.apply()
	if s.content("a") != "two" || s.content("secret") != "" || s.content("moved") != secretText || string(result.Outputs["greeting"].Value) != `"bye"` {
		t.Errorf("files: %q, %q, %q, outputs %v", s.content("a"), s.content("secret"), s.content("moved"), result.Outputs)
	}

	_, summary = s.plan(destroy)
	if diff := cmp.Diff([]string{"delete lab:index:File::a", "delete lab:index:File::secret"}, objects(summary)); diff != "" {
		t.Errorf("teardown (-want +got):\n%s", diff)
	}
	s.apply(destroy)
	if s.content("a") != "" || s.content("moved") != "" {
		t.Error("files are left")
	}
	last := s.backend.kept(t)
	if len(last.Resources) != 0 || last.Pulumi.Passphrase != first.Pulumi.Passphrase || last.Lineage != first.Lineage {
		t.Errorf("state after the teardown: %+v", last)
	}
	if result, _ = s.plan(destroy); !result.NoChange {
		t.Error("a second teardown has something to do")
	}
}

// A secret of the configuration is one to Pulumi too: what becomes of it is encrypted
// in the state, and no preview shows it.
func TestSecretConfiguration(t *testing.T) {
	t.Parallel()
	// The state has the configuration of the provider.
	deployed := func(secrets ...string) string {
		s := newStack(t)
		s.keeps(map[string]file{"a": {Text: "one"}})
		delete(s.spec.Config, "secret") // which is an output in clear, for the agent to seal
		s.spec.Config["lab:token"], s.spec.Secrets = secretText, secrets
		s.plan()
		raw, err := os.ReadFile(filepath.Join(s.pinned, "plan.json"))
		if err != nil {
			t.Fatal(err)
		}
		if shown := strings.Contains(string(raw), secretText); shown != (secrets == nil) {
			t.Errorf("marked %q: the plan file shows the value: %t", secrets, shown)
		}
		s.apply()
		if s.content("a") != "one" {
			t.Errorf("file: %q", s.content("a"))
		}
		if result, _ := s.plan(); !result.NoChange {
			t.Error("another plan with the same secret has something to do")
		}
		s.backend.mu.Lock()
		defer s.backend.mu.Unlock()
		return string(s.backend.state)
	}
	if state := deployed("lab:token"); strings.Contains(state, secretText) || !strings.Contains(state, `"token":`) {
		t.Error("the secret is in the deployment in clear, or not at all")
	}
	if state := deployed(); !strings.Contains(state, secretText) {
		t.Error("a value that is no secret is not in the deployment: this test shows nothing")
	}
}

// What moved after the plan is not done.
func TestApplyDoesWhatThePlanAllows(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.plan()
	s.apply()
	s.spec.Config["shop:files"] = strings.Replace(s.spec.Config["shop:files"], "/secret", "/other", 1)
	s.plan()
	write(t, s.path("a"), "drift")
	d := s.start(jobspec.OperationApply).end()
	if d.Failure == nil || !strings.Contains(d.Failure.Message, "not allowed by the plan") || d.Failure.Remedy != "plan again" {
		t.Fatalf("apply of a plan that is too old: %+v", d)
	}
	if s.content("a") != "drift" {
		t.Errorf("file: %q, which no plan showed", s.content("a"))
	}
}

// An apply that is asked to stop ends what it is doing and keeps what it did; what
// it had not begun is left for the next plan.
func TestStop(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	open := s.holding()
	s.plan()
	r := s.start(jobspec.OperationApply)
	s.backend.until(t, creating)
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	open()
	d := r.end()
	k := s.backend.kept(t)
	if d.Failure == nil || len(k.Pulumi.Deployment.Pending) != 0 || s.content("a") != "one" {
		t.Fatalf("stopped apply: %+v, state %+v, file %q", d, k, s.content("a"))
	}
	s.keeps(map[string]file{"a": {Text: "one"}, "secret": {}})
	s.plan()
	s.apply()
	if result, _ := s.plan(); !result.NoChange {
		t.Error("something is left to do")
	}
}

// The engine and pulumi are killed while a file is created. The state names what
// was begun, and the next plan says that it may exist.
func TestKill(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	s.holding()
	s.plan()
	r := s.start(jobspec.OperationApply)
	s.backend.until(t, creating)
	end(t, r.cmd.Process.Pid)
	_ = r.cmd.Wait()
	s.backend.mu.Lock()
	s.backend.lock = "" // as the next attempt's grant does
	s.backend.mu.Unlock()

	s.keeps(map[string]file{"a": {Text: "one"}, "secret": {}})
	_, summary := s.plan()
	if !strings.Contains(summary.Text, "lab:index:File::a: it may exist") || summary.NoChange {
		t.Errorf("plan after the kill:\n%s", summary.Text)
	}
	s.apply()
	if k := s.backend.kept(t); len(k.Pulumi.Deployment.Pending) != 0 || s.content("a") != "one" {
		t.Errorf("state %+v, file %q", k, s.content("a"))
	}
	if result, _ := s.plan(); !result.NoChange {
		t.Error("something is left to do")
	}
}

// creating: the file "a" is being created, and not its provider or the stack.
func creating(k kept) bool {
	for _, o := range k.Pulumi.Deployment.Pending {
		if o.Type == "creating" && strings.HasSuffix(o.Resource.URN, "::a") {
			return true
		}
	}
	return false
}

// holding has the creation of the file "a" wait until open is called.
func (s *stack) holding() (open func()) {
	s.t.Helper()
	fifo := filepath.Join(s.t.TempDir(), "hold")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.keeps(map[string]file{"a": {Text: "one", Hold: fifo}})
	return func() {
		f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			s.t.Fatal(err)
		}
		_ = f.Close()
	}
}

// end kills a process and everything that it started, from the top: nobody is left
// to see another one end and write that down.
func end(t *testing.T, pid int) {
	t.Helper()
	started := children(t, pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, child := range started {
		end(t, child)
	}
}

func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var own, parent int
		var state string
		text := string(raw)
		after := text[strings.LastIndex(text, ")")+1:]
		if _, err := fmt.Sscan(text, &own); err != nil {
			continue
		}
		if _, err := fmt.Sscan(after, &state, &parent); err == nil && parent == pid {
			pids = append(pids, own)
		}
	}
	return pids
}

// Without its tools a job is refused before anything is done, and says what to do.
func TestWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		edit    func(*stack)
		want    string
		outcome jobspec.Outcome
		reason  jobspec.Reason
	}{
		{"pulumi", func(s *stack) { s.env["BERTH_PULUMI"] = "" }, "pulumi is not on this machine", jobspec.OutcomeRefused, ""},
		{"a pulumi that is something else", func(s *stack) { s.env["BERTH_PULUMI"] = "/bin/true" }, "is not pulumi", jobspec.OutcomeRefused, ""},
		{"the language host", func(s *stack) {
			dir := s.t.TempDir()
			raw, err := os.ReadFile(filepath.Join(s.tools, "pulumi"))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "pulumi"), raw, 0o700)
			}
			if err != nil {
				s.t.Fatal(err)
			}
			s.env["BERTH_PULUMI"] = filepath.Join(dir, "pulumi")
		}, "plugin", jobspec.OutcomeFailed, jobspec.ReasonNeedsChange},
		{"the runtime that was named", func(s *stack) { s.spec.Runtime = "nodejs" }, `its Pulumi.yaml says "go"`, jobspec.OutcomeFailed, jobspec.ReasonNeedsChange},
		{"the right to its variables", func(s *stack) { s.spec.EnvVars = map[string]string{"PULUMI_BACKEND_URL": "file:///"} }, "is set by Berth", jobspec.OutcomeFailed, jobspec.ReasonNeedsChange},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			tc.edit(s)
			d := s.start(jobspec.OperationPlan).end()
			if d.Failure == nil || !strings.Contains(d.Failure.Message, tc.want) || d.Failure.Outcome != tc.outcome || d.Failure.Reason != tc.reason || d.Failure.Remedy == "" {
				t.Errorf("%+v, want %s with %q", d.Failure, tc.outcome, tc.want)
			}
		})
	}
}
