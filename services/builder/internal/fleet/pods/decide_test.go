package pods

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/services/builder/internal/fleet/roster"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// idle is an enrolled pod of an hour without a build for a minute; changes make
// it what a case is about.
func idle(changes ...func(*State)) State {
	s := State{
		Now: noon, RunnerID: "rnr_1", LastEnd: noon.Add(-time.Minute), Trust: "t", Form: "f", Secret: roster.SecretUsed,
		Pod:    &Pod{RunnerID: "rnr_1", Trust: "t", Form: "f", Made: noon.Add(-time.Hour)},
		MaxAge: 24 * time.Hour, MaxIdle: 15 * time.Minute,
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

func noPod(s *State)       { s.Pod = nil }
func waiting(s *State)     { s.Open = true }
func working(s *State)     { s.Open, s.Busy = true, true }
func revoked(s *State)     { s.RunnerID = "" }
func old(s *State)         { s.Pod.Made = noon.Add(-24 * time.Hour) }
func otherImage(s *State)  { s.Form = "g" }
func otherTrust(s *State)  { s.Trust = "u" }
func otherRunner(s *State) { s.RunnerID = "rnr_2" }
func over(s *State)        { s.Pod.Over = true }
func deadSecret(s *State)  { s.Secret = roster.SecretDead }
func untidy(s *State)      { s.Untidy = true }
func ending(in time.Duration) func(*State) {
	return func(s *State) { s.Pod.EndsBy = noon.Add(in) }
}
func lastEnd(ago time.Duration) func(*State) { return func(s *State) { s.LastEnd = noon.Add(-ago) } }
func made(ago time.Duration) func(*State)    { return func(s *State) { s.Pod.Made = noon.Add(-ago) } }
func restarts(n int) func(*State)            { return func(s *State) { s.Pod.Restarts = n } }

func TestDecide(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		s    State
		want Act
	}{
		{"a build brings a pod", idle(noPod, waiting), Make},
		{"one that lost its pod brings another", idle(noPod, working), Make},
		{"no build, no pod", idle(noPod), Leave},
		{"no pod for who is revoked", idle(noPod, waiting, revoked), Leave},

		{"a pod at work is left", idle(working), Leave},
		{"so is one that is not idle for long", idle(), Leave},
		{"and one that has not begun", idle(waiting, lastEnd(time.Hour)), Leave},
		{"an idle one ends", idle(lastEnd(15 * time.Minute)), End},
		{"its own age is idleness too", idle(lastEnd(1000*time.Hour), made(15*time.Minute)), End},
		{"and it was not idle before it was there", idle(lastEnd(1000*time.Hour), made(14*time.Minute)), Leave},

		{"an old one without work ends", idle(old), End},
		{"one with work to come is replaced", idle(old, waiting), Replace},
		{"never in the middle of a build", idle(old, working), Leave},
		{"another image waits for the build too", idle(otherImage, working), Leave},
		{"and then replaces", idle(otherImage, waiting), Replace},
		{"or ends", idle(otherImage), End},

		{"what it trusts cannot wait: it would refuse every order", idle(otherTrust, working), Replace},
		{"nor can a revocation", idle(revoked, working), End},
		{"another runner of the org gets another pod", idle(otherRunner, waiting), Replace},
		{"a pod that is over is replaced", idle(over, working), Replace},
		{"or cleaned up", idle(over), End},
		{"a secret that expired before the pod started is renewed", idle(deadSecret, waiting), Replace},
		{"but one of a pod that was just made may be on its way", idle(deadSecret, waiting, made(59*time.Second)), Leave},
		{"a pod that does not start is replaced", idle(waiting, restarts(5)), Replace},
		{"after a while", idle(waiting, restarts(5), made(9*time.Minute)), Leave},
		{"but not because it did not start once", idle(waiting, restarts(4)), Leave},

		{"a pod that ends is waited for", idle(waiting, ending(time.Minute)), Leave},
		{"also when its time is over", idle(waiting, ending(-time.Minute)), Leave},
		{"but not for ever", idle(waiting, ending(-time.Minute-time.Second)), Force},

		{"the secret of a pod that has enrolled is deleted", idle(working, untidy), Tidy},
		{"not before", idle(waiting, untidy, func(s *State) { s.Secret = roster.SecretOpen }), Leave},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got, why := Decide(tc.s); got != tc.want {
				t.Errorf("%s (%s), want %s", got, why, tc.want)
			}
		})
	}
}
