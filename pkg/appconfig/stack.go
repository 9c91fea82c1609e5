package appconfig

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
	At Place `toml:"-" json:"at" digest:"-"`

	Type                    StackType     `toml:"type" json:"type" rule:"required"`
	Name                    string        `toml:"name" json:"name" rule:"required" template:"true"`
	Description             string        `toml:"description" json:"description" rule:"required" template:"true"`
	VPCNestedTemplateURL    string        `toml:"vpc_nested_template_url" json:"vpc_nested_template_url,omitempty" template:"true"`
	RunnerNestedTemplateURL string        `toml:"runner_nested_template_url" json:"runner_nested_template_url,omitempty" template:"true"`
	CustomNestedStacks      []NestedStack `toml:"custom_nested_stacks" json:"custom_nested_stacks,omitempty"`
}

// NestedStack is one more stack that the customer applies, in order of Index.
type NestedStack struct {
	Name        string            `toml:"name" json:"name" rule:"required"`
	TemplateURL string            `toml:"template_url" json:"template_url" rule:"required" template:"true"`
	Index       int               `toml:"index" json:"index" rule:"required"`
	Parameters  map[string]string `toml:"parameters" json:"parameters,omitempty" template:"true"`
}

func (s *Stack) check(c *checker) {
	c.oneOf(s.At.key("type"), string(s.Type), string(StackLocal), string(StackKubernetes), string(StackAWSCloudFormation),
		string(StackAzureBicep), string(StackGCPTerraform))
	indexes := map[int]bool{}
	for i, nested := range s.CustomNestedStacks {
		at := s.At.key("custom_nested_stacks").item(i)
		if indexes[nested.Index] {
			c.add(Error, CodeDuplicate, at.key("index"), "nested stack %q has the index %d of another one", nested.Name, nested.Index)
		}
		indexes[nested.Index] = true
	}
}
