package engine_test

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// A scene of the fault corpus is a component that is deployed and ready in a real cluster, and
// what happens to it then.
type scene struct {
	name     string
	manifest string
	// before makes what is there without the component; inject lets happen what the scene is
	// about, after the first look.
	before, inject func(t *testing.T, s *stage)
	// want is the verdict that a person who knows what happened would give.
	want string
	// names is a part of what the verdict has to name, of a fault.
	names string
	slice bool // also in the short run
	alone bool // it touches what all scenes share, so it is played after them
}

// Verdicts.
const (
	good    = "healthy"
	bad     = "unhealthy"
	unclear = "unknown"
)

// seen is a look as the recorded corpus has it.
type seen struct {
	AtSeconds int    `json:"at_seconds"` // after what the scene lets happen
	Outcome   string `json:"outcome"`    // good, bad or unknown
	Says      string `json:"says,omitempty"`
}

// played is a scene as it went.
type played struct {
	Name    string `json:"name"`
	Fault   bool   `json:"fault"`
	Want    string `json:"want"`
	Verdict string `json:"verdict"`
	Names   string `json:"names,omitempty"`
	Named   bool   `json:"named"`
	Looks   []seen `json:"looks"`
}

// stage is the component of a scene in its namespace.
type stage struct {
	*deployed
	image string
}

