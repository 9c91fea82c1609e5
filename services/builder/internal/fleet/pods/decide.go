package pods

import (
	"time"

	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
)

// Act is what is to be done about the pod of an org.
type Act string

const (
	// Leave everything as it is.
	Leave Act = "leave"
	// Make a pod: there is none.
	Make Act = "make"
	// End the pod and what was made for it. It comes back with the next build.
	End Act = "end"
	// Replace the pod: end it, and make another once it is gone.
	Replace Act = "replace"
	// Force the end of a pod whose node does not confirm it.
	Force Act = "force"
	// Tidy deletes the Secret of a pod that has enrolled with it.
	Tidy Act = "tidy"
)

const (
	// brokenRestarts within brokenAge are no accident: the data directory may be
	// damaged, and a new pod has a new one. Younger pods are left to the kubelet,
	// whose pauses grow; so a pod that never works is replaced every ten minutes.
	brokenRestarts = 5
	brokenAge      = 10 * time.Minute
	// deadAfter: who made a younger pod may be about to store its secret.
	deadAfter = time.Minute
	// forceAfter is how long past its time a pod may be ending. Then its node is
	// gone, and what still runs there is refused once another machine enrolled.
	forceAfter = time.Minute
)

// State is everything that Decide decides from.
type State struct {
	Now time.Time
	// RunnerID is the org's Build Runner; empty when the org has none any more.
	RunnerID string
	// Open: a build has not ended. Busy: one is being worked on.
	Open, Busy bool
	// LastEnd is when the last build ended.
	LastEnd time.Time
	// Trust and Form are digests of what a pod that was made now would believe, and
	// of the rest of it.
	Trust, Form string
	// Secret is that with which Pod enrols.
	Secret roster.Secret
	// Untidy: the Secret may still be in the cluster.
	Untidy bool
	// Pod is nil when there is none.
	Pod *Pod
	// MaxAge and MaxIdle are the limits.
	MaxAge, MaxIdle time.Duration
}

// A Pod is what is known of one.
type Pod struct {
	RunnerID    string
	Trust, Form string
	Made        time.Time
	// EndsBy is when a pod that was told to end has ended; zero when it was not.
	EndsBy time.Time
	// Over: it has ended, by itself or its node.
	Over bool
	// Restarts of its container.
	Restarts int
}

// Decide what to do about the pod of an org, and why, from a State alone. It does
// no I/O.
func Decide(s State) (Act, string) {
	p := s.Pod
	switch {
	case p == nil && s.Open && s.RunnerID != "":
		return Make, "a build waits"
	case p == nil:
		return Leave, ""
	case !p.EndsBy.IsZero() && s.Now.After(p.EndsBy.Add(forceAfter)):
		return Force, "its node does not confirm its end"
	case !p.EndsBy.IsZero():
		return Leave, ""
	case s.RunnerID == "":
		return End, "the runner was revoked"
	}
	if why := s.useless(); why != "" {
		return s.endOrReplace(), why
	}
	if why := s.outdated(); why != "" && !s.Busy {
		return s.endOrReplace(), why
	}
	if !s.Open && s.Now.Sub(later(s.LastEnd, p.Made)) >= s.MaxIdle {
		return End, "it is idle"
	}
	if s.Secret == roster.SecretUsed && s.Untidy {
		return Tidy, "it has enrolled"
	}
	return Leave, ""
}

// useless says why the pod cannot finish what it works on.
func (s State) useless() string {
	p := s.Pod
	switch {
	case p.Over:
		return "it has ended"
	case p.RunnerID != s.RunnerID:
		return "the org has another runner"
	case p.Trust != s.Trust: // it would refuse every order
		return "it is to trust something else"
	case s.Secret == roster.SecretDead && s.Now.Sub(p.Made) >= deadAfter:
		return "its enrolment secret does not work any more"
	case p.Restarts >= brokenRestarts && s.Now.Sub(p.Made) >= brokenAge && !s.Busy:
		return "it does not start"
	}
	return ""
}

// outdated says why the pod should make room for another between two builds.
func (s State) outdated() string {
	switch {
	case s.Pod.Form != s.Form:
		return "its image or settings have changed"
	case s.Now.Sub(s.Pod.Made) >= s.MaxAge:
		return "it is old"
	}
	return ""
}

func (s State) endOrReplace() Act {
	if s.Open {
		return Replace
	}
	return End
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
