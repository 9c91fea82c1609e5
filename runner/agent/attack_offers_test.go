package agent_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/offers"
)

const vendorApp = "app_of_the_vendor"

// pinsVendor makes the runner take signed releases only, and returns what signs them.
func (r *runner) pinsVendor() consent.Signer {
	r.t.Helper()
	public, key, err := capsule.GenerateKey()
	if err != nil {
		r.t.Fatal(err)
	}
	trust, err := r.dir.LoadTrust()
	if err != nil {
		r.t.Fatal(err)
	}
	trust.Vendor = &datadir.Vendor{AppID: vendorApp, Keys: []string{capsule.EncodePublicKey(public)}}
	if err := datadir.WriteJSON(r.dir.Trust(), trust); err != nil {
		r.t.Fatal(err)
	}
	return consent.Ed25519Signer(key)
}

// releaseOf is one that brings what a change is about.
func (c *change) releaseOf(number int, spec jobspec.Spec) jobspec.Release {
	c.t.Helper()
	config, _, err := spec.Config()
	if err != nil {
		c.t.Fatal(err)
	}
	return jobspec.Release{
		ID: id.New(id.Release), Number: number,
		Artifacts: []jobspec.ReleaseArtifact{{Name: c.resource.Name, Digest: spec.Artifact.Digest}},
		Configs:   []jobspec.ReleaseConfig{{Name: config.Name, Digest: config.Digest}},
	}
}

