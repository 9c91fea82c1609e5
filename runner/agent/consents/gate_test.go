package consents_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

const install = "ins00000000000000000000000001"

// scene is a data directory with a chain, and a clock.
type scene struct {
	t       testing.TB
	dir     datadir.Dir
	machine ed25519.PrivateKey
	ada     ed25519.PrivateKey
	chain   *chain.Writer
	mu      sync.Mutex
	now     time.Time
}

func newScene(t testing.TB, mode consent.Mode) *scene {
	t.Helper()
	s := &scene{t: t, now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	var err error
	if s.dir, err = datadir.At(filepath.Join(t.TempDir(), "data")); err != nil {
		t.Fatal(err)
	}
	if err := s.dir.Make(0); err != nil {
		t.Fatal(err)
	}
	s.machine, s.ada = newKey(t), newKey(t)
	config := consent.Config{Mode: mode, Holders: []consent.Holder{{Name: "ada", Keys: []string{public(s.ada)}}}}
	if mode == "" {
		config.Holders = nil
	}
	s.trust(config)
	s.open()
	return s
}

func (s *scene) open() {
	s.t.Helper()
	w, err := chain.Open(s.dir.Chain(), chain.Signer{Chain: install, Key: s.machine, Now: s.clock})
	if err != nil {
		s.t.Fatal(err)
	}
	s.chain = w
	s.t.Cleanup(func() { _ = w.Close() })
}

func (s *scene) trust(config consent.Config) {
	s.t.Helper()
	err := datadir.WriteJSON(s.dir.Trust(), datadir.Trust{RunnerAPIURL: "http://127.0.0.1:1", Consent: &config})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *scene) set(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
}

// gate is that of an agent that has just started.
func (s *scene) gate() *consents.Gate {
	return consents.NewGate(consents.Store{Dir: s.dir, InstallID: install, Machine: s.machine.Public().(ed25519.PublicKey), Now: s.clock})
}

func newKey(t testing.TB) ed25519.PrivateKey {
	t.Helper()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func public(key ed25519.PrivateKey) string {
	return capsule.EncodePublicKey(key.Public().(ed25519.PublicKey))
}

// change is the n-th deploy of a component that updates one object.
func (s *scene) change(n string) consents.Change {
	return consents.Change{
		ID: "chg_0000000000000000000000000" + n, OriginID: "chg_0000000000000000000000000" + n, Effect: "sha256:" + n, PlannedAt: s.clock(),
		Facts: consent.Facts{ChangeKind: "deploy", Component: "web", Update: 1},
	}
}

// rules signs a file of rules, puts it there, and lets the agent put it in force.
func (s *scene) rules(version, rest string) error {
	s.t.Helper()
	env, err := consent.Ed25519Signer(s.ada).Sign(consent.ForRules, consent.NewEnvelope(consent.ForRules, []byte(
		"version = "+version+"\ninstall = \""+install+"\"\nexpires = 2027-06-01T00:00:00Z\ntime_zone = \"UTC\"\n"+rest)))
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.gate().PutRules(env); err != nil {
		return err
	}
	s.run()
	return nil
}

// run does once what the agent's loop does.
func (s *scene) run() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	g := s.gate()
	_ = g.Run(ctx, func(ctx context.Context, r chain.Record) error {
		defer cancel() // the floor is written after this
		_, err := s.chain.Append(context.WithoutCancel(ctx), r)
		return err
	}, func(err error) { cancel(); s.t.Log(err) })
}

const daily = "[[rule]]\nname = \"r\"\nchanges = [\"deploy\", \"tick\"]\nmax_per_day = 1\n"

// grant asks as a job does, and writes the intent that follows.
func (s *scene) grant(g *consents.Gate, c consents.Change) *consents.Refusal {
	s.t.Helper()
	answer, err := g.Grant("job_"+c.Effect, c, "")
	if err != nil {
		s.t.Fatal(err)
	}
	if answer.Refusal != nil {
		return answer.Refusal
	}
	defer answer.Done()
	_, err = s.chain.Append(s.t.Context(), chain.Record{Actor: "control plane", Kind: chain.Intent, What: c.What(), Effect: c.Effect, Consent: answer.Agreed})
	if err != nil {
		s.t.Fatal(err)
	}
	return nil
}

func (s *scene) says(c consents.Change, key ed25519.PrivateKey, answer consent.Answer) error {
	s.t.Helper()
	until := time.Time{}
	if answer == consent.Approve {
		until = s.clock().Add(time.Hour)
	}
	payload, err := s.gate().Statement(c, answer, "", until).Bytes()
	if err != nil {
		s.t.Fatal(err)
	}
	env, err := consent.Ed25519Signer(key).Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, payload))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.gate().Answer(env)
}

