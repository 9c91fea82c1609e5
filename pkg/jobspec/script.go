package jobspec

import (
	"fmt"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
)

// Script is vendor code that a release brings and a runner may run: an action as
// the app folder has it, with the schedule and the role that it runs under. A
// runner runs no script whose digest it has not accepted.
type Script struct {
	// Action is the action without run-time values: its Inputs are empty.
	Action Action `json:"action"`
	// Inputs are the names of the values that a run may bring, sorted.
	Inputs []string `json:"inputs,omitempty"`
	// Cron is when the runner starts it by itself, "" when it does not.
	Cron string `json:"cron,omitempty"`
	// Role is the identity in the customer's account that it runs as, "" for the
	// runner's own.
	Role           string `json:"role,omitempty"`
	TimeoutSeconds int    `json:"timeout_seconds"`
	// HealthCheck: the outcome is judged, and the script may change nothing.
	HealthCheck bool `json:"health_check,omitempty"`
	// Unattended: the runner starts it by itself at each tick of Cron, without a
	// decision on that run, though it may change something.
	Unattended bool `json:"unattended,omitempty"`
	// Heals are the checks about which the runner starts it by itself, without a
	// decision on that run. With the script their numbers are accepted.
	Heals []Heal `json:"heals,omitempty"`
	// WhenRoleIsOff: it may also run after its Action.BreakGlassRole was switched off,
	// then without that role.
	WhenRoleIsOff bool `json:"when_role_is_off,omitempty"`
	// Plugin is the component type of a plugin, "" for a script: see PluginScript.
	Plugin string `json:"plugin,omitempty"`
}

// Digest names a script by all that decides what it does, "sha256:…". What a run
// brings (inputs, what switched its role off, and the state that templates read) is not part of it, nor is
// the file that a text stands in: that is for errors only. Of the directory of a
// repository its digest counts, and not where it is kept.
func (s Script) Digest() (string, error) {
	s.Action.Inputs, s.Action.SwitchedOff, s.Action.File = nil, "", ""
	s.Action.Steps = slices.Clone(s.Action.Steps)
	for i := range s.Action.Steps {
		step := &s.Action.Steps[i]
		step.ScriptName = ""
		if step.Artifact != nil {
			step.Artifact = &Artifact{Digest: step.Artifact.Digest}
		}
	}
	return capsule.DigestOf(s)
}

// Artifacts are the directories that the action's steps run in, each once.
func (a Action) Artifacts() []Artifact {
	var all []Artifact
	for _, step := range a.Steps {
		if step.Artifact == nil {
			continue
		}
		same := func(other Artifact) bool { return other.Digest == step.Artifact.Digest }
		if !slices.ContainsFunc(all, same) {
			all = append(all, *step.Artifact)
		}
	}
	return all
}

// Takes says whether a run may bring a value under the name.
func (s Script) Takes(name string) bool { return slices.Contains(s.Inputs, name) }

// Heal says when the runner starts a script by itself: because a check is unhealthy.
type Heal struct {
	// Check is the Scheduled.Name of the check or probe.
	Check string `json:"check"`
	// Reverts: the script takes the remedy back, once, when no attempt helped. Of such a
	// Heal the numbers are those of the remedy.
	Reverts bool `json:"reverts,omitempty"`
	// UnhealthyAfter bad outcomes in a row make the check unhealthy, HealthyAfter good ones
	// healthy again.
	UnhealthyAfter int `json:"unhealthy_after"`
	HealthyAfter   int `json:"healthy_after"`
	// Attempts is how many times it is started until the check stays healthy,
	// CooldownSeconds how long after an attempt's end the next one waits.
	Attempts        int `json:"attempts"`
	CooldownSeconds int `json:"cooldown_seconds"`
}

// Cooldown is CooldownSeconds as a duration.
func (h Heal) Cooldown() time.Duration { return time.Duration(h.CooldownSeconds) * time.Second }

// String says it to people, after "runs".
func (h Heal) String() string {
	if h.Reverts {
		return fmt.Sprintf("BY ITSELF once when the remediation of %s did not help, to take it back", h.Check)
	}
	return fmt.Sprintf("BY ITSELF when %s is unhealthy (%d times in a row), at most %d times until it stays healthy (%d times in a row), %s apart",
		h.Check, h.UnhealthyAfter, h.Attempts, h.HealthyAfter, h.Cooldown())
}

// HealOf finds what the script says about a check.
func (s Script) HealOf(check string, reverts bool) (h Heal, found bool) {
	i := slices.IndexFunc(s.Heals, func(h Heal) bool { return h.Check == check && h.Reverts == reverts })
	if i < 0 {
		return Heal{}, false
	}
	return s.Heals[i], true
}
