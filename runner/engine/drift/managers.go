package drift

import (
	"strings"
)

// A manager is a name that managedFields know, and what follows from it.
type manager struct {
	name   string // a * at its end or its beginning stands for anything
	class  Class
	reason string
}

// The names that are known. In what order they count, next to what a manager
// does, judge says.
var (
	people = []manager{
		{"kubectl", HumanEdit, "kubectl: apply --server-side and scale write under this name"},
		{"kubectl-*", HumanEdit, "a command of kubectl"},
		{"oc", HumanEdit, "the command of OpenShift"},
		{"k9s", HumanEdit, "a terminal for clusters"},
		{"Lens", HumanEdit, "a desktop application for clusters"},
		{"OpenLens", HumanEdit, "a desktop application for clusters"},
		{"node-fetch", HumanEdit, "the library with which Lens and other desktop applications write"},
		{"headlamp*", HumanEdit, "a web console"},
		{"dashboard*", HumanEdit, "the Kubernetes dashboard"},
		{"Mozilla", HumanEdit, "a browser: the web console of a cluster or a cloud"},
		{"curl", HumanEdit, "a command that a person or a script starts"},
		{"Wget", HumanEdit, "a command that a person or a script starts"},
		{"HTTPie", HumanEdit, "a command that a person or a script starts"},
		{"PostmanRuntime", HumanEdit, "a desktop application"},
		{"insomnia", HumanEdit, "a desktop application"},
		{"python-requests", HumanEdit, "a script: controllers have names of their own"},
		{"axios", HumanEdit, "a script: controllers have names of their own"},
		{"okhttp", HumanEdit, "a script: controllers have names of their own"},
		{"Terraform*", HumanEdit, "a tool that a person or a pipeline starts"},
		{"pulumi*", HumanEdit, "a tool that a person or a pipeline starts"},
		{"skaffold", HumanEdit, "a tool that a person or a pipeline starts"},
		{"tilt", HumanEdit, "a tool that a person or a pipeline starts"},
	}
	controllers = []manager{
		{"kube-controller-manager", Controller, "the controllers of Kubernetes, also the autoscaler of pods"},
		{"kube-scheduler", Controller, "the scheduler of Kubernetes"},
		{"kubelet", Controller, "the agent of a node"},
		{"kube-apiserver", Controller, "the API server itself"},
		{"cluster-autoscaler", Controller, "scales nodes"},
		{"vpa-*", Controller, "sets what pods request"},
		{"keda*", Controller, "scales by events"},
		{"cainjector", Controller, "cert-manager's: writes caBundle"},
		{"cert-manager*", Controller, "makes certificates, writes caBundle"},
		{"pilot-discovery", Controller, "Istio's: writes caBundle of its webhooks"},
		{"istio*", Controller, "a service mesh"},
		{"linkerd*", Controller, "a service mesh"},
		{"flagger", Controller, "shifts traffic between releases"},
		{"Reloader", Controller, "restarts pods when a ConfigMap or Secret changes"},
		{"external-secrets", Controller, "writes Secrets"},
		{"PrometheusOperator", Controller, "an operator"},
		{"kyverno*", Controller, "policies that change objects"},
		{"gatekeeper*", Controller, "policies that change objects"},
		{"argocd-*", Controller, "deploys from git"},
		{"manager", Controller, "the program's name that kubebuilder gives to operators"},
		{"*-controller", Controller, "named as a controller"},
		{"*-controller-manager", Controller, "named as a controller"},
		{"*-operator", Controller, "named as an operator"},
		{"*-webhook", Controller, "named as a webhook"},
		{"*-injector", Controller, "named as a webhook that adds to pods"},
		{"*-autoscaler", Controller, "named as an autoscaler"},
	}
	nobody = []manager{
		{"", Unknown, "a manager without a name"},
		{"unknown", Unknown, "the API server's name for a client that gave none"},
		{"before-first-apply", Unknown, "the API server's name for all who wrote before fields were tracked"},
		{"ancient-changes", Unknown, "the API server's name for writers of long ago, merged"},
		{"Go-http-client", Unknown, "a program in Go that gave no name"},
		{"OpenAPI-Generator", Unknown, "a client in Python: scripts and operators use it"},
		{"Swagger-Codegen", Unknown, "a client in Python: scripts and operators use it"},
	}
)

func find(list []manager, name string) (manager, bool) {
	for _, m := range list {
		begin, isPrefix := strings.CutSuffix(m.name, "*")
		end, isSuffix := strings.CutPrefix(m.name, "*")
		if m.name == name || isPrefix && strings.HasPrefix(name, begin) || isSuffix && strings.HasSuffix(name, end) {
			return m, true
		}
	}
	return manager{}, false
}

// releases are the Helm release that the wanted object names, and the one that
// the live object names.
type releases struct{ wanted, live string }

// judge says what an owner of a field is.
func (m *managed) judge(e entry, r releases) (Class, string) {
	if known, ok := find(people, e.manager); ok {
		return known.class, known.reason
	}
	if strings.EqualFold(e.manager, "helm") {
		if r.live != "" && r.live != r.wanted {
			return Controller, "the object is of Helm release " + r.live + " now"
		}
		return HumanEdit, "helm was run by hand or by a pipeline"
	}
	if known, ok := find(nobody, e.manager); ok {
		return known.class, known.reason
	}
	switch {
	case m.status[e.manager]:
		return Controller, "it also writes the status of the object"
	case e.subresource == "scale":
		return Controller, "it writes replicas through the scale subresource, as autoscalers do"
	}
	if known, ok := find(controllers, e.manager); ok {
		return known.class, known.reason
	}
	return Unknown, "no manager of this name is known"
}
