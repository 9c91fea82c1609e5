package deploy

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/dev/kube/kubetest"
)

// ways are ways to use deploy/k8s. Every component is in one.
var ways = map[string]string{
	"local": "local", "tilt": "tilt", "production": "production",
	"local with the collector":          with("local", "otel-collector"),
	"production with the collector":     with("production", "otel-collector"),
	"a registry in a bucket":            with("production", "registry-s3"),
	"private sources":                   with("production", "source-credentials"),
	"local with Build Runners as pods":  with("local", "build-runners"),
	"Build Runners as pods":             with("production", "build-runners"),
	"pods, with BuildKit":               with("production", "build-runners", "build-runners-buildkit"),
	"pods, and a bucket":                with("production", "build-runners", "registry-s3"),
	"an Ingress, a managed Postgres":    with("production", "ingress", "cert-manager", "managed-postgres"),
	"a gateway that passes TLS on":      with("production", "gateway", "cloudnative-pg", "external-secrets"),
	"a gateway that ends and opens TLS": with("production", "gateway-http", "cert-manager"),
}

// A component that no way has would be checked by nothing.
func TestEveryComponentIsUsed(t *testing.T) {
	t.Parallel()
	components, err := os.ReadDir("../../deploy/k8s/components")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range components {
		used := c.Name() == "database-ca" // which two others bring
		for _, way := range ways {
			used = used || slices.Contains(strings.Split(way, " "), c.Name())
		}
		if !used {
			t.Errorf("components/%s is in no way to use deploy/k8s: add it", c.Name())
		}
	}
}

