package enginepod

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

var toolsImage = "127.0.0.1:30500/components/tools@sha256:" + strings.Repeat("66", 32)

// podOf is the pod that a Job of this order has.
func podOf(t *testing.T, image string) corev1.PodSpec {
	t.Helper()
	var own ownPod
	decode(t, `{"spec": {"nodeName": "n", "imagePullSecrets": [{"name": "pull"}],
		"containers": [{"name": "agent", "imagePullPolicy": "Always", "image": "r/i@sha256:`+strings.Repeat("0f", 32)+`", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
		"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "berth-runner-data"}}]}}`, &own)
	p := &Pods{Config{
		Pod: &cluster.Pod{Namespace: "berth-acme"}, UID: os.Geteuid() + 1, GID: 61000, MemoryBytes: 256 << 20, MilliCPU: 1500,
		Executable: "/usr/local/bin/berth-runner", Engine: "/opt/berth-engine",
	}}
	const attempt = "/data/jobs/job_a.1"
	made, err := p.job(own, Order{Name: "job_a.1", Folder: attempt + "/pod", Dirs: []string{attempt + "/engine"}, Closed: []string{attempt + "/engine/in"}, Image: image})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	var job struct {
		Spec struct {
			Template struct{ Spec corev1.PodSpec }
		}
	}
	decode(t, string(text), &job)
	return job.Spec.Template.Spec
}

// The pod of an engine in another image is held by all that holds one in the
// runner's. It has the executables besides, which it cannot write to.
func TestPodOfAnotherImage(t *testing.T) {
	t.Parallel()
	own, other := podOf(t, ""), podOf(t, toolsImage)
	if len(own.InitContainers) != 0 {
		t.Errorf("the runner's image has init containers: %+v", own.InitContainers)
	}
	if len(other.InitContainers) != 1 || len(other.Containers) != 1 {
		t.Fatalf("containers %+v, %+v", other.InitContainers, other.Containers)
	}
	bring, engine := other.InitContainers[0], other.Containers[0]
	wantCommand := []string{"/usr/local/bin/berth-runner", "engine-pod", "--bring", "/usr/local/bin/berth-runner", "--bring", "/opt/berth-engine", toolsDir}
	if diff := cmp.Diff(wantCommand, bring.Command); diff != "" || bring.Image != own.Containers[0].Image || bring.ImagePullPolicy != "Always" {
		t.Errorf("image %s, %s; command (-want +got):\n%s", bring.Image, bring.ImagePullPolicy, diff)
	}
	if diff := cmp.Diff([]corev1.VolumeMount{{Name: "berth-tools", MountPath: toolsDir}}, bring.VolumeMounts); diff != "" {
		t.Errorf("what brings the executables sees (-want +got):\n%s", diff)
	}
	// The command replaces the entry point of the image.
	if diff := cmp.Diff([]string{toolsDir + "/berth-runner", "engine-pod", "/data/jobs/job_a.1/pod"}, engine.Command); diff != "" || engine.Image != toolsImage || len(engine.Args) > 0 || len(engine.Env) > 0 {
		t.Errorf("image %s, args %q; command (-want +got):\n%s", engine.Image, engine.Args, diff)
	}
	for name, c := range map[string]corev1.Container{"what brings the executables": bring, "the engine": engine} {
		if diff := cmp.Diff(own.Containers[0].SecurityContext, c.SecurityContext); diff != "" || c.SecurityContext == nil {
			t.Errorf("%s is held otherwise than an engine (-own +other):\n%s", name, diff)
		}
		if diff := cmp.Diff(own.Containers[0].Resources, c.Resources); diff != "" {
			t.Errorf("%s has other limits (-own +other):\n%s", name, diff)
		}
	}
	tools := corev1.VolumeMount{Name: "berth-tools", MountPath: toolsDir, ReadOnly: true}
	if diff := cmp.Diff(append(slices.Clone(own.Containers[0].VolumeMounts), tools), engine.VolumeMounts); diff != "" {
		t.Errorf("the engine sees (-want +got):\n%s", diff)
	}
	// All else of the pod is the same: user, account, node, no token.
	other.InitContainers, other.Containers, other.Volumes = nil, own.Containers, own.Volumes
	if diff := cmp.Diff(own, other); diff != "" || own.ImagePullSecrets[0].Name != "pull" {
		t.Errorf("the pods differ (-own +other):\n%s", diff)
	}
}

