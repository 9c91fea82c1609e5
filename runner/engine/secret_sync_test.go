package engine_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// A synced is the copies of an install's secrets in a real cluster.
type synced struct {
	*kubetest.Connection
	// install is the id of the install and the name of its namespace; space is another one.
	install, space string
	fence          int64
	kubeconfig     string
	copies         []jobspec.SecretCopy
	secrets        map[string]any
}

func syncing(t *testing.T) *synced {
	t.Helper()
	c := kubetest.Cluster(t)
	return &synced{Connection: c, install: c.Name(t), space: c.Name(t), kubeconfig: c.Kubeconfig, secrets: map[string]any{}}
}

// set gives a secret a value, as the agent fills it in.
func (s *synced) set(name, value string, version int) {
	s.secrets[name] = map[string]any{"exists": value != "", "version": version, "digest": fmt.Sprintf("hmac-sha256:%064d", version), "value": value}
}

func (s *synced) copyTo(secret, name, key string) {
	s.copies = append(s.copies, jobspec.SecretCopy{Secret: secret, Namespace: "{{ .nuon.sandbox.outputs.namespace }}", Name: name, Key: key})
}

func (s *synced) job(t *testing.T, operation jobspec.Operation) *jobDir {
	t.Helper()
	j := newJob(t, jobspec.Spec{
		Kind: jobspec.KindSecretSync, Operation: operation, Resource: &jobspec.Resource{ID: "res_1", Kind: "secrets", Name: "secrets"},
		SecretSync: &jobspec.SecretSync{Copies: s.copies},
	})
	j.spec.InstallID = s.install
	if operation == jobspec.OperationPlan {
		j.spec.State = state(t, map[string]any{"secrets": s.secrets, "sandbox": map[string]any{"outputs": map[string]any{"namespace": s.space}}})
	}
	data, err := os.ReadFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	j.write(t, "in/kubeconfig", string(data))
	j.env["KUBECONFIG"] = filepath.Join(j.path, "in/kubeconfig")
	return j
}

func (s *synced) plan(t *testing.T) (*jobDir, jobspec.Result) {
	t.Helper()
	j := s.job(t, jobspec.OperationPlan)
	return j, j.must(t)
}

func (s *synced) planAfter(t *testing.T, before *jobDir) *jobDir {
	t.Helper()
	j := s.job(t, jobspec.OperationPlan)
	j.spec.Destroy, j.spec.Continues = before.spec.Destroy, "chg_0"
	copyTree(t, filepath.Join(before.path, "out/pinned"), filepath.Join(j.path, "in/previous"))
	j.must(t)
	return j
}

func (s *synced) applyJob(t *testing.T, plan *jobDir) *jobDir {
	t.Helper()
	j := s.job(t, jobspec.OperationApply)
	s.fence++
	j.spec.Fence, j.spec.Destroy = s.fence, plan.spec.Destroy
	copyTree(t, filepath.Join(plan.path, "out/pinned"), filepath.Join(j.path, "in/pinned"))
	return j
}

func (s *synced) roll(t *testing.T) *jobDir {
	t.Helper()
	plan, _ := s.plan(t)
	apply := s.applyJob(t, plan)
	apply.must(t)
	return apply
}

// there is what a Secret of the space has, as text; "absent" when it is not there.
func (s *synced) there(t *testing.T, name string) string {
	t.Helper()
	live, err := s.Client.CoreV1().Secrets(s.space).Get(t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "absent"
	}
	if err != nil {
		t.Fatal(err)
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(live.Data)) {
		parts = append(parts, key+"="+string(live.Data[key]))
	}
	return strings.Join(parts, " ")
}

// foreign makes a Secret that is nobody's copy.
func (s *synced) foreign(t *testing.T, name string) {
	t.Helper()
	_, err := s.Client.CoreV1().Secrets(s.space).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"value": "of the customer"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Error(err) // proxies call it too
	}
}

const valueOne, valueTwo = "canary-one-7f3a", "canary-two-9c1b"

