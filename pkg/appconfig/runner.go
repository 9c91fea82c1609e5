package appconfig

// Runner is runner.toml: what runs the jobs of an install.
type Runner struct {
	At Place `toml:"-" json:"at" digest:"-"`

	RunnerType    string            `toml:"runner_type" json:"runner_type" rule:"required"`
	HelmDriver    string            `toml:"helm_driver" json:"helm_driver,omitempty"`
	EnvVars       map[string]string `toml:"env_vars" json:"env_vars,omitempty"`
	InitScriptURL string            `toml:"init_script_url" json:"init_script_url,omitempty"`
	InstanceType  string            `toml:"instance_type" json:"instance_type,omitempty"`
}

func (r *Runner) check(c *checker) {
	c.oneOf(r.At.key("runner_type"), r.RunnerType, "aws", "azure", "gcp", "local",
		"aws-ecs", "aws-eks", "azure-aks", "azure-acs")
	c.oneOf(r.At.key("helm_driver"), r.HelmDriver, "configmap", "secret")
}
