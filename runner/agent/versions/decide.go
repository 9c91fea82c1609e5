package versions

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/version"
)

// MaxBoots is how often a version on trial is started. One that ended twice before it
// was confirmed is not started a third time.
const MaxBoots = 2

// Version is one version of the runner on this disk.
type Version struct {
	Version string `json:"version"` // 1.4.0
	// Runner and Engine are the digests of the executables, "sha256:…". Policy is that of the
	// policy engine, "" of versions before it.
	Runner string `json:"runner"`
	Engine string `json:"engine"`
	Policy string `json:"policy,omitempty"`
}

// executables are those of the version by name, with their digests.
func (v Version) executables() map[string]string {
	all := map[string]string{RunnerName: v.Runner, EngineName: v.Engine}
	if v.Policy != "" {
		all[PolicyName] = v.Policy
	}
	return all
}

// Trial is a version that has to show that it works.
type Trial struct {
	Version
	Job   string `json:"job"`   // the apply that brought it
	Boots int    `json:"boots"` // how often it was started
}

// Failure is a trial that ended with the version before.
type Failure struct {
	Version
	Job    string    `json:"job"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// State is what state.json says.
type State struct {
	// Serial rises with each change of what runs: a plan is made for one serial.
	Serial int64 `json:"serial"`
	// Current is what runs; nil for the installed executables.
	Current *Version `json:"current,omitempty"`
	// Before is what ran before Current: an engine of it may still work. Nil for the
	// installed executables.
	Before *Version `json:"before,omitempty"`
	// ConfirmedBy is the apply that brought Current.
	ConfirmedBy string   `json:"confirmed_by,omitempty"`
	Trial       *Trial   `json:"trial,omitempty"`
	Failed      *Failure `json:"failed,omitempty"`
	// Accepted are the versions that ran here: an update may go back to them.
	Accepted []string `json:"accepted,omitempty"`
}

// Run says what a start runs.
type Run string

// What can be run.
const (
	RunInstalled Run = "installed" // the executable that was started
	RunCurrent   Run = "current"   // the version that an update brought
	RunTrial     Run = "trial"     // the version that has to show that it works
	GiveUp       Run = "give_up"   // nothing yet: the trial has failed, which has to be written down
)

// Boot is the decision of a start.
type Boot struct {
	Run    Run
	Reason string // of GiveUp
}

// Decide says what a start runs, installed being the version of the executable that
// was started. A newer package wins over what an update brought.
func Decide(s State, installed string) Boot {
	if t := s.Trial; t != nil {
		switch {
		case version.Newer(installed, t.Version.Version):
			return Boot{Run: GiveUp, Reason: fmt.Sprintf("the installed package is newer: %s", installed)}
		case t.Boots >= MaxBoots:
			return Boot{Run: GiveUp, Reason: fmt.Sprintf("it ended %d times before it could take work", t.Boots)}
		}
		return Boot{Run: RunTrial}
	}
	if s.Current != nil && !version.Newer(installed, s.Current.Version) {
		return Boot{Run: RunCurrent}
	}
	return Boot{Run: RunInstalled}
}

// Outcome is what became of the version that an apply brought.
type Outcome string

// The outcomes.
const (
	OnTrial   Outcome = "on_trial"
	Confirmed Outcome = "confirmed"
	Failed    Outcome = "failed"
	Unknown   Outcome = "unknown" // the apply did not come as far
)

// OutcomeOf says what became of the version that the apply of a job brought, and why it
// failed.
func OutcomeOf(s State, job string) (o Outcome, reason string) {
	switch {
	case s.Trial != nil && s.Trial.Job == job:
		return OnTrial, ""
	case s.ConfirmedBy == job:
		return Confirmed, ""
	case s.Failed != nil && s.Failed.Job == job:
		return Failed, s.Failed.Reason
	}
	return Unknown, ""
}
