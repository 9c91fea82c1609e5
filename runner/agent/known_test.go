package agent

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/recovery"
)

// copyOf is a chain as the control plane gives it to a machine that takes over.
type copyOf struct {
	t    *testing.T
	head chain.Head
	text []byte
}

func (c *copyOf) write(key ed25519.PrivateKey, r chain.Record) {
	c.t.Helper()
	r.Actor, r.What = "test", "record"
	line, err := chain.Next(c.head, r, chain.Signer{Chain: "ins_1", Key: key})
	if err != nil {
		c.t.Fatal(err)
	}
	c.head, c.text = line.Head, append(append(c.text, line.Raw...), '\n')
}

func (c *copyOf) accept(key ed25519.PrivateKey, names ...string) {
	about := chain.Scripts{ReleaseID: "rel_1"}
	c.write(key, chain.Record{Kind: chain.Intent, Effect: "sha256:e", Scripts: &about})
	for _, name := range names {
		about.List = append(about.List, chain.AcceptedScript{Digest: "sha256:" + name, Name: name})
	}
	about = about.Fitting()
	c.write(key, chain.Record{Kind: chain.Outcome, Intent: c.head.Seq, Result: "succeeded", Scripts: &about})
}

// TestAttackForgedAcceptances has a control plane add to what a machine that takes
// over believes to be accepted. It has all of the chain, and neither the recovery key
// nor a machine's.
func TestAttackForgedAcceptances(t *testing.T) {
	t.Parallel()
	key := func() ed25519.PrivateKey {
		_, private, err := capsule.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		return private
	}
	public := func(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }
	customer, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	thief, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	first, second, forger := key(), key(), key()
	vouch := func(by *recovery.Key, machine ed25519.PrivateKey) *capsule.Envelope {
		env, err := by.Vouch(public(machine), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return &env
	}
	keys := func(vouched *capsule.Envelope) chain.Record {
		return chain.Record{Kind: chain.Event, Keys: &chain.Keys{Recovery: customer.Public().SigningKey, Vouched: vouched}}
	}
	handover := func(by *recovery.Key, install string, from, to ed25519.PrivateKey, head chain.Head) chain.Record {
		env, err := by.Sign(recovery.Handover{InstallID: install, OldMachine: capsule.KeyID(public(from)), NewMachine: capsule.EncodePublicKey(public(to)), ChainHead: head})
		if err != nil {
			t.Fatal(err)
		}
		return chain.Record{Kind: chain.Event, Handover: &env}
	}
	for _, tc := range []struct {
		name    string
		tell    func(c *copyOf)
		want    string
		nothing string
	}{
		{"the customer's machine accepted", func(c *copyOf) {
			c.write(first, keys(vouch(customer, first)))
			c.accept(first, "up")
		}, "up", ""},
		{"so did the one that took over", func(c *copyOf) {
			c.write(first, keys(vouch(customer, first)))
			c.accept(first, "up")
			c.write(second, handover(customer, "ins_1", first, second, c.head))
			c.accept(second, "up", "clean")
		}, "clean up", ""},
		{"vouched for later than it accepted", func(c *copyOf) {
			c.accept(first, "up")
			c.write(first, keys(vouch(customer, first)))
		}, "up", ""},
		{"a chain of a version without signed machines", func(c *copyOf) {
			c.write(first, keys(nil))
			c.accept(first, "up")
		}, "", "has signed for no machine"},
		{"a made-up machine names the customer's recovery key", func(c *copyOf) {
			c.write(forger, keys(nil))
			c.accept(forger, "evil")
		}, "", "has signed for no machine"},
		{"a made-up recovery key signs for it", func(c *copyOf) {
			c.write(forger, keys(vouch(thief, forger)))
			c.accept(forger, "evil")
		}, "", "has signed for no machine"},
		{"it carries what was signed for another", func(c *copyOf) {
			c.write(forger, keys(vouch(customer, first)))
			c.accept(forger, "evil")
		}, "", "record 1 is not signed by a given key"},
		{"it goes on with the chain of the customer's", func(c *copyOf) {
			c.write(first, keys(vouch(customer, first)))
			c.accept(first, "up")
			c.accept(forger, "up", "evil")
		}, "", "record 4 is not signed by a given key"},
		{"it goes on with a handover of its own", func(c *copyOf) {
			c.write(first, keys(vouch(customer, first)))
			c.write(forger, handover(thief, "ins_1", first, forger, c.head))
			c.accept(forger, "evil")
		}, "", "handover that the recovery key has not signed"},
		{"it goes on with a handover of another install", func(c *copyOf) {
			c.write(first, keys(vouch(customer, first)))
			c.write(forger, handover(customer, "ins_2", first, forger, c.head))
			c.accept(forger, "evil")
		}, "", "handover for another place"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := &copyOf{t: t}
			tc.tell(c)
			k, err := knownScripts("ins_1", customer.Public(), c.text, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range k.set.Scripts() {
				got = append(got, a.Script.Action.Name)
			}
			if got := strings.Join(got, " "); got != tc.want {
				t.Errorf("accepted: %q, want %q", got, tc.want)
			}
			if tc.nothing == "" && k.set.Nothing != "" || !strings.Contains(k.set.Nothing, tc.nothing) {
				t.Errorf("why nothing: %q, want %q", k.set.Nothing, tc.nothing)
			}
		})
	}
}
