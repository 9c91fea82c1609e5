package agent_test

import (
	"crypto/ed25519"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/consents"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// putConsents takes what the runner tells of consent.
func (p *plane) putConsents(w http.ResponseWriter, r *http.Request) {
	in := read[runnerapi.ConsentsReport](r)
	p.change(func() { p.consents = in.Consents })
	w.WriteHeader(http.StatusNoContent)
}

// asking makes the runner ask a holder, whose key comes back.
func (r *runner) asking(mode consent.Mode) ed25519.PrivateKey {
	r.t.Helper()
	public, key, err := capsule.GenerateKey()
	if err != nil {
		r.t.Fatal(err)
	}
	trust, err := r.dir.LoadTrust()
	if err != nil {
		r.t.Fatal(err)
	}
	trust.Consent = &consent.Config{Mode: mode, Holders: []consent.Holder{{Name: "ada", Keys: []string{capsule.EncodePublicKey(public)}}}}
	if err := datadir.WriteJSON(r.dir.Trust(), trust); err != nil {
		r.t.Fatal(err)
	}
	return key
}

func (r *runner) consents() consents.Store {
	return consents.Store{Dir: r.dir, InstallID: r.plane.installID, Now: time.Now}
}

// says is what berth-runner approve and deny do.
func (r *runner) says(c consents.Change, key ed25519.PrivateKey, answer consent.Answer) {
	r.t.Helper()
	until := time.Time{}
	if answer == consent.Approve {
		until = time.Now().UTC().Add(time.Hour)
	}
	payload, err := r.consents().Statement(c, answer, "", until).Bytes()
	if err != nil {
		r.t.Fatal(err)
	}
	env, err := consent.Ed25519Signer(key).Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, payload))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.consents().Answer(env); err != nil {
		r.t.Fatal(err)
	}
}

// planned is the change as the customer sees it.
func (c *change) planned() consents.Change {
	c.t.Helper()
	planned, err := c.consents().Find(c.id)
	if err != nil {
		c.t.Fatal(err)
	}
	return planned
}

// hears waits until the control plane is told how the change stands.
func (c *change) hears(state runnerapi.ConsentState) {
	c.t.Helper()
	c.plane.until(c.t, "consent "+string(state), func() bool {
		return slices.ContainsFunc(c.plane.consents, func(r runnerapi.Consent) bool { return r.ChangeID == c.id && r.State == state })
	})
}

// intentOf is the record that a job took effect by.
func (c *change) intentOf(job string) (intent chain.Record) {
	c.t.Helper()
	c.plane.until(c.t, "the intent of "+job, func() bool {
		return slices.ContainsFunc(c.plane.chain, func(line runnerapi.ChainRecord) bool {
			record, err := chain.ParseRecord(line.Body)
			intent = record
			return err == nil && record.Kind == chain.Intent && record.Job == job
		})
	})
	return intent
}

// lacksConsent checks that an order was refused for want of a consent, and nothing else.
func (c *change) lacksConsent(when string, edit func(*given)) {
	c.t.Helper()
	result := c.plane.result(c.t, c.order(edit))
	if result.Outcome != jobspec.OutcomeRefused || !slices.Equal(differing(result), []string{"consent"}) || result.Remedy == "" {
		c.t.Errorf("%s: %+v, want it refused for want of consent", when, result)
	}
	if exists(c.file("effects")) {
		c.t.Errorf("%s: it took effect", when)
	}
}

// Somebody who holds the dispatch key, and so signs what he likes, brings nothing about
// that the customer's side did not agree to: once, for this effect.
func TestAttackChangeWithoutConsent(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	ada := r.asking(consent.ModeEach)
	c := newChangeOn(t, r, here, func(*jobspec.Spec) {})
	if asked := c.plan.Consent; asked == nil || asked.State != "needed" || asked.EffectDigest != c.plan.EffectDigest || asked.Still == nil || *asked.Still != 1 {
		t.Fatalf("the plan tells of consent %+v", asked)
	}
	c.hears("needed")
	c.lacksConsent("before anybody answered", asItIs)
	c.recorded("the customer's side has not agreed to it")

	planned := c.planned()
	other := planned
	other.OriginID = id.New(id.Change)
	c.says(other, ada, consent.Approve)
	c.lacksConsent("with a consent of another origin", asItIs)
	other = planned
	other.Effect = "sha256:" + strings.Repeat("0", 64)
	c.says(other, ada, consent.Approve)
	c.lacksConsent("with a consent to another effect", asItIs)

	c.says(planned, ada, consent.Approve)
	c.hears("given")
	job := c.order(asItIs)
	if result := c.plane.result(t, job); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("with consent: %+v", result)
	}
	intent := c.intentOf(job)
	if intent.Capsule == "" || intent.Consent == nil || !slices.Equal(intent.Consent.By, []string{"ada"}) || len(intent.Consent.Signed) != 1 {
		t.Errorf("the intent does not name both signatures: %+v", intent)
	}
	panel, err := r.consents().Panel()
	if err != nil {
		t.Fatal(err)
	}
	if _, payload, err := consent.Signers(panel.Keys(), consent.ForStatement, intent.Consent.Signed[0]); err != nil || !strings.Contains(string(payload), intent.Effect) {
		t.Errorf("the consent in the chain does not verify: %s, %v", payload, err)
	}
	c.plane.change(func() { c.plane.state = nil }) // as before, so that the plan still fits
	if result := c.plane.result(t, c.order(asItIs)); result.Outcome != jobspec.OutcomeRefused || !slices.Contains(differing(result), "effect_digest") {
		t.Errorf("the same consent once more: %+v", result)
	}
	if n := len(c.effects()); n != 1 {
		t.Errorf("it took effect %d times, want once", n)
	}
}

