package kube_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/dev/kube/kubetest"
)

// nodeAddress is where the cluster's DNS and its API server are.
const nodeAddress = "10.99.99.1"

// Policies are kept between real pods: what a policy allows is open, and all
// else is closed as soon as there is one.
func TestPoliciesAreKept(t *testing.T) {
	t.Parallel()
	c := kubetest.New(t)
	if c.Kubectl(t, "", "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}") != "berth" {
		t.Skip("kubernetes: this is not the cluster of make kube, whose policies are tested here")
	}
	suffix := fmt.Sprintf("%x", time.Now().UnixNano()&0xffffff)
	shop, tools := "policies-shop-"+suffix, "policies-tools-"+suffix
	c.Namespace(t, shop, nil)
	c.Namespace(t, tools, map[string]string{"team": suffix})
	db := kubetest.Pod{Namespace: shop, Name: "db", Labels: map[string]string{"app": "db"}, Listen: []string{"tcp:5432:sql", "tcp:9000", "udp:7000"}}
	web := kubetest.Pod{Namespace: shop, Name: "web", Labels: map[string]string{"app": "web"}}
	job := kubetest.Pod{Namespace: tools, Name: "job", Labels: map[string]string{"app": "job"}, Listen: []string{"tcp:8080"}}
	at := c.Start(t, db, web, job)
	c.Apply(t, map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "db", "namespace": shop},
		"spec": map[string]any{"selector": map[string]string{"app": "db"}, "ports": []any{map[string]any{"port": 5432}}},
	})
	sql, other, udp := "tcp:"+at[shop+"/db"]+":5432", "tcp:"+at[shop+"/db"]+":9000", "udp:"+at[shop+"/db"]+":7000"
	named, site := "tcp:db."+shop+".svc.cluster.local:5432", "tcp:"+at[tools+"/job"]+":8080"

	expect := func(when string, from kubetest.Pod, want map[string]bool) {
		t.Helper()
		var addresses []string
		for address := range want {
			addresses = append(addresses, address)
		}
		// Policies, endpoints and names take a moment to get around.
		const settles = 20 * time.Second
		for end := time.Now().Add(settles); ; {
			diff := cmp.Diff(want, c.Try(t, from, addresses...))
			if diff == "" {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s, from %s (-want +got, true is open):\n%s", when, from.Name, diff)
			}
		}
	}
	put := func(name, spec string) {
		t.Helper()
		c.Kubectl(t, fmt.Sprintf(`{"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": %q, "namespace": %q}, "spec": %s}`, name, shop, spec), "apply", "-f", "-")
	}

	all := map[string]bool{sql: true, other: true, udp: true, named: true, site: true}
	expect("without a policy", web, all)
	expect("without a policy", job, all)

	put("nothing", `{"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}`)
	none := map[string]bool{sql: false, other: false, udp: false, named: false, site: false}
	expect("when nothing is allowed", web, none)
	expect("when nothing is allowed in", job, map[string]bool{sql: false, other: false, udp: false, named: false, site: true})

	put("db", `{"podSelector": {"matchLabels": {"app": "db"}}, "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}], "ports": [{"port": "sql"}]}]}`)
	put("web", `{"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Egress"], "egress": [{"to": [{"podSelector": {"matchLabels": {"app": "db"}}}]}]}`)
	expect("when the database lets in web, and names cannot be looked up", web, map[string]bool{sql: true, other: false, udp: false, named: false, site: false})

	put("dns", `{"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [{"ipBlock": {"cidr": "`+nodeAddress+`/32"}}], "ports": [{"port": 53, "protocol": "UDP"}]}]}`)
	expect("when names can be looked up", web, map[string]bool{sql: true, other: false, udp: false, named: true, site: false})

	put("tools", `{"podSelector": {"matchLabels": {"app": "db"}}, "ingress": [{"from": [{"namespaceSelector": {"matchLabels": {"team": "`+suffix+`"}}}], "ports": [{"port": 8999, "endPort": 9001}, {"protocol": "UDP", "port": 7000}]}]}`)
	expect("when another namespace is let in", job, map[string]bool{sql: false, other: true, udp: true, named: false, site: true})

	c.Kubectl(t, "", "-n", shop, "delete", "networkpolicy", "--all")
	expect("when the policies are gone", web, all)
}
