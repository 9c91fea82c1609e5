package preflight

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/berth-dev/berth/runner/agent/cluster"
)

// enforceLabel names the level of Pod Security that a namespace holds its pods to.
const enforceLabel = "pod-security.kubernetes.io/enforce"

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
	return admits(cfg.Namespace, namespace.Metadata.Labels[enforceLabel])
}

// admits decides whether a namespace of a level takes the runner once its manifest
// is applied, which asks for privileged: relays of the registry listen on their
// nodes' loopback. A lower level that somebody set on purpose is shown, because
// applying the manifest replaces it.
func admits(namespace, level string) Finding {
	f := Finding{Check: "pod security", Status: OK, Detail: namespace + " has no level"}
	if level == "" {
		return f
	}
	f.Detail = namespace + " is for the level " + level
	if level != "privileged" {
		f.Status = Warn
		f.Detail += ", and the manifest sets privileged: relays of the registry have their nodes' network"
		f.Fix = "agree to that, or use another --namespace"
	}
	return f
}
