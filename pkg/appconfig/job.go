package appconfig

// Job holds the keys of a component of type job, in addition to those of every
// component: a container that runs once per deploy.
type Job struct {
	// The image's name without tag.
	ImageURL string `toml:"image_url" json:"image_url" digest:"build" rule:"required"`
	// The image's tag.
	Tag string `toml:"tag" json:"tag" digest:"build" rule:"required"`
	// The program; the image's own by default.
	Cmd []string `toml:"cmd" json:"cmd,omitempty" digest:"deploy" template:"true"`
	// Its arguments.
	Args []string `toml:"args" json:"args,omitempty" digest:"deploy" template:"true"`
	// Its environment.
	EnvVars map[string]string `toml:"env_vars" json:"env_vars,omitempty" digest:"deploy" template:"true"`
}
