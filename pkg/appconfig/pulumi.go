package appconfig

// Pulumi holds the keys of a component of type pulumi, in addition to those of
// every component.
type Pulumi struct {
	// The language of the program. It must be the one that its Pulumi.yaml names, which counts where this is not given.
	Runtime string `toml:"runtime" json:"runtime,omitempty" digest:"build"`
	// Lets packages of npm run their install scripts when the program is built. Berth's own.
	NpmScripts bool `toml:"npm_scripts" json:"npm_scripts,omitempty" digest:"build" default:"false"`
	// Configuration, "namespace:key" to value; a key without a namespace is in that of the project.
	Config map[string]string `toml:"config" json:"config,omitempty" digest:"deploy" template:"true"`
	// Environment of the program and its providers.
	EnvVars map[string]string `toml:"env_vars" json:"env_vars,omitempty" digest:"deploy" template:"true"`
}
