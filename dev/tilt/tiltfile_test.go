// Package tilt has the test of the Tiltfile: the real Tilt evaluates it.
package tilt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// result is what is used of what `tilt alpha tiltfile-result` prints.
type result struct {
	DefaultRegistry *registry
	Manifests       []manifest
}

type registry struct {
	Host                     string `json:"host"`
	HostFromContainerRuntime string `json:"hostFromContainerRuntime"`
}

type manifest struct {
	Name                 string
	TriggerMode          int
	ResourceDependencies []string
	ImageTargets         []struct {
		Selector       string `json:"selector"`
		LiveUpdateSpec struct {
			Syncs []struct{ LocalPath, ContainerPath string }
		}
		BuildDetails struct {
			Args       []string
			OutputMode string
		}
	}
	DeployTarget struct {
		UpdateCmdSpec *struct{ Args []string }
		AllowParallel bool
		Links         []struct{ URL struct{ Host, Path string } }
		YAML          string `json:"yaml"`
		PortForwards  *struct {
			Forwards []struct{ LocalPort, ContainerPort int }
		} `json:"portForwardTemplateSpec"`
	}
}

const (
	// pressed is the trigger mode of what runs when its button is pressed only.
	pressed = 2
	// atFirst is that of what runs at the start, and then when its button is pressed.
	atFirst = 1
)

// tilt is the executable, and an environment that has nothing of the person's who
// runs the test. In CI it must be there.
func tilt(t *testing.T) (path string, env []string) {
	t.Helper()
	path = os.Getenv("BERTH_TILT")
	if path == "" {
		built, err := filepath.Abs("../../.bin/tools/tilt")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(built); err != nil {
			t.Skip("tilt: it is not built here; dev/scripts/tilt.sh build does it, in minutes")
		}
		path = built
	}
	kube, err := filepath.Abs("../../.bin/kube")
	if err != nil {
		t.Fatal(err)
	}
	search := kube + ":" + os.Getenv("PATH")
	t.Logf("tilt is %s", path)
	for _, program := range []string{"kubectl", "openssl"} {
		if !found(program, search) {
			t.Skipf("kubernetes: there is no %s; make kube builds kubectl", program)
		}
	}
	home := t.TempDir()
	return path, []string{
		"PATH=" + search, "HOME=" + home, "TILT_DISABLE_ANALYTICS=1", "BERTH_DEPLOY_DIR=" + filepath.Join(home, "deploy"),
		"GOPATH=" + goEnv(t, "GOPATH"), "GOCACHE=" + goEnv(t, "GOCACHE"), "GOFLAGS=" + os.Getenv("GOFLAGS"),
	}
}

