// Package deploy checks deploy/k8s: its rules are in this file, and its tests
// render all overlays and try every network policy with real pods.
package deploy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// An object is what the rules read of any kind.
type object struct {
	Kind     string   `json:"kind"`
	Metadata metadata `json:"metadata"`
	Spec     struct {
		Replicas              *int     `json:"replicas"`
		ActiveDeadlineSeconds int      `json:"activeDeadlineSeconds"`
		Strategy              strategy `json:"strategy"`
		Template              template `json:"template"`
		Selector              selector `json:"selector"`
		PodSelector           selector `json:"podSelector"`
		PolicyTypes           []string `json:"policyTypes"`
		MinAvailable          any      `json:"minAvailable"`
		Type                  string   `json:"type"`
		Ports                 []struct {
			TargetPort any `json:"targetPort"`
		} `json:"ports"`
		Rules any   `json:"rules"` // of an Ingress or a route
		TLS   []any `json:"tls"`
	} `json:"spec"`
	Rules []any             `json:"rules"`
	Data  map[string]string `json:"data"`
}

type metadata struct {
	Name      string            `json:"name"`
	Namespace string            `json:"namespace"`
	Labels    map[string]string `json:"labels"`
}

// A selector has its labels under matchLabels, or in it, as that of a Service.
type selector struct {
	MatchLabels map[string]string
}

func (s *selector) UnmarshalJSON(text []byte) error {
	var of map[string]any
	if err := json.Unmarshal(text, &of); err != nil {
		return err
	}
	if inner, ok := of["matchLabels"].(map[string]any); ok {
		of = inner
	}
	s.MatchLabels = map[string]string{}
	for key, value := range of {
		s.MatchLabels[key] = fmt.Sprint(value)
	}
	return nil
}

type strategy struct {
	Type          string `json:"type"`
	RollingUpdate struct {
		MaxUnavailable any `json:"maxUnavailable"`
	} `json:"rollingUpdate"`
}

type template struct {
	Metadata metadata `json:"metadata"`
	Spec     podSpec  `json:"spec"`
}

type podSpec struct {
	ServiceAccountName           string      `json:"serviceAccountName"`
	ServiceAccount               string      `json:"serviceAccount"`
	RestartPolicy                string      `json:"restartPolicy"`
	Grace                        int         `json:"terminationGracePeriodSeconds"`
	TopologySpreadConstraints    []any       `json:"topologySpreadConstraints"`
	ShareProcessNamespace        bool        `json:"shareProcessNamespace"`
	AutomountServiceAccountToken *bool       `json:"automountServiceAccountToken"`
	HostNetwork                  bool        `json:"hostNetwork"`
	HostPID                      bool        `json:"hostPID"`
	HostIPC                      bool        `json:"hostIPC"`
	SecurityContext              security    `json:"securityContext"`
	InitContainers               []container `json:"initContainers"`
	Containers                   []container `json:"containers"`
	Volumes                      []volume    `json:"volumes"`
}

// A volume is its name and, by its kind, what it is of.
type volume map[string]any

func (v volume) name() string { return fmt.Sprint(v["name"]) }

func (v volume) secret() string {
	of, _ := v["secret"].(map[string]any)
	return fmt.Sprint(of["secretName"])
}

type security struct {
	RunAsNonRoot             *bool  `json:"runAsNonRoot"`
	RunAsUser                int    `json:"runAsUser"`
	RunAsGroup               int    `json:"runAsGroup"`
	Privileged               bool   `json:"privileged"`
	ProcMount                string `json:"procMount"`
	Sysctls                  []any  `json:"sysctls"`
	SELinuxOptions           any    `json:"seLinuxOptions"`
	AppArmorProfile          any    `json:"appArmorProfile"`
	AllowPrivilegeEscalation *bool  `json:"allowPrivilegeEscalation"`
	ReadOnlyRootFilesystem   bool   `json:"readOnlyRootFilesystem"`
	SeccompProfile           struct {
		Type string `json:"type"`
	} `json:"seccompProfile"`
	Capabilities struct {
		Add, Drop []string
	} `json:"capabilities"`
}

