package deploy

import "fmt"

// rolloutFaults are those of how the pods of a workload come and go.
func rolloutFaults(o object, say func(string, ...any)) {
	pod := o.Spec.Template.Spec
	if o.Kind == "Job" && (o.Spec.ActiveDeadlineSeconds == 0 || pod.RestartPolicy == "Always") {
		say("has no deadline")
	}
	if o.Kind != "Deployment" {
		return
	}
	if o.Spec.Replicas == nil {
		say("does not say how many replicas it wants")
	}
	if o.Spec.Replicas != nil && *o.Spec.Replicas > 1 {
		if len(pod.TopologySpreadConstraints) == 0 {
			say("may have all replicas on one node: set topologySpreadConstraints")
		}
		if o.Spec.Strategy.Type == "Recreate" || fmt.Sprint(o.Spec.Strategy.RollingUpdate.MaxUnavailable) != "0" {
			say("has fewer pods than it wants while it is replaced: set maxUnavailable to 0")
		}
	}
	for _, c := range pod.Containers {
		probesFaults(c, say)
		if pause := c.Lifecycle.PreStop.Sleep.Seconds; pod.Grace <= pause {
			say("%s has no time to end: it has %d s, and waits for %d s before", c.Name, pod.Grace, pause)
		}
	}
}

// probesFaults: a probe asks a port that the container has.
func probesFaults(c container, say func(string, ...any)) {
	for _, probe := range []map[string]any{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		for _, by := range []string{"httpGet", "tcpSocket", "grpc"} {
			if asks, ok := probe[by].(map[string]any); ok && !hasPort(c, asks["port"]) {
				say("%s: a probe asks port %v, which it does not have", c.Name, asks["port"])
			}
		}
	}
}

func hasPort(c container, wanted any) bool {
	for _, p := range c.Ports {
		if wanted == p.Name || fmt.Sprint(wanted) == fmt.Sprint(p.ContainerPort) {
			return true
		}
	}
	return false
}
