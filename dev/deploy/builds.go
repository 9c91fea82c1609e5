package deploy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"sigs.k8s.io/yaml"
)

// The namespaces of Berth, and of its Build Runners.
const (
	controlPlane = "berth"
	builds       = "berth-builds"
)

// A grant is what the rules read of kinds that give rights or open networks.
type grant struct {
	Kind     string   `json:"kind"`
	Metadata metadata `json:"metadata"`
	Rules    []right  `json:"rules"`
	RoleRef  struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"roleRef"`
	Subjects []subject `json:"subjects"`
	Spec     struct {
		PodSelector map[string]any `json:"podSelector"`
		PolicyTypes []string       `json:"policyTypes"`
		Ingress     []any          `json:"ingress"`
		Egress      []any          `json:"egress"`
	} `json:"spec"`
}

type right struct {
	APIGroups       []string `json:"apiGroups"`
	Resources       []string `json:"resources"`
	ResourceNames   []string `json:"resourceNames,omitempty"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	Verbs           []string `json:"verbs"`
}

type subject struct {
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// builderRights are all rights that anything of Berth's control plane has in a
// cluster: builder's, in the namespace of Build Runners.
var builderRights = []right{
	{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"create", "delete", "list"}},
	{APIGroups: []string{""}, Resources: []string{"secrets", "serviceaccounts"}, Verbs: []string{"create", "delete"}},
}

// buildsFaults are all that is wrong with the objects of the namespace of Build
// Runners, each as "KIND NAME: what".
func buildsFaults(rendered string) ([]string, error) {
	var all []string
	closed := false
	for i, document := range documents(rendered) {
		var g grant
		if err := yaml.Unmarshal([]byte(document), &g); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		say := func(format string, args ...any) {
			all = append(all, fmt.Sprintf("%s %s: ", g.Kind, g.Metadata.Name)+fmt.Sprintf(format, args...))
		}
		if g.Kind != "Namespace" && g.Metadata.Namespace != builds {
			say("is not in %s", builds)
		}
		switch g.Kind {
		case "Namespace":
			if g.Metadata.Name != builds || g.Metadata.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
				say("is not %s, or does not enforce the Pod Security level restricted", builds)
			}
		case "Role":
			if !reflect.DeepEqual(g.Rules, builderRights) {
				say("gives other rights than builder needs: %s", asJSON(g.Rules))
			}
		case "RoleBinding":
			want := []subject{{Kind: "ServiceAccount", Name: "builder", Namespace: controlPlane}}
			if g.RoleRef.Kind != "Role" || g.RoleRef.Name != "builder" || !reflect.DeepEqual(g.Subjects, want) {
				say("gives rights to another than builder, or others: %s to %s", asJSON(g.RoleRef), asJSON(g.Subjects))
			}
		case "NetworkPolicy":
			if len(g.Spec.Ingress) > 0 {
				say("lets somebody connect to Build Runners")
			}
			closed = closed || len(g.Spec.PodSelector) == 0 && len(g.Spec.Egress) == 0 && len(g.Spec.PolicyTypes) == 2
		default:
			say("does not belong here")
		}
	}
	if !closed {
		all = append(all, "nothing closes the namespace's network in both directions")
	}
	return all, nil
}

// tokenFaults: of all containers, builder's alone has a token of the API server.
func tokenFaults(pod podSpec, say func(string, ...any)) {
	for _, v := range pod.Volumes {
		if !givesToken(v) {
			continue
		}
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			if mounted := slices.ContainsFunc(c.VolumeMounts, func(m mount) bool { return m.Name == v.name() }); mounted && (pod.ServiceAccountName != "builder" || c.Name != "builder") {
				say("%s has a token of the API server", c.Name)
			}
		}
	}
}

func givesToken(v volume) bool {
	of, _ := v["projected"].(map[string]any)
	sources, _ := of["sources"].([]any)
	return slices.ContainsFunc(sources, func(source any) bool {
		s, _ := source.(map[string]any)
		return s["serviceAccountToken"] != nil
	})
}

func asJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
