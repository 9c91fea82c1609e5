package appconfig

import (
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// TerraformModule holds the keys of a component of type terraform_module,
// in addition to those of every component.
type TerraformModule struct {
	// An exact version such as "1.11.4"; Berth also takes a range such as ">= 1.5.0, < 2.0.0".
	TerraformVersion string `toml:"terraform_version" json:"terraform_version" digest:"build" rule:"required" example:">= 1.5.0, < 2.0.0"`
	// Variables. They win over var files.
	Vars map[string]string `toml:"vars" json:"vars,omitempty" digest:"deploy" template:"true"`
	// Environment of Terraform.
	EnvVars map[string]string `toml:"env_vars" json:"env_vars,omitempty" digest:"deploy" template:"true"`
	// Files of variables; later files win.
	VarFiles []VarFile `toml:"var_file" json:"var_file,omitempty" digest:"deploy"`
}

// VarFile is one tfvars file; later files win over earlier ones, and vars win
// over all of them.
type VarFile struct {
	// The file's text, or its path.
	Contents place.Text `toml:"contents" json:"contents" rule:"required" template:"true"`
}

func (m *TerraformModule) check(ch *checker, c *Component) {
	ch.source(c.At, c.SourceFile, c.sources())
	ch.terraformVersion(c.At.Below("terraform_version"), m.TerraformVersion)
}

// ToolOpenTofu is the value of a [berth] table's tool for OpenTofu.
const ToolOpenTofu = "opentofu"

// noTool reports a tool for something that is no Terraform module.
func (c *checker) noTool(block place.Place, ext *BlockExtension, isModule bool) {
	if ext != nil && ext.Tool != "" && !isModule {
		c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, block.Below("berth.tool"), "tool is for Terraform modules: this is none").WithRemedy("remove it"))
	}
}
