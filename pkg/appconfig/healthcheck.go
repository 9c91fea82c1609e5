package appconfig

import (
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// HealthCheck says when the outcomes of a check or a probe change a verdict, and what is
// done about a bad one.
type HealthCheck struct {
	// Bad outcomes in a row that make it unhealthy: 3 by default, 2 for the probe of a component.
	UnhealthyAfter int `toml:"unhealthy_after" json:"unhealthy_after" default:"3"`
	// Good outcomes in a row that make it healthy again: 2 by default, 1 for the probe of a component.
	HealthyAfter int `toml:"healthy_after" json:"healthy_after" default:"2"`
	// The action that the runner runs by itself when it becomes unhealthy. Who accepts the release accepts that, with the numbers of this table.
	Remediation string `toml:"remediation" json:"remediation,omitempty"`
	// How many times it runs, at most, until the check stays healthy.
	RemediationAttempts int `toml:"remediation_attempts" json:"remediation_attempts,omitempty" default:"3"`
	// How long to wait between two attempts.
	RemediationCooldown place.Duration `toml:"remediation_cooldown" json:"remediation_cooldown,omitzero" default:"10m"`
	// Who starts it: the runner, by itself ("automatic"), or a workflow that waits for a decision ("ask").
	RemediationMode string `toml:"remediation_mode" json:"remediation_mode,omitempty" enum:"automatic,ask" default:"automatic"`
	// The action that takes the attempts back when none helped. It runs once.
	RemediationRevert string `toml:"remediation_revert" json:"remediation_revert,omitempty"`
}

// Who starts a remediation.
const (
	RemediationAutomatic = "automatic"
	RemediationAsk       = "ask"
)

// What a table that does not say it gets.
const (
	DefaultRemediationAttempts = 3
	DefaultRemediationCooldown = 10 * time.Minute
	// MaxRemediationAttempts is how many attempts there can be.
	MaxRemediationAttempts = 10

	// What Kubernetes says of objects is not as noisy as a script: one bad look may be a
	// roll-out, two are not.
	DefaultProbeUnhealthyAfter = 2
	DefaultProbeHealthyAfter   = 1
)

// check checks a table and fills in its thresholds, of which normal has the defaults.
func (h *HealthCheck) check(c *checker, at place.Place, normal HealthCheck) {
	if h.UnhealthyAfter == 0 {
		h.UnhealthyAfter = normal.UnhealthyAfter
	}
	if h.HealthyAfter == 0 {
		h.HealthyAfter = normal.HealthyAfter
	}
	c.notNegative(at.Below("unhealthy_after"), h.UnhealthyAfter)
	c.notNegative(at.Below("healthy_after"), h.HealthyAfter)
	h.checkRemediation(c, at)
}

func (h *HealthCheck) checkRemediation(c *checker, at place.Place) {
	if h.Remediation == "" {
		for _, key := range []string{"remediation_attempts", "remediation_cooldown", "remediation_mode", "remediation_revert"} {
			if c.isWritten(at.Below(key)) {
				c.Add(place.Warning, place.CodeExclusive, at.Below(key), "%s does nothing without remediation", key)
			}
		}
		return
	}
	c.OneOf(at.Below("remediation_mode"), h.RemediationMode, RemediationAutomatic, RemediationAsk)
	if h.RemediationMode == RemediationAsk {
		for _, key := range []string{"remediation_attempts", "remediation_cooldown", "remediation_revert"} {
			if c.isWritten(at.Below(key)) {
				c.Add(place.Warning, place.CodeExclusive, at.Below(key), "%s does nothing with remediation_mode = %q: a person decides each time", key, RemediationAsk)
			}
		}
	}
	c.notNegative(at.Below("remediation_attempts"), h.RemediationAttempts)
	c.positive(at.Below("remediation_cooldown"), h.RemediationCooldown)
	if h.RemediationAttempts > MaxRemediationAttempts {
		c.Add(place.Error, place.CodeValue, at.Below("remediation_attempts"), "remediation_attempts is %d; the most is %d", h.RemediationAttempts, MaxRemediationAttempts)
	}
	if h.RemediationAttempts == 0 {
		h.RemediationAttempts = DefaultRemediationAttempts
	}
	if h.RemediationCooldown == 0 {
		h.RemediationCooldown = place.Duration(DefaultRemediationCooldown)
	}
}

// HasProbe tells whether the runner looks at the component's objects by itself.
func (c *Component) HasProbe() bool { return c.HelmChart != nil || c.KubernetesManifest != nil }

// Probe returns the thresholds of the component's probe, and what is done about it.
func (c *Component) Probe() HealthCheck {
	if c.Berth != nil && c.Berth.HealthCheck != nil {
		return *c.Berth.HealthCheck
	}
	return HealthCheck{UnhealthyAfter: DefaultProbeUnhealthyAfter, HealthyAfter: DefaultProbeHealthyAfter}
}

// checkProbe checks [berth.health_check] of a block, which does nothing without a probe.
func (c *checker) checkProbe(block place.Place, ext *BlockExtension, hasProbe bool) {
	if ext.HealthCheck == nil {
		return
	}
	at := block.Below("berth.health_check")
	if !hasProbe {
		c.Add(place.Warning, place.CodeExclusive, at, "[berth.health_check] does nothing here: only the objects of helm charts and Kubernetes manifests are probed; let an action check it")
	}
	ext.HealthCheck.check(c, at, HealthCheck{UnhealthyAfter: DefaultProbeUnhealthyAfter, HealthyAfter: DefaultProbeHealthyAfter})
}

// Remedied is a check or probe with a remediation.
type Remedied struct {
	HealthCheck
	// Action is the action that is the check, or Component the component whose probe it is.
	Action, Component string
	At                place.Place // of the table
	// ByItself: the runner looks by itself. A check without a schedule is not healed.
	ByItself bool
}

// Check is what the outcomes of the check or the probe are reported under.
func (r Remedied) Check() string {
	if r.Component != "" {
		return "component/" + r.Component
	}
	return r.Action
}

// Remedied lists the checks and probes that name a remediation.
func (a *App) Remedied() (list []Remedied) {
	for i := range a.Actions {
		action := &a.Actions[i]
		if check, ok := action.HealthCheck(); ok && check.Remediation != "" {
			list = append(list, Remedied{HealthCheck: check, Action: action.Name, At: action.At.Below("berth.health_check"), ByItself: action.scheduled()})
		}
	}
	for i := range a.Components {
		c := &a.Components[i]
		if probe := c.Probe(); probe.Remediation != "" {
			list = append(list, Remedied{HealthCheck: probe, Component: c.Name, At: c.At.Below("berth.health_check"), ByItself: c.HasProbe()})
		}
	}
	return list
}