func TestOverlaysKeepTheRules(t *testing.T) {
	t.Parallel()
	for way, overlay := range ways {
		objects, err := parse(render(t, overlay))
		if err != nil {
			t.Fatal(err)
		}
		const least = 30 // fewer were not all read
		if len(objects) < least {
			t.Errorf("%s has %d objects, want at least %d", way, len(objects), least)
		}
		for _, fault := range faults(objects) {
			t.Errorf("%s: %s", way, fault)
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
	all := map[string]string{
		"the chart":                renderChart(t),
		"the chart, another way":   renderChart(t, valueSets["a choice of nodes, names and rights to connect"]...),
		"the chart with collector": renderChart(t, valueSets["traces, a node port"]...),
	}
	for _, overlay := range []string{"local", "tilt", "production", with("local", "otel-collector"), with("production", "ingress", "managed-postgres")} {
		all[overlay] = render(t, overlay)
	}
	for way, text := range all {
		objects := strings.Join(slices.DeleteFunc(documents(text), func(document string) bool {
			return strings.Contains(document, "\nkind: Namespace\n")
		}), "---\n")
		// The node port may be taken by what `make deploy` runs.
		objects = regexp.MustCompile(`(?m)^( *)namespace: berth$`).ReplaceAllString(objects, "${1}namespace: "+namespace)
		objects = regexp.MustCompile(`(?m)^ *nodePort: 30443\n`).ReplaceAllString(objects, "")
		t.Log(way)
		c.Kubectl(t, objects, "apply", "--dry-run=server", "--validate=strict", "--warnings-as-errors", "-f", "-")
	}
}

// breakages are what each rule is for: a change to a rendered overlay, and what
// faults says about it. docs/reference/manifest-rules.md lists them by name.
var breakages = []struct{ name, old, new, want string }{
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
	{"a secret in a ConfigMap", "public-url: https://", "public-url: https://me:word@", "public-url holds a secret"},
	{"no namespace", "name: front\n  namespace: berth\n", "name: front\n", "ServiceAccount front: has no namespace"},
	{"the default namespace", "namespace: berth\n", "namespace: default\n", "has no namespace of its own"},
	{"no label of the product", "app.kubernetes.io/part-of: berth", "app.kubernetes.io/part-of: other", "lacks the label"},
	{"a user of the node", "runAsUser: 65532", "runAsUser: 999", "a user and a group from 10000 on"},
	{"the group of root", "runAsGroup: 65532", "runAsGroup: 0", "a user and a group from 10000 on"},
	{"a sysctl", "        runAsGroup: 65532", "        runAsGroup: 65532\n        sysctls: [{name: net.core.somaxconn, value: '1'}]", "changes sysctls"},
	{"another profile of AppArmor", "        runAsGroup: 65532", "        runAsGroup: 65532\n        appArmorProfile: {type: Unconfined}", "changes sysctls, SELinux or AppArmor"},
	{"processes of other containers", "enableServiceLinks: false", "shareProcessNamespace: true", "each other's processes"},
	{"the old name of an account", "serviceAccountName: front", "serviceAccountName: front\n      serviceAccount: front", "the old field"},
	{"a volume of another kind", "      - emptyDir:\n          sizeLimit: 2Gi\n", "      - nfs:\n          server: a\n", "is of the kind nfs"},
	{"a volume that fills the node", "emptyDir:\n          sizeLimit: 2Gi", "emptyDir: {}", "can fill the node"},
	{"a privileged container", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: true\n          privileged: true", "is privileged"},
	{"all of /proc", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: true\n          procMount: Unmasked", "changes /proc"},
	{"a container with another seccomp profile", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: true\n          seccompProfile: {type: Unconfined}", "takes back"},
	{"a container that may be root", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: true\n          runAsNonRoot: false", "takes back"},
	{"a port of the node", "containerPort: 8700", "containerPort: 8700\n          hostPort: 8700", "a port of the node"},
	{"a privileged port", "containerPort: 8443", "containerPort: 443", "below 1024"},
	{"a variable twice", "name: BERTH_LISTEN", "name: BERTH_DSN_FILE", "BERTH_DSN_FILE is there twice"},
	{"a Job without an end", "activeDeadlineSeconds: 900", "ttlSecondsAfterFinished: 900", "has no deadline"},
	{"no number of replicas", "  replicas: 2\n", "", "how many replicas"},
	{"all replicas on one node", "topologySpreadConstraints:", "otherConstraints:", "all replicas on one node"},
	{"fewer pods meanwhile", "maxUnavailable: 0", "maxUnavailable: 1", "set maxUnavailable to 0"},
	{"all pods replaced at once", "    rollingUpdate:\n      maxSurge: 1\n      maxUnavailable: 0\n", "    type: Recreate\n", "set maxUnavailable to 0"},
	{"no time to end", "terminationGracePeriodSeconds: 40", "terminationGracePeriodSeconds: 5", "has no time to end"},
	{"a probe of no port", "containerPort: 8702\n          name: api", "containerPort: 8702\n          name: other", "a probe asks port api"},
	{"a Service for no pod", "  selector:\n    app.kubernetes.io/name: builder\n", "  selector:\n    app.kubernetes.io/name: build\n", "Service builder: leads to no pod"},
	{"a Service for no port", "targetPort: registry", "targetPort: api", "leads to port api of builder"},
	{"a service for everybody", "kind: Service\nmetadata:\n  labels:\n    app.kubernetes.io/part-of: berth\n  name: ctl-api\n  namespace: berth\nspec:\n", "kind: Service\nmetadata:\n  labels:\n    app.kubernetes.io/part-of: berth\n  name: ctl-api\n  namespace: berth\nspec:\n  type: LoadBalancer\n", "is a LoadBalancer: only the front"},
	{"an Ingress past the front", "            name: front\n", "            name: ctl-api\n", "Ingress front: leads to the Service ctl-api"},
	{"an Ingress to nothing", "kind: Service\nmetadata:\n  labels:\n    app.kubernetes.io/part-of: berth\n  name: front", "kind: Other\nmetadata:\n  name: front", "Ingress front: leads to the Service front"},
	{"a policy about nothing", "  podSelector:\n    matchLabels:\n      app.kubernetes.io/name: builder\n", "  podSelector:\n    matchLabels:\n      app.kubernetes.io/name: build\n", "NetworkPolicy builder: is about no pod"},
	{"a budget about nothing", "minAvailable: 1\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: ctl-api", "minAvailable: 1\n  selector:\n    matchLabels:\n      app.kubernetes.io/name: ctl", "PodDisruptionBudget ctl-api: is about no pod"},
	{"a budget that lets nobody go", "minAvailable: 1", "minAvailable: 2", "never lets a pod of ctl-api go"},
	{"a budget in per cent", "minAvailable: 1", "minAvailable: 100%", "never lets a pod of ctl-api go"},
	{"an account that is not there", "kind: ServiceAccount", "kind: Account", "its service account front is not there"},
	{"pods that it does not select", "  selector:\n    matchLabels:\n      app.kubernetes.io/name: front\n  strategy", "  selector:\n    matchLabels:\n      app.kubernetes.io/name: back\n  strategy", "does not select its own pods"},
	{"a variable called like a secret", "name: BERTH_PUBLIC_URL", "name: BERTH_ADMIN_PASSWORD", "is called like a secret"},
	{"an Ingress without TLS", "  tls:\n", "  tlss:\n", "Ingress front: has no TLS"},
}

// Each rule finds what breaks it.
func TestRulesFindFaults(t *testing.T) {
	t.Parallel()
	good := render(t, with("local", "ingress"))
	for _, tt := range breakages {
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

// The page names every case, and no case that is not there.
func TestRulesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/reference/manifest-rules.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, b := range breakages {
		want = append(want, b.name)
	}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| *") {
			got = append(got, strings.Split(strings.TrimRight(cells[2], " |\n"), "; ")...)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-cases +page:\n%s", diff)
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
