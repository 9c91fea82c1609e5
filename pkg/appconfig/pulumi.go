package appconfig

// Pulumi holds the keys of a component of type pulumi, in addition to those of
// every component.
type Pulumi struct {
	// The language of the program.
	Runtime string `toml:"runtime" json:"runtime,omitempty" digest:"build" default:"go"`
	// Configuration, "namespace:key" to value.
	Config map[string]string `toml:"config" json:"config,omitempty" digest:"deploy" template:"true"`
	// Environment of the program.
	EnvVars map[string]string `toml:"env_vars" json:"env_vars,omitempty" digest:"deploy" template:"true"`
}
