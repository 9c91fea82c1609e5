package appconfig

import (
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// PoliciesFile is policies.toml: all policies.
type PoliciesFile struct {
	// The policies.
	Policies []Policy `toml:"policy" json:"policy,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// Policy is a rule that plans and objects are held against: a [[policy]] of
// policies.toml or one file below policies/.
type Policy struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// What it looks at. The names that begin with runner_job are older ones.
	Type PolicyType `toml:"type" json:"type" rule:"required" enum:"container_image,helm_chart,kubernetes_manifest,terraform_module,kubernetes_cluster,sandbox,runner_job_terraform_deploy,runner_job_helm_deploy,runner_job_action_workflow"`
	// The language of its contents: "opa" is Rego.
	Engine string `toml:"engine" json:"engine" enum:"kyverno,opa" default:"kyverno"`
	// Its name; by default that of its file.
	Name string `toml:"name" json:"name"`
	// The components that it is for, or ["*"].
	Components []string `toml:"components" json:"components,omitempty"`
	// Rules as YAML of Kyverno or as Rego: their text, or a file. Below policies/ the file's path is relative to the policy's own folder.
	Contents place.Text `toml:"contents" json:"contents" rule:"required" template:"true"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// PolicyType says what a policy looks at.
type PolicyType string

const (
	PolicyContainerImage     PolicyType = "container_image"
	PolicyHelmChart          PolicyType = "helm_chart"
	PolicyKubernetesManifest PolicyType = "kubernetes_manifest"
	PolicyTerraformModule    PolicyType = "terraform_module"
	PolicyKubernetesCluster  PolicyType = "kubernetes_cluster" // everything that enters the cluster
	PolicySandbox            PolicyType = "sandbox"
)

// AllComponents stands for every component in the components of a policy.
const AllComponents = "*"

func (p *Policy) check(c *checker) {
	if p.Engine == "" {
		p.Engine = "kyverno"
	}
	if slices.Contains(p.Components, AllComponents) && len(p.Components) > 1 {
		c.Add(place.Warning, place.CodeValue, p.At.Below("components"), `components has "*", so the other names do nothing`)
	}
}