type container struct {
	Name  string   `json:"name"`
	Image string   `json:"image"`
	Args  []string `json:"args"`
	Env   []struct {
		Name      string `json:"name"`
		Value     string `json:"value"`
		ValueFrom struct {
			SecretKeyRef any `json:"secretKeyRef"`
		} `json:"valueFrom"`
	} `json:"env"`
	EnvFrom      []any   `json:"envFrom"`
	VolumeMounts []mount `json:"volumeMounts"`
	Ports        []port  `json:"ports"`
	Resources    struct {
		Requests, Limits map[string]any
	} `json:"resources"`
	LivenessProbe   map[string]any `json:"livenessProbe"`
	ReadinessProbe  map[string]any `json:"readinessProbe"`
	StartupProbe    map[string]any `json:"startupProbe"`
	SecurityContext security       `json:"securityContext"`
	Lifecycle       struct {
		PreStop struct {
			Sleep struct {
				Seconds int `json:"seconds"`
			} `json:"sleep"`
		} `json:"preStop"`
	} `json:"lifecycle"`
}

type mount struct {
	Name string `json:"name"`
}

type port struct {
	Name          string `json:"name"`
	ContainerPort int    `json:"containerPort"`
	HostPort      int    `json:"hostPort"`
}

// documents are those of a rendered overlay or chart that hold more than comments.
func documents(rendered string) []string {
	all := regexp.MustCompile(`(?m)^---\n`).Split(rendered, -1)
	comments := regexp.MustCompile(`(?m)^\s*(#.*)?$`)
	return slices.DeleteFunc(all, func(document string) bool {
		return strings.TrimSpace(comments.ReplaceAllString(document, "")) == ""
	})
}

// parse reads the documents of a rendered overlay or chart.
func parse(rendered string) ([]object, error) {
	var objects []object
	for i, document := range documents(rendered) {
		var o object
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		objects = append(objects, o)
	}
	return objects, nil
}

// secretIn matches what no environment or argument may hold: an address with a
// password, a token, a key.
var secretIn = regexp.MustCompile(`://[^/@\s]*:[^/@\s]+@|brt_|bat_|PRIVATE KEY|berth-master-key`)

// secretName matches the names of variables that hold a secret, and not the place
// of one.
var secretName = regexp.MustCompile(`(?i)(password|passwd|secret|token|credentials?|key)$`)

// pinned is an image by digest, or by a tag that is none of those that move.
func pinned(image string) bool {
	if strings.Contains(image, "@sha256:") {
		return true
	}
	_, tag, found := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return found && tag != "latest"
}

// faults are all that is wrong with the objects of an overlay, each as
// "KIND NAME: what".
func faults(objects []object) []string {
	var all []string
	for _, o := range objects {
		say := func(format string, args ...any) {
			all = append(all, fmt.Sprintf("%s %s: ", o.Kind, o.Metadata.Name)+fmt.Sprintf(format, args...))
		}
		objectFaults(o, say)
		referenceFaults(o, objects, say)
		switch o.Kind {
		case "Namespace":
			if o.Metadata.Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
				say("does not enforce the Pod Security level restricted")
			}
		case "Secret":
			say("secrets are not written into manifests")
		case "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding":
			say("nothing here needs a right in the cluster")
		case "Deployment", "Job", "StatefulSet", "DaemonSet", "CronJob":
			workloadFaults(o, objects, say)
		}
	}
	return all
}