// A denial counts although an approval came before it, also after a restart.
func TestAttackDeniedChange(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	ada := r.asking(consent.ModeEach)
	var stop func() error
	c := newChangeOn(t, r, func(r *runner) { stop = r.start() }, func(*jobspec.Spec) {})
	c.says(c.planned(), ada, consent.Approve)
	c.says(c.planned(), ada, consent.Deny)
	c.hears("denied")
	c.lacksConsent("after a denial", asItIs)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	c.plane.change(func() { c.plane.consents = nil })
	r.start()
	c.hears("denied")
	c.lacksConsent("after a restart", asItIs)
}

// One consent is good for three tries, not for more.
func TestAttackTriesOfOneConsent(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	ada := r.asking(consent.ModeEach)
	c := newChangeOn(t, r, here, func(*jobspec.Spec) {}, "fail always")
	c.says(c.planned(), ada, consent.Approve)
	for try := 1; try <= 4; try++ {
		c.plane.change(func() { c.plane.lock = nil })
		result := c.plane.result(t, c.order(asItIs))
		if want := map[bool]jobspec.Outcome{true: jobspec.OutcomeFailed, false: jobspec.OutcomeRefused}[try <= 3]; result.Outcome != want {
			t.Errorf("try %d: %+v, want it %s", try, result, want)
		}
	}
}

// Vendor code in an engine tries to agree in the customer's place.
func TestAttackConsentByAnEngine(t *testing.T) {
	t.Parallel()
	inForms(t, func(t *testing.T, f form) {
		r := newRunner(t, runnerapi.RunnerKindInstall)
		r.asking(consent.ModeVendor)
		if err := r.consents().Make(); err != nil {
			t.Fatal(err)
		}
		f.begin(r)
		r.plane.until(t, "the enrolment", func() bool { return len(r.plane.enrolled) > 0 })
		folder := r.dir.Consents()
		job := r.plane.give(script(
			"print begun",
			"sh echo '{}' 2>/dev/null > "+filepath.Join(folder, "answer-x.json")+" && echo leak: wrote an answer",
			"sh echo '{}' 2>/dev/null > "+r.dir.Trust()+" && echo leak: wrote trust.json",
			"sh ls "+folder+" 2>/dev/null && echo leak: read the folder",
		))
		r.plane.result(t, job)
		r.noLeaks(job)
		if exists(filepath.Join(folder, "answer-x.json")) {
			t.Error("the engine wrote an answer")
		}
	})
}

// A scheduled run that may change something does not begin before its script was agreed
// to.
func TestAttackTickWithoutConsent(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	ada := r.asking(consent.ModeEach)
	s := unattended("append " + r.file("effects"))
	r.accept(s)
	r.publish(1, scheduledAs(s))
	r.clock = minute("10:00:56")
	stop := r.start()
	if run := r.ran("10:01:00"); run.State != "missed" || !strings.Contains(run.Error, "has not agreed") {
		t.Fatalf("without consent: %+v, want it missed", run)
	}
	if r.count() != 0 {
		t.Fatal("the script ran")
	}
	digest, err := s.Digest()
	if err != nil {
		t.Fatal(err)
	}
	asked, err := r.consents().Find(consents.OfScript(digest, "", time.Now()).ID)
	if err != nil {
		t.Fatal(err)
	}
	store := r.consents()
	store.Now = func() time.Time { return asked.PlannedAt }
	payload, err := store.Statement(asked, consent.Approve, "", asked.PlannedAt.Add(time.Hour)).Bytes()
	if err != nil {
		t.Fatal(err)
	}
	env, err := consent.Ed25519Signer(ada).Sign(consent.ForStatement, consent.NewEnvelope(consent.ForStatement, payload))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Answer(env); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.clock = minute("10:01:56")
	r.start()
	if run := r.ran("10:02:00"); run.State != "succeeded" || r.count() != 1 {
		t.Errorf("with consent: %+v, %d times", run, r.count())
	}
}