// signs has the vendor sign a release.
func (c *change) signs(by consent.Signer, r *jobspec.Release) {
	c.t.Helper()
	manifest, err := r.Manifest()
	if err != nil {
		c.t.Fatal(err)
	}
	digest, err := manifest.Digest()
	if err != nil {
		c.t.Fatal(err)
	}
	at := time.Now().UTC().Truncate(time.Second)
	env, err := offer.Sign(by, offer.Statement{
		OrgID: c.plane.orgID, AppID: vendorApp, App: "shop", ReleaseID: r.ID, Number: r.Number, Manifest: digest, Issued: at, Expires: at.Add(time.Hour),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	r.Signed = append(r.Signed, env)
}

// isBrought gives out the plan of an acceptance.
func (c *change) isBrought(release jobspec.Release) jobspec.Result {
	c.t.Helper()
	return c.plane.result(c.t, c.plane.give(jobspec.Spec{
		Kind: jobspec.KindRelease, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change), Release: &release,
	}))
}

// isPlanned gives out the plan of the change.
func (c *change) isPlanned(spec jobspec.Spec) jobspec.Result {
	c.t.Helper()
	spec.State = c.sealed(map[string]any{"secret": "correct-horse-battery"})
	job := c.plane.give(spec)
	result := c.plane.result(c.t, job)
	c.plane.mu.Lock()
	defer c.plane.mu.Unlock()
	c.plan = c.plane.plans[job]
	return result
}

// notTaken checks that a job was refused for what a release does not have.
func (c *change) notTaken(when string, result jobspec.Result, field string) {
	c.t.Helper()
	if result.Outcome != jobspec.OutcomeRefused || !slices.Equal(differing(result), []string{field}) || result.Remedy == "" ||
		!strings.Contains(result.Error, "signed releases only") {
		c.t.Errorf("%s: %+v, want it refused for its %s", when, result, field)
	}
	if got := c.effects(); len(got) > 0 {
		c.t.Errorf("%s: it had effects: %v", when, got)
	}
}

// Somebody who holds the dispatch key gets nothing planned and nothing applied that is in
// no release which the vendor signed.
func TestAttackUnsignedReleases(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	vendor := r.pinsVendor()
	var stop func() error
	c := changeWithoutPlan(t, r, func(r *runner) { stop = r.start() }, func(*jobspec.Spec) {})
	plan := c.spec(jobspec.OperationPlan)
	c.notTaken("a plan of no release", c.isPlanned(plan), "artifact")
	c.recorded("signed releases")

	release := c.releaseOf(3, plan)
	c.notTaken("an unsigned release", c.isBrought(release), "signature")
	_, mine, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	forged := release
	c.signs(consent.Ed25519Signer(mine), &forged)
	c.notTaken("a release that the attacker signed", c.isBrought(forged), "signature")
	c.signs(vendor, &release)
	mixed := release
	mixed.Artifacts = []jobspec.ReleaseArtifact{{Name: c.resource.Name, Digest: capsule.DigestBytes([]byte("evil"))}}
	c.notTaken("a signed release with another artifact", c.isBrought(mixed), "manifest")

	if result := c.isBrought(release); result.Outcome != jobspec.OutcomeSucceeded || !result.NoChange {
		t.Fatalf("the signed release: %+v", result)
	}
	if record := c.recorded("release 3 of the vendor was accepted"); record.Offer == nil || record.Offer.Signed == nil || !record.Offer.Whole() {
		t.Errorf("the chain says %+v", record.Offer)
	}
	older := c.releaseOf(2, plan)
	c.signs(vendor, &older)
	c.notTaken("an older one, never accepted", c.isBrought(older), "downgrade")

	evil := plan
	work := *plan.TerraformModule
	work.Vars = map[string]any{"size": "enormous"}
	evil.Work = jobspec.Work{TerraformModule: &work}
	c.notTaken("the signed artifact with other variables", c.isPlanned(evil), "config")
	adHoc := *script("append " + c.file("effects")).Action
	adHoc.AdHoc = true
	c.notTaken("a script that is part of no release", c.plane.result(t, c.plane.give(jobspec.Spec{
		Kind: jobspec.KindAction, Operation: jobspec.OperationPlan, ChangeID: id.New(id.Change), Action: &adHoc, TimeoutSeconds: 30,
	})), "script")

	if result := c.isPlanned(plan); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("the plan of the signed release: %+v", result)
	}
	// The plan pinned the signed config: the same order under another one is refused.
	c.notTaken("the apply with other variables", c.plane.result(t, c.order(func(g *given) { g.Spec.Work = evil.Work })), "config")
	if result := c.plane.result(t, c.order(asItIs)); result.Outcome != jobspec.OutcomeSucceeded || len(c.effects()) != 1 {
		t.Errorf("the apply of the signed release: %+v, effects %v", result, c.effects())
	}

	// The file is gone: the runner knows it from its chain.
	if err := errors.Join(stop(), os.Remove(r.dir.VendorReleases()), os.Remove(c.file("effects"))); err != nil {
		t.Fatal(err)
	}
	r.start()
	c.notTaken("an older one once the file is gone", c.isBrought(older), "downgrade")
	if result := c.isPlanned(plan); result.Outcome != jobspec.OutcomeSucceeded {
		t.Errorf("the plan of the signed release once the file is gone: %+v", result)
	}
}

// A plan that was made before the key was pinned is not carried out, and neither is one of
// a release that the customer revoked in between.
func TestAttackPlansOfBefore(t *testing.T) {
	t.Parallel()
	r := newRunner(t, runnerapi.RunnerKindInstall)
	c := newChangeOn(t, r, here, func(*jobspec.Spec) {})
	vendor := r.pinsVendor()
	c.notTaken("a plan of before", c.plane.result(t, c.order(asItIs)), "artifact")

	plan := c.spec(jobspec.OperationPlan)
	release := c.releaseOf(3, plan)
	c.signs(vendor, &release)
	if result := c.isBrought(release); result.Outcome != jobspec.OutcomeSucceeded {
		t.Fatalf("the signed release: %+v", result)
	}
	if err := (offers.Store{Dir: r.dir}).Revoke(offers.Revocation{Number: 3, Reason: "recalled", By: "ada", At: time.Now()}); err != nil {
		t.Fatal(err)
	}
	c.notTaken("a revoked release", c.plane.result(t, c.order(asItIs)), "revoked")
	c.notTaken("the revoked release again", c.isBrought(release), "revoked")
}