func TestEachChangeIsAskedFor(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeEach)
	g, c := s.gate(), s.change("1")
	if r := s.grant(g, c); r == nil || r.Outcome != jobspec.OutcomeRefused || !strings.Contains(r.Remedy, "berth-runner approve "+c.ID) {
		t.Fatalf("without consent: %+v", r)
	}
	if err := s.says(c, newKey(t), consent.Approve); !errors.Is(err, consent.ErrSignature) {
		t.Errorf("an answer by a stranger is kept: %v", err)
	}
	if err := s.says(c, s.ada, consent.Approve); err != nil {
		t.Fatal(err)
	}
	if r := s.grant(g, s.change("2")); r == nil {
		t.Error("a consent to one change let another through")
	}
	if r := s.grant(g, c); r != nil {
		t.Errorf("with consent: %+v", r)
	}
	lines, err := s.chain.ReadFrom(1, 9)
	if err != nil || len(lines) != 1 {
		t.Fatal(len(lines), err)
	}
	record, err := chain.ParseRecord(lines[0].Raw)
	if err != nil || record.Consent.By[0] != "ada" || len(record.Consent.Signed) != 1 {
		t.Errorf("%+v, %v", record.Consent, err)
	}
	// A holder that is taken out of trust.json counts no more, without a restart.
	s.trust(consent.Config{Mode: consent.ModeEach, Holders: []consent.Holder{{Name: "bob", Keys: []string{public(newKey(t))}}}})
	if r := s.grant(g, c); r == nil {
		t.Error("the consent of a revoked holder let a change through")
	}
	// And nothing goes on while trust.json cannot be read.
	if err := os.WriteFile(s.dir.Trust(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Grant("job_x", c, ""); err == nil {
		t.Error("a change went through without a readable trust.json")
	}
}

// Denials and approvals arrive at the same time, in any order: it is denied.
func TestDenyAndApproveRace(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeEach)
	g, c := s.gate(), s.change("1")
	var g2 sync.WaitGroup
	for _, answer := range []consent.Answer{consent.Approve, consent.Deny, consent.Approve} {
		g2.Go(func() {
			if err := s.says(c, s.ada, answer); err != nil {
				t.Error(err)
			}
		})
	}
	g2.Wait()
	if r := s.grant(g, c); r == nil || r.State != consent.Denied {
		t.Errorf("%+v, want it denied", r)
	}
}

func TestLimitsOfRulesAreCountedFromTheChain(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeRules)
	if r := s.grant(s.gate(), s.change("1")); r == nil || !strings.Contains(r.Text, "no standing rules") {
		t.Fatalf("without rules: %+v", r)
	}
	if err := s.rules("1", daily); err != nil {
		t.Fatal(err)
	}
	planned := s.change("2")
	if stand, err := s.gate().Plan(planned, jobspec.PlanSummary{Update: 1}); err != nil || stand.Rule != "r" {
		t.Fatalf("%+v, %v", stand, err)
	}
	if r := s.grant(s.gate(), s.change("1")); r != nil {
		t.Fatalf("the first of the day: %+v", r)
	}
	// A restart, and a clock that is set back, open nothing.
	for _, back := range []time.Duration{0, time.Hour, 25 * time.Hour, 6 * 24 * time.Hour} {
		s.set(time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC).Add(-back))
		if _, err := s.chain.Append(t.Context(), chain.Record{Actor: "runner", Kind: chain.Event, What: "after the clock was set"}); err != nil {
			t.Fatal(err)
		}
		if r := s.grant(s.gate(), s.change("3")); r == nil || !strings.Contains(r.Text, "1 changes in 24 hours") {
			t.Errorf("clock set back %s: %+v", back, r)
		}
	}
	s.set(time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC))
	kept, _, err := s.gate().Change(planned.ID)
	if err != nil {
		t.Fatal(err)
	}
	if r := s.grant(s.gate(), kept); r == nil || r.Outcome != jobspec.OutcomeStale {
		t.Errorf("what a rule agreed to when it was planned: %+v, want it planned again", r)
	}
	s.set(s.clock().Add(24 * time.Hour))
	if r := s.grant(s.gate(), s.change("4")); r != nil {
		t.Errorf("a day later: %+v", r)
	}
	// A chain that was continued from elsewhere does not tell what was used.
	s.set(s.clock().Add(48 * time.Hour))
	if _, err := s.chain.Append(t.Context(), chain.Record{Actor: "customer", Kind: chain.Event, What: "continued", Accepted: &chain.Acceptance{Reason: "restored"}}); err != nil {
		t.Fatal(err)
	}
	if r := s.grant(s.gate(), s.change("5")); r == nil || !strings.Contains(r.Text, "is not known") {
		t.Errorf("after the chain was continued: %+v", r)
	}
}

