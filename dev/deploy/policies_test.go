package deploy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/berth-dev/berth/dev/kube/kubetest"
)

// parts are all pods of overlays/local with the port that each serves on, and
// "other" for everybody else.
var parts = map[string]string{
	"ctl-api": "8700", "runner-api": "8701", "log-ingest": "8702", "builder": "8703", "front": "8443", "postgres": "5432",
	"migrate": "9000", "other": "9000",
}

// flows are those of the picture in ARCHITECTURE.md: who may open a connection
// to whom. Every other pair is refused.
var flows = map[string][]string{
	"front":      {"ctl-api", "runner-api", "log-ingest", "builder"},
	"ctl-api":    {"postgres"},
	"runner-api": {"postgres"},
	"log-ingest": {"postgres"},
	"builder":    {"postgres", "runner-api", "log-ingest"}, // its Build Runners
	"migrate":    {"postgres"},
}

// Every network policy is kept, both ways: each pod tries each other, and a pod
// of another namespace tries all.
func TestFlowsAreThoseOfThePicture(t *testing.T) {
	t.Parallel()
	c := kubetest.New(t)
	namespace := fmt.Sprintf("flows-%x", time.Now().UnixNano()&0xffffff)
	outside := namespace + "-outside"
	c.Namespace(t, namespace, nil)
	c.Namespace(t, outside, nil)
	labels := labelsOfPods(t)
	policies := policiesFor(t, namespace)

	var pods []kubetest.Pod
	for name, port := range parts {
		pods = append(pods, kubetest.Pod{Namespace: namespace, Name: name, Labels: labels[name], Listen: []string{"tcp:" + port, "tcp:10000"}})
	}
	stranger := kubetest.Pod{Namespace: outside, Name: "stranger", Labels: labels["front"], Listen: []string{"tcp:9000"}}
	addresses := c.Start(t, append(pods, stranger)...)
	c.Kubectl(t, policies, "apply", "-f", "-")

	var tried []string
	of := map[string]string{} // by address, the name of its pod
	for name, port := range parts {
		for _, p := range []string{port, "10000"} {
			address := "tcp:" + addresses[namespace+"/"+name] + ":" + p
			tried, of[address] = append(tried, address), name+":"+p
		}
	}
	outsider := "tcp:" + addresses[outside+"/stranger"] + ":9000"
	tried, of[outsider] = append(tried, outsider), "stranger:9000"
	slices.Sort(tried)

	for _, from := range append(pods, stranger) {
		want := map[string]bool{}
		for _, address := range tried {
			to, port, _ := strings.Cut(of[address], ":")
			own := from.Name == to // nothing keeps a pod from itself
			allowed := slices.Contains(flows[from.Name], to) && port == parts[to]
			anybody := to == "front" && port == parts["front"] && from.Namespace == outside
			want[of[address]] = own || allowed || anybody
		}
		// Policies take a moment to get around.
		const settles = 20 * time.Second
		for end := time.Now().Add(settles); ; {
			got := map[string]bool{}
			for address, open := range c.Try(t, from, tried...) {
				got[of[address]] = open
			}
			diff := cmp.Diff(want, got)
			if diff == "" {
				break
			}
			if time.Now().After(end) {
				t.Errorf("from %s/%s (-want +got, true is open):\n%s", from.Namespace, from.Name, diff)
				break
			}
		}
	}
}

// labelsOfPods are those that overlays/local gives to the pods of each workload.
func labelsOfPods(t *testing.T) map[string]map[string]string {
	t.Helper()
	objects, err := parse(render(t, "local"))
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

// policiesFor are the policies of overlays/local in another namespace.
func policiesFor(t *testing.T, namespace string) string {
	t.Helper()
	var items []any
	for _, document := range documents(render(t, "local")) {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if o["kind"] == "NetworkPolicy" {
			o["metadata"].(map[string]any)["namespace"] = namespace
			items = append(items, o)
		}
	}
	list, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		t.Fatal(err)
	}
	return string(list)
}
