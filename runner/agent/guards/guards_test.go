package guards_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/guardrail"
	"github.com/berth-dev/berth/runner/agent/guards"
	"github.com/berth-dev/berth/runner/agent/judge"
	"github.com/berth-dev/berth/runner/agent/scripts"
)

// executable is berth-policy, as `make build` made it.
func executable(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("BERTH_LIBEXEC")
	if dir == "" {
		dir = "../../../.bin"
	}
	path, err := filepath.Abs(filepath.Join(dir, "berth-policy"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no berth-policy: run `make build`")
	}
	return path
}

var (
	shared   *judge.Engine
	makeOnce sync.Once
)

func realEngine(t testing.TB) *judge.Engine {
	t.Helper()
	path := executable(t)
	makeOnce.Do(func() { shared = judge.New(judge.Options{Executable: path}) })
	return shared
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared != nil {
		shared.Close()
	}
	os.Exit(code)
}

// on are guardrails of a data directory with these files of the customer's.
func on(t testing.TB, files map[string]string) *guards.Guards {
	t.Helper()
	dir, err := datadir.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Make(0); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir.Guardrails(), name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &guards.Guards{
		Folder: guards.Folder{Dir: dir}, Registry: "registry.shop.example:5000", Engine: realEngine(t), Log: slog.New(slog.DiscardHandler),
		Now: func() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) },
	}
}

// object is the document of an object, written in YAML.
func object(t testing.TB, o policy.Operation, text string) policy.Document {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var head struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		t.Fatal(err)
	}
	d := policy.Document{Form: policy.FormObject, Of: "helm_chart", Component: "web", Operation: o, Name: fmt.Sprintf("%s %s/%s", head.Kind, head.Metadata.Namespace, head.Metadata.Name)}
	switch o {
	case policy.Create:
		d.Body = raw
	case policy.Delete:
		d.Old = raw
	default:
		d.Body, d.Old = raw, []byte(strings.Replace(string(raw), `"metadata":{`, `"metadata":{"generation":1,`, 1))
	}
	return d
}

func plan(t testing.TB, changes string) policy.Document {
	t.Helper()
	return policy.Document{Form: policy.FormPlan, Of: "terraform_module", Component: "db", Name: "plan of db", Body: []byte(`{"format_version":"1.2","resource_changes":[` + changes + `]}`)}
}

func resource(kind, actions string) string {
	return fmt.Sprintf(`{"address":"%s.x","mode":"managed","type":%q,"name":"x","change":{"actions":[%s],"before":{},"after":{}}}`, kind, kind, actions)
}

func script(accepted, adHoc bool) policy.Document {
	raw, err := json.Marshal(policy.Script{Action: "rotate", Step: "one", Text: "rm -rf /tmp/x", AdHoc: adHoc, Accepted: accepted, Env: []string{"KEY"}})
	if err != nil {
		panic(err)
	}
	return policy.Document{Form: policy.FormScript, Of: "action", Component: "rotate", Name: "script rotate/one", Body: raw}
}

const pod = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - {name: web, image: "registry.shop.example:5000/shop/web@sha256:aa", %s}
      %s
