package engine_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/kubetest"
)

// createBy creates as a field manager of that name.
func createBy(manager string) metav1.CreateOptions {
	return metav1.CreateOptions{FieldManager: manager}
}

// Values of Secrets are in what is sealed, and nowhere else.
func TestManifestSecretsStayHidden(t *testing.T) {
	t.Parallel()
	const first, second = "correct-horse-battery", "staple-correct-horse"
	secret := func(value string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: " + value + "}\n"
	}
	d := deploy(t)
	d.roll(t, secret(first))
	plan, _ := d.plan(t, secret(second))
	wantContains(t, "canonical plan", plan.read(t, "out/plan.canonical.json"), second)
	apply := d.applyJob(t, plan)
	apply.must(t)
	stalePlan, _ := d.plan(t, secret(first))
	d.edit(t, "Secret/db", `{"stringData":{"password":"by-somebody-else"}}`)
	stale := d.applyJob(t, stalePlan)
	if r := stale.run(t); r.Outcome != jobspec.OutcomeStale || len(r.Differs) == 0 {
		t.Errorf("outcome %s, differences %v", r.Outcome, r.Differs)
	}
	invalid := d.planJob(t, "apiVersion: v1\nkind: Secret\ntype: kubernetes.io/dockerconfigjson\nmetadata: {name: pull}\nstringData: {.dockerconfigjson: "+second+"}\n")
	if r := invalid.run(t); r.Outcome != jobspec.OutcomeFailed {
		t.Errorf("outcome of an invalid Secret is %s", r.Outcome)
	}
	for name, text := range map[string]string{
		"summary":        plan.read(t, "out/plan.summary.json"),
		"log of plan":    plan.log(t) + invalid.log(t),
		"log of apply":   apply.log(t) + stale.log(t),
		"result":         apply.read(t, "out/result.json") + invalid.read(t, "out/result.json"),
		"result (stale)": stale.read(t, "out/result.json"),
	} {
		for _, value := range []string{first, second, "by-somebody-else", "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5", "c3RhcGxlLWNvcnJlY3QtaG9yc2U="} {
			if strings.Contains(text, value) {
				t.Errorf("%s holds %s:\n%s", name, value, text)
			}
		}
	}
}

// What does not get ready fails with what its pods say.
func TestManifestThatDoesNotGetReady(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	// No registry listens there, on any machine.
	d.state = withImage("127.0.0.1:1/nobody/web:1")
	plan, _ := d.plan(t, strings.Replace(webDeployment, "replicas: 0", "replicas: 1", 1))
	apply := d.applyJob(t, plan)
	apply.spec.TimeoutSeconds = 10
	r := apply.run(t)
	if r.Outcome != jobspec.OutcomeFailed {
		t.Fatalf("outcome is %s", r.Outcome)
	}
	for _, want := range []string{"took longer than the 10s", "Deployment/web", "ImagePull", `: image "127.0.0.1:1/nobody/web:1": `} {
		wantContains(t, "error", r.Error, want)
	}
	wantContains(t, "log", apply.log(t), "waiting for Deployment/web: ")

	health := d.job(t, jobspec.OperationPlan)
	health.spec.Operation = jobspec.OperationRun
	if r := health.run(t); r.Outcome == jobspec.OutcomeSucceeded {
		t.Error("the health of it is good")
	}
}

// A pod that runs and never gets ready says nothing of itself: the newest event
// about it names its probe.
func TestManifestWhoseProbeFails(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.state = withImage(d.Image(t))
	text := strings.Replace(webDeployment, "replicas: 0", "replicas: 1", 1)
	probed := strings.Replace(text, "image }}\"}", "image }}\", readinessProbe: {tcpSocket: {port: 1}, periodSeconds: 1}}", 1)
	plan, _ := d.plan(t, probed)
	apply := d.applyJob(t, plan)
	apply.spec.TimeoutSeconds = 15
	wantContains(t, "error", apply.run(t).Error, "; event Unhealthy: Readiness probe failed: ")
}

// What gets ready says so; its health is good until somebody breaks it.
func TestManifestThatGetsReady(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	d.state = withImage(d.Image(t))
	plan, _ := d.plan(t, strings.Replace(webDeployment, "replicas: 0", "replicas: 1", 1))
	apply := d.applyJob(t, plan)
	apply.must(t)
	wantContains(t, "log", apply.log(t), "waiting for Deployment/web: ")
	wantContains(t, "log", apply.log(t), "Deployment/web is ready")
	health := d.job(t, jobspec.OperationPlan)
	health.spec.Operation = jobspec.OperationRun
	health.must(t)
	d.delete(t, "Service/web")
	health = d.job(t, jobspec.OperationPlan)
	health.spec.Operation = jobspec.OperationRun
	wantContains(t, "error", health.run(t).Error, "not ready: Service "+d.namespace+"/web: is not there")
}