// Two jobs that are granted at the same time do not both take the last place.
func TestOneGrantAtATime(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeRules)
	if err := s.rules("1", daily); err != nil {
		t.Fatal(err)
	}
	g := s.gate()
	first, err := g.Grant("job_1", s.change("1"), "")
	if err != nil || first.Refusal != nil {
		t.Fatal(first.Refusal, err)
	}
	second, err := g.Grant("job_2", s.change("2"), "")
	if err != nil || second.Refusal == nil {
		t.Fatalf("both were let through: %v", err)
	}
	first.Done() // it did not come to an intent
	if third, err := g.Grant("job_3", s.change("3"), ""); err != nil || third.Refusal != nil {
		t.Errorf("after the first gave up: %+v, %v", third.Refusal, err)
	}
}

func TestRulesOnlyRise(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeRules)
	for _, version := range []string{"3", "4"} {
		if err := s.rules(version, daily); err != nil {
			t.Fatal(err)
		}
	}
	old, _, err := s.gate().SignedRules()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.rules("3", daily); !errors.Is(err, consents.ErrOlder) {
		t.Errorf("an older version: %v", err)
	}
	if err := s.rules("4", daily+"no_deletes = true\n"); !errors.Is(err, consents.ErrOlder) {
		t.Errorf("another file of the same version: %v", err)
	}
	if err := s.rules("5", daily); err != nil {
		t.Fatal(err)
	}
	// Somebody who can write the file puts the old one back.
	if err := datadir.WriteJSON(filepath.Join(s.dir.Consents(), "rules.json"), old); err != nil {
		t.Fatal(err)
	}
	s.run()
	if r := s.grant(s.gate(), s.change("1")); r == nil || !strings.Contains(r.Text, "version 4 is on disk, and version 5 was in force") {
		t.Errorf("with the older file back: %+v", r)
	}
}

// A machine that takes over refuses what the one before refused.
func TestFloorOfAnotherMachine(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeRules)
	for _, version := range []string{"4", "7"} {
		if err := s.rules(version, daily); err != nil {
			t.Fatal(err)
		}
	}
	lines, err := s.chain.ReadFrom(1, 99)
	if err != nil {
		t.Fatal(err)
	}
	var records []chain.Record
	for _, line := range lines {
		record, err := chain.ParseRecord(line.Raw)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, record)
	}
	heir := newScene(t, consent.ModeRules)
	if err := heir.gate().RestoreFloor(consents.FloorFromChain(records)); err != nil {
		t.Fatal(err)
	}
	if err := heir.rules("6", daily); !errors.Is(err, consents.ErrOlder) {
		t.Errorf("an older version on the new machine: %v", err)
	}
	if err := heir.gate().RestoreFloor(consents.Floor{Version: 2}); err != nil {
		t.Fatal(err)
	}
	if err := heir.rules("8", daily); err != nil {
		t.Error(err)
	}
}

