package remedy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/verdict"
	"github.com/berth-dev/berth/runner/agent/power"
	"github.com/berth-dev/berth/runner/agent/remedy"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// outcomes are one each minute, the newest first and now: "-" is bad.
func outcomes(text string) (list []verdict.Outcome) {
	for i, c := range text {
		list = append(list, verdict.Outcome{RunID: string(rune('a' + i)), Good: c == '+', At: ago(time.Duration(i) * time.Minute)})
	}
	return list
}

// tried is an attempt that ended so long ago.
func tried(d time.Duration) remedy.Attempt {
	return remedy.Attempt{RunID: "arn", Action: "repair", Started: ago(d + time.Second), Ended: ago(d), OK: true}
}

func episode(state jobspec.RemediationState, attempts ...remedy.Attempt) *remedy.Episode {
	return &remedy.Episode{Check: "health", Action: "repair", State: state, Attempts: attempts, Of: 3}
}

func starts(n int, since time.Duration) (list []time.Time) {
	for range n {
		list = append(list, ago(since))
	}
	return list
}

func TestDecide(t *testing.T) {
	t.Parallel()
	revertedOK := tried(time.Minute)
	revertFailed := tried(time.Minute)
	revertFailed.OK, revertFailed.Error = false, "exit 1"
	reverted := func(by *remedy.Attempt) func(*remedy.Situation) {
		return func(s *remedy.Situation) {
			s.Episode = episode(jobspec.RemediationRunning, tried(60*time.Minute), tried(40*time.Minute), tried(20*time.Minute))
			s.Episode.Revert, s.CanRevert = by, true
		}
	}
	with := func(e *remedy.Episode) func(*remedy.Situation) {
		return func(s *remedy.Situation) { s.Episode = e }
	}
	first := func(*remedy.Situation) {}
	allTried := with(episode(jobspec.RemediationRunning, tried(60*time.Minute), tried(40*time.Minute), tried(20*time.Minute)))
	running := with(episode(jobspec.RemediationRunning, remedy.Attempt{RunID: "arn", Started: ago(time.Minute)}))
	for _, tc := range []struct {
		name   string
		edit   func(*remedy.Situation)
		past   string // newest first; "---" when empty
		judge  verdict.Verdict
		do     remedy.Step
		why    string
		until  time.Duration // from now
		healed time.Duration // how long it has its verdict
	}{
		{name: "healthy, and was", past: "+++", judge: verdict.Healthy, do: remedy.Nothing},
		{name: "nobody knows", past: "-", judge: verdict.Unknown, do: remedy.Nothing},
		{name: "unhealthy: the first attempt", do: remedy.Start},
		{name: "not yet unhealthy", past: "--+", judge: verdict.Healthy, do: remedy.Nothing},
		{name: "unhealthy, but the newest look was good", past: "+---", do: remedy.Wait, why: "newest outcome"},

		{name: "the settings have expired", edit: func(s *remedy.Situation) { s.Expired = true }, do: remedy.Wait, why: "settings have expired"},
		{name: "the switch is at pause", edit: func(s *remedy.Situation) { s.Mode = power.Pause }, do: remedy.Wait, why: "switch is at pause"},
		{name: "the switch is at read only", edit: func(s *remedy.Situation) { s.Mode = power.ReadOnly }, do: remedy.Wait, why: "switch is at read_only"},
		{name: "the switch is at stop now", edit: func(s *remedy.Situation) { s.Mode = power.StopNow }, do: remedy.Wait, why: "switch is at stop_now"},
		{name: "the switch is at sever", edit: func(s *remedy.Situation) { s.Mode = power.Sever }, do: remedy.Wait, why: "switch is at sever"},
		{name: "the switch file is nonsense", edit: func(s *remedy.Situation) { s.Mode = "" }, do: remedy.Wait, why: "switch"},
		{name: "an apply runs", edit: func(s *remedy.Situation) { s.Busy = "apply api" }, do: remedy.Wait, why: "apply api"},
		{name: "the control plane holds it back", edit: func(s *remedy.Situation) { s.Held = "5 remediations of the org run" }, do: remedy.Wait, why: "of the org"},

		{name: "one start of the hour is left", edit: func(s *remedy.Situation) { s.Starts = starts(remedy.PerHour-1, time.Minute) }, do: remedy.Start},
		{name: "none of the hour is left", edit: func(s *remedy.Situation) { s.Starts = starts(remedy.PerHour, 10*time.Minute) }, do: remedy.Wait, why: "of an hour", until: 50 * time.Minute},
		{name: "those of an hour ago are over", edit: func(s *remedy.Situation) { s.Starts = starts(remedy.PerHour, time.Hour) }, do: remedy.Start},
		{name: "none of the day is left", edit: func(s *remedy.Situation) { s.Starts = starts(remedy.PerDay, 2*time.Hour) }, do: remedy.Wait, why: "of a day", until: 22 * time.Hour},
		{name: "a clock that was set back forgets no start", edit: func(s *remedy.Situation) { s.Starts = starts(remedy.PerHour, -time.Hour) }, do: remedy.Wait, why: "of an hour", until: 2 * time.Hour},
		{name: "the budget holds further attempts too", edit: func(s *remedy.Situation) {
			s.Episode, s.Starts = episode(jobspec.RemediationRunning, tried(20*time.Minute)), starts(remedy.PerHour, 20*time.Minute)
		}, do: remedy.Wait, why: "of an hour", until: 40 * time.Minute},

		{name: "the attempt runs", edit: running, do: remedy.Nothing},
		{name: "the attempt runs, healthy meanwhile", edit: running, past: "++-", judge: verdict.Healthy, do: remedy.Nothing},
		{name: "it ended, and the outcomes are of before", edit: with(episode(jobspec.RemediationRunning, tried(0))), do: remedy.Nothing},
		{name: "two bad outcomes since it ended are no verdict", edit: with(episode(jobspec.RemediationRunning, tried(2*time.Minute))), do: remedy.Nothing},
		{name: "three are, and the cool-down is not over", edit: with(episode(jobspec.RemediationRunning, tried(4*time.Minute))), past: "-----", do: remedy.Wait, why: "cool-down", until: 6 * time.Minute},
		{name: "some good ones, never healthy: it had its time", edit: with(episode(jobspec.RemediationRunning, tried(11*time.Minute))), past: "-+-+-+-", do: remedy.Start},
		{name: "the cool-down is over", edit: with(episode(jobspec.RemediationRunning, tried(10*time.Minute))), past: "-----", do: remedy.Start},
		{name: "a failed attempt cools down too", edit: with(episode(jobspec.RemediationRunning, remedy.Attempt{RunID: "a", Started: ago(6 * time.Minute), Ended: ago(5 * time.Minute), Error: "exit 1"})), past: "-----", do: remedy.Wait, why: "cool-down", until: 5 * time.Minute},
		{name: "unknown after an attempt: nobody knows", edit: with(episode(jobspec.RemediationRunning, tried(20*time.Minute))), judge: verdict.Unknown, do: remedy.Nothing},

		{name: "healthy after an attempt", edit: with(episode(jobspec.RemediationRunning, tried(5*time.Minute))), past: "++---", judge: verdict.Healthy, do: remedy.Helped},
		{name: "healthy while the next one waits", edit: with(episode(jobspec.RemediationWaiting, tried(5*time.Minute))), past: "++---", judge: verdict.Healthy, do: remedy.Helped},
		{name: "helped, and not for long enough", edit: with(episode(jobspec.RemediationHelped, tried(40*time.Minute))), past: "+++", judge: verdict.Healthy, healed: 20 * time.Minute, do: remedy.Nothing, until: 10 * time.Minute},
		{name: "helped, and it stayed so", edit: with(episode(jobspec.RemediationHelped, tried(40*time.Minute))), past: "+++", judge: verdict.Healthy, healed: remedy.Calm, do: remedy.End},
		{name: "a long cool-down is also how long it has to stay so", edit: func(s *remedy.Situation) {
			s.Episode, s.Heal.CooldownSeconds = episode(jobspec.RemediationHelped, tried(40*time.Minute)), 7200
		}, past: "+++", judge: verdict.Healthy, healed: remedy.Calm, do: remedy.Nothing, until: 90 * time.Minute},
		{name: "unhealthy again before that: the next attempt, not the first", edit: with(episode(jobspec.RemediationHelped, tried(20*time.Minute))), do: remedy.Start},
		{name: "flapping ends after the attempts", edit: with(episode(jobspec.RemediationHelped, tried(60*time.Minute), tried(40*time.Minute), tried(20*time.Minute))), do: remedy.GiveUp, why: "after 3 of 3 attempts"},

		{name: "healthy before there was an attempt", edit: with(episode(jobspec.RemediationWaiting)), past: "++-", judge: verdict.Healthy, do: remedy.End},
		{name: "what stood against the first attempt is gone", edit: with(episode(jobspec.RemediationWaiting)), do: remedy.Start},

		{name: "no attempt helped", edit: allTried, do: remedy.GiveUp, why: "after 3 of 3 attempts"},
		{name: "the last one failed", edit: func(s *remedy.Situation) {
			allTried(s)
			s.Episode.Attempts[2].OK, s.Episode.Attempts[2].Error = false, "exit 7"
		}, do: remedy.GiveUp, why: "the last of which failed: exit 7"},
		{name: "no attempt helped, the last is not judged", edit: with(episode(jobspec.RemediationRunning, tried(60*time.Minute), tried(40*time.Minute), tried(2*time.Minute))), do: remedy.Nothing},
		{name: "no attempt helped: take them back", edit: func(s *remedy.Situation) { allTried(s); s.CanRevert = true }, do: remedy.Revert},
		{name: "the revert waits for the switch", edit: func(s *remedy.Situation) { allTried(s); s.CanRevert, s.Mode = true, power.Pause }, do: remedy.Wait, why: "switch"},
		{name: "the revert runs", edit: reverted(&remedy.Attempt{RunID: "arn", Started: ago(time.Minute)}), do: remedy.Nothing},
		{name: "taken back: a person is needed all the same", edit: reverted(&revertedOK), do: remedy.GiveUp, why: "it was taken back"},
		{name: "taking it back failed", edit: reverted(&revertFailed), do: remedy.GiveUp, why: "which failed: exit 1"},
		{name: "given up: nothing more", edit: with(episode(jobspec.RemediationNeedsAttention, tried(60*time.Minute), tried(40*time.Minute), tried(20*time.Minute))), do: remedy.Nothing},
		{name: "given up, healthy a moment", edit: with(episode(jobspec.RemediationNeedsAttention, tried(20*time.Minute))), past: "++-", judge: verdict.Healthy, healed: time.Minute, do: remedy.Nothing, until: 29 * time.Minute},
		{name: "given up, and healed by somebody", edit: with(episode(jobspec.RemediationNeedsAttention, tried(20*time.Minute))), past: "++-", judge: verdict.Healthy, healed: remedy.Calm, do: remedy.End},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := remedy.Situation{
				Now: noon, Mode: power.Run, Verdict: verdict.Unhealthy, Recent: outcomes("---"), Since: noon.Add(-tc.healed),
				Heal: jobspec.Heal{Check: "health", UnhealthyAfter: 3, HealthyAfter: 2, Attempts: 3, CooldownSeconds: 600},
			}
			if tc.past != "" {
				s.Recent = outcomes(tc.past)
			}
			if tc.judge != "" {
				s.Verdict = tc.judge
			}
			if tc.edit == nil {
				tc.edit = first
			}
			tc.edit(&s)
			got := remedy.Decide(s)
			if got.Do != tc.do || !strings.Contains(got.Why, tc.why) || tc.why == "" && got.Why != "" {
				t.Errorf("Decide = %+v, want %s %q", got, tc.do, tc.why)
			}
			want := time.Time{}
			if tc.until != 0 {
				want = noon.Add(tc.until)
			}
			if !got.Until.Equal(want) {
				t.Errorf("until %s, want %s", got.Until, want)
			}
		})
	}
}
