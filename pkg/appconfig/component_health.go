package appconfig

// ComponentHealth is the health table of a component.
type ComponentHealth struct {
	// Questions that are asked of the deployed component: tables of free keys, such as type and target.
	Probes []map[string]string `toml:"probes" json:"probes,omitempty" template:"true"`
	// Fails a deploy after which the component is not healthy.
	BlockDeploy bool `toml:"block_deploy" json:"block_deploy,omitempty" default:"false"`
	// How long it must stay healthy after a deploy.
	StabilizationWindow Duration `toml:"stabilization_window" json:"stabilization_window,omitzero"`
	// Names of the checks that must pass.
	RequiredChecks []string `toml:"required_checks" json:"required_checks,omitempty"`
}

// ComponentOverride is the older place of a component's health.
type ComponentOverride struct {
	// How its health is known.
	Health *ComponentHealth `toml:"health" json:"health,omitempty"`
}

func (h *ComponentHealth) check(c *checker, at Place) {
	c.positive(at.key("stabilization_window"), h.StabilizationWindow)
}
