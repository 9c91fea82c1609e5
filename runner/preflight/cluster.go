package preflight

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-dev/berth/pkg/permissions"
	"github.com/berth-dev/berth/runner/agent/cluster"
	"github.com/berth-dev/berth/runner/deploy"
)

// minKubernetes is the oldest minor version of Kubernetes 1 that is supported.
const minKubernetes = 27

func checkCluster(ctx context.Context, cfg Config) []Finding {
	version, ok := checkKubernetes(ctx, cfg.Cluster)
	findings := []Finding{version}
	if !ok {
		return findings // it does not answer
	}
	findings = append(findings, checkRights(ctx, cfg)...)
	findings = append(findings, checkPodSecurity(ctx, cfg))
	findings = append(findings, checkOldRelays(ctx, cfg)...)
	if cfg.HostPath != "" {
		return append(findings, Finding{Check: "storage", Status: Warn, Detail: "a directory of one node", Fix: "leave --volume out where the runner is to last"})
	}
	return append(findings, checkStorage(ctx, cfg))
}

func checkKubernetes(ctx context.Context, c *cluster.Client) (f Finding, answered bool) {
	f = Finding{Check: "Kubernetes", Status: OK}
	v, err := c.Version(ctx)
	if err != nil {
		f.Status, f.Detail, f.Fix = Fail, err.Error(), "try `kubectl version` with the same kubeconfig"
		return f, false
	}
	f.Detail = v.GitVersion
	minor, err := strconv.Atoi(strings.TrimRight(v.Minor, "+")) // clouds write 27+
	if err != nil || v.Major != "1" || minor < minKubernetes {
		f.Status, f.Fix = Fail, fmt.Sprintf("upgrade the cluster to 1.%d or newer", minKubernetes)
	}
	return f, true
}

// right is what the user who applies the manifest must be allowed to do with
// one kind of object.
type right struct {
	verbs           []string
	group, resource string // resource may have a part: serviceaccounts/token
	name, namespace string // "" means any, and the whole cluster
	// jobs: only engines as Jobs need it.
	jobs bool
}

func (r right) String() string {
	text := strings.Join(r.verbs, ", ") + " " + r.resource
	if r.resource == "*" {
		text = "do everything"
	}
	if r.group != "" && r.group != "*" {
		text += "." + r.group
	}
	if r.name != "" {
		text += " " + r.name
	}
	if r.namespace != "" {
		text += " in " + r.namespace
	}
	return text
}

// fix says what to do about a right that is missing.
func (r right) fix() string {
	const fix = "ask an administrator of the cluster to apply the manifest, or to give you this right"
	if r.jobs {
		return fix + "; with --engines process, which keeps vendor code less apart, the runner does not need it"
	}
	return fix
}

// rights are those that the manifest needs. Nobody may grant what he may not
// do, so those of the agent and of engines are among them.
func rights(cfg Config) []right {
	ns, create := cfg.Namespace, []string{"create"}
	all := []right{{verbs: create, resource: "namespaces"}}
	for _, what := range [][2]string{
		{"", "serviceaccounts"}, {"", "secrets"}, {"", "configmaps"}, {"", "services"}, {"apps", "deployments"},
		{"networking.k8s.io", "networkpolicies"},
		{"coordination.k8s.io", "leases"}, {"rbac.authorization.k8s.io", "roles"}, {"rbac.authorization.k8s.io", "rolebindings"},
	} {
		all = append(all, right{verbs: create, group: what[0], resource: what[1], namespace: ns})
	}
	if cfg.HostPath == "" {
		all = append(all, right{verbs: create, resource: "persistentvolumeclaims", namespace: ns})
	}
	all = append(all, agentRights(ns, cfg.Engines)...)
	if cfg.Relay {
		relays := cfg.Namespace + "-relay"
		all = append(all, right{verbs: create, resource: "secrets", namespace: relays}, right{verbs: create, group: "apps", resource: "daemonsets", namespace: relays})
	}
	everything, clusterRoles := []string{"*"}, []right{
		{verbs: create, group: "rbac.authorization.k8s.io", resource: "clusterroles"},
		{verbs: create, group: "rbac.authorization.k8s.io", resource: "clusterrolebindings"},
	}
	switch cfg.Rights {
	case deploy.RightsCluster:
		return append(append(all, clusterRoles...), right{verbs: everything, group: "*", resource: "*"})
	case deploy.RightsApp:
		return append(all, appRights(cfg.Permissions, clusterRoles)...)
	}
	for _, engines := range cfg.Namespaces {
		all = append(all, right{verbs: everything, group: "*", resource: "*", namespace: engines})
	}
	return all
}