// workloadFaults are those of what makes pods.
func workloadFaults(o object, objects []object, say func(string, ...any)) {
	pod := o.Spec.Template
	podFaults(pod.Spec, say)
	tokenFaults(pod.Spec, say)
	restrictedFaults(pod.Spec, say)
	rolloutFaults(o, say)
	for _, c := range pod.Spec.InitContainers {
		containerFaults(c, say)
	}
	for _, c := range pod.Spec.Containers {
		containerFaults(c, say)
		if o.Kind == "Deployment" && (c.LivenessProbe == nil || c.ReadinessProbe == nil || c.StartupProbe == nil) {
			say("%s lacks a probe: startup, liveness and readiness are wanted", c.Name)
		}
		if c.LivenessProbe != nil && fmt.Sprint(c.LivenessProbe["httpGet"], c.LivenessProbe["exec"]) == fmt.Sprint(c.ReadinessProbe["httpGet"], c.ReadinessProbe["exec"]) {
			say("%s: alive and ready are the same question", c.Name)
		}
	}
	companyFaults(o, objects, say)
}

// companyFaults are those of what goes with a workload: policies and a budget.
func companyFaults(o object, objects []object, say func(string, ...any)) {
	labels := o.Spec.Template.Metadata.Labels
	for _, direction := range []string{"Ingress", "Egress"} {
		if !slices.ContainsFunc(objects, func(p object) bool {
			return p.Kind == "NetworkPolicy" && slices.Contains(p.Spec.PolicyTypes, direction) && matches(p.Spec.PodSelector.MatchLabels, labels)
		}) {
			say("no network policy is about its %s", strings.ToLower(direction))
		}
	}
	budget := slices.ContainsFunc(objects, func(b object) bool {
		return b.Kind == "PodDisruptionBudget" && matches(b.Spec.Selector.MatchLabels, labels)
	})
	many := o.Spec.Replicas != nil && *o.Spec.Replicas > 1
	if o.Kind == "Deployment" && many != budget {
		say("a disruption budget is for two replicas or more, and needed there")
	}
}

func matches(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func podFaults(pod podSpec, say func(string, ...any)) {
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		say("shares something of the node")
	}
	if pod.AutomountServiceAccountToken == nil || *pod.AutomountServiceAccountToken {
		say("has a token of the API server")
	}
	if pod.ServiceAccountName == "" || pod.ServiceAccountName == "default" {
		say("has no service account of its own")
	}
	if s := pod.SecurityContext; s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == 0 || s.SeccompProfile.Type != "RuntimeDefault" {
		say("wants runAsNonRoot, a user by number and the seccomp profile RuntimeDefault")
	}
	for _, v := range pod.Volumes {
		if v["hostPath"] != nil {
			say("volume %s is a folder of the node", v.name())
		}
		// From the master key all dispatch keys are derived.
		if v.secret() == "berth-master-key" && pod.ServiceAccountName != "ctl-api" {
			say("has the master key, which is ctl-api's alone")
		}
	}
}

func containerFaults(c container, say func(string, ...any)) {
	if !pinned(c.Image) {
		say("%s: image %s moves", c.Name, c.Image)
	}
	for _, name := range []string{"cpu", "memory"} {
		if c.Resources.Requests[name] == nil {
			say("%s requests no %s", c.Name, name)
		}
	}
	if c.Resources.Limits["memory"] == nil {
		say("%s has no limit of memory", c.Name)
	}
	s := c.SecurityContext
	if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || !s.ReadOnlyRootFilesystem || !slices.Contains(s.Capabilities.Drop, "ALL") || len(s.Capabilities.Add) > 0 {
		say("%s wants no privilege escalation, a read-only root file system and no capability", c.Name)
	}
	for _, e := range c.Env {
		if e.ValueFrom.SecretKeyRef != nil || secretIn.MatchString(e.Value) {
			say("%s: the variable %s holds a secret: mount a file", c.Name, e.Name)
		}
		if secretName.MatchString(e.Name) && !strings.HasPrefix(e.Value, "/secrets/") { // the name of a mounted file
			say("%s: the variable %s is called like a secret", c.Name, e.Name)
		}
	}
	if len(c.EnvFrom) > 0 {
		say("%s takes variables that are not seen here", c.Name)
	}
	if secretIn.MatchString(strings.Join(c.Args, " ")) {
		say("%s: a secret is an argument", c.Name)
	}
}
