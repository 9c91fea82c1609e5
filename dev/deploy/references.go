package deploy

import (
	"fmt"
	"slices"
)

// Pods with these labels are made by operators, from objects that are here.
var operators = []string{
	"cnpg.io/cluster",                    // CloudNativePG, of a Cluster
	"acme.cert-manager.io/http01-solver", // cert-manager, of a Certificate
}

// objectFaults are those of objects of every kind.
func objectFaults(o object, say func(string, ...any)) {
	if o.Kind != "Namespace" && (o.Metadata.Namespace == "" || o.Metadata.Namespace == "default") {
		say("has no namespace of its own")
	}
	if o.Metadata.Labels["app.kubernetes.io/part-of"] != "berth" {
		say("lacks the label app.kubernetes.io/part-of: berth")
	}
	for key, text := range o.Data {
		if o.Kind == "ConfigMap" && secretIn.MatchString(text) {
			say("%s holds a secret", key)
		}
	}
}

// referenceFaults are names and labels in an object that lead nowhere.
func referenceFaults(o object, objects []object, say func(string, ...any)) {
	switch o.Kind {
	case "Service":
		serviceFaults(o, objects, say)
	case "NetworkPolicy":
		if len(podsOf(o.Spec.PodSelector, objects)) == 0 && !slices.ContainsFunc(operators, func(label string) bool {
			return o.Spec.PodSelector.MatchLabels[label] != ""
		}) {
			say("is about no pod")
		}
	case "PodDisruptionBudget":
		budgetFaults(o, objects, say)
	case "Ingress", "HTTPRoute", "TLSRoute":
		if o.Kind == "Ingress" && len(o.Spec.TLS) == 0 {
			say("has no TLS")
		}
		for _, name := range backends(o.Spec.Rules) {
			if name != "front" || !exists(objects, "Service", name) {
				say("leads to the Service %s: only the front is for people", name)
			}
		}
	case "Deployment", "Job":
		if account := o.Spec.Template.Spec.ServiceAccountName; !exists(objects, "ServiceAccount", account) {
			say("its service account %s is not there", account)
		}
		if !matches(o.Spec.Selector.MatchLabels, o.Spec.Template.Metadata.Labels) {
			say("does not select its own pods")
		}
	}
}

func exists(objects []object, kind, name string) bool {
	return slices.ContainsFunc(objects, func(o object) bool { return o.Kind == kind && o.Metadata.Name == name })
}

// podsOf are the workloads whose pods a selector selects.
func podsOf(s selector, objects []object) []object {
	var found []object
	for _, o := range objects {
		if len(o.Spec.Template.Spec.Containers) > 0 && matches(s.MatchLabels, o.Spec.Template.Metadata.Labels) {
			found = append(found, o)
		}
	}
	return found
}

// serviceFaults: a Service leads to a port of pods, and only the front's leads
// there from outside of the cluster.
func serviceFaults(o object, objects []object, say func(string, ...any)) {
	if o.Spec.Type != "" && o.Spec.Type != "ClusterIP" && o.Metadata.Name != "front" {
		say("is a %s: only the front is for people", o.Spec.Type)
	}
	pods := podsOf(o.Spec.Selector, objects)
	if len(o.Spec.Selector.MatchLabels) == 0 || len(pods) == 0 {
		say("leads to no pod")
	}
	for _, pod := range pods {
		for _, p := range o.Spec.Ports {
			if !slices.ContainsFunc(pod.Spec.Template.Spec.Containers, func(c container) bool { return hasPort(c, p.TargetPort) }) {
				say("leads to port %v of %s, which does not have it", p.TargetPort, pod.Metadata.Name)
			}
		}
	}
}

// budgetFaults: a disruption budget is about pods, and lets one of them go.
func budgetFaults(o object, objects []object, say func(string, ...any)) {
	pods := podsOf(o.Spec.Selector, objects)
	if len(pods) == 0 {
		say("is about no pod")
	}
	for _, pod := range pods {
		if pod.Spec.Replicas == nil {
			continue
		}
		if needed, isNumber := o.Spec.MinAvailable.(float64); !isNumber || int(needed) >= *pod.Spec.Replicas {
			say("never lets a pod of %s go: minAvailable is a number below that of its replicas", pod.Metadata.Name)
		}
	}
}

// backends are the names of the Services to which the rules of an Ingress or of a
// route lead.
func backends(rules any) []string {
	var names []string
	switch of := rules.(type) {
	case []any:
		for _, element := range of {
			names = append(names, backends(element)...)
		}
	case map[string]any:
		for key, element := range of {
			switch key {
			case "backendRefs": // of a route
				for _, to := range element.([]any) {
					names = append(names, fmt.Sprint(to.(map[string]any)["name"]))
				}
			case "service": // of an Ingress
				names = append(names, fmt.Sprint(element.(map[string]any)["name"]))
			default:
				names = append(names, backends(element)...)
			}
		}
	}
	return names
}
