package drift_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/berth-dev/berth/runner/engine/drift"
	"github.com/berth-dev/berth/runner/engine/kube"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

var update = flag.Bool("update", false, "make testdata/cases again, in the cluster of KUBECONFIG; it needs MutatingAdmissionPolicy")

// write is what somebody does to an object after it was deployed.
type write struct {
	manager, subresource string
	body                 string // a JSON merge patch, or a JSON patch
}

// A scenario is played in a real cluster with -update; the recordings of that
// are what the test reads.
type scenario struct {
	name   string
	kind   string // of what is deployed, see deployed
	helm   bool   // it is made as by the engine for charts, else by that for manifests
	before string // a merge patch of what an earlier release wanted
	policy string // a mutating admission policy that is there after the deploy
	writes []write
	want   []string
	// untried is without a dry run, when that is not what want has, and for
	// Deployments the form of their limit.
	untried []string
	filled  string // a difference that is a default
}

var scenarios = []scenario{
	{
		name: "quiet manifest", kind: "web",
		filled:  `rewritten spec.template.spec.containers[name="web"].resources.limits.cpu`,
		untried: []string{`unknown changed spec.template.spec.containers[name="web"].resources.limits.cpu "1000m" "1"`},
	},
	{
		name: "quiet chart", kind: "web", helm: true,
		filled:  "added spec.revisionHistoryLimit",
		untried: []string{`unknown changed spec.template.spec.containers[name="web"].resources.limits.cpu "1000m" "1"`},
	},
	{
		name: "autoscaler of Kubernetes", kind: "web",
		writes: []write{{"kube-controller-manager", "scale", `{"spec":{"replicas":7}}`}},
		want:   []string{"controller changed spec.replicas 3 7 by kube-controller-manager"},
	},
	{
		name: "autoscaler of Kubernetes on a chart", kind: "web", helm: true,
		writes: []write{{"kube-controller-manager", "scale", `{"spec":{"replicas":7}}`}},
		want:   []string{"controller changed spec.replicas 3 7 by kube-controller-manager"},
	},
	{
		name: "autoscaler of an unknown name", kind: "web",
		writes: []write{{"acme-sizer", "scale", `{"spec":{"replicas":7}}`}},
		want:   []string{"controller changed spec.replicas 3 7 by acme-sizer"},
	},
	{
		name: "kubectl scale", kind: "web", // which the API server notes without a time
		writes: []write{{"kubectl", "scale", `{"spec":{"replicas":5}}`}},
		want:   []string{"human_edit changed spec.replicas 3 5 by kubectl"},
	},
	{
		// The API server leaves a count of zero out of a Scale, so it takes replicas from
		// Berth and gives them to nobody.
		name: "kubectl scale to nothing", kind: "web",
		writes: []write{{"kubectl", "scale", `{"spec":{"replicas":0}}`}},
		want:   []string{"human_edit changed spec.replicas 3 0"},
	},
	{
		name: "kubectl rollout restart", kind: "web",
		writes: []write{{"kubectl-rollout", "", `{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":"2026-11-01T00:00:00Z"}}}}}`}},
		want:   []string{`human_edit added spec.template.metadata.annotations.kubectl.kubernetes.io/restartedAt - "2026-11-01T00:00:00Z" by kubectl-rollout at`},
	},
	{
		name: "kubectl edit", kind: "web",
		writes: []write{{"kubectl-edit", "", `[{"op":"replace","path":"/spec/template/spec/containers/0/env/0/value","value":"debug"}]`}},
		want:   []string{`human_edit changed spec.template.spec.containers[name="web"].env[name="MODE"].value "prod" "debug" by kubectl-edit at`},
	},
	{
		name: "kubectl edit of a chart", kind: "web", helm: true,
		writes: []write{{"kubectl-edit", "", `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"shop/web:evil"}]`}},
		want:   []string{`human_edit changed spec.template.spec.containers[name="web"].image "shop/web:1" "shop/web:evil" by kubectl-edit at`},
	},
	{
		name: "kubectl patch adds a variable", kind: "web",
		writes: []write{{"kubectl-patch", "", `[{"op":"add","path":"/spec/template/spec/containers/0/env/-","value":{"name":"DEBUG","value":"1"}}]`}},
		want:   []string{`human_edit added spec.template.spec.containers[name="web"].env[name="DEBUG"] - {"name":"DEBUG","value":"1"} by kubectl-patch at`},
	},
	{
		name: "label by hand", kind: "web",
		writes: []write{{"kubectl-label", "", `{"metadata":{"labels":{"team":"blue"}}}`}},
		want:   []string{`human_edit added metadata.labels.team - "blue" by kubectl-label at`},
	},
	{
		name: "finalizer of an operator", kind: "settings",
		writes: []write{{"acme-operator", "", `{"metadata":{"finalizers":["acme.example/keep"]}}`}},
		want:   []string{`controller added metadata.finalizers[="acme.example/keep"] - "acme.example/keep" by acme-operator at`},
	},
	{
		name: "k9s", kind: "settings",
		writes: []write{{"k9s", "", `{"data":{"mode":"debug"}}`}},
		want:   []string{`human_edit changed data.mode "prod" "debug" by k9s at`},
	},
	{
		name: "Lens", kind: "settings",
		writes: []write{{"node-fetch", "", `{"data":{"mode":"debug"}}`}},
		want:   []string{`human_edit changed data.mode "prod" "debug" by node-fetch at`},
	},
	{
		name: "operator rewrites a ConfigMap", kind: "settings", helm: true,
		writes: []write{{"acme-operator", "", `{"data":{"mode":"tuned"}}`}},
		want:   []string{`controller changed data.mode "prod" "tuned" by acme-operator at`},
	},
	{
		name: "unknown manager", kind: "settings",
		writes: []write{{"acme", "", `{"data":{"mode":"tuned"}}`}},
		want:   []string{`unknown changed data.mode "prod" "tuned" by acme at`},
	},
	{
		name: "unknown manager that writes the status", kind: "web",
		writes: []write{
			{"acme", "status", `{"status":{"observedGeneration":1}}`},
			{"acme", "", `{"spec":{"paused":true}}`},
		},
		want: []string{`controller added spec.paused - true by acme at`},
	},
	{
		name: "edit over an operator's", kind: "settings",
		writes: []write{
			{"acme-operator", "", `{"data":{"mode":"tuned"}}`},
			{"kubectl-edit", "", `{"data":{"mode":"debug"}}`},
		},
		want: []string{`human_edit changed data.mode "prod" "debug" by kubectl-edit at`},
	},
	{
		name: "caBundle by cert-manager", kind: "webhook",
		writes: []write{{"cainjector", "", `[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"LS0tLS1CRUdJTg=="}]`}},
		want:   []string{`controller added webhooks[name="web.shop.test"].clientConfig.caBundle - "LS0tLS1CRUdJTg==" by cainjector at`},
		untried: []string{
			`controller added webhooks[name="web.shop.test"].clientConfig.caBundle - "LS0tLS1CRUdJTg==" by cainjector at`,
			`unknown changed webhooks[name="web.shop.test"].rules {"apiGroups":["shop.test"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["orders"]} ` +
				`{"apiGroups":["shop.test"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["orders"],"scope":"*"}`,
		},
	},
	{
		name: "sidecar that an injector writes", kind: "web",
		writes: []write{{"sidecar-injector", "", `[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"proxy","image":"mesh/proxy:1"}}]`}},
		want:   []string{`controller added spec.template.spec.containers[name="proxy"] - {"image":"mesh/proxy:1",… by sidecar-injector at`},
	},
	{
		// A webhook works in Berth's own request, so nobody owns what it adds.
		name: "sidecar that a webhook adds", kind: "web",
		policy: `object.spec.template.spec.containers.exists(c, c.name == "proxy") ? [] : [JSONPatch{op: "add", path: "/spec/template/spec/containers/-", value: Object.spec.template.spec.containers{name: "proxy", image: "mesh/proxy:1"}}]`,
		filled: `added spec.template.spec.containers[name="proxy"]`,
	},
	{
		name: "webhook that fills a default", kind: "web", helm: true,
		policy: `[JSONPatch{op: "add", path: "/spec/template/spec/priorityClassName", value: "system-node-critical"}]`,
		filled: "added spec.template.spec.priorityClassName",
	},
	{
		name: "webhook that writes another image", kind: "web",
		policy: `[JSONPatch{op: "replace", path: "/spec/template/spec/containers/0/image", value: "mirror.test/shop/web:1"}]`,
		filled: `rewritten spec.template.spec.containers[name="web"].image`,
		untried: []string{
			`unknown changed spec.template.spec.containers[name="web"].image "shop/web:1" "mirror.test/shop/web:1"`,
			`unknown changed spec.template.spec.containers[name="web"].resources.limits.cpu "1000m" "1"`,
		},
	},
	{
		name: "Helm of another release", kind: "settings", helm: true,
		writes: []write{{"helm", "", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}},"data":{"mode":"other"}}`}},
		want: []string{
			`controller changed data.mode "prod" "other" by helm at`,
			`controller changed metadata.annotations.meta.helm.sh/release-name "shop" "other" by helm at`,
		},
	},
	{
		name: "Helm by hand", kind: "settings", helm: true,
		writes: []write{{"helm", "", `{"data":{"mode":"other"}}`}},
		want:   []string{`human_edit changed data.mode "prod" "other" by helm at`},
	},
	{
		name: "removed by an edit", kind: "web",
		writes: []write{{"kubectl-edit", "", `[{"op":"remove","path":"/spec/template/spec/containers/0/env/0"}]`}},
		want:   []string{`real removed spec.template.spec.containers[name="web"].env {"name":"MODE","value":"prod"} -`},
		untried: []string{
			`unknown removed spec.template.spec.containers[name="web"].env {"name":"MODE","value":"prod"} -`,
			`unknown changed spec.template.spec.containers[name="web"].resources.limits.cpu "1000m" "1"`,
		},
	},
	{
		name: "edit under Berth's name", kind: "settings",
		writes:  []write{{"berth", "", `{"data":{"mode":"debug"}}`}},
		want:    []string{`real changed data.mode "prod" "debug"`},
		untried: []string{`unknown changed data.mode "prod" "debug"`},
	},
	{
		name: "managedFields that somebody removed", kind: "settings",
		writes: []write{
			{"kubectl-edit", "", `{"data":{"mode":"debug","more":"1"}}`},
			{"kubectl-edit", "", `{"metadata":{"managedFields":[{}]}}`},
		},
		want: []string{`unknown changed data.mode "prod" "debug"`, `unknown added data.more - "1"`},
	},
	{
		name: "left by an earlier release", kind: "settings", before: `{"data":{"old":"1"}}`,
		want: []string{`real left data.old - "1"`},
	},
	{
		name: "Secret edited by hand", kind: "password",
		writes: []write{{"kubectl-edit", "", `{"data":{"password":"aHVudGVyMg=="}}`}},
		want:   []string{`human_edit changed data.password DIGEST1 DIGEST2 by kubectl-edit at`},
	},
	{
		name: "Secret applied by kubectl", kind: "password",
		writes: []write{{"kubectl-client-side-apply", "", `{"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":\"aHVudGVyMg==\"}}"}}}`}},
		want:   []string{`human_edit added metadata.annotations.kubectl.kubernetes.io/last-applied-configuration - DIGEST1 by kubectl-client-side-apply at`},
	},
	{
		name: "ports of one number", kind: "dns",
		writes: []write{{"kubectl-edit", "", `[{"op":"replace","path":"/spec/ports/1/targetPort","value":5353}]`}},
		want:   []string{`human_edit changed spec.ports[port=53,protocol="TCP"].targetPort 53 5353 by kubectl-edit at`},
	},
}

var deployed = map[string]string{
	"web": `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"web"}},
		"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"web","image":"shop/web:1","ports":[{"containerPort":8080}],
		"resources":{"limits":{"cpu":"1000m"}},"env":[{"name":"MODE","value":"prod"}]}]}}}}`,
	"settings": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","labels":{"app.kubernetes.io/managed-by":"Helm"},
		"annotations":{"meta.helm.sh/release-name":"shop","meta.helm.sh/release-namespace":"shop"}},"data":{"mode":"prod"}}`,
	"password": `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"password"},"stringData":{"password":"swordfish"}}`,
	"dns": `{"apiVersion":"v1","kind":"Service","metadata":{"name":"dns"},"spec":{"clusterIP":"None","selector":{"app":"dns"},
		"ports":[{"name":"udp","port":53,"protocol":"UDP"},{"name":"tcp","port":53,"targetPort":53}]}}`,
	"webhook": `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"NAMESPACE.shop.test"},
		"webhooks":[{"name":"web.shop.test","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Ignore","clientConfig":{"url":"https://web.shop.test/check"},
		"rules":[{"apiGroups":["shop.test"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["orders"]}]}]}`,
}

