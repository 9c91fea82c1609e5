package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/power"
	"github.com/berth-dev/berth/runner/agent/remedy"
)

// Ticks come once a minute. These tests do not wait for them: they stop the agent after each
// and start it again a few seconds before the next.

// sick is an install whose check needs a file, with a remedy of these lines.
type sick struct {
	*runner
	check, repair jobspec.Script
	minutes       int
}

func newSick(t *testing.T, edit func(*jobspec.Heal), lines ...string) *sick {
	t.Helper()
	s := &sick{runner: newRunner(t, runnerapi.RunnerKindInstall)}
	s.check = checkOf(asWritten, "append "+s.file("checked"), "need "+s.file("ok"))
	heal := jobspec.Heal{Check: "check", UnhealthyAfter: 1, HealthyAfter: 1, Attempts: 2, CooldownSeconds: 1}
	edit(&heal)
	s.repair = s.healing(heal, append([]string{"append " + s.file("effects")}, lines...)...)
	return s
}

func asAccepted(*jobspec.Heal) {}

// healing is a script that heals.
func (s *sick) healing(heal jobspec.Heal, lines ...string) jobspec.Script {
	action := *script(lines...).Action
	action.Name, action.ReadOnly = "repair", false
	return jobspec.Script{Action: action, TimeoutSeconds: 30, Heals: []jobspec.Heal{heal}}
}

// publishRemedies signs settings that carry the check and remedies.
func (s *sick) publishRemedies(version int64, remedies ...jobspec.Script) {
	s.t.Helper()
	env, err := capsule.Sign(s.dispatch.key, s.dispatch.id, capsule.SettingsType, jobspec.Settings{
		Version: version, OrgID: s.plane.orgID, InstallID: s.plane.installID,
		IssuedAt: minute("00:00:00"), ExpiresAt: minute("00:00:00").Add(6 * 24 * time.Hour),
		Schedule: []jobspec.Scheduled{scheduledAs(s.check)}, Remedies: remedies,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.plane.change(func() { s.plane.settings = &runnerapi.SettingsVersion{Version: version, Envelope: env} })
}

// settle starts the agent until it has its settings, and watches the check.
func (s *sick) settle() {
	s.t.Helper()
	s.clock = minute("10:00:20")
	stop := s.start()
	s.appears(s.dir.Settings())
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if raw, err := os.ReadFile(s.dir.Remedies()); err == nil && bytes.Contains(raw, []byte(`"check"`)) {
			break
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited %s until the check is watched", patience)
		}
	}
	if err := stop(); err != nil {
		s.t.Fatal(err)
	}
}

// lines counts those of a file.
func (s *sick) lines(name string) int {
	raw, err := os.ReadFile(s.file(name))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return strings.Count(string(raw), "\n")
}

// tick lives through the next check, until the ledger is as holds says.
func (s *sick) tick(what string, holds func(remedy.Watched) bool) {
	s.t.Helper()
	s.minutes++
	s.clock = minute("10:00:54").Add(time.Duration(s.minutes) * time.Minute)
	before := s.lines("checked")
	stop := s.start()
	defer func() {
		if err := stop(); err != nil {
			s.t.Fatal(err)
		}
	}()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if s.lines("checked") > before && holds(s.ledger()) {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("after %d checks, waited %s until %s: %+v", s.lines("checked"), patience, what, s.ledger())
		}
	}
}

// ledger is what the runner knows of the check.
func (s *sick) ledger() remedy.Watched {
	s.t.Helper()
	l, err := remedy.Open(s.dir.Remedies(), time.Now)
	if err != nil {
		return remedy.Watched{}
	}
	w := remedy.Watched{}
	w.Episode = &remedy.Episode{}
	if e, found := l.Episode("check"); found {
		w.Episode = &e
	}
	return w
}

// attempted says that so many attempts have ended.
func attempted(n int) func(remedy.Watched) bool {
	return func(w remedy.Watched) bool {
		return w.Episode != nil && len(w.Episode.Attempts) == n && !w.Episode.Attempts[n-1].Ended.IsZero()
	}
}

func stands(state jobspec.RemediationState) func(remedy.Watched) bool {
	return func(w remedy.Watched) bool { return w.Episode != nil && w.Episode.State == state }
}

