package build

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
	"github.com/berth-dev/berth/services/builder/internal/source"
	"github.com/berth-dev/berth/services/internal/model"
)

// State is everything that Next decides from.
type State struct {
	Build Build
	// Reusable are artifacts of exactly the same, the best first; read once the
	// source is resolved.
	Reusable []Made
	// Job is the build's runner job; nil before there is one.
	Job *Job
	// MachineKey is the public key of the org's Build Runner; nil before it has
	// enrolled, which wakes us.
	MachineKey *string
	// Private: the source is an image that builder has a key for.
	Private bool
	// Facts were learned outside the database.
	Facts Facts
	// Try counts from 1 how often this was tried. On the LastTry trouble that might
	// pass is not waited for any longer.
	Try     int
	LastTry bool
}

// Build is a row with what it is a build of.
type Build struct {
	ID          string
	OrgID       string
	AppID       string
	App         string
	ComponentID string
	Component   string
	Type        string // jobspec.Kind
	BuildDigest string
	Source      source.Source
	// File of the app folder defines the component; Directory is where in it the
	// source of an upload stands, "" when it does not stand there.
	File      string
	Directory string
	// Kustomize says how the manifest is made of the source; nil for anything else.
	Kustomize *jobspec.Kustomize
	// Docker says how an image is built of the source; nil for anything else.
	Docker *jobspec.Docker
	// KeepCache: what builds of it leave for each other is kept.
	KeepCache bool
	// Tool is what a Terraform module is for; "" where the app does not say it.
	Tool string
	// ImageKey must have signed an image of somebody else's; "" for none.
	ImageKey string
	// Policies are the vendor's rules that the image is held against, as the builder's
	// order carries them.
	Policies []policy.Rules
	// Pulumi says how a program is built of the source; nil for anything else.
	Pulumi *jobspec.PulumiBuild
	// Signer is the public key that must have signed a plugin, "" for anything else.
	Signer string
	// SourceFault says why Source is not one.
	SourceFault string
	Commit      string // of a git source; of an image its digest, of a chart or a range of images a source.Pin
	// Before is the digest that this version of a chart had in an earlier build of
	// the component, "" when it had no other.
	Before          string
	Resolved        string // resolved_digest
	Provenance      Provenance
	Status          model.BuildState
	JobID           string
	CancelRequested bool
	Timeout         time.Duration
	// Trace is that of the request that asked for it, see package telemetry.
	Trace json.RawMessage
	// Asked is when it was asked for.
	Asked time.Time
}

// Made is an artifact that an earlier build made.
type Made struct {
	BuildID    string
	Artifact   jobspec.BuiltArtifact
	Provenance Provenance
}

// Job is a runner job of operation build.
type Job struct {
	ID              string
	State           model.JobState
	Attempt         int
	RunnerID        string
	CancelRequested bool
	Error           string
	Result          jobspec.Result
}

// Copied is an image that builder itself copied.
type Copied struct {
	Artifact              jobspec.BuiltArtifact
	StartedAt, FinishedAt time.Time
}

// Facts are about the world outside the rows, learned by this worker just now.
type Facts struct {
	// Commit is where the source stands.
	Commit source.Commit
	// Trouble is why the last look outside came to nothing.
	Trouble *Trouble
	// There says of artifacts, by digest, whether the registry has them.
	There map[string]bool
	// Archive is the source archive in the registry.
	Archive *jobspec.Artifact
	// Copied is the private image, once it is in the registry.
	Copied *Copied
	// RunnerID is the org's Build Runner, which is kept alive.
	RunnerID string
	// RunnerReady: the machine that has MachineKey is there. One that is about to be
	// replaced has a key too, and would not see the job.
	RunnerReady bool
}

// Trouble is why something outside did not work, for people.
type Trouble struct {
	Text string
	// Remedy says what to do in the app folder, "" for nothing.
	Remedy string
	// Passing: the same may work later. Slow: each try takes long.
	Passing, Slow bool
}

func (t Trouble) String() string {
	if t.Remedy == "" {
		return t.Text
	}
	return t.Text + "; " + t.Remedy
}

// moves tells whether what the artifact was made of may be another today: it has
// modules of a branch, a tag or a range of versions.
func (m Made) moves() bool {
	return slices.ContainsFunc(m.Provenance.Modules, func(module jobspec.Module) bool { return module.Moves })
}

// lastModules are what the last build of the same source fetched from elsewhere.
func (s State) lastModules() []jobspec.Module {
	if len(s.Reusable) == 0 {
		return nil
	}
	return s.Reusable[0].Provenance.Modules
}

// usable is the first artifact that a build today would make too, and of which the
// registry is not known to have lost it.
func (s State) usable() (Made, bool) {
	i := slices.IndexFunc(s.Reusable, func(m Made) bool {
		if m.moves() {
			return false
		}
		there, asked := s.Facts.There[m.Artifact.Digest]
		return there || !asked
	})
	if i < 0 {
		return Made{}, false
	}
	return s.Reusable[i], true
}