// Copies are made with their namespace, follow a new value, lose a key, and go. No file
// that leaves the runner has a value.
func TestSecretSync(t *testing.T) {
	t.Parallel()
	s := syncing(t)
	s.set("token", valueOne, 1)
	s.set("cert", "Y2FuYXJ5LWNlcnQ=", 4)
	s.set("optional", "", 0)
	s.copyTo("token", "api", "token")
	s.copyTo("cert", "api", "tls.crt")
	s.copyTo("token", "worker", "value")
	s.copyTo("optional", "api", "optional")
	s.copies[1].Format = "base64"

	plan, _ := s.plan(t)
	var summary jobspec.PlanSummary
	plan.readJSON(t, "out/plan.summary.json", &summary)
	var shown []string
	for _, o := range summary.Objects {
		shown = append(shown, strings.ReplaceAll(o.Action+" "+o.Address, s.install, "INSTALL"))
	}
	want := []string{"create Namespace INSTALL", "create Namespace " + s.space, "create Secret " + s.space + "/api", "create Secret " + s.space + "/worker"}
	if diff := cmp.Diff(want, shown); diff != "" {
		t.Errorf("the plan shows (-want +got):\n%s", diff)
	}
	if text := plan.read(t, "out/plan.summary.json"); !strings.Contains(text, "token version 1 (hmac-sha256:0000") {
		t.Errorf("the plan names no version and digest:\n%s", text)
	}
	apply := s.applyJob(t, plan)
	apply.must(t)
	if got, want := s.there(t, "api")+" | "+s.there(t, "worker"), "tls.crt=canary-cert token="+valueOne+" | value="+valueOne; got != want {
		t.Errorf("the copies have %q, want %q", got, want)
	}
	var outputs struct {
		Copies struct{ Value []jobspec.Copied }
	}
	apply.readJSON(t, "out/outputs.json", &outputs)
	if len(outputs.Copies.Value) != 3 || outputs.Copies.Value[2] != (jobspec.Copied{Secret: "token", Version: 1, Digest: fmt.Sprintf("hmac-sha256:%064d", 1), Namespace: s.space, Name: "worker", Key: "value"}) {
		t.Errorf("the outputs are %+v", outputs.Copies.Value)
	}
	if _, result := s.plan(t); !result.NoChange {
		t.Error("a sync of the same changes something")
	}

	s.set("token", valueTwo, 2)
	s.copies = slices.Delete(s.copies, 1, 2) // the certificate's
	rotation, _ := s.plan(t)
	if text := rotation.read(t, "out/plan.summary.json"); !strings.Contains(text, "token version 1") || !strings.Contains(text, "token version 2") || !strings.Contains(text, "cert version 4") {
		t.Errorf("the plan does not show what changes:\n%s", text)
	}
	s.applyJob(t, rotation).must(t)
	if got, want := s.there(t, "api")+" | "+s.there(t, "worker"), "token="+valueTwo+" | value="+valueTwo; got != want {
		t.Errorf("after the rotation the copies have %q, want %q", got, want)
	}

	s.edit(t, "worker", `{"stringData":{"value":"by hand"}}`)
	byHand, _ := s.plan(t)
	if text := byHand.read(t, "out/plan.summary.json"); !strings.Contains(text, "then changed by somebody else") {
		t.Errorf("the plan does not say that somebody changed a copy:\n%s", text)
	}
	s.copies = s.copies[:1]
	s.roll(t)
	if got := s.there(t, "worker"); got != "absent" {
		t.Errorf("what is no longer declared has %q", got)
	}

	for _, j := range []*jobDir{plan, apply, rotation, byHand} {
		for _, file := range []string{"stdout.log", "stderr.log", "out/plan.canonical.json", "out/plan.summary.json", "out/inputs.json", "out/outputs.json", "out/result.json"} {
			data, _ := os.ReadFile(filepath.Join(j.path, file)) // not each has all of them
			for _, value := range []string{valueOne, valueTwo, "canary-cert", "Y2FuYXJ5LWNlcnQ=", "by hand"} {
				if strings.Contains(string(data), value) {
					t.Errorf("%s has %q", file, value)
				}
			}
		}
	}

	gone := s.job(t, jobspec.OperationPlan)
	gone.spec.Destroy = true
	gone.must(t)
	s.applyJob(t, gone).must(t)
	for _, name := range []string{s.install, s.space} {
		found, err := s.Client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && found.DeletionTimestamp == nil {
			t.Errorf("namespace %s, which the sync made, is left", name)
		}
	}
}