// told waits until the control plane was told of one remediation, and of the given runs.
func (s *sick) told(state jobspec.RemediationState, attempts int) jobspec.Remediation {
	s.t.Helper()
	var last jobspec.Remediation
	s.plane.until(s.t, "the report of the remediation as "+string(state), func() bool {
		for _, reports := range s.plane.remedied {
			last = reports[len(reports)-1]
		}
		return last.State == state && last.Attempts == attempts
	})
	s.plane.mu.Lock()
	defer s.plane.mu.Unlock()
	if len(s.plane.remedied) != 1 {
		s.t.Errorf("%d remediations are reported, want 1", len(s.plane.remedied))
	}
	return last
}

// succeeded waits until the run of an attempt is reported, once.
func (s *sick) succeeded(attempt int) {
	s.t.Helper()
	s.plane.until(s.t, fmt.Sprintf("the report of attempt %d", attempt), func() bool {
		n := 0
		for _, runs := range s.plane.runs {
			for _, run := range runs {
				if run.Remedy != nil && run.Remedy.Attempt == attempt && run.State == "succeeded" {
					n++
				}
			}
		}
		return n == 1
	})
}

// Two failures while the control plane is away: both are healed, and told once it is back.
func TestRemediationGoesOnInAnOutage(t *testing.T) {
	t.Parallel()
	s := newSick(t, asAccepted)
	s.repair = s.healing(s.repair.Heals[0], "append "+s.file("effects"), "touch "+s.file("ok"))
	s.accept(s.check, s.repair)
	s.publishRemedies(1, s.repair)
	s.settle()
	s.plane.change(func() { s.plane.away = true })

	s.tick("the first failure is treated", attempted(1))
	s.tick("it helped", stands(jobspec.RemediationHelped))
	if err := os.Remove(s.file("ok")); err != nil {
		t.Fatal(err)
	}
	s.tick("the second failure is treated", attempted(2))
	s.tick("it helped again", stands(jobspec.RemediationHelped))
	if n := s.count(); n != 2 {
		t.Fatalf("the remedy ran %d times, want 2", n)
	}

	s.plane.change(func() { s.plane.away = false })
	s.tick("it is still healthy", stands(jobspec.RemediationHelped))
	s.start()
	if r := s.told(jobspec.RemediationHelped, 2); r.Of != 2 || r.Check != "check" || r.Action != "repair" {
		t.Errorf("report = %+v", r)
	}
	s.succeeded(1)
	s.succeeded(2)
	if intent := s.recorded("attempt 2 of 2 about check"); intent.Actor != "remediation" {
		t.Errorf("intent = %+v", intent)
	}
}

// A remedy that does not help is tried as often as was accepted, taken back, and then a person
// is asked for, once.
func TestRemediationThatDoesNotHelp(t *testing.T) {
	t.Parallel()
	s := newSick(t, asAccepted)
	revert := s.healing(s.repair.Heals[0], "append "+s.file("reverted"))
	revert.Action.Name, revert.Heals[0].Reverts = "undo", true
	s.accept(s.check, s.repair, revert)
	s.publishRemedies(1, s.repair, revert)
	s.settle()
	s.tick("the first attempt has ended", attempted(1))
	s.tick("the second attempt has ended", attempted(2))
	s.tick("it is given up", stands(jobspec.RemediationNeedsAttention))
	s.tick("it stays so", stands(jobspec.RemediationNeedsAttention))
	if n, back := s.count(), s.lines("reverted"); n != 2 || back != 1 {
		t.Errorf("the remedy ran %d times and was taken back %d times, want 2 and 1", n, back)
	}
	s.start()
	if r := s.told(jobspec.RemediationNeedsAttention, 2); !r.Reverted || !strings.Contains(r.Why, "still unhealthy after 2 of 2 attempts; it was taken back") {
		t.Errorf("report = %+v", r)
	}
	needs := 0
	s.plane.mu.Lock()
	defer s.plane.mu.Unlock()
	for _, line := range s.plane.chain {
		if strings.Contains(string(line.Body), "needs_attention") {
			needs++
		}
	}
	if needs != 1 {
		t.Errorf("%d records say that it needs attention, want 1", needs)
	}
}