// In another image an engine has the programs of that image, and nothing that only
// the runner's has.
func TestStartInImage(t *testing.T) {
	t.Parallel()
	start := Start{
		Path: "/usr/local/bin/berth-engine", Args: []string{"run", "/job"}, Relay: 8700,
		Env:     []string{"PATH=/runner/bin", "HOME=/job/work/home", "BERTH_TERRAFORM=/usr/local/bin/terraform", "KUBECONFIG=/job/in/kubeconfig"},
		Digests: map[string]string{"/usr/local/bin/berth-engine": "sha256:a", "/usr/local/bin/terraform": "sha256:b"},
	}
	at := toolsDir + "/berth-engine"
	want := Start{
		Path: at, Args: start.Args, Relay: 8700, OwnImage: true,
		Env: []string{"HOME=/job/work/home", "KUBECONFIG=/job/in/kubeconfig"}, Digests: map[string]string{at: "sha256:a"},
	}
	if diff := cmp.Diff(want, start.InImage()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(start.Env) != 4 || start.OwnImage {
		t.Errorf("the start was changed: %+v", start)
	}
}

// An image cannot give the engine's user groups by its /etc/group. It does give it
// its PATH.
func TestAttackGroupsOfTheImage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := Start{Env: []string{"HOME=/h"}}
	if _, err := s.enterImage(dir, "/bin", nil); err == nil {
		t.Error("an engine began in a pod to which nobody brought anything")
	}
	if err := datadir.WriteJSON(filepath.Join(dir, groupsFile), []int{61000, 1234}); err != nil {
		t.Fatal(err)
	}
	for _, groups := range [][]int{nil, {61000}, {1234, 61000}} {
		env, err := s.enterImage(dir, "/app/bin:/bin", groups)
		if diff := cmp.Diff([]string{"HOME=/h", "PATH=/app/bin:/bin"}, env); diff != "" || err != nil {
			t.Errorf("groups %v: %v, environment (-want +got):\n%s", groups, err, diff)
		}
	}
	for _, groups := range [][]int{{0}, {61000, 0}, {61000, 5}} {
		if _, err := s.enterImage(dir, "/bin", groups); err == nil || !strings.Contains(err.Error(), "into group") {
			t.Errorf("groups %v: %v", groups, err)
		}
	}
	env, err := s.enterImage(dir, "", nil)
	if err != nil || !strings.HasSuffix(env[1], ":/bin") {
		t.Errorf("an image without PATH: %q, %v", env, err)
	}
}

// Only executables that need no library are brought, and they are whole.
func TestBringTools(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	source := filepath.Join(from, "main.go")
	if err := os.WriteFile(source, []byte("package main\nfunc main() {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tool := filepath.Join(from, "tool")
	build := exec.Command("go", "build", "-o", tool, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	for range 2 { // a node may begin a pod twice
		if err := BringTools(to, tool); err != nil {
			t.Fatal(err)
		}
	}
	if err := exec.Command(filepath.Join(to, "tool")).Run(); err != nil {
		t.Error(err)
	}
	var groups []int
	if found, err := datadir.ReadJSON(filepath.Join(to, groupsFile), &groups); err != nil || !found {
		t.Errorf("groups: found %v, %v", found, err)
	}
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	for path, says := range map[string]string{shell: "CGO_ENABLED=0", source: "bad magic", filepath.Join(from, "none"): "no such file"} {
		if err := BringTools(to, path); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", path, err, says)
		}
	}
}

// Why an image cannot be had, in plain words, and how soon that is taken for good.
func TestNoImage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, state, want string
		lasting           bool
	}{
		{name: "is pulled", state: `{"waiting": {"reason": "PodInitializing"}}`},
		{name: "runs", state: `{"running": {}}`},
		{name: "another trouble", state: `{"waiting": {"reason": "CreateContainerError", "message": "not found"}}`},
		{name: "is not there", state: `{"waiting": {"reason": "ErrImagePull", "message": "rpc error: code = NotFound desc = failed to pull and unpack image: not found"}}`, want: "is not in its registry", lasting: true},
		{name: "is of another platform", state: `{"waiting": {"reason": "ErrImagePull", "message": "failed to unpack: no match for platform in manifest: not found"}}`, want: "is not made for the platform", lasting: true},
		{name: "may not be pulled", state: `{"waiting": {"reason": "ErrImagePull", "message": "failed to authorize: 401 Unauthorized"}}`, want: "the node may not pull"},
		{name: "the registry is away", state: `{"waiting": {"reason": "ErrImagePull", "message": "dial tcp: connection refused"}}`, want: "cannot be pulled; the node says: dial tcp"},
		{name: "later", state: `{"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}`, want: "cannot be pulled"},
		{name: "no name", state: `{"waiting": {"reason": "InvalidImageName", "message": "couldn't parse"}}`, want: "does not understand the name", lasting: true},
	} {
		var s sight
		decode(t, `{"items": [{"spec": {"initContainers": [{}], "containers": [{"image": "`+toolsImage+`"}]}, "status": {"phase": "Pending", "containerStatuses": [{"state": `+tc.state+`}]}}]}`, &s.pods)
		why, lasting := s.noImage()
		if lasting != tc.lasting || !strings.Contains(why, tc.want) || (why == "") != (tc.want == "") || why != "" && !strings.Contains(why, toolsImage) {
			t.Errorf("%s: %q, lasting %v, want %q, %v", tc.name, why, lasting, tc.want, tc.lasting)
		}
		s.pods.Items[0].Spec.First = nil
		if why, _ := s.noImage(); why != "" {
			t.Errorf("%s: the runner's own image was given up: %s", tc.name, why)
		}
	}
}

