package appconfig

import (
	"path"
	"regexp"

	"github.com/berth-dev/berth/pkg/appconfig/folder"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// DockerBuild holds the keys of a component of type docker_build, in addition
// to those of every component: an image that is built from the component's
// source.
type DockerBuild struct {
	// The Dockerfile's path in the source.
	Dockerfile string `toml:"dockerfile" json:"dockerfile" digest:"build" rule:"required"`
	// Further build arguments; args wins over them.
	EnvVars map[string]string `toml:"env_vars" json:"env_vars,omitempty" digest:"build"`
	// The stage that is built; the last one by default. Berth's own.
	Target string `toml:"target" json:"target,omitempty" digest:"build"`
	// Build arguments. Berth's own.
	Args map[string]string `toml:"args" json:"args,omitempty" digest:"build"`
	// The directory of the source that the build sees; its root by default. Berth's own.
	Context string `toml:"context" json:"context,omitempty" digest:"build"`
	// What it is built for, such as "linux/amd64"; what BuildKit runs on by default. Berth's own.
	Platforms []string `toml:"platforms" json:"platforms,omitempty" digest:"build"`
	// The network of RUN steps: that of BuildKit, or none. Berth's own.
	Network DockerNetwork `toml:"network" json:"network,omitempty" enum:"default,none" digest:"build"`
	// Names of secrets that RUN steps may mount; their values are the builder's. Berth's own.
	Secrets []string `toml:"secrets" json:"secrets,omitempty" digest:"build"`
}

// DockerNetwork is the network of RUN steps.
type DockerNetwork string

// The networks.
const (
	DockerNetworkDefault DockerNetwork = "default" // what BuildKit has
	DockerNetworkNone    DockerNetwork = "none"
)

// secretFormat is the name of a build secret: it becomes the name of a file.
var secretFormat = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)

// platformFormat is operating system, architecture and, if need be, a variant.
var platformFormat = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9_]+(/[a-z0-9]+)?$`)

func (d *DockerBuild) check(ch *checker, c *Component) {
	ch.source(c.At, c.SourceFile, c.sources())
	for key, dir := range map[string]string{"dockerfile": d.Dockerfile, "context": d.Context} {
		if dir == "" {
			continue
		}
		if clean := folder.Clean(dir); path.IsAbs(clean) || folder.Inside(clean) != nil {
			ch.Add(place.Error, place.CodeOutsideOfApp, c.At.Below(key), "%s %q leaves the source", key, dir)
		}
	}
	for i, p := range d.Platforms {
		if !platformFormat.MatchString(p) {
			ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, c.At.Below("platforms").Item(i), "platform %q is not a platform", p).
				WithRemedy(`write operating system and architecture, such as "linux/arm64"`))
		}
	}
	for i, name := range d.Secrets {
		if !secretFormat.MatchString(name) {
			ch.Diags = append(ch.Diags, ch.At(place.Error, place.CodeValue, c.At.Below("secrets").Item(i), "%q cannot be the name of a build secret", name).
				WithRemedy("use letters, digits, dots, hyphens and underscores, 64 at most"))
		}
	}
}