// An agent that is killed after it counted an attempt, and before the run exists, has used
// that attempt.
func TestAttemptThatWasCountedAndNeverBegan(t *testing.T) {
	t.Parallel()
	s := newSick(t, asAccepted)
	s.accept(s.check, s.repair)
	s.publishRemedies(1, s.repair)
	s.settle()
	l, err := remedy.Open(s.dir.Remedies(), func() time.Time { return minute("10:00:40") })
	if err == nil {
		err = l.Begin("check", remedy.Opening{Action: "repair", Of: 2}, remedy.Attempt{RunID: id.New(id.ActionRun), Action: "repair", Started: minute("10:00:40")}, false)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.tick("the second attempt has ended", attempted(2))
	s.tick("it is given up", stands(jobspec.RemediationNeedsAttention))
	if n := s.count(); n != 1 {
		t.Errorf("the remedy ran %d times, want 1: the other attempt was used", n)
	}
	if first := s.ledger().Episode.Attempts[0]; first.OK || first.Error != "the runner ended before it began" {
		t.Errorf("first attempt = %+v", first)
	}
}

// An agent that is killed in the middle of an attempt leaves it to the next one.
func TestAttemptSurvivesTheAgent(t *testing.T) {
	t.Parallel()
	needsOwnNamespace(t)
	s := newSick(t, asAccepted)
	s.repair = s.healing(s.repair.Heals[0], "append "+s.file("effects"), "touch "+s.file("begun"), "wait "+s.file("go"), "touch "+s.file("ok"))
	s.repair.TimeoutSeconds = 600 // the second agent's clock is ahead
	s.accept(s.check, s.repair)
	s.publishRemedies(1, s.repair)
	s.clock = minute("10:00:54")
	agent := s.startProcess()
	s.appears(s.file("begun"))
	_ = agent.Process.Signal(syscall.SIGKILL)
	_ = agent.Wait()
	if e := s.ledger().Episode; len(e.Attempts) != 1 || !e.Running() {
		t.Fatalf("after the kill: %+v", e)
	}
	s.clock = minute("10:01:54")
	s.startProcess()
	s.touch("go")
	s.appears(s.file("ok"))
	s.told(jobspec.RemediationHelped, 1)
	if n := s.count(); n != 1 {
		t.Errorf("the remedy ran %d times, want 1", n)
	}
}

// With the engine gone too nobody knows what it did: the attempt is used, and the next one
// follows.
func TestAttemptOfAKilledMachine(t *testing.T) {
	t.Parallel()
	s := newSick(t, asAccepted)
	s.repair = s.healing(s.repair.Heals[0], "append "+s.file("effects"), "touch "+s.file("begun"), "wait "+s.file("go"))
	s.accept(s.check, s.repair)
	s.yield()
	s.publishRemedies(1, s.repair)
	s.clock = minute("10:00:54")
	config := processConfig{UIDs: "off"} // its engines end with it
	agent := s.process(config, s.user())
	s.run(agent)
	s.appears(s.file("begun"))
	_ = agent.Process.Signal(syscall.SIGKILL)
	_ = agent.Wait()
	s.touch("go")
	s.clock = minute("10:01:54")
	s.run(s.process(config, s.user()))
	s.succeeded(2)
	first := s.ledger().Episode.Attempts[0]
	if n := s.count(); n != 2 || first.OK || !strings.HasPrefix(first.Error, "the runner's process, pod or machine ended") {
		t.Errorf("the remedy ran %d times, want 2; the first attempt: %+v", n, first)
	}
}

// What stands against a remediation holds it, and says so.
func TestRemediationIsHeld(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		hold func(*sick)
		want string
	}{
		{"by a pause", func(s *sick) { s.turn(power.Pause) }, "the customer's switch is at pause"},
		{"by read-only", func(s *sick) { s.turn(power.ReadOnly) }, "the customer's switch is at read_only"},
		{"by the control plane", func(s *sick) { s.plane.change(func() { s.plane.hold = "5 remediations of the org run now" }) }, "5 remediations of the org run now"},
		{"by the customer, who was not asked yet", func(s *sick) { s.asking(consent.ModeEach) }, "the customer's side has not agreed to it"},
		{"by settings that have expired", func(s *sick) {
			s.plane.change(func() { s.plane.away = true })
			s.minutes = 7 * 24 * 60
		}, "the settings have expired"},
		{"by the install's budget", func(s *sick) {
			l, err := remedy.Open(s.dir.Remedies(), func() time.Time { return minute("10:00:40") })
			if err == nil {
				err = l.Watch([]string{"check", "other"})
			}
			for i := range remedy.PerHour {
				at, run := minute("10:00:00").Add(time.Duration(i)*time.Second), id.New(id.ActionRun)
				if err == nil {
					err = errors.Join(l.Begin("other", remedy.Opening{}, remedy.Attempt{RunID: run, Started: at}, false), l.Ended(run, at, true, ""))
				}
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}, "the install had its 6 remediations of an hour"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSick(t, asAccepted)
			s.accept(s.check, s.repair)
			s.publishRemedies(1, s.repair)
			s.settle()
			tc.hold(s)
			s.tick("it waits: "+tc.want, func(w remedy.Watched) bool {
				return w.Episode != nil && w.Episode.State == jobspec.RemediationWaiting && strings.Contains(w.Episode.Why, tc.want)
			})
			if n := s.count(); n != 0 {
				t.Errorf("the remedy ran %d times", n)
			}
		})
	}
}

