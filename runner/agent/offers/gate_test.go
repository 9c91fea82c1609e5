package offers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/offers"
)

// newGate is a runner's with a pinned key, whose chain is a list.
func newGate(t *testing.T, keys ...string) (*offers.Gate, *[]chain.Record) {
	t.Helper()
	dir, err := datadir.At(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, dispatch := newDispatch(t)
	trust := datadir.Trust{RunnerAPIURL: "https://berth.example", DispatchKeys: []datadir.TrustedKey{dispatch}}
	if len(keys) > 0 {
		trust.Vendor = &datadir.Vendor{AppID: "app_1", Keys: keys}
	}
	if err := datadir.WriteJSON(dir.Trust(), trust); err != nil {
		t.Fatal(err)
	}
	var records []chain.Record
	clock := func() time.Time { return now }
	return &offers.Gate{
		Store: offers.Store{Dir: dir, OrgID: "org_1", Now: clock}, Clock: func() (time.Time, error) { return now, nil },
		Append: func(_ context.Context, r chain.Record) error {
			r.Time = now
			records = append(records, r)
			return nil
		},
	}, &records
}

func newDispatch(t *testing.T) (string, datadir.TrustedKey) {
	t.Helper()
	public, _, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	id := capsule.KeyID(public)
	return id, datadir.TrustedKey{KeyID: id, PublicKey: capsule.EncodePublicKey(public)}
}

func TestWithoutAKeyEverythingPasses(t *testing.T) {
	t.Parallel()
	g, records := newGate(t)
	refused, err := g.Accept(t.Context(), release(1), "job_1")
	if refused != nil || err != nil || len(*records) != 0 {
		t.Errorf("acceptance: %+v, %v, records %v", refused, err, *records)
	}
	needs := []jobspec.ManifestItem{{Kind: jobspec.ManifestArtifact, Name: "api", Digest: "sha256:any"}}
	if refused, err := g.Admit(t.Context(), offers.Order{Needs: needs, Mutates: true}, true); refused != nil || err != nil {
		t.Errorf("order: %+v, %v", refused, err)
	}
}

// What was accepted is known again after a kill, and by the machine that takes over.
func TestAcceptedReleasesLast(t *testing.T) {
	t.Parallel()
	public, private, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key := consent.Ed25519Signer(private)
	g, records := newGate(t, capsule.EncodePublicKey(public))
	r := release(4)
	r.Signed = []capsule.Envelope{says(t, key, r, asItIs)}
	m, digest := manifest(t, r)
	order := offers.Order{Needs: m.Items, Mutates: true}
	admitted := func(g *offers.Gate, want bool) {
		t.Helper()
		if refused, err := g.Admit(t.Context(), order, false); err != nil || (refused == nil) != want {
			t.Errorf("admitted: %+v, %v, want %v", refused, err, want)
		}
	}

	admitted(g, false)
	if refused, err := g.See(t.Context(), r); refused != nil || err != nil {
		t.Fatalf("%+v, %v", refused, err)
	}
	admitted(g, false)

	// The chain cannot be written: nothing counts, and the next try brings it about.
	write := g.Append
	g.Append = func(context.Context, chain.Record) error { return errors.New("the disk is full") }
	if _, err := g.Accept(t.Context(), r, "job_1"); err == nil {
		t.Fatal("accepted without the chain")
	}
	admitted(g, false)
	g.Append = write
	for range 2 {
		if refused, err := g.Accept(t.Context(), r, "job_2"); refused != nil || err != nil {
			t.Fatalf("%+v, %v", refused, err)
		}
	}
	admitted(g, true)
	if len(*records) != 2 || !(*records)[0].VendorKeys.Pins(key.Key.ID) || (*records)[1].Offer.Manifest != digest || (*records)[1].Kind != chain.Event {
		t.Fatalf("the chain has %+v", *records)
	}

	if err := g.Revoke(offers.Revocation{Number: 9, Reason: "recalled", By: "ada", At: now}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Tell(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(*records) != 3 {
		t.Fatalf("the chain has %+v", *records)
	}

	other, _ := newGate(t, capsule.EncodePublicKey(public))
	if err := other.Restore(offers.FromChain(*records)); err != nil {
		t.Fatal(err)
	}
	admitted(other, true)
	was, err := g.Known()
	if err != nil {
		t.Fatal(err)
	}
	got, err := other.Known()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(was, got); diff != "" {
		t.Errorf("the machine that takes over knows (-before +after):\n%s", diff)
	}
	if revoked, err := other.Revoked(); err != nil || len(revoked) != 1 || revoked[0].Number != 9 {
		t.Errorf("revoked: %+v, %v", revoked, err)
	}
	evil := append([]chain.Record{}, *records...)
	changed := *evil[1].Offer
	changed.Items = append([]chain.OfferItem{{Kind: "artifact", Name: "api", Digest: "sha256:evil"}}, changed.Items[1:]...)
	evil[1].Offer = &changed
	third, _ := newGate(t, capsule.EncodePublicKey(public))
	if err := third.Restore(offers.FromChain(evil)); err != nil {
		t.Fatal(err)
	}
	admitted(third, false)
}

func TestTrustThatCannotBeReadStopsEverything(t *testing.T) {
	t.Parallel()
	for name, vendor := range map[string]*datadir.Vendor{
		"no key": {AppID: "app_1"}, "no app": {Keys: []string{"x"}}, "no such key": {AppID: "app_1", Keys: []string{"x"}},
	} {
		g, _ := newGate(t)
		trust, err := g.Dir.LoadTrust()
		if err != nil {
			t.Fatal(err)
		}
		trust.Vendor = vendor
		if err := datadir.WriteJSON(g.Dir.Trust(), trust); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Admit(t.Context(), offers.Order{}, false); err == nil {
			t.Errorf("%s: an order is admitted", name)
		}
		if _, err := g.See(t.Context(), release(1)); err == nil {
			t.Errorf("%s: a release is taken", name)
		}
	}
}

// What is remembered is bounded, and the highest release that was accepted is not what
// is forgotten: otherwise older ones could come after it.
func TestTheHighestReleaseIsNotForgotten(t *testing.T) {
	t.Parallel()
	public, private, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	key := consent.Ed25519Signer(private)
	g, _ := newGate(t, capsule.EncodePublicKey(public))
	releaseNumber := func(n int) jobspec.Release {
		r := release(n)
		r.ID = fmt.Sprintf("rel_%d", n)
		r.Signed = []capsule.Envelope{says(t, key, r, asItIs)}
		return r
	}
	for n := 1; n <= 130; n++ {
		if refused, err := g.Accept(t.Context(), releaseNumber(n), "job"); refused != nil || err != nil {
			t.Fatalf("release %d: %+v, %v", n, refused, err)
		}
	}
	known, err := g.Known()
	if err != nil || len(known) != 100 || offers.Newest(known)[0].Number != 130 {
		t.Fatalf("%d releases are known, %v", len(known), err)
	}
	if refused, err := g.See(t.Context(), releaseNumber(5)); err != nil || refused == nil || refused.Differs.Field != "downgrade" {
		t.Errorf("one that was forgotten: %+v, %v", refused, err)
	}
}

// The plans of a release are given out together with its acceptance: one that comes first
// waits until the release was seen. An apply does not.
func TestPlansWaitForTheirRelease(t *testing.T) {
	t.Parallel()
	key, text := newKey(t)
	r := release(4)
	r.Signed = []capsule.Envelope{says(t, key, r, asItIs)}
	m, _ := manifest(t, r)
	synctest.Test(t, func(t *testing.T) {
		g, _ := newGate(t, text)
		seen := g.Coming()
		if refused, err := g.Admit(t.Context(), offers.Order{Needs: m.Items, Mutates: true}, false); err != nil || refused == nil {
			t.Errorf("an apply of what nobody has seen: %+v, %v", refused, err)
		}
		answer := make(chan *offers.Refusal, 1)
		go func() {
			refused, err := g.Admit(t.Context(), offers.Order{Needs: m.Items}, false)
			if err != nil {
				t.Error(err)
			}
			answer <- refused
		}()
		synctest.Wait()
		select {
		case refused := <-answer:
			t.Fatalf("a plan whose release comes is answered: %+v", refused)
		default:
		}
		if refused, err := g.See(t.Context(), r); refused != nil || err != nil {
			t.Fatalf("%+v, %v", refused, err)
		}
		seen()
		if refused := <-answer; refused != nil {
			t.Errorf("the plan: %+v", refused)
		}

		other, _ := manifest(t, release(5))
		seen = g.Coming() // a release that is refused, or that is not the plan's
		defer seen()
		if refused, err := g.Admit(t.Context(), offers.Order{Needs: other.Items}, false); err != nil || refused == nil || refused.Differs.Field != "artifact" {
			t.Errorf("a plan whose release never comes: %+v, %v", refused, err)
		}
	})
}
