//go:build planted

// Package planted says which known bug an executable has, so that the test of random
// operations (make model-planted) can show that it finds such bugs. It exists only in
// executables built with the tag planted; what has the bugs are files called *_planted.go, each next
// to the file that it stands in for.
package planted

import "os"

// The bugs.
const (
	LostWakeUp   = "lost-wake-up"  // who waited for a resource is not woken when it is free
	KeptLock     = "kept-lock"     // a change that failed does not free its resource
	KeptApproval = "kept-approval" // an approval counts for another effect than the approved
)

// Is tells whether the executable is to have this bug.
func Is(bug string) bool { return os.Getenv("BERTH_PLANTED_BUG") == bug }
