package model

// BuildState is the state of a build.
type BuildState string

// The states of a build.
const (
	BuildQueued    BuildState = "queued"
	BuildRunning   BuildState = "running"
	BuildSucceeded BuildState = "succeeded" // its artifact is in the registry
	BuildFailed    BuildState = "failed"
	BuildCancelled BuildState = "cancelled"
)

// Ended says whether nobody will work on the build any more.
func (s BuildState) Ended() bool { return s != BuildQueued && s != BuildRunning }

// MadeBy says how a release came to be.
type MadeBy string

// The values of MadeBy.
const (
	BySync      MadeBy = "sync"      // the first of its config
	ByRebuild   MadeBy = "rebuild"   // newer builds of a config that had one
	ByPromotion MadeBy = "promotion" // somebody chose the builds
)
