package deploy

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/dev/kube/kubetest"
)

// unserved is a port that every pod of the tests answers on, and no policy opens.
const unserved = "10000"

// parts are all pods that overlays/local makes, with the ports that they answer
// on, and "other" for everybody else in the namespace.
var parts = map[string][]string{
	"ctl-api": {"8700", "9700"}, "runner-api": {"8701", "9701"}, "log-ingest": {"8702", "9702"}, "builder": {"8703", "9703"},
	"front": {"8443"}, "postgres": {"5432"}, "migrate": nil, "otel-collector": {"4318"}, "other": nil,
}

// abroad are pods of other namespaces: callers, and what stands for addresses
// outside of the cluster. standsFor says for which.
var abroad = map[string][]string{
	"stranger": nil, "monitor": nil,
	"dns": {"53", "53/udp"}, "node": {"53", "53/udp", "16453"}, "source": {"443", "22"}, "private": {"443", "22"},
	"managed": {"5432"}, "sink": {"443"},
}

// standsFor are the addresses in policies that a pod of abroad takes the place
// of. The pods' own network is a private one, so that of "private" stands for
// all private ones.
var standsFor = map[string]string{"10.99.99.1/32": "node", "10.0.0.0/8": "private", "10.20.0.0/24": "managed", "10.20.1.0/24": "sink"}

// flows are those of the picture in ARCHITECTURE.md: who may open a connection
// to whom. Every other pair is refused.
var flows = map[string][]string{
	"front":          {"ctl-api:8700", "runner-api:8701", "log-ingest:8702", "builder:8703"},
	"ctl-api":        {"postgres:5432", "managed:5432", "otel-collector:4318"},
	"runner-api":     {"postgres:5432", "managed:5432", "otel-collector:4318"},
	"log-ingest":     {"postgres:5432", "managed:5432", "otel-collector:4318"},
	"builder":        {"postgres:5432", "managed:5432", "otel-collector:4318", "runner-api:8701", "log-ingest:8702", "source:443", "source:22", "sink:443", "node:16453"},
	"migrate":        {"postgres:5432", "managed:5432"},
	"otel-collector": {"sink:443"},
	"monitor":        {"ctl-api:9700", "runner-api:9701", "log-ingest:9702", "builder:9703"},
}

// everybody may do these: in the namespace, and from anywhere.
var (
	everybody = []string{"dns:53", "dns:53/udp", "node:53/udp"}
	anybody   = []string{"front:8443"}
)

// A proof is a connection that a policy allows and one that is refused, each as
// "FROM TO:PORT".
type proof struct{ open, refused string }

// proofs are those of each policy in each of its directions. A policy that
// differs between overlays has the name of its overlay before its own.
var proofs = map[string]proof{
	"default-deny Ingress":        {"", "stranger ctl-api:8700"},
	"default-deny Egress":         {"", "migrate stranger:" + unserved},
	"dns Egress":                  {"migrate dns:53/udp", "migrate dns:" + unserved},
	"dns-of-the-node Egress":      {"migrate node:53/udp", "migrate node:53"},
	"front Ingress":               {"stranger front:8443", "stranger front:" + unserved},
	"front Egress":                {"front ctl-api:8700", "front postgres:5432"},
	"ctl-api Ingress":             {"front ctl-api:8700", "builder ctl-api:8700"},
	"runner-api Ingress":          {"builder runner-api:8701", "ctl-api runner-api:8701"},
	"log-ingest Ingress":          {"builder log-ingest:8702", "stranger log-ingest:8702"},
	"builder Ingress":             {"front builder:8703", "ctl-api builder:8703"},
	"builder Egress":              {"builder source:443", "builder private:443"},
	"ctl-api-metrics Ingress":     {"monitor ctl-api:9700", "stranger ctl-api:9700"},
	"runner-api-metrics Ingress":  {"monitor runner-api:9701", "front runner-api:9701"},
	"log-ingest-metrics Ingress":  {"monitor log-ingest:9702", "stranger log-ingest:9702"},
	"builder-metrics Ingress":     {"monitor builder:9703", "stranger builder:9703"},
	"database Egress":             {"migrate postgres:5432", "other postgres:5432"},
	"production-database Egress":  {"ctl-api managed:5432", "front managed:5432"},
	"postgres Ingress":            {"ctl-api postgres:5432", "stranger postgres:5432"},
	"development-registry Egress": {"builder node:16453", "ctl-api node:16453"},
	"otel-collector Ingress":      {"ctl-api otel-collector:4318", "front otel-collector:4318"},
	"otel-collector Egress":       {"otel-collector sink:443", "otel-collector source:443"},
	"traces Egress":               {"builder otel-collector:4318", "migrate otel-collector:4318"},
}

