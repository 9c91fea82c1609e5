package preflight

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/deploy"
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
	return admits(cfg, namespace.Metadata.Labels[enforceLabel])
}

// levels of Pod Security, the strictest last; a namespace without one takes all.
var levels = []string{"", deploy.LevelPrivileged, deploy.LevelBaseline, deploy.LevelRestricted}

// admits decides whether a namespace of a level takes the runner once its manifest
// is applied, which brings its own level. A stricter one that somebody set on
// purpose is shown, because applying the manifest replaces it.
func admits(cfg Config, level string) Finding {
	f := Finding{Check: "pod security", Status: OK, Detail: cfg.Namespace + " has no level"}
	if level == "" {
		return f
	}
	f.Detail = cfg.Namespace + " is for the level " + level
	if slices.Index(levels, level) > slices.Index(levels, cfg.PodSecurity) {
		f.Status = Warn
		f.Detail += ", and the manifest sets " + cfg.PodSecurity
		f.Fix = "agree to that, use another --namespace, or leave out --volume, --engines process and --pod-security"
	}
	return f
}

// checkOldRelays looks for what an earlier version of the manifest left: relays
// in the runner's own namespace, which now hold the port of the new ones.
func checkOldRelays(ctx context.Context, cfg Config) []Finding {
	err := cfg.Cluster.Get(ctx, "/apis/apps/v1/namespaces/"+url.PathEscape(cfg.Namespace)+"/daemonsets/berth-registry-relay", &struct{}{})
	if err != nil {
		return nil // there is none, or who applies may not look
	}
	return []Finding{{
		Check: "relays", Status: Warn, Detail: "DaemonSet berth-registry-relay in " + cfg.Namespace + " is of an earlier manifest and has the port of the new relays",
		Fix: "after applying the manifest, kubectl -n " + cfg.Namespace + " delete daemonset berth-registry-relay",
	}}
}