// recording is what the cluster had after a scenario.
type recording struct{ Wanted, Live, Tried *unstructured.Unstructured }

func (r recording) object() drift.Object {
	return drift.Object{Ref: kube.RefOf(r.Live), Wanted: r.Wanted, Live: r.Live, Tried: r.Tried}
}

func (s scenario) file() string {
	return filepath.Join("testdata", "cases", strings.ReplaceAll(strings.ToLower(s.name), " ", "-")+".json")
}

func (s scenario) recorded(t testing.TB) recording {
	t.Helper()
	var r recording
	data, err := os.ReadFile(s.file())
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCases(t *testing.T) {
	t.Parallel()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if *update {
				s.record(t)
			}
			r := s.recorded(t)
			if diff := cmp.Diff(s.want, explained(r.object())); diff != "" {
				t.Errorf("with a dry run (-want +got):\n%s", diff)
			}
			defaults := func(d drift.Difference) bool {
				return d.Class == drift.Defaulted && string(d.What)+" "+d.Path == s.filled
			}
			if s.filled != "" && !slices.ContainsFunc(drift.Explain(r.object(), drift.Secrets{}).Differences, defaults) {
				t.Errorf("no default %s", s.filled)
			}
			r.Tried = nil
			want := s.untried
			if want == nil {
				want = s.want
				if s.kind == "web" {
					want = append(want[:len(want):len(want)], scenarios[0].untried...)
				}
			}
			if diff := cmp.Diff(want, explained(r.object())); diff != "" {
				t.Errorf("without a dry run (-want +got):\n%s", diff)
			}
		})
	}
}

