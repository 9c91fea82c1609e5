package jobspec

import (
	"slices"

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