func TestPulling(t *testing.T) {
	t.Parallel()
	saw := func(reason, message string) (s sight) {
		decode(t, `{"items": [{"spec": {"initContainers": [{}], "containers": [{"image": "i"}]}, "status": {"containerStatuses": [{"state": {"waiting": {"reason": "`+reason+`", "message": "`+message+`"}}}]}}]}`, &s.pods)
		return s
	}
	var p pulling
	at := time.Unix(0, 0)
	for i, step := range []struct {
		after time.Duration
		sight sight
		want  string
	}{
		{0, saw("ErrImagePull", "connection refused"), ""},
		{pullWithin, saw("ImagePullBackOff", "Back-off pulling image"), ""},
		{1, saw("ImagePullBackOff", "Back-off pulling image"), "connection refused"}, // what was said first says more
		{0, saw("PodInitializing", ""), ""},                                          // it is there after all
		{pullWithin * 2, saw("ErrImagePull", "connection refused"), ""},
		{0, saw("ErrImagePull", "not found"), "is not in its registry"},
	} {
		at = at.Add(step.after)
		if got := p.hopeless(step.sight, at); !strings.Contains(got, step.want) || (got == "") != (step.want == "") {
			t.Errorf("step %d: %q, want %q", i, got, step.want)
		}
	}
}

// The pod of an engine in another image while its executables are brought, and
// when they cannot be.
func TestSightOfTools(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		pod   string
		over  bool
		waits string
	}{
		"they are brought": {pod: `{"status":{"phase":"Pending","initContainerStatuses":[{"state":{"running":{}}}],"containerStatuses":[{"state":{"waiting":{"reason":"PodInitializing"}}}]}}`},
		"the runner's image cannot be had": {
			pod:   `{"status":{"phase":"Pending","initContainerStatuses":[{"state":{"waiting":{"reason":"ErrImagePull","message":"away"}}}],"containerStatuses":[{"state":{"waiting":{"reason":"PodInitializing"}}}]}}`,
			waits: "ErrImagePull: away",
		},
		"they are linked to libraries": {
			pod:  `{"status":{"phase":"Failed","initContainerStatuses":[{"state":{"terminated":{"exitCode":1,"reason":"Error","message":"is linked"}}}],"containerStatuses":[{"state":{"waiting":{"reason":"PodInitializing"}}}]}}`,
			over: true, waits: "Error: is linked",
		},
		"they were brought": {
			pod:   `{"status":{"phase":"Pending","initContainerStatuses":[{"state":{"terminated":{"exitCode":0,"reason":"Completed"}}}],"containerStatuses":[{"state":{"waiting":{"reason":"ErrImagePull","message":"away"}}}]}}`,
			waits: "ErrImagePull: away",
		},
	} {
		var s sight
		decode(t, `{"items": [`+tc.pod+`]}`, &s.pods)
		if _, known := s.exitCode(); known || s.over() != tc.over || s.waits() != tc.waits || s.running() {
			t.Errorf("%s: over %v, waits %q, exit code known %v", name, s.over(), s.waits(), known)
		}
	}
}
