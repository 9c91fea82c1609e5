package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/dev/kube/kubetest"
)

const overlays = "../../deploy/k8s/overlays"

// kubectl is the command that renders: that of make kube, or one on PATH.
func kubectl(t *testing.T) string {
	t.Helper()
	for _, at := range []string{os.Getenv("KUBECTL"), filepath.Join("..", "..", ".bin", "kube", "kubectl"), "kubectl"} {
		if path, err := exec.LookPath(at); at != "" && err == nil {
			return path
		}
	}
	t.Skip("kubernetes: there is no kubectl to render with; make kube builds one")
	return ""
}

func render(t *testing.T, overlay string) string {
	t.Helper()
	if !filepath.IsAbs(overlay) {
		overlay = filepath.Join(overlays, overlay)
	}
	out, err := exec.CommandContext(t.Context(), kubectl(t), "kustomize", overlay).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", overlay, err, out)
	}
	return string(out)
}

// withCollector is an overlay like that of somebody who adds the collector.
func withCollector(t *testing.T, overlay string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs("../../deploy/k8s")
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(dir, here)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: berth\nresources: [%s/overlays/%s]\ncomponents: [%s/components/otel-collector]\n", base, overlay, base)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestOverlaysKeepTheRules(t *testing.T) {
	t.Parallel()
	for _, overlay := range []string{"local", "tilt", "production", withCollector(t, "local"), withCollector(t, "production")} {
		objects, err := parse(render(t, overlay))
		if err != nil {
			t.Fatal(err)
		}
		const least = 30 // fewer were not all read
		if len(objects) < least {
			t.Errorf("%s has %d objects, want at least %d", overlay, len(objects), least)
		}
		for _, fault := range faults(objects) {
			t.Errorf("%s: %s", overlay, fault)
		}
	}
}

// The API server takes every object: no unknown field, no value that it refuses,
// no pod that the level restricted would not let in.
func TestOverlaysFitTheAPI(t *testing.T) {
	t.Parallel()
	c := kubetest.New(t)
	namespace := fmt.Sprintf("overlays-%x", time.Now().UnixNano()&0xffffff)
	c.Namespace(t, namespace, map[string]string{"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/enforce": "restricted"})
	for _, overlay := range []string{"local", "tilt", "production", withCollector(t, "local")} {
		_, rest, found := strings.Cut(render(t, overlay), "\n---\n") // after the Namespace
		if !found {
			t.Fatalf("%s has one object", overlay)
		}
		// The node port may be taken by what `make deploy` runs.
		objects := strings.NewReplacer("namespace: berth\n", "namespace: "+namespace+"\n", "    nodePort: 30443\n", "").Replace(rest)
		c.Kubectl(t, objects, "apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", "-")
	}
}

// Each rule finds what breaks it: a change to the rendered overlay per rule.
func TestRulesFindFaults(t *testing.T) {
	t.Parallel()
	good := render(t, "local")
	tests := []struct{ name, old, new, want string }{
		{"a pod that is not restricted", "pod-security.kubernetes.io/enforce: restricted", "pod-security.kubernetes.io/enforce: baseline", "Namespace berth: does not enforce"},
		{"root", "runAsUser: 65532", "runAsUser: 0", "wants runAsNonRoot"},
		{"no seccomp profile", "type: RuntimeDefault", "type: Unconfined", "wants runAsNonRoot"},
		{"a token", "automountServiceAccountToken: false\n      ", "automountServiceAccountToken: true\n      ", "has a token of the API server"},
		{"a writable root", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "read-only root file system"},
		{"escalation", "allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "no privilege escalation"},
		{"capabilities", "          - ALL", "          - CHOWN", "no capability"},
		{"no limit", "limits:\n            memory", "limits:\n            cpu", "no limit of memory"},
		{"no request", "requests:\n            cpu", "requests:\n            disk", "requests no cpu"},
		{"an image that moves", "berth/berth:dev", "berth/berth:latest", "moves"},
		{"an image without a tag", "berth/berth:dev", "berth/berth", "moves"},
		{"a missing probe", "livenessProbe:", "otherProbe:", "lacks a probe"},
		{"one probe for all", "path: /readyz", "path: /healthz", "alive and ready are the same question"},
		{"a secret in the environment", "value: http://runner-api:8701", "value: http://me:word@runner-api:8701", "holds a secret"},
		{"a variable from a secret", "configMapKeyRef:", "secretKeyRef:", "holds a secret"},
		{"a secret in an argument", "- --api=http://ctl-api:8700", "- --api=http://me:word@ctl-api:8700", "a secret is an argument"},
		{"no default policy", "name: default-deny\n  namespace: berth\nspec:\n  podSelector: {}", "name: default-deny\n  namespace: berth\nspec:\n  podSelector: {matchLabels: {a: b}}", "Job migrate: no network policy is about its ingress"},
		{"a budget for one", "kind: PodDisruptionBudget", "kind: Other", "a disruption budget"},
		{"the master key elsewhere", "secretName: berth-dsn-builder", "secretName: berth-master-key", "the master key"},
		{"a folder of the node", "emptyDir:\n          sizeLimit: 2Gi", "hostPath:\n          path: /", "a folder of the node"},
		{"the node's network", "enableServiceLinks: false", "hostNetwork: true", "shares something of the node"},
		{"the default account", "serviceAccountName: front", "serviceAccountName: default", "no service account of its own"},
		{"a right", "kind: PersistentVolumeClaim", "kind: ClusterRole", "needs a right"},
		{"a secret in the manifests", "kind: ConfigMap", "kind: Secret", "not written into manifests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bad := strings.ReplaceAll(good, tt.old, tt.new)
			if bad == good {
				t.Fatalf("%q is not in the overlay", tt.old)
			}
			objects, err := parse(bad)
			if err != nil {
				t.Fatal(err)
			}
			if found := strings.Join(faults(objects), "\n"); !strings.Contains(found, tt.want) {
				t.Errorf("found %q, want %q", found, tt.want)
			}
		})
	}
}

func TestPinned(t *testing.T) {
	t.Parallel()
	got := map[string]bool{}
	for _, image := range []string{"a/b", "a/b:latest", "a/b:1.0", "h:5000/a/b", "h:5000/a/b:1", "a/b@sha256:12"} {
		got[image] = pinned(image)
	}
	want := map[string]bool{"a/b": false, "a/b:latest": false, "a/b:1.0": true, "h:5000/a/b": false, "h:5000/a/b:1": true, "a/b@sha256:12": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