// Rules count once the chain has them.
func TestRulesWaitForTheChain(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeRules)
	env, err := consent.Ed25519Signer(s.ada).Sign(consent.ForRules, consent.NewEnvelope(consent.ForRules, []byte(
		"version = 1\ninstall = \""+install+"\"\nexpires = 2027-06-01T00:00:00Z\ntime_zone = \"UTC\"\n"+daily)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.gate().PutRules(env); err != nil {
		t.Fatal(err)
	}
	if r := s.grant(s.gate(), s.change("1")); r == nil || !strings.Contains(r.Text, "not in force yet") {
		t.Errorf("%+v", r)
	}
	s.run()
	if r := s.grant(s.gate(), s.change("1")); r != nil {
		t.Errorf("%+v", r)
	}
}

func TestScheduledRunsNeedOneConsentPerScript(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	s := newScene(t, consent.ModeEach)
	g := s.gate()
	tick := func(digest string) consents.Answer {
		t.Helper()
		answer, err := g.GrantTick("arn_1", digest, "rotate", s.clock())
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if tick(digest).Refusal == nil {
		t.Fatal("it ran without consent")
	}
	c, err := g.Find("0123456789abcdef")
	if err != nil || !c.IsScript() {
		t.Fatalf("%+v, %v: people do not see what is asked", c, err)
	}
	if err := s.says(c, s.ada, consent.Approve); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if answer := tick(digest); answer.Refusal != nil || answer.Agreed.By[0] != "ada" {
			t.Errorf("with consent: %+v", answer)
		}
	}
	if tick(strings.Replace(digest, "0", "f", 1)).Refusal == nil {
		t.Error("another script ran with the same consent")
	}
	vendor := newScene(t, "")
	if answer, err := vendor.gate().GrantTick("arn_1", digest, "rotate", s.clock()); err != nil || answer.Refusal != nil || answer.Agreed != nil {
		t.Errorf("mode vendor: %+v, %v", answer, err)
	}
}

// A change that was planned again takes the place of the one before; what is told follows
// each answer.
func TestTell(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeEach)
	g := s.gate()
	first, again := s.change("1"), s.change("2")
	again.OriginID, again.Effect = first.OriginID, first.Effect
	again.PlannedAt = first.PlannedAt.Add(time.Minute)
	for _, c := range []consents.Change{first, again} {
		if _, err := g.Plan(c, jobspec.PlanSummary{Update: 1}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	told := make(chan []runnerapi.Consent)
	over := make(chan error, 1)
	go func() {
		_ = g.Run(ctx, func(context.Context, chain.Record) error { return nil }, func(err error) { t.Error(err) })
	}()
	go func() {
		over <- g.Tell(ctx, func(ctx context.Context, list []runnerapi.Consent) error {
			select {
			case told <- list:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}, func(err error) { t.Error(err) })
	}()
	next := func(want runnerapi.ConsentState) {
		t.Helper()
		select {
		case list := <-told:
			if len(list) != 1 || list[0].ChangeID != again.ID || list[0].State != want {
				raw, _ := json.Marshal(list)
				t.Errorf("told %s, want one %s", raw, want)
			}
		case err := <-over:
			t.Fatal(err)
		}
	}
	next("needed")
	if err := s.says(first, s.ada, consent.Approve); err != nil { // the effect is the same
		t.Fatal(err)
	}
	next("given")
	if err := s.says(again, s.ada, consent.Deny); err != nil {
		t.Fatal(err)
	}
	next("denied")
	cancel()
	<-over
}

// A damaged answer may be a denial.
func TestDamagedAnswerStopsChanges(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeEach)
	c := s.change("1")
	if err := s.says(c, s.ada, consent.Approve); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir.Consents(), "answer-x.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.gate().Grant("job_1", c, ""); err == nil || !strings.Contains(err.Error(), "answer-x.json") {
		t.Errorf("%v, want an error that names the file", err)
	}
}

// The chain's end may be replaced while the agent runs.
func TestHistoryOfAReplacedChain(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeRules)
	if err := s.rules("1", daily); err != nil {
		t.Fatal(err)
	}
	g := s.gate()
	if r := s.grant(g, s.change("1")); r != nil {
		t.Fatal(r)
	}
	if r := s.grant(g, s.change("2")); r == nil {
		t.Fatal("a second one went through")
	}
	decision := chain.Record{Actor: "customer", Kind: chain.Event, What: "continued", Accepted: &chain.Acceptance{Reason: "restored"}}
	if err := s.chain.Adopt(1, nil, decision); err != nil {
		t.Fatal(err)
	}
	if r := s.grant(g, s.change("2")); r == nil || !strings.Contains(r.Text, "is not known") {
		t.Errorf("%+v", r)
	}
}

// Changes are forgotten with their plans, and no more of them are kept than somebody reads.
func TestPrune(t *testing.T) {
	t.Parallel()
	s := newScene(t, consent.ModeEach)
	g := s.gate()
	old := s.change("1")
	old.PlannedAt = s.clock().Add(-91 * 24 * time.Hour)
	for _, c := range []consents.Change{old, s.change("2")} {
		if err := g.Keep(c, jobspec.PlanSummary{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.says(s.change("2"), s.ada, consent.Deny); err != nil {
		t.Fatal(err)
	}
	if err := g.Prune(); err != nil {
		t.Fatal(err)
	}
	if left, err := g.Changes(); err != nil || len(left) != 1 || left[0].ID != s.change("2").ID {
		t.Errorf("left are %+v, %v", left, err)
	}
	if r := s.grant(g, s.change("2")); r == nil || r.State != consent.Denied {
		t.Errorf("the denial was forgotten: %+v", r)
	}
}

// BenchmarkGrant is what consent adds to a job: a hundred answers, and a chain of ten
// thousand records.
func BenchmarkGrant(b *testing.B) {
	s := newScene(b, consent.ModeEach)
	for range 10_000 {
		if _, err := s.chain.Append(b.Context(), chain.Record{Actor: "runner", Kind: chain.Event, What: "something"}); err != nil {
			b.Fatal(err)
		}
	}
	c := s.change("1")
	for range 100 {
		s.set(s.clock().Add(time.Second))
		if err := s.says(c, s.ada, consent.Approve); err != nil {
			b.Fatal(err)
		}
	}
	g := s.gate()
	for b.Loop() {
		if answer, err := g.Grant("job_1", c, ""); err != nil || answer.Refusal != nil {
			b.Fatal(answer.Refusal, err)
		}
	}
}