// Somebody who holds the dispatch key wants more done by itself than the customer accepted.
func TestAttackRemedies(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		edit    func(*jobspec.Script) // of what settings carry
		refused bool                  // and that is recorded
	}{
		{"another text", func(s *jobspec.Script) { s.Action.Steps[0].InlineContents += "\nprint more" }, true},
		{"more attempts", func(s *jobspec.Script) { s.Heals[0].Attempts = 1000 }, true},
		{"a shorter cool-down", func(s *jobspec.Script) { s.Heals[0].CooldownSeconds = 0 }, true},
		{"a lower threshold", func(s *jobspec.Script) { s.Heals[0].UnhealthyAfter = 0 }, true},
		{"about another check", func(s *jobspec.Script) { s.Heals[0].Check = "other" }, true},
		{"another role", func(s *jobspec.Script) { s.Role = "admin" }, true},
		{"a script that was accepted for decisions", func(s *jobspec.Script) { s.Action.Name, s.Heals = "manual", nil }, false},
		{"a script that was accepted for decisions, as a remedy", func(s *jobspec.Script) { s.Action.Name = "manual" }, true},
		{"a script under a break-glass role", func(s *jobspec.Script) { s.Action.Name, s.Action.BreakGlassRole = "glass", "acme-repair" }, false},
		{"a revert in the place of the remedy", func(s *jobspec.Script) { s.Action.Name, s.Heals[0].Reverts = "undo", true }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSick(t, asAccepted)
			named := func(name string, edit func(*jobspec.Script)) jobspec.Script {
				other := s.healing(s.repair.Heals[0], "append "+s.file("effects"))
				other.Action.Name = name
				edit(&other)
				return other
			}
			s.accept(s.check, s.repair, named("manual", func(o *jobspec.Script) { o.Heals = nil }),
				named("glass", func(o *jobspec.Script) { o.Action.BreakGlassRole = "acme-repair" }), named("undo", func(o *jobspec.Script) { o.Heals[0].Reverts = true }))
			evil := named("repair", tc.edit)
			s.publishRemedies(1, evil)
			s.clock = minute("10:00:54")
			stop := s.start()
			if run := s.ran("10:01:00"); run.State != "failed" {
				t.Fatalf("the check: %+v", run)
			}
			if tc.refused {
				digest, err := evil.Digest()
				if err != nil {
					t.Fatal(err)
				}
				s.recorded("a remedy in settings carries script " + digest + ", which was not accepted")
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if n := s.count(); n != 0 {
				t.Errorf("it ran %d times", n)
			}
			s.plane.mu.Lock()
			defer s.plane.mu.Unlock()
			if len(s.plane.remedied) != 0 {
				t.Errorf("reported: %+v", s.plane.remedied)
			}
		})
	}
}