func found(program, search string) bool {
	return slices.ContainsFunc(filepath.SplitList(search), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, program))
		return err == nil
	})
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// apiServer stands in for that of a cluster: it has one node, and the announcement
// of a registry unless that is "". It answers what kubectl and Tilt ask before
// anything is deployed.
func apiServer(t *testing.T, announced string) string {
	t.Helper()
	answers := map[string]any{
		"/version": map[string]any{"major": "1", "minor": "34", "gitVersion": "v1.34.0", "platform": "linux/amd64"},
		"/api":     map[string]any{"kind": "APIVersions", "versions": []string{"v1"}},
		"/apis":    map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": []any{}},
		"/api/v1": map[string]any{"kind": "APIResourceList", "groupVersion": "v1", "resources": []any{
			map[string]any{"name": "nodes", "singularName": "node", "namespaced": false, "kind": "Node", "verbs": []string{"get", "list"}},
			map[string]any{"name": "configmaps", "singularName": "configmap", "namespaced": true, "kind": "ConfigMap", "verbs": []string{"get", "list"}},
		}},
		"/api/v1/nodes": map[string]any{"kind": "NodeList", "apiVersion": "v1", "items": []any{
			map[string]any{"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{"name": "one"}, "status": map[string]any{
				"addresses": []any{map[string]any{"type": "InternalIP", "address": "192.0.2.7"}},
			}},
		}},
	}
	if announced != "" {
		answers["/api/v1/namespaces/kube-public/configmaps/local-registry-hosting"] = map[string]any{
			"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": "local-registry-hosting", "namespace": "kube-public"},
			"data": map[string]any{"localRegistryHosting.v1": announced},
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": http.StatusNotFound}
		}
		_ = json.NewEncoder(w).Encode(answer) // who asked may be gone
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// kubeconfig of a cluster that is called name.
func kubeconfig(t *testing.T, name, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: %[1]q, users: [{name: a, user: {token: none}}],
contexts: [{name: %[1]q, context: {cluster: %[1]q, user: a}}], clusters: [{name: %[1]q, cluster: {server: %[2]q}}]}`, name, server)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// evaluate has Tilt evaluate the Tiltfile. said is what it prints for people.
func evaluate(t *testing.T, env ...string) (r result, said string, err error) {
	t.Helper()
	path, clean := tilt(t)
	cmd := exec.CommandContext(t.Context(), path, "alpha", "tiltfile-result")
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "../..", slices.Concat(clean, env), &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return r, stderr.String(), err
	}
	return r, stderr.String(), json.Unmarshal(stdout.Bytes(), &r)
}

func TestTiltfile(t *testing.T) {
	t.Parallel()
	r, said, err := evaluate(t, "KUBECONFIG="+kubeconfig(t, "berth-kube", apiServer(t, "")))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	got := map[string]manifest{}
	for _, m := range r.Manifests {
		got[m.Name] = m
	}
	var names []string
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	want := []string{
		"builder", "compile-builder", "compile-ctl-api", "compile-front", "compile-log-ingest", "compile-runner-api", "ctl-api", "demo", "example",
		"front", "generate", "log-in", "log-ingest", "migrate", "postgres", "psql", "reset-data", "runner-api", "test-what-changed", "uncategorized",
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}

	t.Run("a service is updated in its pod, by its own executables", func(t *testing.T) {
		for name, image := range map[string]string{"ctl-api": "ctl-api", "runner-api": "runner-api", "log-ingest": "log-ingest", "builder": "builder", "front": "berth"} {
			m := got[name]
			if !slices.Contains(m.ResourceDependencies, "compile-"+name) {
				t.Errorf("%s waits for %v, not for compile-%s", name, m.ResourceDependencies, name)
			}
			if len(m.ImageTargets) != 1 || m.ImageTargets[0].Selector != "berth/"+image {
				t.Errorf("%s is made of %+v, want berth/%s alone: what else is saved would replace its pod", name, m.ImageTargets, image)
				continue
			}
			if syncs := m.ImageTargets[0].LiveUpdateSpec.Syncs; len(syncs) != 1 || syncs[0].LocalPath != ".bin/tilt/"+image || syncs[0].ContainerPath != "/live" {
				t.Errorf("%s is updated by %+v", name, syncs)
			}
			if !strings.Contains(m.DeployTarget.YAML, "kind: Deployment") {
				t.Errorf("%s deploys no Deployment", name)
			}
			// What its API does not know yet, Tilt drops.
			if strings.Contains(m.DeployTarget.YAML, "preStop") {
				t.Errorf("%s has a hook before its end, which Tilt makes an empty one", name)
			}
		}
	})

	t.Run("links and ports", func(t *testing.T) {
		for name, path := range map[string]string{"ctl-api": "/api/reference", "front": "/readyz"} {
			links := got[name].DeployTarget.Links
			if len(links) != 1 || links[0].URL.Host != "localhost:8443" || links[0].URL.Path != path {
				t.Errorf("%s links to %+v", name, links)
			}
		}
		for name, port := range map[string]int{"front": 8443, "postgres": 15432} {
			forwards := got[name].DeployTarget.PortForwards
			if forwards == nil || len(forwards.Forwards) != 1 || forwards.Forwards[0].LocalPort != port {
				t.Errorf("%s is forwarded as %+v", name, forwards)
			}
		}
	})

	t.Run("the schema is migrated first, and then by its button", func(t *testing.T) {
		for _, name := range []string{"ctl-api", "runner-api", "log-ingest", "builder"} {
			if !slices.Contains(got[name].ResourceDependencies, "migrate") {
				t.Errorf("%s does not wait for the schema: %v", name, got[name].ResourceDependencies)
			}
		}
		if m := got["migrate"]; m.TriggerMode != atFirst || !slices.Contains(m.ResourceDependencies, "postgres") {
			t.Errorf("migrate has mode %d and waits for %v", m.TriggerMode, m.ResourceDependencies)
		}
	})

	t.Run("no command holds up another", func(t *testing.T) {
		for name, m := range got {
			if m.DeployTarget.UpdateCmdSpec != nil && !m.DeployTarget.AllowParallel {
				t.Errorf("a save waits while %s runs", name)
			}
		}
	})

	t.Run("buttons run commands that are there", func(t *testing.T) {
		for _, name := range []string{"demo", "generate", "psql", "reset-data", "test-what-changed"} {
			m := got[name]
			if m.TriggerMode != pressed {
				t.Errorf("%s has mode %d, so it runs without being pressed", name, m.TriggerMode)
			}
			runs(t, name, m)
		}
		for _, name := range []string{"example", "log-in", "compile-ctl-api"} {
			runs(t, name, got[name])
		}
	})
}

// runs checks that each script of a resource's command is in the tree, may be
// executed, and knows what it is asked for.
func runs(t *testing.T, name string, m manifest) {
	t.Helper()
	if m.DeployTarget.UpdateCmdSpec == nil {
		t.Errorf("%s runs nothing", name)
		return
	}
	words := strings.Fields(strings.Join(m.DeployTarget.UpdateCmdSpec.Args, " "))
	scripts := 0
	for i, word := range words {
		if word == "make" && i+1 < len(words) {
			makefile, err := os.ReadFile("../../Makefile")
			if err != nil || !bytes.Contains(makefile, []byte("\n"+words[i+1]+":")) {
				t.Errorf("%s makes %q, which the Makefile has not (%v)", name, words[i+1], err)
			}
			scripts++
		}
		if !strings.HasPrefix(word, "dev/scripts/") {
			continue
		}
		scripts++
		info, err := os.Stat(filepath.Join("../..", word))
		if err != nil || info.Mode()&0o111 == 0 {
			t.Errorf("%s runs %s: %v, %v", name, word, info, err)
			continue
		}
		if (strings.HasSuffix(word, "/deploy.sh") || strings.HasSuffix(word, "/example.sh")) && i+1 < len(words) {
			text, err := os.ReadFile(filepath.Join("../..", word))
			if err != nil || !bytes.Contains(text, []byte("\n"+words[i+1]+"() {")) {
				t.Errorf("%s runs %s %s, which has no such command (%v)", name, word, words[i+1], err)
			}
		}
	}
	if scripts == 0 {
		t.Errorf("%s runs %v", name, words)
	}
}

// Where images go, by cluster: to the registry that it announces, that make kube
// has or that a person names, and else to the local Docker.
func TestRegistry(t *testing.T) {
	t.Parallel()
	const announced = "host: \"localhost:5001\"\nhelp: \"https://kind.sigs.k8s.io/docs/user/local-registry/\"\n"
	for _, tt := range []struct {
		name, cluster, announced string
		env                      []string
		want                     *registry
	}{
		{name: "kind with a registry", cluster: "kind-dev", announced: announced, want: &registry{"localhost:5001", "localhost:5001"}},
		{name: "kind without, whose images Tilt loads", cluster: "kind-dev"},
		{name: "k3d has another name for it", cluster: "k3d-dev", announced: "host: localhost:5000\nhostFromContainerRuntime: k3d-registry:5000\nhostFromClusterNetwork: k3d-registry:5000\n",
			want: &registry{"localhost:5000", "k3d-registry:5000"}},
		{name: "minikube with a registry", cluster: "minikube", announced: announced, want: &registry{"localhost:5001", "localhost:5001"}},
		{name: "minikube has a Docker", cluster: "minikube"},
		{name: "Docker Desktop has one, too", cluster: "docker-desktop"},
		{name: "make kube", cluster: "berth-kube", want: &registry{"127.0.0.1:16452", "127.0.0.1:16452"}},
		{name: "one that is named", cluster: "kind-dev", announced: announced, env: []string{"BERTH_DEV_REGISTRY=registry.test:5000"}, want: &registry{"registry.test:5000", "registry.test:5000"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := apiServer(t, tt.announced)
			r, said, err := evaluate(t, append(tt.env, "KUBECONFIG="+kubeconfig(t, tt.cluster, server))...)
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if diff := cmp.Diff(tt.want, r.DefaultRegistry); diff != "" {
				t.Errorf("registry (-want +got):\n%s", diff)
			}
			how, mode := "push", "remote"
			if tt.want == nil {
				how, mode = "docker", "local-docker"
			}
			images := 0
			for _, m := range r.Manifests {
				for _, image := range m.ImageTargets {
					images++
					args := strings.Join(image.BuildDetails.Args, " ")
					if !strings.HasSuffix(args, " "+how) || image.BuildDetails.OutputMode != mode {
						t.Errorf("%s is built by %q into %q, want %s into %q", image.Selector, args, image.BuildDetails.OutputMode, how, mode)
					}
				}
			}
			if images < 6 {
				t.Errorf("%d images", images)
			}
		})
	}
}

// What Tilt itself finds in a cluster is where the Tiltfile pushes to.
func TestTiltFindsTheSameRegistry(t *testing.T) {
	t.Parallel()
	path, env := tilt(t)
	cmd := exec.CommandContext(t.Context(), path, "doctor")
	server := apiServer(t, "host: localhost:5000\nhostFromContainerRuntime: k3d-registry:5000\n")
	cmd.Env = slices.Concat(env, []string{"KUBECONFIG=" + kubeconfig(t, "k3d-dev", server)})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"Env: k3d", "localhost:5000", "k3d-registry:5000"} {
		if !bytes.Contains(out, []byte(want)) {
			t.Errorf("tilt doctor does not say %q:\n%s", want, out)
		}
	}
}

// A cluster that is not for development is left alone.
func TestOtherClustersAreRefused(t *testing.T) {
	t.Parallel()
	_, said, err := evaluate(t, "KUBECONFIG="+kubeconfig(t, "gke_acme_europe-west1_production", apiServer(t, "")))
	if err == nil || !strings.Contains(said, "gke_acme_europe-west1_production") {
		t.Errorf("%v, want a refusal:\n%s", err, said)
	}
}
