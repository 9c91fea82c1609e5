package footprint_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/footprint"
	"github.com/berth-dev/berth/pkg/policy"
)

// object is a document of one object of Kubernetes; "" is that there is none.
func object(old, body string) policy.Document {
	return policy.Document{Form: policy.FormObject, Name: "x", Old: raw(old), Body: raw(body)}
}

func raw(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func kube(apiVersion, kind, rest string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"web","namespace":"shop"},%s}`, apiVersion, kind, rest)
}

func deployment(pod string) string {
	return kube("apps/v1", "Deployment", `"spec":{"template":{"spec":`+pod+`}}`)
}

func role(rules string) string {
	return kube("rbac.authorization.k8s.io/v1", "Role", `"rules":`+rules)
}

// What one object newly exposes, gives, runs and speaks to, in the words that people read.
func TestObjects(t *testing.T) {
	t.Parallel()
	const image = `{"containers":[{"image":"ghcr.io/acme/web:%s"}]}`
	lb := kube("v1", "Service", `"spec":{"type":"LoadBalancer","ports":[{"port":443}]}`)
	for _, tc := range []struct {
		name      string
		old, body string
		want      []string
	}{
		{"a service inside the cluster", "", kube("v1", "Service", `"spec":{"ports":[{"port":80}]}`), nil},
		{"a load balancer", "", lb, []string{"newly exposes:", "  a load balancer, 443/TCP (Service shop/web)"}},
		{"a load balancer that was there", lb, lb, nil},
		{
			"a service becomes a load balancer", kube("v1", "Service", `"spec":{"type":"ClusterIP","ports":[{"port":443}]}`), lb,
			[]string{"newly exposes:", "  a load balancer, 443/TCP (Service shop/web)"},
		},
		{
			"one more port", lb, kube("v1", "Service", `"spec":{"type":"LoadBalancer","ports":[{"port":443},{"port":53,"protocol":"UDP"}]}`),
			[]string{"newly exposes:", "  a load balancer, 53/UDP (Service shop/web)"},
		},
		{"a load balancer goes", lb, "", nil},
		{
			"node ports", "", kube("v1", "Service", `"spec":{"type":"NodePort","ports":[{"port":80,"nodePort":31000},{"port":81}],"externalIPs":["192.0.2.1"]}`),
			[]string{"newly exposes:", "  an external address, 192.0.2.1 (Service shop/web)", "  a port of every node, for 80/TCP (Service shop/web)", "  a port of every node, for 81/TCP (Service shop/web)"},
		},
		{
			"an ingress", kube("networking.k8s.io/v1", "Ingress", `"spec":{"rules":[{"host":"a.example.com"}]}`),
			kube("networking.k8s.io/v1", "Ingress", `"spec":{"rules":[{"host":"a.example.com"},{"host":"b.example.com"},{}]}`),
			[]string{"newly exposes:", "  an ingress, any host (Ingress shop/web)", "  an ingress, b.example.com (Ingress shop/web)"},
		},
		{
			"a gateway and its route", "", kube("gateway.networking.k8s.io/v1", "Gateway", `"spec":{"listeners":[{"port":443,"protocol":"HTTPS","hostname":"x.example.com"}]}`),
			[]string{"newly exposes:", "  a gateway, x.example.com port 443/HTTPS (Gateway shop/web)"},
		},
		{
			"a route", "", kube("gateway.networking.k8s.io/v1", "HTTPRoute", `"spec":{"hostnames":["x.example.com"]}`),
			[]string{"newly exposes:", "  a route, x.example.com (HTTPRoute shop/web)"},
		},
		{
			"the node's network", "", deployment(`{"hostNetwork":true,"containers":[{"ports":[{"hostPort":8080}]}]}`),
			[]string{"newly exposes:", "  a port of its node, 8080 (Deployment shop/web)", "  a port of its node, every port: it uses the network of its node (Deployment shop/web)"},
		},
		{
			"another version of an image", deployment(fmt.Sprintf(image, "1")), deployment(fmt.Sprintf(image, "2")),
			[]string{"new images:", "  ghcr.io/acme/web:2 (Deployment shop/web)"},
		},
		{
			"images from elsewhere first", deployment(fmt.Sprintf(image, "1")),
			deployment(`{"initContainers":[{"image":"ghcr.io/acme/web@sha256:aa"}],"containers":[{"image":"reg:5000/x:1"}],"volumes":[{"image":{"reference":"q.io/data"}}]}`),
			[]string{
				"new images:", "  q.io/data (Deployment shop/web; from a repository that is new here)", "  reg:5000/x:1 (Deployment shop/web; from a repository that is new here)",
				"  ghcr.io/acme/web@sha256:aa (Deployment shop/web)",
			},
		},
		{
			"a pod in the resource of an operator", "", kube("argoproj.io/v1alpha1", "Rollout", `"spec":{"image":"a/b:1","steps":[{"template":{"spec":{"containers":[{"image":"a/c:2"}]}}}]}`),
			[]string{"new images:", "  a/b:1 (Rollout shop/web; from a repository that is new here)", "  a/c:2 (Rollout shop/web; from a repository that is new here)"},
		},
		{
			"hosts in variables", "", deployment(`{"containers":[{"env":[
				{"name":"API","value":"https://user:p4ss@API.example.com:8443/v1?token=t"},{"name":"DB","value":"jdbc:postgresql://db.example.com/x"},
				{"name":"SECRET_URL","value":"https://hidden.example.com"},{"name":"CACHE","value":"redis://redis:6379"},{"name":"OTHER","value":"http://web.shop.svc.cluster.local"},
				{"name":"LOCAL","value":"http://127.0.0.1:1"},{"name":"WORDS","value":"see https://docs.example.com"},{"name":"FROM","valueFrom":{"secretKeyRef":{"name":"https://x.example.com"}}}]}]}`),
			[]string{"newly speaks to, as far as can be known:", "  api.example.com:8443 (Deployment shop/web, API)", "  db.example.com (Deployment shop/web, DB)"},
		},
		{
			"a name for a host outside", "", kube("v1", "Service", `"spec":{"type":"ExternalName","externalName":"mail.example.com"}`),
			[]string{"newly speaks to, as far as can be known:", "  mail.example.com (Service shop/web)"},
		},
		{
			"a role gains verbs", role(`[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`),
			role(`[{"apiGroups":[""],"resources":["pods","secrets"],"verbs":["get","list"]},{"nonResourceURLs":["/metrics"],"verbs":["get"]},{"apiGroups":["apps"],"resources":["deployments"],"resourceNames":["b","a"],"verbs":["patch"]}]`),
			[]string{
				"newly gives:", "  get, list on secrets in shop (Role shop/web)", "  patch on deployments.apps named a, b in shop (Role shop/web)",
				"  get on path /metrics in shop (Role shop/web)", "  list on pods in shop (Role shop/web)",
			},
		},
		{
			"rules about the same things", "", role(`[{"apiGroups":[""],"resources":["pods","services"],"verbs":["get","list","watch"]},{"apiGroups":[""],"resources":["pods"],"verbs":["create"]},
				{"apiGroups":[""],"resources":["services"],"verbs":["delete"]}]`),
			[]string{"newly gives:", "  create, get, list, watch on pods in shop (Role shop/web)", "  delete, get, list, watch on services in shop (Role shop/web)"},
		},
		{
			"a role is narrowed from wildcards", role(`[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`),
			role(`[{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get","patch"]},{"apiGroups":[""],"resources":["secrets"],"verbs":["list"]}]`), nil,
		},
		{
			"a role gets a wildcard", role(`[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`), role(`[{"apiGroups":[""],"resources":["pods"],"verbs":["*"]}]`),
			[]string{"newly gives:", "  * on pods in shop (Role shop/web)"},
		},
		{
			"a binding", "", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"w"},"roleRef":{"kind":"ClusterRole","name":"cluster-admin"},
				"subjects":[{"kind":"ServiceAccount","name":"web","namespace":"shop"},{"kind":"Group","name":"system:unauthenticated"}]}`,
			[]string{
				"newly gives:", "  role ClusterRole cluster-admin in the whole cluster to ServiceAccount shop/web (ClusterRoleBinding w)",
				"  role ClusterRole cluster-admin in the whole cluster to everybody (ClusterRoleBinding w)",
			},
		},
		{"a Secret is not looked at", "", kube("v1", "Secret", `"data":{"containers":"x"},"containers":[{"image":"secret"}]`), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := footprint.Of([]policy.Document{object(tc.old, tc.body)}, footprint.Known{}).Lines()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What was there before in another object is not new.
func TestOtherObjects(t *testing.T) {
	t.Parallel()
	pod := deployment(`{"containers":[{"image":"a/b:1","env":[{"name":"A","value":"https://x.example.com"}]}]}`)
	list := []policy.Document{object(pod, ""), object("", strings.ReplaceAll(pod, `"web"`, `"other"`))}
	if f := footprint.Of(list, footprint.Known{}); !f.Empty() || f.Lines() != nil {
		t.Errorf("%+v", f)
	}
	hook := kube("batch/v1", "Job", `"spec":{"template":{"spec":{"containers":[{"image":"a/migrate:1"}]}}}`)
	known := footprint.Known{Before: []json.RawMessage{raw(hook)}}
	if f := footprint.Of([]policy.Document{object("", hook)}, known); !f.Empty() {
		t.Errorf("a hook of the release before is new: %+v", f)
	}
}

func TestRights(t *testing.T) {
	t.Parallel()
	use := func(verb, group, kind, resource string, access footprint.Access) footprint.Use {
		return footprint.Use{Verb: verb, Group: group, Kind: kind, Resource: resource, Namespace: "shop", Access: access}
	}
	record := use("update", "", "ConfigMap", "configmaps", footprint.AccessHas)
	record.Record = true
	known := footprint.Known{Uses: []footprint.Use{
		use("create", "networking.k8s.io", "Ingress", "ingresses", footprint.AccessHas),
		use("patch", "networking.k8s.io", "Ingress", "ingresses", footprint.AccessLacks),
		use("get", "networking.k8s.io", "Ingress", "ingresses", footprint.AccessHas),
		use("patch", "apps", "Deployment", "deployments", footprint.AccessHas),    // it had one
		use("delete", "apps", "Deployment", "deployments", footprint.AccessLacks), // and may not remove it
		{Verb: "create", Group: "x.io", Kind: "Wide", Resource: "wides", Access: footprint.AccessUnknown},
		record,
	}}
	f := footprint.Of([]policy.Document{object(deployment(`{}`), deployment(`{"a":1}`))}, known)
	want := []string{
		"the runner lacks these rights, so the apply would fail:", "  delete deployments.apps in shop", "  patch ingresses.networking.k8s.io in shop",
		"newly needs:", "  create wides.x.io in the whole cluster (whether the runner has it could not be found out)", "  create, get ingresses.networking.k8s.io in shop",
	}
	if diff := cmp.Diff(want, f.Lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// What the API server answered is no part of what is approved.
	for i := range known.Uses {
		known.Uses[i].Access = footprint.AccessHas
	}
	later := footprint.Of([]policy.Document{object(deployment(`{}`), deployment(`{"a":1}`))}, known)
	if a, b := digest(t, f), digest(t, later); a != b || cmp.Diff(f.Planned(), later.Planned()) != "" {
		t.Errorf("the planned footprint depends on the access:\n%s", cmp.Diff(f.Planned(), later.Planned()))
	}
	if f.Rights[0].Access != footprint.AccessUnknown {
		t.Error("Planned changed the footprint itself")
	}
}

func digest(t *testing.T, f footprint.Footprint) string {
	t.Helper()
	d, err := f.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Names that steer a terminal, reorder it or are endless stay in their lines.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	body := map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "a\n  effect sha256:forged\x1b[8m\u202e", "namespace": strings.Repeat("ü", 1000)},
		"spec": map[string]any{"type": "LoadBalancer", "ports": []any{map[string]any{"port": "1\r2"}, "no object", nil, map[string]any{"port": map[string]any{}}}},
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	f := footprint.Of([]policy.Document{{Form: policy.FormObject, Body: encoded}}, footprint.Known{})
	digest(t, f)
	for _, line := range f.Lines() {
		if strings.ContainsAny(line, "\n\r\x1b\u202e") || len(line) > 1500 {
			t.Errorf("%q", line)
		}
	}
	for _, e := range f.Exposed {
		if len(e.By) > 300 || !strings.HasSuffix(e.By, "…") {
			t.Errorf("a name of %d bytes: %q", len(e.By), e.By)
		}
	}
	// What is no object, or of other types than it should be, says nothing and stops nothing.
	for _, odd := range []string{
		`null`, `[]`, `7`, `"x"`, `{`, `{"kind":7}`, `{"kind":"Service","apiVersion":["v1"],"spec":[]}`, `{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","rules":{"verbs":1}}`,
		`{"kind":"Pod","apiVersion":"v1","spec":{"containers":{"image":"x"}}}`, strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000),
	} {
		for _, form := range []policy.Form{policy.FormObject, policy.FormPlan, policy.FormPulumi, policy.FormChanges} {
			footprint.Of([]policy.Document{{Form: form, Old: raw(odd), Body: raw(odd)}}, footprint.Known{Before: []json.RawMessage{raw(odd)}})
		}
	}
}

// A flood of entries cannot push out the one that matters, and is counted.
func TestBounded(t *testing.T) {
	t.Parallel()
	var list []policy.Document
	for i := range 1000 {
		list = append(list, object("", fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"r%d","namespace":"n%d"},"rules":[{"apiGroups":["a%d"],"resources":["x"],"verbs":["get"]}]}`, i, i, i)))
	}
	list = append(list, object("", role(`[{"apiGroups":["zzz"],"resources":["zzz"],"verbs":["escalate"]}]`)))
	f := footprint.Of(list, footprint.Known{})
	if len(f.Grants) != 100 || f.LeftOut != 901 || f.Grants[0].What != "zzz.zzz" {
		t.Errorf("%d grants, %d left out, first %+v", len(f.Grants), f.LeftOut, f.Grants[0])
	}
	if lines := f.Lines(); !strings.Contains(lines[len(lines)-1], "901 more") {
		t.Errorf("%q", lines[len(lines)-1])
	}
	encoded, err := json.Marshal(f)
	if err != nil || len(encoded) > 64<<10 {
		t.Errorf("%d bytes, %v", len(encoded), err)
	}

	// One entry of many long words leaves no room for the next, and takes none of other lists.
	list = nil
	for i := range 200 {
		var names []string
		for j := range 100 {
			names = append(names, strconv.Quote(fmt.Sprint(i, j, strings.Repeat("x", 400))))
		}
		list = append(list, object("", role(fmt.Sprintf(`[{"apiGroups":["a%d"],"resources":["x"],"verbs":[%s]}]`, i, strings.Join(names, ",")))))
	}
	list = append(list, object("", deployment(`{"containers":[{"image":"a/b:1"}]}`)))
	f = footprint.Of(list, footprint.Known{})
	if encoded, err = json.Marshal(f); err != nil || len(encoded) > 128<<10 || len(f.Grants) < 2 || len(f.Images) != 1 || f.LeftOut < 190 {
		t.Errorf("%d bytes, %d grants, %d images, %d left out, %v", len(encoded), len(f.Grants), len(f.Images), f.LeftOut, err)
	}
}

// The same documents have the same digest each time.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	list := append(manyObjects(200), object("", deployment(`{"a":{"containers":[{"env":[{"name":"A","value":"https://x.example.com"}]}]},"b":{"containers":[{"env":[{"name":"B","value":"https://x.example.com"}]}]}}`)))
	first := digest(t, footprint.Of(list, footprint.Known{}))
	for range 20 {
		if d := digest(t, footprint.Of(list, footprint.Known{})); d != first {
			t.Fatal("two computations differ")
		}
	}
}

// manyObjects are n changed Deployments of an ordinary size.
func manyObjects(n int) []policy.Document {
	labels := strings.Repeat(`"app.kubernetes.io/part-of-%d":"a value of an ordinary size",`, 10)
	var list []policy.Document
	for i := range n {
		at := func(version int) string {
			numbered := fmt.Sprintf(strings.ReplaceAll(labels, "%d", "%[1]d"), i)
			return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web%d","namespace":"shop","labels":{%s"x":"y"}},"spec":{"replicas":2,"template":{"metadata":{"labels":{%s"x":"y"}},
				"spec":{"containers":[{"name":"a","image":"ghcr.io/acme/web%d:%d","env":[{"name":"A","value":"https://h%d.example.com"},{"name":"B","value":"plain"}],"ports":[{"containerPort":8080}],
				"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"1","memory":"1Gi"}}}]}}}}`, i, numbered, numbered, i, version, i)
		}
		list = append(list, object(at(1), at(2)))
	}
	return list
}

// 500 changed objects take less than 50 ms; the test allows for a busy machine and the
// race detector.
func TestFastEnough(t *testing.T) {
	t.Parallel()
	list := manyObjects(500)
	best := time.Hour
	for range 5 {
		began := time.Now()
		footprint.Of(list, footprint.Known{})
		best = min(best, time.Since(began))
	}
	t.Logf("500 changed objects: %s", best)
	if best > 2*time.Second {
		t.Errorf("500 changed objects take %s", best)
	}
}

func BenchmarkOf(b *testing.B) {
	list := manyObjects(500)
	for b.Loop() {
		footprint.Of(list, footprint.Known{})
	}
}
