package offers_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/offers"
)

// revokes is the vendor's signed word that a release is not to be installed any more.
func revokes(t *testing.T, by consent.Signer, r jobspec.Release, edit func(*offer.Revocation)) capsule.Envelope {
	t.Helper()
	s := offer.Revocation{OrgID: "org_1", AppID: "app_1", App: "hello", ReleaseID: r.ID, Number: r.Number, Reason: "it loses data", Issued: now}
	edit(&s)
	env, err := offer.Revoke(by, s)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

func onlyThat(*offer.Revocation) {}

// acceptedBy is a gate with a pinned key that has accepted releases, and what may be
// planned, applied and run of one.
func acceptedBy(t *testing.T, key consent.Signer, text string, numbers ...int) (*offers.Gate, *[]chain.Record) {
	t.Helper()
	g, records := newGate(t, text)
	for _, n := range numbers {
		r := release(n)
		r.Signed = []capsule.Envelope{says(t, key, r, asItIs)}
		if refused, err := g.Accept(t.Context(), r, "job"); refused != nil || err != nil {
			t.Fatalf("release %d: %+v, %v", n, refused, err)
		}
	}
	return g, records
}

// stands says how a release stands with a gate: what its plan, apply and teardown are
// refused for, "" for nothing.
func stands(t *testing.T, g *offers.Gate, n int) map[string]string {
	t.Helper()
	m, _ := manifest(t, release(n))
	got := map[string]string{}
	for name, o := range map[string]offers.Order{
		"plan": {Needs: m.Items}, "apply": {Needs: m.Items, Mutates: true}, "tick": {Needs: m.Items[2:], Mutates: true}, "teardown": {Needs: m.Items, Mutates: true, Destroy: true},
	} {
		refused, err := g.Admit(t.Context(), o, false)
		if err != nil {
			t.Fatal(err)
		}
		got[name] = ""
		if refused != nil {
			got[name] = refused.Differs.Field + ": " + refused.Differs.Got
		}
	}
	return got
}

// A valid revocation ends plan, apply and scheduled runs of that release and of no other;
// what it installed can be removed. The runner keeps it, whatever is brought later.
func TestTheVendorRevokes(t *testing.T) {
	t.Parallel()
	key, text := newKey(t)
	g, records := acceptedBy(t, key, text, 3, 4)
	var brought []capsule.Envelope
	g.Brought = func() []capsule.Envelope { return brought }
	free := map[string]string{"plan": "", "apply": "", "tick": "", "teardown": ""}
	const why = "revoked: release 3 (it loses data)"
	gone := map[string]string{"plan": why, "apply": why, "tick": why, "teardown": ""}
	is := func(when string, g *offers.Gate, three map[string]string) {
		t.Helper()
		if diff := cmp.Diff(three, stands(t, g, 3)); diff != "" {
			t.Errorf("%s: release 3 (-want +got):\n%s", when, diff)
		}
		if diff := cmp.Diff(free, stands(t, g, 4)); diff != "" {
			t.Errorf("%s: release 4 (-want +got):\n%s", when, diff)
		}
	}
	is("before", g, free)
	brought = []capsule.Envelope{revokes(t, key, release(3), onlyThat)}
	is("once it came", g, gone)
	brought = nil
	is("when the control plane withholds it later", g, gone)
	again := release(3)
	again.Signed = []capsule.Envelope{says(t, key, again, asItIs)}
	if refused, err := g.See(t.Context(), again); err != nil || refused == nil || refused.Differs.Field != "revoked" || !strings.Contains(refused.Text, "the vendor has not revoked") {
		t.Errorf("its acceptance: %+v, %v", refused, err)
	}

	// The chain cannot be written: it counts all the same, and is told once it can.
	write := g.Append
	g.Append = func(context.Context, chain.Record) error { return errors.New("the disk is full") }
	if err := g.Tell(t.Context()); err == nil {
		t.Error("told without a chain")
	}
	is("before the chain has it", g, gone)
	g.Append = write
	for range 2 {
		if err := g.Tell(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	last := (*records)[len(*records)-1]
	if len(*records) != 4 || last.Actor != "vendor" || !last.Offer.Revoked || last.Offer.Release != 3 || last.Offer.KeyID != key.Key.ID || last.Detail != "it loses data" {
		t.Errorf("the chain has %d records, the last %+v", len(*records), last)
	}

	// Another process, the machine that takes over, and one whose file is gone.
	is("after a restart", &offers.Gate{Store: g.Store, Clock: g.Clock, Append: g.Append, Said: g.Said}, gone)
	other, _ := newGate(t, text)
	if err := other.Restore(offers.FromChain(*records)); err != nil {
		t.Fatal(err)
	}
	is("on the machine that takes over", other, gone)
	if err := os.Remove(g.Dir.VendorReleases()); err != nil {
		t.Fatal(err)
	}
	if err := g.Restore(offers.FromChain(*records)); err != nil {
		t.Fatal(err)
	}
	is("once the file is gone", g, gone)
}

// A revocation that the chain could not take stands before the key that came meanwhile:
// otherwise it would look as if nobody had signed it.
func TestRevocationsStandWithTheirKey(t *testing.T) {
	t.Parallel()
	key, text := newKey(t)
	_, nextText := newKey(t)
	g, _ := newGate(t, text)
	c := newChained(t)
	g.Append = c.append
	g.Brought = func() []capsule.Envelope { return []capsule.Envelope{revokes(t, key, release(3), onlyThat)} }
	if err := g.Tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.Brought = func() []capsule.Envelope { return []capsule.Envelope{revokes(t, key, release(4), onlyThat)} }
	g.Append = func(context.Context, chain.Record) error { return errors.New("the disk is full") }
	if err := g.Tell(t.Context()); err == nil {
		t.Fatal("told without a chain")
	}
	g.Append = c.append
	trust, err := g.Dir.LoadTrust()
	if err != nil {
		t.Fatal(err)
	}
	trust.Vendor.Keys = []string{nextText}
	if err := datadir.WriteJSON(g.Dir.Trust(), trust); err != nil {
		t.Fatal(err)
	}
	if err := g.Tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := c.verify(t); !report.OK() || report.Records != 4 {
		t.Errorf("the chain: %d records, record %d %s", report.Records, report.FirstBad, report.Problem)
	}
}

// A release can bring its own revocation: it is not accepted, and stays revoked.
func TestReleaseBringsItsRevocation(t *testing.T) {
	t.Parallel()
	key, text := newKey(t)
	g, _ := newGate(t, text)
	r := release(5)
	r.Signed, r.Revoked = []capsule.Envelope{says(t, key, r, asItIs)}, []capsule.Envelope{revokes(t, key, r, onlyThat)}
	for range 2 {
		refused, err := g.Accept(t.Context(), r, "job")
		if err != nil || refused == nil || refused.Differs.Field != "revoked" {
			t.Fatalf("%+v, %v", refused, err)
		}
		r.Revoked = nil // withheld the second time
	}
}

// What somebody who has the control plane can bring in the place of a revocation.
func TestAttackRevocations(t *testing.T) {
	t.Parallel()
	key, text := newKey(t)
	other, _ := newKey(t)
	next, nextText := newKey(t)
	three := release(3)
	good := revokes(t, key, three, onlyThat)
	statement := says(t, key, three, asItIs)
	for _, tc := range []struct {
		name string
		env  capsule.Envelope
		// rotated: the key was replaced before it came.
		rotated bool
		says    string
	}{
		{name: "unsigned", env: capsule.Envelope{PayloadType: good.PayloadType, Payload: good.Payload}, says: "signature"},
		{name: "signed by another key", env: revokes(t, other, three, onlyThat), says: "signature"},
		{name: "signed by another key in the name of the vendor's", env: capsule.Envelope{
			PayloadType: good.PayloadType, Payload: good.Payload,
			Signatures: []capsule.Signature{{KeyID: key.Key.ID, Sig: revokes(t, other, three, onlyThat).Signatures[0].Sig}},
		}, says: "signature"},
		{name: "for another app", env: revokes(t, key, three, func(r *offer.Revocation) { r.AppID = "app_2" }), says: "about app app_2"},
		{name: "for another org", env: revokes(t, key, three, func(r *offer.Revocation) { r.OrgID = "org_2" }), says: "of org org_2"},
		{name: "replayed for another release", env: revokes(t, key, release(9), onlyThat)},
		{name: "by a key that was rotated out", env: good, rotated: true, says: "signature"},
		{name: "the statement of the release in its place", env: statement, says: "payload is"},
		{name: "the statement with the type of a revocation", env: capsule.Envelope{PayloadType: good.PayloadType, Payload: statement.Payload, Signatures: statement.Signatures}, says: "signature"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g, records := acceptedBy(t, key, text, 3)
			if tc.rotated {
				trust, err := g.Dir.LoadTrust()
				if err != nil {
					t.Fatal(err)
				}
				trust.Vendor = &datadir.Vendor{AppID: "app_1", Keys: []string{nextText}}
				if err := datadir.WriteJSON(g.Dir.Trust(), trust); err != nil {
					t.Fatal(err)
				}
			}
			var ignored []string
			g.Brought, g.Ignored = func() []capsule.Envelope { return []capsule.Envelope{tc.env} }, func(why error) { ignored = append(ignored, why.Error()) }
			for range 2 {
				if err := g.Tell(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := stands(t, g, 3); got["plan"]+got["apply"]+got["tick"] != "" {
				t.Errorf("it revoked release 3: %v", got)
			}
			for _, r := range *records {
				if r.Offer != nil && r.Offer.Revoked && r.Offer.Release == 3 {
					t.Errorf("the chain says that release 3 was revoked: %+v", r)
				}
			}
			if tc.says == "" && len(ignored) == 0 { // it says what it says, of release 9 alone
				return
			}
			if len(ignored) != 1 || !strings.Contains(ignored[0], tc.says) {
				t.Errorf("ignored %q, want it once with %q", ignored, tc.says)
			}
		})
	}
	// What came before the rotation stays.
	g, _ := acceptedBy(t, key, text, 3)
	g.Brought = func() []capsule.Envelope { return []capsule.Envelope{good} }
	if err := g.Tell(t.Context()); err != nil {
		t.Fatal(err)
	}
	trust, err := g.Dir.LoadTrust()
	if err != nil {
		t.Fatal(err)
	}
	trust.Vendor = &datadir.Vendor{AppID: "app_1", Keys: []string{nextText}}
	if err := datadir.WriteJSON(g.Dir.Trust(), trust); err != nil {
		t.Fatal(err)
	}
	three.Signed = []capsule.Envelope{says(t, next, three, asItIs)}
	if refused, err := g.See(t.Context(), three); err != nil || refused == nil || refused.Differs.Field != "revoked" {
		t.Errorf("the revoked release, signed by the new key: %+v, %v", refused, err)
	}
}
