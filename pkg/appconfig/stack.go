package appconfig

import (
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// StackType says how a runner gets into the customer's place.
type StackType string

const (
	StackLocal             StackType = "local"      // a process on this machine (Berth)
	StackKubernetes        StackType = "kubernetes" // a Deployment in a cluster (Berth)
	StackAWSCloudFormation StackType = "aws-cloudformation"
	StackAzureBicep        StackType = "azure-bicep"
	StackGCPTerraform      StackType = "gcp-terraform"
)

// Stack is stack.toml: what the customer applies first.
type Stack struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// How the runner gets to the customer: "local" is a process on this machine and "kubernetes" a Deployment in a cluster, both Berth's own.
	Type StackType `toml:"type" json:"type" rule:"required" enum:"local,kubernetes,aws-cloudformation,azure-bicep,gcp-terraform"`
	// The stack's name in the customer's account; a stack in a cloud needs it.
	Name string `toml:"name" json:"name" template:"true"`
	// What the customer reads before applying the stack; a stack in a cloud needs it.
	Description string `toml:"description" json:"description" template:"true"`
	// The template of the network.
	VPCNestedTemplateURL string `toml:"vpc_nested_template_url" json:"vpc_nested_template_url,omitempty" template:"true"`
	// The template of the runner.
	RunnerNestedTemplateURL string `toml:"runner_nested_template_url" json:"runner_nested_template_url,omitempty" template:"true"`
	// More stacks that the customer applies.
	CustomNestedStacks []NestedStack `toml:"custom_nested_stacks" json:"custom_nested_stacks,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// NestedStack is one more stack that the customer applies, in order of Index.
type NestedStack struct {
	// The name of the stack and of its group of parameters.
	Name string `toml:"name" json:"name" rule:"required"`
	// The stack's template; on GCP the path of a module.
	TemplateURL string `toml:"template_url" json:"template_url" rule:"required" template:"true"`
	// Where in the order it is applied; each number once.
	Index int `toml:"index" json:"index" rule:"required"`
	// Its parameters. They may read inputs, the install's id and name, app and org.
	Parameters map[string]string `toml:"parameters" json:"parameters,omitempty" template:"true"`
}

// InCloud tells whether the customer applies the stack in a cloud account.
func (s *Stack) InCloud() bool {
	return s.Type != "" && s.Type != StackLocal && s.Type != StackKubernetes
}

func (s *Stack) check(c *checker) {
	if s.InCloud() && s.SourceFile == "" {
		for _, key := range []struct{ name, text string }{{"name", s.Name}, {"description", s.Description}} {
			if key.text == "" && !c.Misspelt(s.At, key.name) {
				c.Add(place.Error, place.CodeMissing, s.At, "%s is missing", key.name)
			}
		}
	}
	indexes := map[int]bool{}
	for i, nested := range s.CustomNestedStacks {
		at := s.At.Below("custom_nested_stacks").Item(i)
		if indexes[nested.Index] {
			c.Add(place.Error, place.CodeDuplicate, at.Below("index"), "nested stack %q has the index %d of another one", nested.Name, nested.Index)
		}
		indexes[nested.Index] = true
	}
}
