package preflight

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/berth-dev/berth/runner/agent/cluster"
)

// enforceLabel names the level of Pod Security that a namespace holds its pods
// to; levels are those that there are, each with more refused.
const enforceLabel = "pod-security.kubernetes.io/enforce"

var levels = []string{"privileged", "baseline", "restricted"}

// checkPodSecurity looks whether the runner's namespace, if it is there already,
// takes the pods. A level that the whole cluster has cannot be seen from here.
func checkPodSecurity(ctx context.Context, cfg Config) Finding {
	var namespace struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	}
	err := cfg.Cluster.Get(ctx, "/api/v1/namespaces/"+url.PathEscape(cfg.Namespace), &namespace)
	switch {
	case cluster.IsStatus(err, http.StatusNotFound):
		return Finding{Check: "pod security", Status: OK, Detail: cfg.Namespace + " is not there yet, so it has no level"}
	case err != nil:
		return Finding{
			Check: "pod security", Status: Skip, Detail: err.Error(),
			Fix: fmt.Sprintf("look for the label %s with `kubectl get namespace %s --show-labels`", enforceLabel, cfg.Namespace),
		}
	}
	return admits(cfg.Namespace, namespace.Metadata.Labels[enforceLabel], cfg.HostPath != "")
}

// admits decides whether a namespace of a level takes the runner. The agent's
// pod is one for baseline, and a directory of the node is for privileged only,
// also in pods of engines, which fit restricted otherwise.
func admits(namespace, level string, hostPath bool) Finding {
	f := Finding{Check: "pod security", Status: OK, Detail: namespace + " has no level"}
	if level == "" {
		return f
	}
	f.Detail = namespace + " is for the level " + level
	needs, because := "baseline", "the agent runs as root, to keep engines away from its keys"
	if hostPath {
		needs, because = "privileged", "--volume is a directory of the node"
	}
	if slices.Index(levels, level) > slices.Index(levels, needs) {
		f.Status = Fail
		f.Detail += ", and " + because
		f.Fix = fmt.Sprintf("use `kubectl label namespace %s %s=%s --overwrite`, or another --namespace", namespace, enforceLabel, needs)
	}
	return f
}