// A look tells of the certificates of Secrets that a component deployed, and of those that its
// Ingress names. Nothing else of a Secret leaves the look.
func TestManifestWithCertificates(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	chain := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	key := base64.StdEncoding.EncodeToString([]byte("canary-of-the-key"))
	secret := func(name string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: %s}, type: kubernetes.io/tls, data: {tls.crt: %s, tls.key: %s}}", name, chain, key)
	}
	d.roll(t, secret("elsewhere")) // of another component
	d.component = "own"
	d.roll(t, secret("own")+`
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web}
spec:
  tls: [{secretName: elsewhere, hosts: [example.com]}]
  rules: [{host: example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
---
{apiVersion: v1, kind: Secret, metadata: {name: other}, stringData: {tls.crt: canary-of-another}}
`)
	health := d.job(t, jobspec.OperationPlan)
	health.spec.Operation = jobspec.OperationRun
	got := health.run(t)
	var places []string
	for _, c := range got.Certificates {
		places = append(places, c.Place+" "+c.Subject)
		if !c.NotAfter.Equal(server.Certificate().NotAfter) {
			t.Errorf("%s ends at %s", c.Place, c.NotAfter)
		}
	}
	slices.Sort(places)
	want := []string{"Secret " + d.namespace + "/elsewhere example.com", "Secret " + d.namespace + "/own example.com"}
	if diff := cmp.Diff(want, places); diff != "" {
		t.Errorf("certificates (-want +got):\n%s", diff)
	}
	raw, err := json.Marshal(got)
	if told := string(raw) + health.log(t); err != nil || strings.Contains(told, "canary") || strings.Contains(told, key) || strings.Contains(told, chain) {
		t.Errorf("a look tells of Secrets: %s, %v", told, err)
	}
}

// A kind that Kubernetes does not know is unknown when its status could tell and does not, and
// good when it has none: then it only is there.
func TestManifestOfUnknownKinds(t *testing.T) {
	t.Parallel()
	d := deploy(t)
	group := d.namespace + ".example.com"
	crd := func(kind, plural, subresources string) string {
		return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.%[3]s}
spec:
  group: %[3]s
  scope: Namespaced
  names: {kind: %[1]s, plural: %[2]s, singular: %[4]s}
  versions:
  - {name: v1, served: true, storage: true, %[5]sschema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`, kind, plural, group, strings.ToLower(kind), subresources)
	}
	t.Cleanup(func() {
		for _, plural := range []string{"baskets", "monitors"} {
			_ = d.Dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
				Delete(context.WithoutCancel(t.Context()), plural+"."+group, metav1.DeleteOptions{})
		}
	})
	d.roll(t, strings.Join([]string{
		crd("Basket", "baskets", "subresources: {status: {}}, "), crd("Monitor", "monitors", ""),
	}, "---\n"))
	d.component = "own"
	d.roll(t, fmt.Sprintf("{apiVersion: %[1]s/v1, kind: Basket, metadata: {name: b}}\n---\n{apiVersion: %[1]s/v1, kind: Monitor, metadata: {name: m}}\n", group))
	look := func() jobspec.Result {
		t.Helper()
		health := d.job(t, jobspec.OperationPlan)
		health.spec.Operation = jobspec.OperationRun
		return health.run(t)
	}
	want := []jobspec.Finding{{Object: "Basket " + d.namespace + "/b", Unknown: true, Condition: "its status does not say whether it is ready"}}
	if got := look(); got.Outcome != jobspec.OutcomeSucceeded || !cmp.Equal(want, got.Findings) {
		t.Errorf("%s: %s", got.Outcome, cmp.Diff(want, got.Findings))
	}
	says := func(status string) {
		t.Helper()
		d.status(t, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "baskets"}, "b", status)
	}
	says(`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
	if got := look(); got.Outcome != jobspec.OutcomeSucceeded || len(got.Findings) > 0 {
		t.Errorf("once it says that it is ready: %s, %+v", got.Outcome, got.Findings)
	}
	says(`{"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NoFruit", "message": "it is empty"}]}}`)
	if got := look(); got.Outcome != jobspec.OutcomeFailed || len(got.Findings) != 1 || got.Findings[0].Unknown || !strings.Contains(got.Findings[0].Condition, "it is empty") {
		t.Errorf("once it says that it is not: %s, %+v", got.Outcome, got.Findings)
	}
}

func TestManifestRefused(t *testing.T) {
	t.Parallel()
	c := kubetest.Cluster(t)
	namespace := c.Namespace(t)
	for _, tc := range []struct {
		name, manifest string
		want           string
		remedy         string
	}{
		{name: "an unknown kind", manifest: "{apiVersion: shop.io/v1, kind: Basket, metadata: {name: b}}", want: "no matches for kind", remedy: "CRD"},
		{name: "an unknown field", manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, values: {}}", want: "values", remedy: "correct the manifest"},
		{name: "another namespace that is not there", manifest: "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: berth-nobody}}", want: "namespace berth-nobody does not exist", remedy: "put a Namespace into the manifest"},
		{name: "an object twice", manifest: configMap("a", "1") + configMap("a", "2"), want: "has ConfigMap " + namespace + "/a twice", remedy: "remove one"},
		{name: "no object", manifest: "hello", want: "document 1", remedy: "correct the manifest"},
		{name: "a path that is not there", manifest: configMap("a", "{{ .nuon.components.db.outputs.host }}"), want: ".nuon.components", remedy: "deployed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := &deployed{Connection: c, component: "web", namespace: namespace, kubeconfig: c.Kubeconfig}
			r := d.planJob(t, tc.manifest).run(t)
			if r.Outcome != jobspec.OutcomeFailed {
				t.Errorf("outcome is %s", r.Outcome)
			}
			wantContains(t, "error", r.Error, tc.want)
			wantContains(t, "remedy", r.Remedy, tc.remedy)
		})
	}
}

