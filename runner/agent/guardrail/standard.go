package guardrail

import (
	"embed"
	"fmt"
	"strings"

	"github.com/berth-dev/berth/pkg/policy"
)

//go:embed standard
var standardFiles embed.FS

// Standard is a guardrail that ships with the runner.
type Standard struct {
	Name   string
	Answer policy.Answer // where nobody says otherwise
	// Once: who agreed to a kind of object is not asked about that kind again.
	Once bool
	// Says is what it is about, for people.
	Says string
}

// Standards are all of them, in the order of docs/guides/guardrails.md.
var Standards = []Standard{
	{Name: "data-object", Answer: policy.Ask, Says: "an object that holds data is deleted or replaced: a volume or a claim, a namespace, a StatefulSet with volumes, a database of an operator, a CustomResourceDefinition"},
	{Name: "data-resource", Answer: policy.Ask, Says: "Terraform deletes or replaces what holds data: databases, buckets, disks, snapshots, queues, keys, vaults, registries, clusters of AWS, Azure and Google"},
	{Name: "pulumi-data", Answer: policy.Ask, Says: "Pulumi deletes or replaces what holds data"},
	{Name: "plugin-removes", Answer: policy.Ask, Says: "a plugin deletes or replaces something"},
	{Name: "plugin-grows", Answer: policy.Ask, Says: "a new version of a plugin may more than the one that you accepted: the network or a host of it, the install's directory, a path of the machine, a role, a state"},
	{Name: "cloud-iam", Answer: policy.Ask, Says: "Terraform changes roles, policies, bindings or keys of the cloud's IAM"},
	{Name: "pulumi-iam", Answer: policy.Ask, Says: "Pulumi changes roles, policies, bindings or keys of the cloud's IAM"},
	{Name: "privileged-container", Answer: policy.Ask, Says: "a container is privileged, or has a capability that reaches the node"},
	{Name: "host-path", Answer: policy.Ask, Says: "a pod mounts a directory of its node"},
	{Name: "host-namespace", Answer: policy.Ask, Says: "a pod shares the network, the processes or the memory of its node"},
	{Name: "rbac-escalation", Answer: policy.Ask, Says: "a role may escalate, bind or impersonate, or a ClusterRole may do everything"},
	{Name: "strong-binding", Answer: policy.Ask, Says: "somebody gets cluster-admin, or admin or edit of the whole cluster"},
	{Name: "cluster-scoped", Answer: policy.Ask, Once: true, Says: "an object counts for the whole cluster; you are asked once for each kind"},
	{Name: "foreign-image", Answer: policy.Warn, Says: "a container's image is not from this install's own registry"},
	{Name: "unaccepted-script", Answer: policy.Deny, Says: "a script runs that nobody on your side has accepted"},
	{Name: "ad-hoc-script", Answer: policy.Ask, Says: "the vendor runs a script that is part of no release"},
	{Name: "runner-objects", Answer: policy.Deny, Says: "the vendor writes objects named berth-runner…, which are the runner's and yours"},
}

// standardText is the file of a guardrail. registry is that of the install.
func standardText(name, registry string) string {
	raw, err := standardFiles.ReadFile("standard/" + name + ".yaml")
	if err != nil {
		panic(err) // a test reads all of them
	}
	return strings.ReplaceAll(string(raw), "@REGISTRY@", registry)
}

func standardRules(registry string) []Rule {
	var list []Rule
	for _, s := range Standards {
		if s.Name == "foreign-image" && registry == "" {
			continue // there is no registry that an image could be from
		}
		list = append(list, Rule{
			Standard: &s,
			Rules:    policy.Rules{Name: s.Name, Language: policy.Kyverno, Text: standardText(s.Name, registry), File: fmt.Sprintf("standard/%s.yaml", s.Name)},
		})
	}
	return list
}