// TestFaultCorpus lets things go wrong, and other things happen that are no fault, to
// components in a real cluster, and holds the verdicts of the probes against what a person
// would say. All scenes with BERTH_FAULTS=all (dev/scripts/fault-corpus.sh, which writes
// docs/reports/faults.md), else a few, with shorter pauses between looks.
func TestFaultCorpus(t *testing.T) {
	t.Parallel()
	d := deploy(t) // skips without a cluster
	image := misbehaving(t, d)
	whole := os.Getenv("BERTH_FAULTS") == "all"
	every, looks := 20*time.Second, 4
	if whole {
		every, looks = time.Minute, 6
	}
	var mu sync.Mutex
	var all []played
	t.Run("scenes", func(t *testing.T) {
		for _, sc := range scenes() {
			if sc.alone || !whole && !sc.slice {
				continue
			}
			t.Run(sc.name, func(t *testing.T) {
				t.Parallel()
				p := play(t, sc, image, every, looks)
				mu.Lock()
				defer mu.Unlock()
				all = append(all, p)
			})
		}
	})
	for _, sc := range scenes() {
		if sc.alone && whole {
			t.Run(sc.name, func(t *testing.T) { all = append(all, play(t, sc, image, every, looks)) })
		}
	}
	slices.SortFunc(all, func(a, b played) int {
		if a.Fault != b.Fault {
			return map[bool]int{true: -1, false: 1}[a.Fault]
		}
		return cmp.Compare(a.Name, b.Name)
	})
	wrong := 0
	for _, p := range all {
		if p.Verdict != p.Want || p.Fault && !p.Named {
			wrong++
			last := p.Looks[len(p.Looks)-1]
			t.Logf("%s: verdict %s, want %s; it named %q: %t; last look: %s", p.Name, p.Verdict, p.Want, p.Names, p.Named, last.Says)
		}
	}
	if path := os.Getenv("BERTH_FAULTS_RECORD"); path != "" {
		raw, err := json.MarshalIndent(all, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range map[string][]byte{path: append(raw, '\n'), path + ".md": []byte(reportOf(all))} {
			if err := os.WriteFile(file, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if wrong > 0 && !whole {
		t.Errorf("%d of %d scenes got a wrong verdict", wrong, len(all))
	}
}

// play deploys the component of a scene, waits until it is ready, lets happen what the scene
// is about, and looks.
func play(t *testing.T, sc scene, image string, every time.Duration, looks int) played {
	t.Helper()
	s := &stage{deployed: deploy(t), image: image}
	s.state = withImage(image)
	if sc.before != nil {
		sc.before(t, s)
	}
	plan, _ := s.plan(t, strings.ReplaceAll(sc.manifest, "GROUP", s.namespace+".example.com"))
	apply := s.applyJob(t, plan)
	apply.spec.TimeoutSeconds = 240
	apply.must(t)
	if first := s.look(t); first.Outcome == "bad" {
		t.Fatalf("before anything happened: %s", first.Says)
	}
	if sc.inject != nil {
		sc.inject(t, s)
	}
	began := time.Now()
	p := played{Name: sc.name, Fault: sc.want != good, Want: sc.want, Verdict: good, Names: sc.names}
	for range looks {
		time.Sleep(every)
		l := s.look(t)
		l.AtSeconds = int(time.Since(began) / time.Second)
		p.Looks = append(p.Looks, l)
		p.Verdict = judged(p.Verdict, p.Looks)
		p.Named = p.Named || sc.names != "" && l.Outcome != "good" && strings.Contains(l.Says, sc.names)
		if sc.want == good && p.Verdict == bad {
			break // a false alarm: it is not forgiven
		}
	}
	return p
}

// judged is the verdict after these looks, by the rules of probes: two bad ones in a row are
// unhealthy, one good one is healthy.
func judged(present string, looks []seen) string {
	switch last := looks[len(looks)-1]; {
	case last.Outcome == "good":
		return good
	case last.Outcome == "unknown":
		return unclear
	case len(looks) > 1 && looks[len(looks)-2].Outcome == "bad":
		return bad
	}
	return present
}

// look is one look of the component's probe.
func (s *stage) look(t *testing.T) seen {
	t.Helper()
	health := s.job(t, jobspec.OperationPlan)
	health.spec.Operation = jobspec.OperationRun
	r := health.run(t)
	out := seen{Outcome: "good", Says: r.Error}
	for _, f := range r.Findings {
		if f.Unknown {
			out.Outcome, out.Says = "unknown", f.Object+": "+f.Condition
		}
	}
	if r.Outcome != jobspec.OutcomeSucceeded {
		out.Outcome, out.Says = "bad", r.Error
	}
	return out
}

// misbehaving pushes the image whose program goes wrong when it is asked to.
func misbehaving(t *testing.T, d *deployed) string {
	t.Helper()
	registry, kubectl := os.Getenv("BERTH_DEV_REGISTRY"), os.Getenv("KUBECTL")
	if registry == "" || kubectl == "" {
		return d.Image(t) // skips where there is none
	}
	program := filepath.Join(t.TempDir(), "misbehave")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s -w", "-o", program, "./testdata/misbehave")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	// Nodes keep what they know by a tag, so each program has its own.
	name := fmt.Sprintf("%s/misbehave:%x", registry, sha256.Sum256(raw))
	if out, err := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(kubectl), "mkimage"), name, program).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return name
}

// kubectl runs it in the namespace of the scene, as a person would.
func (s *stage) kubectl(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Getenv("KUBECTL"), append([]string{"--kubeconfig", s.kubeconfig, "-n", s.namespace}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// pods are the running pods with the label app=NAME.
func (s *stage) pods(t *testing.T, app string) []corev1.Pod {
	t.Helper()
	list, err := s.Client.CoreV1().Pods(s.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + app})
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// set has the program in each pod of an app start again with more flags: nothing of any
// object changes.
func (s *stage) set(t *testing.T, app, flags string) {
	t.Helper()
	for _, pod := range s.pods(t, app) {
		err := s.Client.CoreV1().RESTClient().Post().Namespace(s.namespace).Resource("pods").Name(pod.Name + ":8080").SubResource("proxy").Suffix("set").
			Body([]byte(flags)).Do(t.Context()).Error()
		if err != nil {
			t.Fatalf("set %q in %s: %v", flags, pod.Name, err)
		}
	}
}

// create makes an object that is not of the component.
func (s *stage) create(t *testing.T, yaml string) {
	t.Helper()
	_, err := s.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Getenv("KUBECTL"), "--kubeconfig", s.kubeconfig, "-n", s.namespace, "apply", "-f", "-")
	cmd.Stdin = strings.NewReader(yaml)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// web is a Deployment whose program serves and is probed; more is put into its pod, and flags
// are its program's.
type web struct {
	kind      string // Deployment
	replicas  int    // 1
	flags     string
	mounts    string // of the container, besides its state
	volumes   string // of the pod
	container string // more of the container
	pod       string // more of the pod
	spec      string // more of the workload
}

func (w web) String() string {
	replicas := fmt.Sprintf("replicas: %d\n  ", cmp.Or(w.replicas, 1))
	if w.kind == "DaemonSet" {
		replicas = ""
	}
	var args []string
	for flag := range strings.FieldsSeq(w.flags) {
		args = append(args, fmt.Sprintf("%q", flag))
	}
	return fmt.Sprintf(`apiVersion: apps/v1
kind: %s
metadata: {name: web}
spec:
  %s%s
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      %s
      containers:
      - name: web
        image: "{{ .nuon.inputs.inputs.image }}"
        args: [%s]
        readinessProbe: {httpGet: {path: /healthz, port: 8080}, periodSeconds: 1}
        resources: {requests: {cpu: 1m, memory: 8Mi}, limits: {memory: 64Mi}}
        %s
        volumeMounts:
        - {name: state, mountPath: /state}
        %s
      volumes:
      - {name: state, emptyDir: {}}
      %s
`, cmp.Or(w.kind, "Deployment"), replicas, w.spec, w.pod, strings.Join(args, ", "), w.container, w.mounts, w.volumes)
}

func background(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }
