package enginepod

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	diffs "github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

const (
	// patience is for a pod to start or to go.
	patience  = 90 * time.Second
	engineUID = 61000
	memory    = 256 << 20
)

// image makes the image of the runner as this tree has it, once.
var image = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "berth-image-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	root := filepath.Join("..", "..", "..")
	for name, at := range map[string]string{"berth-runner": "./runner/cmd/runner", "berth-engine": "./runner/cmd/engine"} {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, name), at)
		build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0") // as the real ones are: other images run them
		if out, err := build.CombinedOutput(); err != nil {
			return "", errors.New(string(out))
		}
	}
	// The policy engine is in the image too; it is kept by what it is made of.
	policy := exec.Command("bash", "-c", `dev/scripts/policy.sh >&2 && cp .bin/berth-policy "$1"`, "bash", dir)
	policy.Dir = root
	if out, err := policy.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	script := exec.Command(filepath.Join("dev", "scripts", "runner-image.sh"), "berth/runner:enginepod-test")
	script.Dir, script.Env = root, append(os.Environ(), "BERTH_LIBEXEC="+dir)
	var said bytes.Buffer
	script.Stderr = &said
	out, err := script.Output()
	if err != nil {
		return "", errors.New(said.String())
	}
	return strings.TrimSpace(string(out)), nil
})

// place is a runner's pod on the real cluster, and its data directory.
type place struct {
	*kubetest.Connection
	pods      *Pods
	data      string
	namespace string
	life      context.Context //nolint:containedctx // of the agent that the test plays
}

func newPlace(t *testing.T) *place {
	t.Helper()
	k := kubetest.Cluster(t)
	name, err := image()
	if err != nil {
		t.Fatalf("image of the runner: %v", err)
	}
	// Short, since it holds a socket, and not below /tmp, which pods have for
	// themselves.
	data, err := os.MkdirTemp("/var/tmp", "berth-pod-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(data) })
	if err := os.WriteFile(filepath.Join(data, "identity"), []byte("the agent's key"), 0o644); err != nil { // readable, if it were there
		t.Fatal(err)
	}
	p := &place{Connection: k, data: data, namespace: k.Namespace(t), life: t.Context()}
	p.make(t, name)
	access, err := cluster.File(k.Kubeconfig)(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	client, err := cluster.Connect(t.Context(), access)
	if err != nil {
		t.Fatal(err)
	}
	p.pods = &Pods{Config{
		Pod:        &cluster.Pod{Client: client, Namespace: p.namespace, Name: "runner"},
		Executable: "/usr/local/bin/berth-runner", Engine: "/usr/local/bin/berth-engine", UID: engineUID, GID: engineUID,
		MemoryBytes: memory, MilliCPU: 1500, Grace: 20 * time.Second, Log: slog.New(slog.DiscardHandler),
	}}
	return p
}

// make makes the pod that the engines' pods are like, with what they must not
// take over: a secret, and the whole of the data.
func (p *place) make(t *testing.T, image string) {
	t.Helper()
	core := p.Client.CoreV1()
	_, err := core.ServiceAccounts(p.namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: cluster.EngineAccount}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	named := metav1.ObjectMeta{Name: "runner"}
	if _, err := core.Secrets(p.namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: named}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	authorities := &corev1.ConfigMap{ObjectMeta: named, Data: map[string]string{"ca.crt": "authorities"}}
	if _, err := core.ConfigMaps(p.namespace).Create(t.Context(), authorities, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	runner := &corev1.Pod{ObjectMeta: named, Spec: corev1.PodSpec{
		Containers: []corev1.Container{{
			Name: "agent", Image: image, Args: []string{"registry", "--data", p.data, "--listen", "127.0.0.1:5000"},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "data", MountPath: p.data}, {Name: "code", MountPath: "/run/berth/code"}, {Name: "ca", MountPath: "/run/berth/ca"},
			},
		}},
		Volumes: []corev1.Volume{
			{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: p.data}}},
			{Name: "code", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "runner"}}},
			{Name: "ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "runner"}}}},
		},
	}}
	if _, err := core.Pods(p.namespace).Create(t.Context(), runner, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the runner's pod runs", func() bool {
		now, err := core.Pods(p.namespace).Get(t.Context(), "runner", metav1.GetOptions{})
		return err == nil && now.Status.Phase == corev1.PodRunning
	})
}

// order makes the folders of an attempt whose engine is a script.
func (p *place) order(t *testing.T, name, script string, change func(*Start)) Order {
	t.Helper()
	dir := filepath.Join(p.data, "jobs", name)
	engine := filepath.Join(dir, "engine")
	if err := os.MkdirAll(engine, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(engine, engineUID, engineUID); err != nil {
		t.Fatal(err)
	}
	start := Start{Path: "/bin/bash", Args: []string{"-c", script}, Dir: engine, Env: []string{"PATH=/usr/bin:/bin", "DATA=" + p.data}}
	if change != nil {
		change(&start)
	}
	o := Order{
		Name: name, Folder: Folder(filepath.Join(dir, "pod")), Dirs: []string{engine}, Limit: time.Minute,
		Note: func(text string) { t.Log(name + ": " + text) },
	}
	if err := o.Folder.Make(start, engineUID, engineUID); err != nil {
		t.Fatal(err)
	}
	return o
}

func (p *place) start(t *testing.T, life context.Context, o Order) *Run { //nolint:revive // life is not the test's
	t.Helper()
	run, err := p.pods.Start(t.Context(), life, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// said waits until the engine has written a line.
func said(t *testing.T, o Order, line string) {
	t.Helper()
	eventually(t, "the engine says "+line, func() bool {
		out, _ := os.ReadFile(o.Folder.Stdout())
		return strings.Contains(string(out), line)
	})
}

func ended(t *testing.T, r *Run) {
	t.Helper()
	select {
	case <-r.Done():
	case <-time.After(patience):
		t.Fatalf("the run does not end: %s", r.Reason())
	}
}

func eventually(t *testing.T, what string, reached func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !reached() {
		if time.Now().After(deadline) {
			t.Fatal("waited in vain until " + what)
		}
		time.Sleep(100 * time.Millisecond) // between two looks
	}
}

// An engine sees its own directories and nothing of the agent's, as its own
// user, in its limits; its output and its exit code come back.
func TestEngineInPod(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	o := p.order(t, "job_a.1", `id -u
cat /run/berth/ca/ca.crt; echo
cat "$DATA/identity" "$DATA/jobs/job_a.1/attempt.json" /run/berth/code/* /var/run/secrets/kubernetes.io/serviceaccount/token >/dev/null 2>&1 && echo "sees too much"
{ echo x >"$DATA/jobs/job_a.1/pod/other"; } 2>/dev/null && echo "writes too much"
cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes
grep -i ^capeff /proc/self/status | tr -d '\t'
env | cut -d= -f1 | grep -v -e ^_ -e ^PWD -e ^SHLVL | sort | paste -sd ' '
echo made >made
echo trouble >&2
until [ -e go ]; do read -rt 0.1 <> <(:) || :; done
exit 3`, nil)
	run := p.start(t, t.Context(), o)
	said(t, o, "DATA")
	job, err := p.Client.BatchV1().Jobs(p.namespace).Get(t.Context(), JobName(o.Name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	checkPod(t, job.Spec.Template.Spec)
	if again, err := p.pods.Start(t.Context(), t.Context(), o); err != nil { // as an agent that did not hear the answer
		t.Errorf("a second start: %v", err)
	} else {
		defer ended(t, again)
	}
	if err := os.WriteFile(filepath.Join(o.Dirs[0], "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ended(t, run)
	if run.ExitCode() != 3 || !run.Began() {
		t.Errorf("exit code %d, began %v: %s", run.ExitCode(), run.Began(), run.Reason())
	}
	out, _ := os.ReadFile(o.Folder.Stdout())
	want := "61000\nauthorities\n268435456\nCapEff:0000000000000000\nDATA PATH\n"
	if diff := diffs.Diff(want, string(out)); diff != "" {
		t.Errorf("the engine said (-want +got):\n%s", diff)
	}
	if text, _ := os.ReadFile(o.Folder.Stderr()); string(text) != "trouble\n" {
		t.Errorf("standard error: %q", text)
	}
	if _, err := os.Stat(filepath.Join(o.Dirs[0], "made")); err != nil {
		t.Error(err)
	}
	eventually(t, "the Job is gone", func() bool {
		left, err := p.Client.BatchV1().Jobs(p.namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(left.Items) == 0
	})
}

// checkPod compares a pod with what it must not be able to.
func checkPod(t *testing.T, s corev1.PodSpec) {
	t.Helper()
	c := s.Containers[0]
	if s.ServiceAccountName != cluster.EngineAccount || s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken {
		t.Error("it has a token, or another account")
	}
	if got := c.Resources.Limits; !got.Memory().Equal(resource.MustParse("256Mi")) || !got.Cpu().Equal(resource.MustParse("1500m")) {
		t.Errorf("limits %v", got)
	}
	if sc := c.SecurityContext; *sc.AllowPrivilegeEscalation || !*sc.ReadOnlyRootFilesystem || len(sc.Capabilities.Add) > 0 || !*s.SecurityContext.RunAsNonRoot {
		t.Errorf("security context %+v", sc)
	}
	for _, v := range s.Volumes {
		if v.Secret != nil || v.Projected != nil {
			t.Errorf("volume %s holds what is the agent's", v.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if m.Name == "data" && m.SubPath == "" {
			t.Error("it has the whole of the data")
		}
	}
}

// An agent that dies leaves its engine to the next one, and that one can stop
// it. Afterwards nobody can start it again, not even a new Job.
func TestAdoptedStoppedAndNotAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	o := p.order(t, "job_b.1", `trap 'echo safe; exit 0' TERM; echo begun; while :; do read -rt 0.1 <> <(:) || :; done`, nil)
	life, die := context.WithCancel(t.Context())
	first := p.start(t, life, o)
	said(t, o, "begun")
	job, err := p.Client.BatchV1().Jobs(p.namespace).Get(t.Context(), JobName(o.Name), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	die()
	next := p.pods.Adopt(t.Context(), o)
	select {
	case <-first.Done():
		t.Error("a dead agent concluded")
	case <-next.Done():
		t.Error("the engine was taken for dead while it ran")
	case <-time.After(3 * time.Second): // that nothing happens has no event
	}
	next.Stop(20 * time.Second)
	ended(t, next)
	if out, _ := os.ReadFile(o.Folder.Stdout()); string(out) != "begun\nsafe\n" || !next.Began() {
		t.Errorf("the engine said %q, began %v", out, next.Began())
	}
	eventually(t, "the Job and its pod are gone", func() bool {
		_, err := p.Client.BatchV1().Jobs(p.namespace).Get(t.Context(), job.Name, metav1.GetOptions{})
		pods, listErr := p.Client.CoreV1().Pods(p.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: labelJob + "=" + job.Name})
		return err != nil && listErr == nil && len(pods.Items) == 0
	})
	again := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: job.Name, Labels: job.Labels}, Spec: job.Spec}
	again.Spec.Selector = nil
	again.Spec.Template.Labels = map[string]string{labelJob: job.Name}
	if _, err := p.Client.BatchV1().Jobs(p.namespace).Create(t.Context(), again, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	third := p.pods.Adopt(t.Context(), o)
	ended(t, third)
	if out, _ := os.ReadFile(o.Folder.Stdout()); string(out) != "begun\nsafe\n" || !strings.Contains(third.Reason(), "was begun before") {
		t.Errorf("the engine said %q, and the pod: %s", out, third.Reason())
	}
}

// What provably did not begin is told apart, with the reason.
func TestNeverBegan(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	other := p.order(t, "job_c.1", "echo begun", func(s *Start) { s.Digests = map[string]string{s.Path: "sha256:other"} })
	run := p.start(t, t.Context(), other)
	ended(t, run)
	if run.Began() || run.ExitCode() != -1 || !strings.Contains(run.Reason(), "of one image") {
		t.Errorf("an executable that is not the agent's: began %v, exit code %d, %s", run.Began(), run.ExitCode(), run.Reason())
	}
	never := p.pods.Adopt(t.Context(), p.order(t, "job_c.2", "echo begun", nil))
	ended(t, never)
	if never.Began() {
		t.Error("a Job that was never made began")
	}
	p.pods.Pod.Name = "nobody"
	if _, err := p.pods.Start(t.Context(), t.Context(), p.order(t, "job_c.3", "echo begun", nil)); !cluster.IsStatus(err, http.StatusNotFound) {
		t.Errorf("without a pod to be like: %v", err)
	}
}

// The port of the engine's loopback leads to the agent, also to one that comes
// back later.
func TestRelay(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	const script = `echo begun; [ "$(curl -sS --retry 5 --retry-all-errors --max-time 60 -d hello http://127.0.0.1:8700/)" = "got hello" ]`
	o := p.order(t, "job_d.1", script, func(s *Start) { s.Relay = 8700 })
	run := p.start(t, t.Context(), o)
	said(t, o, "begun")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", o.Folder.Socket())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(o.Folder.Socket(), engineUID, engineUID); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "got ")
		_, _ = io.Copy(w, r.Body)
	})}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	ended(t, run)
	if text, _ := os.ReadFile(o.Folder.Stderr()); run.ExitCode() != 0 {
		t.Errorf("exit code %d: %s", run.ExitCode(), text)
	}
}

// toolsOf makes an image that is not the runner's, of the same packages and the
// files given by their paths, and returns its name.
func toolsOf(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	bin, err := filepath.Abs(filepath.Join("..", "..", "..", ".bin"))
	if err != nil {
		t.Fatal(err)
	}
	registry := cmp.Or(os.Getenv("BERTH_DEV_REGISTRY"), "127.0.0.1:16452")
	args := []string{"--base", filepath.Join(bin, "runner-image", "rootfs.tar"), "--entry", "/bin/false", "--user", "0:0", registry + "/" + name}
	for at, text := range files {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		args = append(args, file+":"+at)
	}
	out, err := exec.Command(filepath.Join(bin, "kube", "mkimage"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// An engine in another image has that image's programs and PATH, and is held as in
// the runner's. The image can neither put its own files in the place of the
// runner's nor give the user groups, and a job whose image is missing fails at once.
func TestEngineInAnotherImage(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	evil := "#!/bin/sh\nexec false\n"
	tools := toolsOf(t, "berth/tools:enginepod-test", map[string]string{
		"/usr/local/bin/tool": "#!/bin/sh\necho a tool of the image\n", "/.berth-tools/berth-runner": evil, "/.berth-tools/berth-engine": evil, "/etc/profile": evil,
	})
	greedy := toolsOf(t, "berth/greedy:enginepod-test", map[string]string{"/etc/group": "root:x:0:engine\nengine:x:61000:\n"})
	inImage := func(name, image, script string) Order {
		o := p.order(t, name, script, func(s *Start) { s.OwnImage, s.Env = true, []string{"DATA=" + p.data} })
		o.Image = image
		return o
	}
	good := inImage("job_e.1", tools, `id -u; id -G
tool
command -v berth-runner berth-engine terraform kubectl
/.berth-tools/berth-engine 2>&1 | grep -q "usage: berth-engine" && echo "the engine is the runner's"
cat "$DATA/identity" "$DATA/jobs/job_e.1/attempt.json" /run/berth/code/* /var/run/secrets/kubernetes.io/serviceaccount/token >/dev/null 2>&1 && echo "sees too much"
{ echo x >/.berth-tools/berth-runner; echo x >/.berth-tools/new; echo x >/usr/local/bin/new; } 2>/dev/null && echo "writes too much"
cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes
grep -i -e ^capeff -e ^nonewprivs -e ^seccomp: /proc/self/status | tr -d '\t'
env | cut -d= -f1 | grep -v -e ^_ -e ^PWD -e ^SHLVL | sort | paste -sd ' '
exit 3`)
	repository, _, _ := strings.Cut(tools, "@")
	began := time.Now()
	runs := map[string]*Run{
		"good":   p.start(t, t.Context(), good),
		"greedy": p.start(t, t.Context(), inImage("job_e.2", greedy, "echo begun")),
		"none":   p.start(t, t.Context(), inImage("job_e.3", repository+"@sha256:"+strings.Repeat("66", 32), "echo begun")),
	}
	ended(t, runs["good"])
	t.Logf("an engine in another image is over after %s", time.Since(began).Round(time.Millisecond))
	out, _ := os.ReadFile(good.Folder.Stdout())
	problems, _ := os.ReadFile(good.Folder.Stderr())
	want := "61000\n61000\na tool of the image\nthe engine is the runner's\n268435456\nCapEff:0000000000000000\nNoNewPrivs:1\nSeccomp:2\nDATA PATH\n"
	if diff := diffs.Diff(want, string(out)); diff != "" || runs["good"].ExitCode() != 3 {
		t.Errorf("exit code %d, %s; the engine said (-want +got):\n%s%s", runs["good"].ExitCode(), runs["good"].Reason(), diff, problems)
	}
	for name, says := range map[string]string{"greedy": "into group 0", "none": "is not in its registry"} {
		run := runs[name]
		ended(t, run)
		if run.Began() || run.ExitCode() == 0 || !strings.Contains(run.Reason(), says) {
			t.Errorf("%s: began %v, exit code %d, %q, want %q", name, run.Began(), run.ExitCode(), run.Reason(), says)
		}
	}
}
