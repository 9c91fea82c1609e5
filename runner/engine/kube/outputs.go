package kube

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// Outputs are what other components may want to know of objects, read from the
// cluster: resources, services, deployments and ingresses, each a list in the
// order of refs. Objects that are not there are only among resources.
func (c *Cluster) Outputs(ctx context.Context, refs []Ref) (jobspec.Outputs, error) {
	lists := map[string][]map[string]any{"resources": {}, "services": {}, "deployments": {}, "ingresses": {}}
	for _, ref := range refs {
		lists["resources"] = append(lists["resources"], map[string]any{
			"api_version": ref.GVK().GroupVersion().String(), "kind": ref.Kind, "namespace": ref.Namespace, "name": ref.Name,
		})
		list, facts := factsOf(ref)
		if list == "" {
			continue
		}
		obj, err := c.Get(ctx, ref)
		if err != nil {
			return nil, Explain(err, "read "+ref.Address())
		}
		if obj == nil {
			continue
		}
		found := facts(obj.Object)
		found["name"], found["namespace"] = ref.Name, ref.Namespace
		lists[list] = append(lists[list], found)
	}
	outputs := jobspec.Outputs{}
	for name, list := range lists {
		data, err := job.Marshal(list)
		if err != nil {
			return nil, err
		}
		outputs[name] = jobspec.Output{Value: data}
	}
	return outputs, nil
}

// factsOf tells in which list objects of a kind are, and which facts go there;
// "" for those that are in none.
func factsOf(ref Ref) (list string, facts func(obj map[string]any) map[string]any) {
	switch ref.GVK().GroupKind().String() {
	case "Service":
		return "services", serviceFacts
	case "Deployment.apps":
		return "deployments", deploymentFacts
	case "Ingress.networking.k8s.io":
		return "ingresses", ingressFacts
	}
	return "", nil
}

func serviceFacts(obj map[string]any) map[string]any {
	kind, _, _ := unstructured.NestedString(obj, "spec", "type")
	ip, _, _ := unstructured.NestedString(obj, "spec", "clusterIP")
	ports := []map[string]any{}
	list, _, _ := unstructured.NestedSlice(obj, "spec", "ports")
	for _, item := range list {
		p, _ := item.(map[string]any)
		port := map[string]any{}
		for to, from := range map[string]string{"name": "name", "port": "port", "protocol": "protocol", "node_port": "nodePort"} {
			if v, ok := p[from]; ok {
				port[to] = v
			}
		}
		ports = append(ports, port)
	}
	return map[string]any{"type": kind, "cluster_ip": ip, "ports": ports, "addresses": addresses(obj)}
}

// addresses are where a load balancer listens.
func addresses(obj map[string]any) []string {
	found := []string{}
	list, _, _ := unstructured.NestedSlice(obj, "status", "loadBalancer", "ingress")
	for _, item := range list {
		m, _ := item.(map[string]any)
		for _, key := range []string{"hostname", "ip"} {
			if v, ok := m[key].(string); ok && v != "" {
				found = append(found, v)
			}
		}
	}
	return found
}

func deploymentFacts(obj map[string]any) map[string]any {
	replicas, _, _ := unstructured.NestedInt64(obj, "spec", "replicas")
	images := []string{}
	containers, _, _ := unstructured.NestedSlice(obj, "spec", "template", "spec", "containers")
	for _, item := range containers {
		m, _ := item.(map[string]any)
		if image, ok := m["image"].(string); ok {
			images = append(images, image)
		}
	}
	return map[string]any{"replicas": replicas, "images": images}
}

func ingressFacts(obj map[string]any) map[string]any {
	hosts := []string{}
	rules, _, _ := unstructured.NestedSlice(obj, "spec", "rules")
	for _, item := range rules {
		m, _ := item.(map[string]any)
		if host, ok := m["host"].(string); ok && host != "" {
			hosts = append(hosts, host)
		}
	}
	return map[string]any{"hosts": hosts, "addresses": addresses(obj)}
}
