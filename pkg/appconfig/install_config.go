package appconfig

import (
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// InstallConfig is one file under installs/: an install that is made when it is
// missing and updated when it is there.
type InstallConfig struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// The install's name.
	Name string `toml:"name" json:"name" rule:"required"`
	// Who approves its plans: "prompt" asks, "approve-all" (also written "auto") does not.
	ApprovalOption string `toml:"approval_option" json:"approval_option,omitempty" enum:"prompt,approve-all,auto" default:"prompt"`
	// Its place in AWS.
	AWSAccount *AWSAccount `toml:"aws_account" json:"aws_account,omitempty"`
	// Its place in Azure.
	AzureAccount *AzureAccount `toml:"azure_account" json:"azure_account,omitempty"`
	// Its place in GCP.
	GCPAccount *GCPAccount `toml:"gcp_account" json:"gcp_account,omitempty"`
	// Values of inputs: one table, or a list of tables of which later ones win.
	Inputs []map[string]string `toml:"inputs" json:"inputs,omitempty"`
	// Labels.
	Labels map[string]string `toml:"labels" json:"labels,omitempty"`
	// Toggleable components: true switches on, false off.
	ComponentToggles map[string]bool `toml:"component_toggles" json:"component_toggles,omitempty"`
	// Values of single components that win over all others.
	Components map[string]InstallComponent `toml:"components" json:"components,omitempty"`
	// Other templates of the stack.
	StackOverrides *StackOverrides `toml:"stack_overrides" json:"stack_overrides,omitempty"`
	// What Berth adds to the format.
	Berth *InstallExtension `toml:"berth" json:"berth,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// InstallExtension is the [berth] table of an install: what Berth adds to the
// format.
type InstallExtension struct {
	// The customer that a new install is for, by id or name; one of the install's name by default. It never changes.
	Customer string `toml:"customer" json:"customer,omitempty"`
}

// AWSAccount says where in AWS an install stands.
type AWSAccount struct {
	// The region.
	Region string `toml:"region" json:"region" rule:"required"`
}

// AzureAccount says where in Azure an install stands.
type AzureAccount struct {
	// The location.
	Location string `toml:"location" json:"location" rule:"required"`
}

// GCPAccount says where in GCP an install stands.
type GCPAccount struct {
	// The project.
	ProjectID string `toml:"project_id" json:"project_id" rule:"required"`
	// The region.
	Region string `toml:"region" json:"region" rule:"required"`
}

// InstallComponent changes one component of one install.
type InstallComponent struct {
	// Values of a chart, as YAML.
	HelmValues string `toml:"helm_values" json:"helm_values,omitempty" template:"true"`
	// Variables of a Terraform module, as HCL or JSON.
	TFVars string `toml:"tf_vars" json:"tf_vars,omitempty" template:"true"`
}

// StackOverrides changes the stack of one install.
type StackOverrides struct {
	// The template of the network.
	VPCNestedTemplateURL string `toml:"vpc_nested_template_url" json:"vpc_nested_template_url,omitempty" template:"true"`
	// The template of the runner.
	RunnerNestedTemplateURL string `toml:"runner_nested_template_url" json:"runner_nested_template_url,omitempty" template:"true"`
	// Stacks that replace those of the same name, and more stacks.
	CustomNestedStacks []NestedStack `toml:"custom_nested_stacks" json:"custom_nested_stacks,omitempty"`
}

// InstallsRepo is installs.toml: the repository that holds the install files
// instead of installs/.
type InstallsRepo struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// A repository that everybody can read; one of these two must be given.
	PublicRepo *Repo `toml:"public_repo" json:"public_repo,omitempty"`
	// A repository that the org's own connection reads.
	ConnectedRepo *Repo `toml:"connected_repo" json:"connected_repo,omitempty"`
}

// ApproveAll is the approval option that asks nobody.
const ApproveAll = "approve-all"

func (in *InstallConfig) check(c *checker) {
	if in.ApprovalOption == "auto" {
		in.ApprovalOption = ApproveAll
	}
	var given []string
	for key, is := range map[string]bool{"aws_account": in.AWSAccount != nil, "azure_account": in.AzureAccount != nil, "gcp_account": in.GCPAccount != nil} {
		if is {
			given = append(given, key)
		}
	}
	if len(given) > 1 {
		c.Add(place.Error, place.CodeExclusive, in.At, "an install stands in one cloud, and install %q names %d", in.Name, len(given))
	}
}

func (r *InstallsRepo) check(c *checker) {
	c.oneSource(r.At, "", sources{public: r.PublicRepo, connected: r.ConnectedRepo}.given(), "[public_repo] or [connected_repo]")
}
