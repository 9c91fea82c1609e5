// Package kubetest is what tests of a cluster share: pods that listen and try
// each other. It skips where there is no cluster (make kube starts one).
package kubetest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Cluster is the one that KUBECONFIG names.
type Cluster struct{ kubectl, image string }

// Pod of a test.
type Pod struct {
	Namespace, Name string
	Labels          map[string]string
	// Listen are what it answers on, each as NETWORK:PORT, or NETWORK:PORT:NAME
	// for a port that has a name. None: tcp:1024, which nobody tries.
	Listen []string
}

// New returns the cluster, with the image of what pods run pushed.
func New(t *testing.T) *Cluster {
	t.Helper()
	if os.Getenv("KUBECONFIG") == "" || os.Getenv("BERTH_DEV_REGISTRY") == "" {
		t.Skip("kubernetes: KUBECONFIG and BERTH_DEV_REGISTRY name no cluster; make kube starts one")
	}
	kubectl := os.Getenv("KUBECTL")
	if kubectl == "" {
		kubectl = "kubectl"
	}
	c := &Cluster{kubectl: kubectl}
	image, err := pushed()
	if err != nil {
		t.Fatal(err)
	}
	c.image = image
	return c
}

// pushed builds the probe and pushes it, once per process.
var pushed = sync.OnceValues(func() (string, error) {
	root, err := exec.Command("git", "rev-parse", "--show-toplevel").Output()
	if err != nil {
		return "", fmt.Errorf("find the clone: %w", err)
	}
	top := strings.TrimSpace(string(root))
	dir, err := os.MkdirTemp("", "probe")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", filepath.Join(dir, "probe"), "./kube/probe")
	build.Dir, build.Env = filepath.Join(top, "dev"), append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build probe: %w\n%s", err, out)
	}
	push := exec.Command(filepath.Join(top, ".bin", "kube", "mkimage"), os.Getenv("BERTH_DEV_REGISTRY")+"/berth/probe:test", filepath.Join(dir, "probe"))
	out, err := push.Output()
	if err != nil {
		return "", fmt.Errorf("push probe: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})

// Kubectl runs it, with input, and returns what it prints.
func (c *Cluster) Kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	out, err := c.run(t.Context(), input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *Cluster) run(ctx context.Context, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.kubectl, args...)
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// Namespace makes one with labels, and deletes it after the test.
func (c *Cluster) Namespace(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	c.Apply(t, map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name, "labels": labels}})
	t.Cleanup(func() {
		const deleteTimeout = 20 * time.Second
		ctx, cancel := context.WithTimeout(context.Background(), deleteTimeout)
		defer cancel()
		if _, err := c.run(ctx, "", "delete", "namespace", name, "--wait=false"); err != nil {
			t.Error(err)
		}
	})
}

// Apply applies objects.
func (c *Cluster) Apply(t *testing.T, objects ...any) {
	t.Helper()
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects})
	if err != nil {
		t.Fatal(err)
	}
	c.Kubectl(t, string(list), "apply", "-f", "-")
}

// Start starts pods, waits until all run, and returns their addresses by
// NAMESPACE/NAME.
func (c *Cluster) Start(t *testing.T, pods ...Pod) map[string]string {
	t.Helper()
	objects := make([]any, len(pods))
	for i, pod := range pods {
		objects[i] = pod.object(c.image)
	}
	c.Apply(t, objects...)
	addresses := map[string]string{}
	for _, pod := range pods {
		c.Kubectl(t, "", "-n", pod.Namespace, "wait", "pod/"+pod.Name, "--for=condition=Ready", "--timeout=60s")
		addresses[pod.Namespace+"/"+pod.Name] = c.Kubectl(t, "", "-n", pod.Namespace, "get", "pod", pod.Name, "-o", "jsonpath={.status.podIP}")
	}
	return addresses
}

func (p Pod) object(image string) any {
	args, ports := []string{"serve"}, []any{}
	listen := p.Listen
	if len(listen) == 0 {
		listen = []string{"tcp:1024"}
	}
	for _, each := range listen {
		parts := strings.Split(each, ":")
		args = append(args, parts[0]+":"+parts[1])
		if len(parts) > 2 {
			ports = append(ports, map[string]any{"name": parts[2], "containerPort": json.Number(parts[1]), "protocol": strings.ToUpper(parts[0])})
		}
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": p.Name, "namespace": p.Namespace, "labels": p.Labels},
		"spec": map[string]any{
			"terminationGracePeriodSeconds": 0, "automountServiceAccountToken": false, "enableServiceLinks": false,
			"securityContext": map[string]any{
				"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": map[string]any{"type": "RuntimeDefault"},
				// So that it may listen on any port; every level of Pod Security lets it.
				"sysctls": []any{map[string]any{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}},
			},
			"containers": []any{map[string]any{
				"name": "probe", "image": image, "args": args, "ports": ports,
				"securityContext": map[string]any{
					"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []string{"ALL"}},
				},
			}},
		},
	}
}

// Try lets a pod try addresses, each as NETWORK:HOST:PORT, and returns which
// answered.
func (c *Cluster) Try(t *testing.T, from Pod, addresses ...string) map[string]bool {
	t.Helper()
	open, err := c.Tried(t.Context(), from, addresses...)
	if err != nil {
		t.Fatal(err)
	}
	return open
}

// Tried is Try for several pods at a time.
func (c *Cluster) Tried(ctx context.Context, from Pod, addresses ...string) (map[string]bool, error) {
	args := append([]string{"-n", from.Namespace, "exec", from.Name, "--", "/probe", "try"}, addresses...)
	said, err := c.run(ctx, "", args...)
	if err != nil {
		return nil, err
	}
	open := map[string]bool{}
	for line := range strings.Lines(said) {
		verdict, address, _ := strings.Cut(strings.TrimSpace(line), " ")
		open[address] = verdict == "open"
	}
	return open, nil
}
