package appconfig

import "slices"

// CustomerManaged is the customer_managed table of metadata.toml, or
// customer_managed.toml: what goes into packages for customers who run the app
// without the vendor's control plane.
type CustomerManaged struct {
	// The runner's image, without tag.
	RunnerImageURL string `toml:"runner_image_url" json:"runner_image_url" rule:"required"`
	// The tag of the runner's image.
	RunnerImageTag string `toml:"runner_image_tag" json:"runner_image_tag" rule:"required"`
	// The platforms that packages are made for.
	Platforms []CustomerPlatform `toml:"platforms" json:"platforms,omitempty" rule:"required"`
}

// CustomerPlatform names the programs for one platform.
type CustomerPlatform struct {
	// Operating system and architecture, such as "linux/amd64".
	Target string `toml:"target" json:"target" rule:"required"`
	// Where the portal is downloaded from.
	PortalBinaryURL string `toml:"portal_binary_url" json:"portal_binary_url" rule:"required"`
	// Where the runner is downloaded from.
	RunnerBinaryURL string `toml:"runner_binary_url" json:"runner_binary_url" rule:"required"`
}

func (m *CustomerManaged) check(c *checker, at Place) {
	for i, p := range m.Platforms {
		first := slices.IndexFunc(m.Platforms, func(other CustomerPlatform) bool { return other.Target == p.Target })
		if first < i {
			c.add(Error, CodeDuplicate, at.key("platforms").item(i).key("target"), "platform %q is there twice", p.Target)
		}
	}
}