// A policy is what the tests read of one.
type policy struct {
	name string
	object
	whole map[string]any
}

// Each policy has a proof, which is about pods that it selects.
func TestEveryPolicyHasAProof(t *testing.T) {
	t.Parallel()
	labels := labelsOfPods(t)
	var want []string
	for _, p := range policies(t) {
		for _, direction := range p.Spec.PolicyTypes {
			name := p.name + " " + direction
			want = append(want, name)
			from, to := ends(proofs[name].open)
			if proofs[name].open == "" {
				from, to = ends(proofs[name].refused)
			}
			subject := from
			if direction == "Ingress" {
				subject, _, _ = strings.Cut(to, ":")
			}
			if labels[subject] == nil || !matches(p.Spec.PodSelector.MatchLabels, labels[subject]) {
				t.Errorf("%s: its proof is about %q, which it does not select", name, subject)
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(proofs))); diff != "" {
		t.Errorf("proofs (-policies +proofs):\n%s", diff)
	}
}

func ends(connection string) (from, to string) {
	from, to, _ = strings.Cut(connection, " ")
	return from, to
}

// Every network policy is kept, both ways: each pod tries all others, first
// without any policy, so that what is refused later is refused by one.
func TestFlowsAreThoseOfThePicture(t *testing.T) {
	t.Parallel()
	c := kubetest.New(t)
	namespace := fmt.Sprintf("flows-%x", time.Now().UnixNano()&0xffffff)
	outside, monitoring := namespace+"-outside", namespace+"-monitoring"
	c.Namespace(t, namespace, nil)
	c.Namespace(t, outside, nil)
	c.Namespace(t, monitoring, map[string]string{"berth.dev/monitoring": "true"})

	labels := labelsOfPods(t)
	labels["stranger"], labels["dns"] = labels["front"], map[string]string{"k8s-app": "kube-dns"}
	ports := maps.Clone(parts)
	maps.Copy(ports, abroad)
	var pods, callers []kubetest.Pod
	for name, served := range ports {
		pod := kubetest.Pod{Namespace: namespace, Name: name, Labels: labels[name]}
		for _, port := range append([]string{unserved}, served...) {
			pod.Listen = append(pod.Listen, listen(port))
		}
		if _, ours := parts[name]; !ours {
			pod.Namespace = outside
		}
		if name == "monitor" {
			pod.Namespace = monitoring
		}
		pods = append(pods, pod)
		if pod.Namespace != outside || name == "stranger" {
			callers = append(callers, pod)
		}
	}
	started := c.Start(t, pods...)
	addresses, of := map[string]string{}, map[string]string{}
	var tried []string
	for _, pod := range pods {
		addresses[pod.Name] = started[pod.Namespace+"/"+pod.Name]
		for _, port := range append([]string{unserved}, ports[pod.Name]...) {
			network, number, _ := strings.Cut(listen(port), ":")
			address := network + ":" + addresses[pod.Name] + ":" + number
			tried, of[address] = append(tried, address), pod.Name+":"+port
		}
	}
	tries := tries{c: c, callers: callers, addresses: tried, of: of}

	tries.until(t, "without policies", func(string, string) bool { return true })
	c.Kubectl(t, policiesFor(t, namespace, outside, addresses), "apply", "-f", "-")
	got := tries.until(t, "with policies", func(from, to string) bool {
		target, _, _ := strings.Cut(to, ":")
		if _, ours := parts[from]; ours {
			return from == target || slices.Contains(flows[from], to) || slices.Contains(everybody, to) // nothing keeps a pod from itself
		}
		_, foreign := abroad[target]
		return foreign || slices.Contains(flows[from], to) || slices.Contains(anybody, to)
	})
	for name, p := range proofs {
		if p.open != "" && !got[p.open] {
			t.Errorf("%s: %s is refused", name, p.open)
		}
		if open, tried := got[p.refused]; open || !tried {
			t.Errorf("%s: %s is open (tried: %t)", name, p.refused, tried)
		}
	}
}

// listen is a port of the tables in the form of kubetest.
func listen(port string) string {
	if number, udp := strings.CutSuffix(port, "/udp"); udp {
		return "udp:" + number
	}
	return "tcp:" + port
}

// tries is who tries which addresses, and what they are called.
type tries struct {
	c         *kubetest.Cluster
	callers   []kubetest.Pod
	addresses []string
	of        map[string]string
}

// until has all callers try all addresses until what answers is what is wanted,
// or fails the test: policies take a moment to get around. It returns what
// answers, by "FROM TO:PORT".
func (s tries) until(t *testing.T, when string, wanted func(from, to string) bool) map[string]bool {
	t.Helper()
	want := map[string]bool{}
	for _, from := range s.callers {
		for _, to := range s.of {
			want[from.Name+" "+to] = wanted(from.Name, to)
		}
	}
	const settles = 30 * time.Second
	for end := time.Now().Add(settles); ; {
		answers, errs := make([]map[string]bool, len(s.callers)), make([]error, len(s.callers))
		var group sync.WaitGroup
		for i, from := range s.callers {
			group.Go(func() { answers[i], errs[i] = s.c.Tried(t.Context(), from, s.addresses...) })
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		got := map[string]bool{}
		for i, from := range s.callers {
			for address, open := range answers[i] {
				got[from.Name+" "+s.of[address]] = open
			}
		}
		diff := cmp.Diff(want, got)
		if diff == "" {
			return got
		}
		if time.Now().After(end) {
			t.Errorf("%s (-want +got, true is open):\n%s", when, diff)
			return got
		}
	}
}

// labelsOfPods are those that overlays/local, with the collector, gives to the
// pods of each workload.
func labelsOfPods(t *testing.T) map[string]map[string]string {
	t.Helper()
	objects, err := parse(render(t, with("local", "otel-collector")))
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]map[string]string{"other": {"app.kubernetes.io/name": "other"}}
	for _, o := range objects {
		if len(o.Spec.Template.Spec.Containers) == 0 {
			continue
		}
		if _, known := parts[o.Metadata.Name]; !known {
			t.Errorf("%s %s is not in the table of flows: add it", o.Kind, o.Metadata.Name)
		}
		labels[o.Metadata.Name] = o.Spec.Template.Metadata.Labels
	}
	for name := range parts {
		if labels[name] == nil {
			t.Errorf("%s is in the table of flows, and not in the overlay", name)
		}
	}
	return labels
}

// policies are all of the overlays, each once.
func policies(t *testing.T) []policy {
	t.Helper()
	var all []policy
	seen := map[string]string{}
	for _, overlay := range []string{with("local", "otel-collector"), "tilt", "production"} {
		for _, document := range documents(render(t, overlay)) {
			p := policy{}
			if err := errors.Join(yaml.Unmarshal([]byte(document), &p.whole), yaml.Unmarshal([]byte(document), &p.object)); err != nil {
				t.Fatal(err)
			}
			if p.Kind != "NetworkPolicy" {
				continue
			}
			p.name = p.Metadata.Name
			switch before, known := seen[p.name]; {
			case known && before == document:
				continue
			case known:
				p.name = overlay + "-" + p.name
			}
			seen[p.name] = document
			all = append(all, p)
		}
	}
	return all
}

// policiesFor are all policies in one namespace, with pods of another one in
// place of what is outside of the cluster.
func policiesFor(t *testing.T, namespace, outside string, addresses map[string]string) string {
	t.Helper()
	var items []any
	for _, p := range policies(t) {
		p.whole["metadata"] = map[string]any{"name": p.name, "namespace": namespace}
		items = append(items, p.whole)
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	text := string(list)
	replace := func(old, with string) {
		if !strings.Contains(text, old) {
			t.Errorf("no policy has %s any more", old)
		}
		text = strings.ReplaceAll(text, old, with)
	}
	for network, pod := range standsFor {
		replace(`"`+network+`"`, `"`+addresses[pod]+`/32"`)
	}
	replace(`"kubernetes.io/metadata.name":"kube-system"`, `"kubernetes.io/metadata.name":"`+outside+`"`)
	return text
}