// These need no cluster.
func TestManifestWithoutCluster(t *testing.T) {
	t.Parallel()
	order := func(t *testing.T) *jobDir {
		t.Helper()
		j := newJob(t, jobspec.Spec{
			Kind: jobspec.KindKubernetesManifest, Operation: jobspec.OperationPlan,
			Resource: &jobspec.Resource{ID: "cmp_1", Kind: "component", Name: "web"},
			Artifact: &jobspec.Artifact{Repository: "org_1/app/web", Digest: "sha256:0"},
			Work:     jobspec.Work{KubernetesManifest: &jobspec.KubernetesManifest{Namespace: "shop"}},
		})
		j.write(t, "in/artifact/manifest.yaml", configMap("a", "b"))
		return j
	}
	t.Run("no kubeconfig", func(t *testing.T) {
		t.Parallel()
		r := order(t).run(t)
		wantContains(t, "error", r.Error, "this runner has no cluster")
		wantContains(t, "remedy", r.Remedy, "--kubeconfig")
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		j := order(t)
		j.write(t, "in/kubeconfig", "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\ncontexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n")
		j.env["KUBECONFIG"] = filepath.Join(j.path, "in/kubeconfig")
		r := j.run(t)
		wantContains(t, "error", r.Error, "127.0.0.1:1")
		wantContains(t, "remedy", r.Remedy, "check that the cluster is up")
	})
	t.Run("no kubeconfig in it", func(t *testing.T) {
		t.Parallel()
		j := order(t)
		j.write(t, "in/kubeconfig", "hello")
		j.env["KUBECONFIG"] = filepath.Join(j.path, "in/kubeconfig")
		wantContains(t, "error", j.run(t).Error, "the kubeconfig cannot be used")
	})
}

func TestBuildManifest(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, manifest string
		wrong          string
	}{
		{name: "a template", manifest: "{{ if true }}\nkind: ConfigMap\n{{ end }}\n"},
		{name: "empty", manifest: " \n", wrong: "is empty"},
		{name: "not text", manifest: "a\xff\xfe", wrong: "not text in UTF-8"},
		{name: "too large", manifest: strings.Repeat("# 0123456789\n", 400_000), wrong: "at most 4194304"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := archiveJob(t, map[string]string{"manifest.yaml": tc.manifest, "README.md": "no part of it"})
			j.spec.Kind = jobspec.KindKubernetesManifest
			if tc.wrong != "" {
				wantContains(t, "error", j.run(t).Error, tc.wrong)
				return
			}
			j.must(t)
			if got := j.artifact(t); len(got) != 1 || got["manifest.yaml"] != tc.manifest {
				t.Errorf("the artifact is %v", got)
			}
		})
	}
	t.Run("missing", func(t *testing.T) {
		t.Parallel()
		j := archiveJob(t, map[string]string{"other.yaml": "a: b"})
		j.spec.Kind = jobspec.KindKubernetesManifest
		wantContains(t, "error", j.run(t).Error, "there is no manifest.yaml")
	})
}