// explained are the differences that are no defaults, each as a line.
func explained(o drift.Object) []string {
	f := drift.Explain(o, drift.Secrets{Key: []byte("key")})
	digests := map[string]string{}
	shown := func(v string) string {
		switch {
		case v == "":
			return "-"
		case strings.HasPrefix(v, "(sensitive, digest "):
			if digests[v] == "" {
				digests[v] = fmt.Sprintf("DIGEST%d", len(digests)+1)
			}
			return digests[v]
		case strings.HasPrefix(v, `{"image":`):
			return `{"image":"mesh/proxy:1",…`
		case strings.HasPrefix(v, `[{`):
			return strings.Trim(v, "[]")
		}
		return v
	}
	var lines []string
	for _, d := range f.Differences {
		if d.Class == drift.Defaulted {
			continue
		}
		line := fmt.Sprintf("%s %s %s %s %s", d.Class, d.What, d.Path, shown(d.Want), shown(d.Have))
		if d.Manager != "" {
			line += " by " + d.Manager
		}
		if d.Time != nil {
			line += " at"
		}
		lines = append(lines, line)
	}
	return lines
}

// record plays the scenario in a cluster.
func (s scenario) record(t *testing.T) {
	c := kubetest.Cluster(t)
	ctx, namespace := t.Context(), c.Namespace(t)
	wanted := &unstructured.Unstructured{}
	if err := wanted.UnmarshalJSON([]byte(strings.ReplaceAll(deployed[s.kind], "NAMESPACE", namespace))); err != nil {
		t.Fatal(err)
	}
	namespaced, err := c.Namespaced(wanted.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if namespaced {
		wanted.SetNamespace(namespace)
	}
	resource, err := c.Resource(wanted.GroupVersionKind(), wanted.GetNamespace())
	if err != nil {
		t.Fatal(err)
	}
	if s.policy != "" {
		admit(t, c, namespace, s.policy)
	}
	yes := true
	apply := func(obj *unstructured.Unstructured, dryRun ...string) *unstructured.Unstructured {
		data, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		out, err := resource.Patch(ctx, obj.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: kube.FieldManager, Force: &yes, DryRun: dryRun})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	switch {
	case s.helm:
		if _, err := resource.Create(ctx, wanted, metav1.CreateOptions{FieldManager: kube.FieldManager}); err != nil {
			t.Fatal(err)
		}
	case s.before != "":
		earlier := wanted.DeepCopy()
		if err := json.Unmarshal([]byte(s.before), &earlier.Object); err != nil {
			t.Fatal(err)
		}
		earlier.Object["data"].(map[string]any)["mode"] = "prod"
		apply(earlier)
	default:
		apply(wanted)
	}
	if !namespaced {
		t.Cleanup(func() { deleteNow(t, resource, wanted.GetName()) })
	}
	for _, w := range s.writes {
		kind := types.MergePatchType
		if w.body[0] == '[' {
			kind = types.JSONPatchType
		}
		var sub []string
		if w.subresource != "" {
			sub = []string{w.subresource}
		}
		if _, err := resource.Patch(ctx, wanted.GetName(), kind, []byte(w.body), metav1.PatchOptions{FieldManager: w.manager}, sub...); err != nil {
			t.Fatal(err)
		}
	}
	live, err := resource.Get(ctx, wanted.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(recording{wanted, live, apply(wanted, metav1.DryRunAll)}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(data), namespace, "shop")
	if err := os.MkdirAll(filepath.Dir(s.file()), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.file(), []byte(text+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if s.name == "finalizer of an operator" { // else the namespace never goes
		if _, err := resource.Patch(ctx, wanted.GetName(), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func deleteNow(t *testing.T, resource dynamic.ResourceInterface, name string) {
	t.Helper()
	_ = resource.Delete(t.Context(), name, metav1.DeleteOptions{})
}