`

func deployment(ofContainer, ofPod string) string {
	if ofContainer == "" {
		ofContainer = "imagePullPolicy: Always"
	}
	return fmt.Sprintf(pod, ofContainer, ofPod)
}

func TestStandard(t *testing.T) {
	t.Parallel()
	g := on(t, nil)
	role := func(kind, rules string) string {
		namespace := ", namespace: shop"
		if kind == "ClusterRole" {
			namespace = ""
		}
		return fmt.Sprintf("apiVersion: rbac.authorization.k8s.io/v1\nkind: %s\nmetadata: {name: web%s}\nrules: [%s]", kind, namespace, rules)
	}
	for _, tc := range []struct {
		name     string
		document policy.Document
		want     policy.Answer
		by       string // the guardrail that says so
	}{
		{"an ordinary pod", object(t, policy.Create, deployment("", "")), policy.Allow, ""},
		{"one that says it is not privileged", object(t, policy.Create, deployment("securityContext: {privileged: false, capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}", "volumes: [{name: t, emptyDir: {}}]")), policy.Allow, ""},
		{"privileged", object(t, policy.Create, deployment("securityContext: {privileged: true}", "")), policy.Ask, "privileged-container"},
		{"privileged by an update", object(t, policy.Update, deployment("securityContext: {privileged: true}", "")), policy.Ask, "privileged-container"},
		{"with a capability", object(t, policy.Create, deployment("securityContext: {capabilities: {add: [sys_admin]}}", "")), policy.Ask, "privileged-container"},
		{"with a capability by its long name", object(t, policy.Create, deployment("securityContext: {capabilities: {add: [CAP_SYS_ADMIN]}}", "")), policy.Ask, "privileged-container"},
		{"privileged before it starts", object(t, policy.Create, deployment("", "initContainers: [{name: i, image: \"registry.shop.example:5000/i\", securityContext: {privileged: true}}]")), policy.Ask, "privileged-container"},
		{"privileged now and then", object(t, policy.Create, "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c, namespace: shop}\nspec: {schedule: '* * * * *', jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: registry.shop.example:5000/c, securityContext: {privileged: true}}]}}}}}"), policy.Ask, "privileged-container"},
		{"on the node's disk", object(t, policy.Create, deployment("", "volumes: [{name: h, hostPath: {path: /}}]")), policy.Ask, "host-path"},
		{"on the node's network", object(t, policy.Create, deployment("", "hostNetwork: true")), policy.Ask, "host-namespace"},
		{"among the node's processes", object(t, policy.Create, deployment("", "hostPID: true")), policy.Ask, "host-namespace"},
		{"in the node's memory", object(t, policy.Create, deployment("", "hostIPC: true")), policy.Ask, "host-namespace"},
		{"an image from elsewhere", object(t, policy.Create, strings.Replace(deployment("", ""), "registry.shop.example:5000", "docker.io", 1)), policy.Warn, "foreign-image"},
		{"a registry whose name begins alike", object(t, policy.Create, strings.Replace(deployment("", ""), "registry.shop.example:5000/", "registry.shop.example:5000.evil.example/", 1)), policy.Warn, "foreign-image"},
		{"a role in a namespace", object(t, policy.Create, role("Role", "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}")), policy.Allow, ""},
		{"a role that may bind", object(t, policy.Create, role("Role", "{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [bind]}")), policy.Ask, "rbac-escalation"},
		{"a role that may impersonate", object(t, policy.Create, role("Role", "{apiGroups: [''], resources: [users], verbs: [get, impersonate]}")), policy.Ask, "rbac-escalation"},
		{"a role for the whole cluster", object(t, policy.Create, role("ClusterRole", "{apiGroups: ['*'], resources: ['*'], verbs: ['*']}")), policy.Ask, "rbac-escalation"},
		{"a small one for the whole cluster", object(t, policy.Create, role("ClusterRole", "{apiGroups: [''], resources: [pods], verbs: [get]}")), policy.Ask, "cluster-scoped"},
		{"rules for addresses", object(t, policy.Create, role("ClusterRole", "{nonResourceURLs: ['/metrics'], verbs: [get]}")), policy.Ask, "cluster-scoped"},
		{"a binding in a namespace", object(t, policy.Create, "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: w, namespace: shop}\nroleRef: {kind: Role, name: web}\nsubjects: [{kind: ServiceAccount, name: web}]"), policy.Allow, ""},
		{"cluster-admin in a namespace", object(t, policy.Create, "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: w, namespace: shop}\nroleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: web}]"), policy.Ask, "strong-binding"},
		{"cluster-admin", object(t, policy.Create, "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: w}\nroleRef: {kind: ClusterRole, name: cluster-admin}\nsubjects: [{kind: ServiceAccount, name: web}]"), policy.Ask, "strong-binding"},
		{"a kind of its own", object(t, policy.Create, "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b.example}\nspec: {}"), policy.Ask, "cluster-scoped"},
		{"an object of a kind that nobody knows", object(t, policy.Create, "apiVersion: b.example/v1\nkind: Widget\nmetadata: {name: a, namespace: shop}\nspec: {}"), policy.Allow, ""},
		{"one in no namespace", object(t, policy.Create, "apiVersion: b.example/v1\nkind: Widget\nmetadata: {name: a}\nspec: {}"), policy.Ask, "cluster-scoped"},
		{"the namespace of the install", object(t, policy.Create, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: restricted}}"), policy.Allow, ""},
		{"a namespace of privileged pods", object(t, policy.Create, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {pod-security.kubernetes.io/enforce: privileged}}"), policy.Ask, "cluster-scoped"},
		{"a claim", object(t, policy.Create, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: d, namespace: shop}"), policy.Allow, ""},
		{"a claim that goes", object(t, policy.Delete, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: d, namespace: shop}"), policy.Ask, "data-object"},
		{"a namespace that goes", object(t, policy.Delete, "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}"), policy.Ask, "data-object"},
		{"a set with volumes that goes", object(t, policy.Delete, "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: d, namespace: shop}\nspec: {volumeClaimTemplates: [{metadata: {name: d}}]}"), policy.Ask, "data-object"},
		{"a set without volumes that goes", object(t, policy.Delete, "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: d, namespace: shop}\nspec: {}"), policy.Allow, ""},
		{"a database that goes", object(t, policy.Delete, "apiVersion: postgresql.cnpg.io/v1\nkind: Cluster\nmetadata: {name: d, namespace: shop}\nspec: {instances: 3}"), policy.Ask, "data-object"},
		{"a Deployment that goes", object(t, policy.Delete, deployment("", "")), policy.Allow, ""},
		{"the runner's own switch", object(t, policy.Update, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: berth-runner-switch, namespace: berth}\ndata: {mode: run}"), policy.Deny, "runner-objects"},
		{"the customer's guardrails", object(t, policy.Delete, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: berth-runner-guardrails, namespace: berth}"), policy.Deny, "runner-objects"},
		{"a ConfigMap", object(t, policy.Create, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {a: b}"), policy.Allow, ""},
		{"a new database", plan(t, resource("aws_db_instance", `"create"`)), policy.Allow, ""},
		{"a database that changes", plan(t, resource("aws_db_instance", `"update"`)), policy.Allow, ""},
		{"a database that is replaced", plan(t, resource("aws_db_instance", `"delete","create"`)), policy.Ask, "data-resource"},
		{"a bucket that goes", plan(t, resource("google_storage_bucket", `"delete"`)), policy.Ask, "data-resource"},
		{"a vault that goes, among others", plan(t, resource("random_pet", `"create"`)+","+resource("azurerm_key_vault", `"create","delete"`)), policy.Ask, "data-resource"},
		{"a machine that is replaced", plan(t, resource("aws_instance", `"delete","create"`)), policy.Allow, ""},
		{"nothing that changes", plan(t, resource("aws_iam_role", `"no-op"`)), policy.Allow, ""},
		{"a role of the cloud", plan(t, resource("aws_iam_role", `"create"`)), policy.Ask, "cloud-iam"},
		{"a binding of the cloud", plan(t, resource("google_project_iam_member", `"update"`)), policy.Ask, "cloud-iam"},
		{"an assignment that goes", plan(t, resource("azurerm_role_assignment", `"delete"`)), policy.Ask, "cloud-iam"},
		{"Pulumi that replaces a database", policy.Document{Form: policy.FormPulumi, Of: "pulumi", Component: "p", Name: "plan of p", Body: []byte(`{"steps":[{"op":"replace","urn":"urn:x","oldState":{"type":"aws:rds/instance:Instance"},"newState":{"type":"aws:rds/instance:Instance"}}]}`)}, policy.Ask, "pulumi-data"},
		{"Pulumi that makes one", policy.Document{Form: policy.FormPulumi, Of: "pulumi", Component: "p", Name: "plan of p", Body: []byte(`{"steps":[{"op":"create","urn":"urn:x","newState":{"type":"aws:rds/instance:Instance"}}]}`)}, policy.Allow, ""},
		{"Pulumi and roles of the cloud", policy.Document{Form: policy.FormPulumi, Of: "pulumi", Component: "p", Name: "plan of p", Body: []byte(`{"steps":[{"op":"create","urn":"urn:x","newState":{"type":"aws:iam/role:Role"}}]}`)}, policy.Ask, "pulumi-iam"},
		{"a plugin that removes", policy.Document{Form: policy.FormChanges, Of: "plugin", Component: "p", Name: "plan of p", Body: []byte(`{"type":"greeting","changes":[{"address":"a","action":"delete"}]}`)}, policy.Ask, "plugin-removes"},
		{"a plugin that makes", policy.Document{Form: policy.FormChanges, Of: "plugin", Component: "p", Name: "plan of p", Body: []byte(`{"type":"greeting","changes":[{"address":"a","action":"create"}]}`)}, policy.Allow, ""},
		{"a script that was accepted", script(true, false), policy.Allow, ""},
		{"a script that was not", script(false, false), policy.Deny, "unaccepted-script"},
		{"a script for this one time", script(false, true), policy.Ask, "ad-hoc-script"},
		{"a release", policy.Document{Form: policy.FormRelease, Of: "release", Name: "release 3", Body: []byte(`{"id":"rel_x","number":3,"forgets":false,"artifacts":[],"scripts":[],"plugins":[],"roles":[],"secrets":[]}`)}, policy.Allow, ""},
		{"a new plugin", bringsPlugin(t, jobspec.Plugin{Network: true}), policy.Allow, ""},
		{"a plugin that grows", bringsPlugin(t, jobspec.Plugin{Network: true, State: true}, jobspec.Plugin{State: true}), policy.Ask, "plugin-grows"},
		{"a plugin that reaches another host", bringsPlugin(t, jobspec.Plugin{Hosts: []string{"a.example.com", "b.example.com"}}, jobspec.Plugin{Hosts: []string{"a.example.com"}}), policy.Ask, "plugin-grows"},
		{"a plugin that reaches a host less", bringsPlugin(t, jobspec.Plugin{Hosts: []string{"a.example.com"}}, jobspec.Plugin{Hosts: []string{"*.example.com", "b.example.com"}}), policy.Allow, ""},
		{"a plugin that writes where it read", bringsPlugin(t, jobspec.Plugin{Paths: []string{"/opt/a"}}, jobspec.Plugin{Paths: []string{"/opt/a:ro"}}), policy.Ask, "plugin-grows"},
		{"a plugin that shrinks", bringsPlugin(t, jobspec.Plugin{State: true}, jobspec.Plugin{Network: true, State: true}), policy.Allow, ""},
		{"an image", policy.Document{Form: policy.FormImage, Of: "container_image", Component: "web", Name: "image web", Body: []byte(`{"image":"registry.shop.example:5000/web","tag":"1","digest":"sha256:aa","metadata":{"signed":false}}`)}, policy.Allow, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := g.Judge(t.Context(), guards.Plan{Case: policy.Case{Documents: []policy.Document{tc.document}}, Guarded: true})
			var by []string
			for _, v := range policy.Against(got.Judgement.Guardrails, policy.Ask) {
				by = append(by, v.Policy)
			}
			if got.Judgement.Answer != tc.want || tc.by != "" && !slices.Contains(by, tc.by) {
				t.Errorf("got %s by %v, want %s by %s: %v", got.Judgement.Answer, by, tc.want, tc.by, policy.Against(got.Judgement.Guardrails, policy.Ask))
			}
		})
	}
}

// bringsPlugin is the document of a release with a version of a plugin, where versions before
// it were accepted.
func bringsPlugin(t testing.TB, is jobspec.Plugin, before ...jobspec.Plugin) policy.Document {
	t.Helper()
	of := func(p jobspec.Plugin, version int) jobspec.Script {
		p.Type, p.Signer = "greeting", "key"
		return jobspec.PluginScript("hello", p, jobspec.Artifact{Digest: fmt.Sprintf("sha256:%064d", version)})
	}
	var accepted []scripts.Accepted
	for i, p := range before {
		script := of(p, i)
		digest, err := script.Digest()
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, scripts.Accepted{Digest: digest, Script: script})
	}
	spec := jobspec.Spec{Kind: jobspec.KindRelease}
	spec.Release = &jobspec.Release{ID: "rel_x", Number: 3, Scripts: []jobspec.Script{of(is, 9)}}
	return guardrail.ReleaseDocument(spec, accepted)
}

// Every standard guardrail is a file, and every file one of them.
func TestStandardFiles(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir("../guardrail/standard")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".yaml")
		if !slices.ContainsFunc(guardrail.Standards, func(s guardrail.Standard) bool { return s.Name == name }) {
			t.Errorf("standard/%s is in no set", e.Name())
		}
	}
	if wrong := on(t, nil).Unloaded(t.Context(), on(t, nil).Set()); len(wrong) > 0 {
		t.Errorf("do not load: %v", wrong)
	}
}
