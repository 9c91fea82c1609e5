package appconfig

// TerraformModule holds the keys of a component of type terraform_module.
type TerraformModule struct {
	TerraformVersion string            `toml:"terraform_version" json:"terraform_version" digest:"build" rule:"required"`
	Vars             map[string]string `toml:"vars" json:"vars,omitempty" digest:"deploy" template:"true"`
	EnvVars          map[string]string `toml:"env_vars" json:"env_vars,omitempty" digest:"deploy" template:"true"`
	VarFiles         []VarFile         `toml:"var_file" json:"var_file,omitempty" digest:"deploy"`
}

// VarFile is one tfvars file; later files win over earlier ones, and vars win
// over all of them.
type VarFile struct {
	Contents Text `toml:"contents" json:"contents" rule:"required" template:"true"`
}

func (m *TerraformModule) check(ch *checker, c *Component) {
	ch.source(c.At, c.PublicRepo, c.ConnectedRepo, c.Berth)
	ch.terraformVersion(c.At.key("terraform_version"), m.TerraformVersion)
}
