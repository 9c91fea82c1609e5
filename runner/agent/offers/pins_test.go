package offers_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/offer"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/offers"
)

// newKey is a vendor's key with its public half.
func newKey(t *testing.T) (consent.Signer, string) {
	t.Helper()
	public, private, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return consent.Ed25519Signer(private), capsule.EncodePublicKey(public)
}

// Once is enough, also while events wait for the chain; a chain that was cut before the pin
// is told again.
func TestPinsAreToldOnce(t *testing.T) {
	t.Parallel()
	_, text := newKey(t)
	g, records := newGate(t, text)
	var inChain *chain.VendorKeys
	g.Said = func() *chain.VendorKeys { return inChain }
	waits := true
	write := g.Append
	g.Append = func(ctx context.Context, r chain.Record) error {
		if r.VendorKeys != nil && !waits {
			inChain = r.VendorKeys
		}
		return write(ctx, r)
	}
	told := func(when string, want int) {
		t.Helper()
		for range 2 {
			if err := g.Tell(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if len(*records) != want {
			t.Errorf("%s: told %d times, want %d", when, len(*records), want)
		}
	}
	told("while events wait", 1)
	kept := *(*records)[0].VendorKeys
	inChain = &kept // the event came into the chain
	told("once the chain has it", 1)
	waits, inChain = false, nil
	told("when the chain was cut before it", 2)
	told("and later", 2)
}

// What the chain is told of the vendor's keys: each change by a command that was made, and
// what trust.json says when nobody said so.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	one, oneText := newKey(t)
	two, twoText := newKey(t)
	names := map[string]string{one.Key.ID: "one", two.Key.ID: "two"}
	vendor := func(keys ...string) *datadir.Vendor {
		if len(keys) == 0 {
			return nil
		}
		return &datadir.Vendor{AppID: "app_1", Keys: keys}
	}
	change := func(id string, minute int, keys ...string) offers.KeyChange {
		return offers.KeyChange{ID: id, By: "ada", At: now.Add(time.Duration(minute) * time.Minute), Vendor: vendor(keys...)}
	}
	said := func(change string, minute int, keys ...chain.VendorKey) *chain.VendorKeys {
		k := &chain.VendorKeys{Pinned: keys, Change: change, At: now.Add(time.Duration(minute) * time.Minute)}
		if len(keys) > 0 {
			k.AppID = "app_1"
		}
		return k
	}
	pinnedOne, pinnedTwo := chain.VendorKey{KeyID: one.Key.ID, Key: oneText}, chain.VendorKey{KeyID: two.Key.ID, Key: twoText}
	for _, tc := range []struct {
		name    string
		said    *chain.VendorKeys
		now     *datadir.Vendor
		changes []offers.KeyChange
		want    []string
	}{
		{name: "never a key"},
		{name: "a key that was there before chains named them", now: vendor(oneText), want: []string{"found: +one"}},
		{name: "nothing new", said: said("a", 1, pinnedOne), now: vendor(oneText), changes: []offers.KeyChange{change("a", 1, oneText)}},
		{name: "a command", now: vendor(oneText), changes: []offers.KeyChange{change("a", 1, oneText)}, want: []string{"a by ada: +one"}},
		{
			name: "two commands since the last look", said: said("a", 1, pinnedOne), now: vendor(twoText),
			changes: []offers.KeyChange{change("a", 1, oneText), change("b", 2, oneText, twoText), change("c", 3, twoText)},
			want:    []string{"b by ada: +two", "c by ada: -one"},
		},
		{
			name: "pinned and removed between two looks", now: nil, changes: []offers.KeyChange{change("a", 1, oneText), change("b", 2)},
			want: []string{"a by ada: +one", "b by ada: -one"},
		},
		{name: "a command that is not through yet", now: nil, changes: []offers.KeyChange{change("a", 1, oneText)}},
		{
			name: "a command that was repeated", said: said("a", 1, pinnedOne), now: vendor(oneText),
			changes: []offers.KeyChange{change("a", 1, oneText), change("b", 2, oneText)},
		},
		{
			name: "trust.json was edited", said: said("a", 1, pinnedOne), now: vendor(twoText), changes: []offers.KeyChange{change("a", 1, oneText)},
			want: []string{"found: +two -one"},
		},
		{name: "the keys were taken out of trust.json", said: said("a", 1, pinnedOne, pinnedTwo), want: []string{"found: -one -two"}},
		{
			name: "on the machine that took over, whose file knows nothing of before", said: said("x", 5, pinnedOne), now: vendor(twoText),
			changes: []offers.KeyChange{change("old", 4, oneText), change("b", 6, twoText)}, want: []string{"b by ada: +two -one"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			list, err := offers.Unrecorded(tc.said, tc.now, tc.changes)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range list {
				text := "found:"
				if k.By != "" {
					text = k.Change + " by " + k.By + ":"
				}
				for _, id := range k.Added {
					text += " +" + names[id]
				}
				for _, id := range k.Removed {
					text += " -" + names[id]
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
		})
	}
}

// chained writes what a gate appends into a real chain, so that it can be verified.
type chained struct {
	out    bytes.Buffer
	head   chain.Head
	signer chain.Signer
}

func newChained(t *testing.T) *chained {
	t.Helper()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	return &chained{signer: chain.Signer{Chain: "ins_1", Key: key, Now: func() time.Time { return now }}}
}

func (c *chained) append(_ context.Context, r chain.Record) error {
	line, err := chain.Next(c.head, r, c.signer)
	if err == nil {
		c.head = line.Head
		c.out.Write(append(line.Raw, '\n'))
	}
	return err
}

func (c *chained) verify(t *testing.T) chain.Report {
	t.Helper()
	report, err := chain.Verify(bytes.NewReader(c.out.Bytes()), chain.VerifyOptions{Check: new(offer.History).Check})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// The chain says since when which key was pinned, by whom, and which key took its place;
// before a release is accepted by a key, the chain names that key.
func TestPinsAndRotationsAreInTheChain(t *testing.T) {
	t.Parallel()
	old, oldText := newKey(t)
	next, nextText := newKey(t)
	g, _ := newGate(t)
	c := newChained(t)
	g.Append = c.append
	pin := func(by string, rotation *capsule.Envelope, keys ...string) {
		t.Helper()
		trust, err := g.Dir.LoadTrust()
		if err != nil {
			t.Fatal(err)
		}
		trust.Vendor = nil
		if len(keys) > 0 {
			trust.Vendor = &datadir.Vendor{AppID: "app_1", Keys: keys}
		}
		if by != "" {
			if err := g.WillPin(offers.KeyChange{By: by, At: now, Vendor: trust.Vendor, Rotation: rotation}); err != nil {
				t.Fatal(err)
			}
		}
		if err := datadir.WriteJSON(g.Dir.Trust(), trust); err != nil {
			t.Fatal(err)
		}
	}
	accept := func(by consent.Signer, n int) {
		t.Helper()
		r := release(n)
		r.Signed = []capsule.Envelope{says(t, by, r, asItIs)}
		if refused, err := g.Accept(t.Context(), r, "job"); refused != nil || err != nil {
			t.Fatalf("release %d: %+v, %v", n, refused, err)
		}
	}
	pin("ada", nil, oldText)
	accept(old, 3) // records 1 and 2: the pin comes first, though nobody told it
	rotation, err := offer.SignRotation(old, offer.Rotation{OrgID: "org_1", AppID: "app_1", NewKeyID: next.Key.ID, NewKey: nextText, Issued: now})
	if err != nil {
		t.Fatal(err)
	}
	pin("bob", &rotation, nextText)
	accept(next, 4)
	pin("", nil)
	for range 2 { // twice is once
		if err := g.Tell(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	report := c.verify(t)
	if !report.OK() || report.Records != 5 {
		t.Fatalf("the chain: %+v", report)
	}
	var got []string
	for _, k := range report.Keys {
		if k.As == "vendor" {
			got = append(got, fmt.Sprintf("%s from %d to %d, %d signed, pinned by %q, ended by %d by %q, replaced by %s, unchecked %v",
				k.KeyID, k.FirstSeq, k.LastSeq, k.Records, k.PinnedBy, k.EndedBy, k.RemovedBy, k.ReplacedBy, k.Unchecked))
		}
	}
	want := []string{
		fmt.Sprintf(`%s from 1 to 2, 1 signed, pinned by "ada", ended by 3 by "bob", replaced by %s, unchecked false`, old.Key.ID, next.Key.ID),
		fmt.Sprintf(`%s from 3 to 4, 1 signed, pinned by "bob", ended by 5 by "", replaced by , unchecked false`, next.Key.ID),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("vendor keys (-want +got):\n%s", diff)
	}
}
