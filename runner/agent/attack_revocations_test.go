package agent_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/offers"
)

// revokes signs that a release must not be installed any more.
func (r *runner) revokes(by consent.Signer, release jobspec.Release) capsule.Envelope {
	r.t.Helper()
	env, err := offer.Revoke(by, offer.Revocation{
		OrgID: r.plane.orgID, AppID: vendorApp, App: "shop", ReleaseID: release.ID, Number: release.Number, Reason: "it loses data", Issued: time.Now().UTC(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return env
}

// bring publishes settings with revocations.
func (r *runner) bring(day time.Time, version int64, scheduled []jobspec.Scheduled, revoked ...capsule.Envelope) {
	r.t.Helper()
	env, err := capsule.Sign(r.dispatch.key, r.dispatch.id, capsule.SettingsType, jobspec.Settings{
		Version: version, OrgID: r.plane.orgID, InstallID: r.plane.installID, IssuedAt: day, ExpiresAt: day.Add(24*time.Hour - time.Second),
		Schedule: scheduled, Revoked: revoked,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.plane.change(func() { r.plane.settings = &runnerapi.SettingsVersion{Version: version, Envelope: env} })
}

// A release that the vendor revoked is planned and applied no more, also by a control
// plane that withholds the revocation once it has come; somebody else's changes nothing.
func TestAttackRevokedReleases(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	vendor := r.pinsVendor()
	var stop func() error
	c := changeWithoutPlan(t, r, func(r *runner) { stop = r.start() }, func(*jobspec.Spec) {})
	plan := c.spec(jobspec.OperationPlan)
	release := c.releaseOf(3, plan)
	c.signs(vendor, &release)
	if result := c.isBrought(release); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("the signed release: %+v", result)
	}
	day := time.Now().UTC().Truncate(time.Second)
	_, mine, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	r.bring(day, 1, nil, r.revokes(consent.Ed25519Signer(mine), release))
	c.recorded("a revocation of a release was not taken: refused")
	if result := c.isPlanned(plan); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("the plan, once the attacker revoked the release: %+v", result)
	}

	r.bring(day, 2, nil, r.revokes(vendor, release))
	if record := c.recorded("the vendor revoked its release 3: revoked: it loses data"); record.Actor != "vendor" || record.Offer.KeyID != vendor.Key.ID || record.Offer.Signed == nil {
		t.Errorf("the chain says %+v", record)
	}
	c.notTaken("the apply of a plan of before", c.plane.result(t, c.order(asItIs)), "revoked")
	c.notTaken("a new plan", c.isPlanned(plan), "revoked")
	c.notTaken("the release again", c.isBrought(release), "revoked")

	r.bring(day, 3, nil) // withheld
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.start()
	c.notTaken("the plan after a restart", c.isPlanned(plan), "revoked")
	if n := r.times("the vendor revoked its release 3"); n != 1 {
		t.Errorf("the chain has the revocation %d times", n)
	}
}

// Scheduled scripts of a revoked release are run no more.
func TestAttackTicksOfRevokedReleases(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	vendor := r.pinsVendor()
	action := script("append "+r.file("effects"), "print checked").Action
	scheduled := jobspec.Scheduled{Action: *action, Cron: "* * * * *", TimeoutSeconds: 30, HealthCheck: true}
	r.accept(scheduled.Script())
	release := jobspec.Release{ID: "rel_5", Number: 5, Scripts: []jobspec.Script{scheduled.Script()}}
	manifest, err := release.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := manifest.Digest()
	if err != nil {
		t.Fatal(err)
	}
	env, err := offer.Sign(vendor, offer.Statement{
		OrgID: r.plane.orgID, AppID: vendorApp, App: "shop", ReleaseID: release.ID, Number: release.Number, Manifest: digest,
		Issued: minute("09:00:00"), Expires: minute("23:00:00"),
	})
	if err != nil {
		t.Fatal(err)
	}
	release.Signed = []capsule.Envelope{env}
	// Accepted before: orders have real times, and this test has a clock of its own.
	before := offers.Gate{
		Store: offers.Store{Dir: r.dir, OrgID: r.plane.orgID, Now: clock(minute("09:30:00"))}, Clock: func() (time.Time, error) { return minute("09:30:00"), nil },
		Append: func(context.Context, chain.Record) error { return nil },
	}
	if refused, err := before.Accept(t.Context(), release, "job"); refused != nil || err != nil {
		t.Fatalf("the signed release: %+v, %v", refused, err)
	}
	r.bring(minute("00:00:00"), 1, []jobspec.Scheduled{scheduled})
	r.clock = minute("10:00:54")
	stop := r.start()
	if run := r.ran("10:01:00"); run.State != "succeeded" {
		t.Fatalf("a run of the signed release: %+v", run)
	}
	r.bring(minute("00:00:00"), 2, []jobspec.Scheduled{scheduled}, r.revokes(vendor, release))
	r.recorded("the vendor revoked its release 5")
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.bring(minute("00:00:00"), 3, []jobspec.Scheduled{scheduled})
	r.clock = minute("10:01:54")
	r.start()
	if run := r.ran("10:02:00"); run.State == "succeeded" || !strings.Contains(run.Error, "the vendor has not revoked") {
		t.Errorf("a run of the revoked release: %+v", run)
	}
	if n := r.count(); n != 1 {
		t.Errorf("the script ran %d times, want once", n)
	}
}