func (s *synced) edit(t *testing.T, name, patch string) {
	t.Helper()
	_, err := s.Client.CoreV1().Secrets(s.space).Patch(t.Context(), name, "application/merge-patch+json", []byte(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	if err != nil {
		t.Error(err)
	}
}

// An order cannot have a Secret overwritten or removed that the install did not make: not
// one of the customer, not one of another install, not one that appears after the plan, and
// not one that took the place of a copy. Its templates do not get values.
func TestSecretSyncAttack(t *testing.T) {
	t.Parallel()
	setUp := func(t *testing.T) *synced {
		s := syncing(t)
		s.set("token", valueOne, 1)
		s.copyTo("token", "mine", "value")
		s.roll(t)
		s.foreign(t, "theirs")
		return s
	}
	t.Run("the customer's", func(t *testing.T) {
		t.Parallel()
		s := setUp(t)
		s.copyTo("token", "theirs", "value")
		s.refused(t, "theirs is there already and it was not made by Berth", "value=of the customer")
	})
	t.Run("the customer's, by another key", func(t *testing.T) {
		t.Parallel()
		s := setUp(t)
		s.copyTo("token", "theirs", "other")
		s.refused(t, "theirs is there already", "value=of the customer")
	})
	t.Run("another install's", func(t *testing.T) {
		t.Parallel()
		s := setUp(t)
		other := *s
		other.install, other.fence, other.copies = s.Name(t), 0, nil
		other.copyTo("token", "of-other", "value")
		other.roll(t)
		s.set("token", valueTwo, 2)
		s.copyTo("token", "of-other", "value")
		j := s.job(t, jobspec.OperationPlan)
		if r := j.run(t); r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "belongs to install "+other.install) {
			t.Errorf("%s: %s", r.Outcome, r.Error)
		}
		if got := s.there(t, "of-other"); got != "value="+valueOne {
			t.Errorf("it has %q", got)
		}
	})
	t.Run("one that appears before the write", func(t *testing.T) {
		t.Parallel()
		s := setUp(t)
		s.copyTo("token", "late", "other")
		plan, _ := s.plan(t)
		behind := *s
		behind.kubeconfig = s.Proxy(t, func(w kubetest.Write) {
			if w.N == 3 { // claim, save, then the copy
				s.foreign(t, "late")
			}
		})
		if r := behind.applyJob(t, plan).run(t); r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "late is there already") {
			t.Errorf("%s: %s", r.Outcome, r.Error)
		}
		if got := s.there(t, "late"); got != "value=of the customer" {
			t.Errorf("it has %q", got)
		}
		// It is recorded now. That does not make it ours: neither a plan nor a removal takes it.
		s.fence = behind.fence
		s.copies = s.copies[:1]
		plan, _ = s.plan(t)
		s.applyJob(t, plan).must(t)
		if got := s.there(t, "late"); got != "value=of the customer" {
			t.Errorf("after the removal it has %q", got)
		}
	})
	t.Run("one in the place of a copy, when that is removed", func(t *testing.T) {
		t.Parallel()
		s := setUp(t)
		s.copies = nil
		plan, _ := s.plan(t)
		if err := s.Client.CoreV1().Secrets(s.space).Delete(t.Context(), "mine", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		s.foreign(t, "mine")
		s.applyJob(t, plan).run(t)
		if got := s.there(t, "mine"); got != "value=of the customer" {
			t.Errorf("it has %q", got)
		}
	})
	t.Run("a value in a name", func(t *testing.T) {
		t.Parallel()
		s := setUp(t)
		s.copies = []jobspec.SecretCopy{{Secret: "token", Namespace: s.space, Name: "{{ .nuon.secrets.token.value }}", Key: "value"}}
		j := s.job(t, jobspec.OperationPlan)
		r := j.run(t)
		if all := r.Error + r.Remedy + j.log(t); r.Outcome != jobspec.OutcomeFailed || strings.Contains(all, valueOne) {
			t.Errorf("%s: %s", r.Outcome, all)
		}
	})
}

// refused plans, which must fail with a text, and finds the Secret theirs as it was.
func (s *synced) refused(t *testing.T, text, theirs string) {
	t.Helper()
	if r := s.job(t, jobspec.OperationPlan).run(t); r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, text) {
		t.Errorf("%s: %s", r.Outcome, r.Error)
	}
	if got := s.there(t, "theirs"); got != theirs {
		t.Errorf("it has %q", got)
	}
}