// appRights are what it takes to grant an app's list: all that is in it.
func appRights(list *permissions.List, clusterRoles []right) []right {
	var all []right
	made := map[string]bool{}
	for _, r := range list.Rules {
		if !made[r.Namespace] {
			made[r.Namespace] = true
			if r.Namespace == "" {
				all = append(all, clusterRoles...)
			} else {
				for _, resource := range []string{"roles", "rolebindings"} {
					all = append(all, right{verbs: []string{"create"}, group: "rbac.authorization.k8s.io", resource: resource, namespace: r.Namespace})
				}
			}
		}
		for _, name := range append(r.Names[:len(r.Names):len(r.Names)], "")[:max(len(r.Names), 1)] {
			if len(r.URLs) == 0 {
				all = append(all, right{verbs: r.Verbs, group: r.Group, resource: r.Resource, name: name, namespace: r.Namespace})
			}
		}
	}
	return all
}

// agentRights are what the manifest grants the agent in its own namespace.
func agentRights(ns, engines string) []right {
	all := []right{
		{verbs: []string{"get", "update"}, group: "coordination.k8s.io", resource: "leases", name: cluster.LeaseName, namespace: ns},
		{verbs: []string{"create"}, resource: "serviceaccounts/token", name: cluster.EngineAccount, namespace: ns},
		{verbs: []string{"get", "watch"}, resource: "configmaps", name: cluster.SwitchName, namespace: ns},
	}
	if engines == deploy.EnginesJobs {
		all = append(all,
			right{verbs: []string{"create", "get", "delete"}, group: "batch", resource: "jobs", namespace: ns, jobs: true},
			right{verbs: []string{"get", "list", "watch", "delete"}, resource: "pods", namespace: ns, jobs: true})
	}
	return all
}

func checkRights(ctx context.Context, cfg Config) []Finding {
	var denied []Finding
	needed := rights(cfg)
	for _, r := range needed {
		missing, err := missing(ctx, cfg.Cluster, r)
		if err != nil {
			return append(denied, Finding{Check: "rights", Status: Fail, Detail: err.Error(), Fix: "use a user who may ask for his own rights"})
		}
		if len(missing.verbs) > 0 {
			denied = append(denied, Finding{Check: "rights", Status: Fail, Detail: "you may not " + missing.String(), Fix: r.fix()})
		}
	}
	if len(denied) > 0 {
		return denied
	}
	return []Finding{{Check: "rights", Status: OK, Detail: fmt.Sprintf("all %d that the manifest needs", len(needed))}}
}

// missing is the part of a right that the cluster's user does not have.
func missing(ctx context.Context, c *cluster.Client, r right) (right, error) {
	lacks := r
	lacks.verbs = nil
	for _, verb := range r.verbs {
		may, err := allowed(ctx, c, r, verb)
		if err != nil {
			return r, err
		}
		if !may {
			lacks.verbs = append(lacks.verbs, verb)
		}
	}
	return lacks, nil
}

// allowed asks the cluster what its user may do.
func allowed(ctx context.Context, c *cluster.Client, r right, verb string) (bool, error) {
	resource, part, _ := strings.Cut(r.resource, "/")
	review := map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"spec": map[string]any{"resourceAttributes": map[string]string{
			"verb": verb, "group": r.group, "resource": resource, "subresource": part, "name": r.name, "namespace": r.namespace,
		}},
	}
	var answer struct {
		Status struct {
			Allowed bool `json:"allowed"`
		} `json:"status"`
	}
	err := c.Post(ctx, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review, &answer)
	return answer.Status.Allowed, err
}

// defaultClass marks the storage class of claims that name none.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

func checkStorage(ctx context.Context, cfg Config) Finding {
	f := Finding{Check: "storage", Status: OK}
	var classes struct {
		Items []struct {
			Metadata struct {
				Name        string            `json:"name"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		} `json:"items"`
	}
	err := cfg.Cluster.Get(ctx, "/apis/storage.k8s.io/v1/storageclasses", &classes)
	if err != nil {
		f.Status, f.Detail, f.Fix = Skip, err.Error(), "look for a storage class with `kubectl get storageclasses`"
		return f
	}
	var names []string
	for _, class := range classes.Items {
		name := class.Metadata.Name
		names = append(names, name)
		if name == cfg.StorageClass || cfg.StorageClass == "" && class.Metadata.Annotations[defaultClass] == "true" {
			f.Detail = "class " + name
			return f
		}
	}
	f.Status, f.Detail = Fail, "the cluster has no default storage class"
	if cfg.StorageClass != "" {
		f.Detail = "the cluster has no storage class " + cfg.StorageClass
	}
	f.Fix = "use --storage-class with one of: " + strings.Join(names, ", ")
	if len(names) == 0 {
		f.Fix = "set up a storage class, or for a trial use --volume with a directory of the node"
	}
	return f
}