// The engine is killed at each write of a sync, just before the API server gets it and just
// after it has done it. The plan that follows is the same effect again, and its apply
// completes it.
func TestSecretSyncKilledAtEachWrite(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) *synced {
		s := syncing(t)
		s.set("token", valueOne, 1)
		s.copyTo("token", "changes", "value")
		s.copyTo("token", "leaves", "value")
		s.roll(t)
		s.set("token", valueTwo, 2)
		s.copies = s.copies[:1]
		s.copyTo("token", "comes", "value")
		return s
	}
	var writes atomic.Int64
	s := begin(t)
	plan, _ := s.plan(t)
	whole := *s
	whole.kubeconfig = s.Proxy(t, func(kubetest.Write) { writes.Add(1) })
	whole.applyJob(t, plan).must(t)
	if writes.Load() < 6 { // claim, save, two copies, one removal, save
		t.Fatalf("a sync makes %d writes", writes.Load())
	}
	for n := range int(writes.Load()) {
		t.Run(fmt.Sprintf("write %d", n+1), func(t *testing.T) {
			t.Parallel()
			s := begin(t)
			plan, _ := s.plan(t)
			killAt(t, s.Connection, func(kubeconfig string) *jobDir {
				behind := *s
				behind.kubeconfig = kubeconfig
				apply := behind.applyJob(t, plan)
				s.fence = behind.fence
				return apply
			}, n+1, n%2 == 0)
			next := s.planAfter(t, plan)
			for _, file := range []string{"out/plan.canonical.json", "out/plan.summary.json"} {
				if diff := cmp.Diff(plan.read(t, file), next.read(t, file)); diff != "" {
					t.Errorf("%s after the kill is another one (-before +after):\n%s", file, diff)
				}
			}
			s.applyJob(t, next).must(t)
			got := s.there(t, "changes") + " | " + s.there(t, "leaves") + " | " + s.there(t, "comes")
			if want := "value=" + valueTwo + " | absent | value=" + valueTwo; got != want {
				t.Errorf("the copies are %q, want %q", got, want)
			}
			if _, result := s.plan(t); !result.NoChange {
				t.Error("there is something left to do")
			}
		})
	}
}

// The rights of `berth apps permissions` are enough for every part of a sync, and let an
// engine read no other Secret.
func TestSecretSyncRights(t *testing.T) {
	t.Parallel()
	kubectl := os.Getenv("KUBECTL")
	if kubectl == "" {
		kubectl = "kubectl"
	}
	s := syncing(t)
	list := permissions.Compute(permissions.App{Copies: &permissions.Copies{
		Inventory: s.install, Secrets: []permissions.Copy{{Namespace: s.space, Name: "one"}, {Namespace: s.space, Name: "two"}},
	}})
	admin := func(input string, args ...string) string {
		cmd := exec.CommandContext(t.Context(), kubectl, append([]string{"--kubeconfig", s.Kubeconfig}, args...)...)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %s: %v: %s", args, err, out)
		}
		return string(out)
	}
	for _, name := range list.Namespaces {
		admin("", "create", "namespace", name)
	}
	admin("", "--namespace", s.install, "create", "serviceaccount", "berth-engine")
	admin(list.Roles(permissions.Account{Namespace: s.install, Name: "berth-engine"}), "apply", "-f", "-")
	s.foreign(t, "theirs")
	config := strings.ReplaceAll(admin("", "config", "view", "--minify", "--flatten", "-o", "json"), `"user": {`, `"user": {"as": "system:serviceaccount:`+s.install+`:berth-engine",`)
	s.kubeconfig = filepath.Join(t.TempDir(), "engine.json")
	if err := os.WriteFile(s.kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	s.set("token", valueOne, 1)
	s.copyTo("token", "one", "value")
	s.copyTo("token", "two", "value")
	s.roll(t)
	s.set("token", valueTwo, 2)
	s.copies = s.copies[:1]
	s.roll(t)
	if got := s.there(t, "one") + " | " + s.there(t, "two"); got != "value="+valueTwo+" | absent" {
		t.Errorf("the copies have %q", got)
	}
	s.copyTo("token", "theirs", "value")
	if r := s.job(t, jobspec.OperationPlan).run(t); r.Outcome != jobspec.OutcomeFailed || !strings.Contains(r.Error, "forbidden") {
		t.Errorf("a Secret that is not in the list: %s: %s", r.Outcome, r.Error)
	}
	s.copies = s.copies[:1]
	gone := s.job(t, jobspec.OperationPlan)
	gone.spec.Destroy = true
	gone.must(t)
	s.applyJob(t, gone).must(t)
	if got := s.there(t, "one"); got != "absent" {
		t.Errorf("after the teardown the copy has %q", got)
	}
}
