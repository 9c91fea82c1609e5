package chain_test

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
)

// handed is a chain of two machines, with what may be wrong at the handover.
type handed struct {
	first, second, recovery ed25519.PrivateKey
	out                     bytes.Buffer
	head                    chain.Head
}

func (h *handed) add(t *testing.T, key ed25519.PrivateKey, r chain.Record) {
	t.Helper()
	r.Actor, r.What, r.Kind, r.Time = "runner", "x", chain.Event, start
	line, err := chain.Next(h.head, r, chain.Signer{Chain: "ins_1", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	h.head = line.Head
	h.out.Write(append(line.Raw, '\n'))
}

func (h *handed) handOver(t *testing.T, by ed25519.PrivateKey) {
	t.Helper()
	env, err := capsule.Sign(by, capsule.KeyID(public(by)), chain.HandoverType, chain.Handover{
		InstallID: "ins_1", OldMachine: capsule.KeyID(public(h.first)), NewMachine: capsule.EncodePublicKey(public(h.second)), ChainHead: h.head,
	})
	if err != nil {
		t.Fatal(err)
	}
	h.add(t, h.second, chain.Record{Handover: &env, Keys: &chain.Keys{Machine: capsule.EncodePublicKey(public(h.second)), Recovery: capsule.EncodePublicKey(public(h.recovery))}})
}

func public(key ed25519.PrivateKey) ed25519.PublicKey {
	pub, _ := key.Public().(ed25519.PublicKey)
	return pub
}

// The machine that writes now vouches for those before, if the recovery key let it go on.
func TestVerifyOfTheMachineThatWritesNow(t *testing.T) {
	t.Parallel()
	key := func() ed25519.PrivateKey {
		_, private, err := capsule.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		return private
	}
	names := func(h *handed) *chain.Keys {
		return &chain.Keys{Machine: capsule.EncodePublicKey(public(h.first)), Recovery: capsule.EncodePublicKey(public(h.recovery))}
	}
	for _, tc := range []struct {
		name    string
		tell    func(h *handed)
		by      func(h *handed) ed25519.PrivateKey // whose key is given
		problem string
		writers int
	}{
		{name: "one machine", tell: func(h *handed) { h.add(t, h.first, chain.Record{}) }, by: func(h *handed) ed25519.PrivateKey { return h.first }, writers: 1},
		{name: "handed over", tell: func(h *handed) {
			h.add(t, h.first, chain.Record{})
			h.add(t, h.first, chain.Record{Keys: names(h)})
			h.handOver(t, h.recovery)
			h.add(t, h.second, chain.Record{})
		}, by: func(h *handed) ed25519.PrivateKey { return h.second }, writers: 2},
		{name: "handed over, with the key of the first machine", tell: func(h *handed) {
			h.add(t, h.first, chain.Record{Keys: names(h)})
			h.handOver(t, h.recovery)
		}, by: func(h *handed) ed25519.PrivateKey { return h.first }, writers: 2},
		{name: "handed over by the recovery key that took the first one's place", tell: func(h *handed) {
			h.add(t, h.first, chain.Record{Keys: &chain.Keys{Machine: capsule.EncodePublicKey(public(h.first)), Recovery: capsule.EncodePublicKey(public(key()))}})
			h.add(t, h.first, chain.Record{Keys: names(h)})
			h.handOver(t, h.recovery)
		}, by: func(h *handed) ed25519.PrivateKey { return h.second }, writers: 2},
		{name: "the same with the key of the first machine, which a thief may have had", tell: func(h *handed) {
			h.add(t, h.first, chain.Record{Keys: &chain.Keys{Machine: capsule.EncodePublicKey(public(h.first)), Recovery: capsule.EncodePublicKey(public(key()))}})
			h.add(t, h.first, chain.Record{Keys: names(h)})
			h.handOver(t, h.recovery)
		}, by: func(h *handed) ed25519.PrivateKey { return h.first }, problem: "the recovery key has not signed"},
		{name: "handed over by a thief's key", tell: func(h *handed) {
			h.add(t, h.first, chain.Record{Keys: names(h)})
			h.handOver(t, key())
		}, by: func(h *handed) ed25519.PrivateKey { return h.second }, problem: "the recovery key has not signed"},
		{name: "taken over without a handover", tell: func(h *handed) {
			h.add(t, h.first, chain.Record{Keys: names(h)})
			h.add(t, h.second, chain.Record{Keys: &chain.Keys{Machine: capsule.EncodePublicKey(public(h.second))}})
		}, by: func(h *handed) ed25519.PrivateKey { return h.second }, problem: "not signed by a given key"},
		{name: "a chain of before that names nobody", tell: func(h *handed) {
			h.add(t, h.first, chain.Record{})
		}, by: func(h *handed) ed25519.PrivateKey { return h.second }, problem: "not signed by a given key"},
		{name: "the whole chain of another machine", tell: func(h *handed) {
			h.add(t, h.first, chain.Record{Keys: names(h)})
		}, by: func(h *handed) ed25519.PrivateKey { return h.second }, problem: "is the last, and of key"},
		{name: "the records of the machine before were made by somebody else", tell: func(h *handed) {
			h.add(t, h.first, chain.Record{Keys: names(h)})
			h.add(t, key(), chain.Record{})
			h.handOver(t, h.recovery)
		}, by: func(h *handed) ed25519.PrivateKey { return h.second }, problem: "not signed by a given key"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := &handed{first: key(), second: key(), recovery: key()}
			tc.tell(h)
			given := public(tc.by(h))
			report, err := chain.VerifyOf(map[string]ed25519.PublicKey{capsule.KeyID(given): given}, bytes.NewReader(h.out.Bytes()), chain.VerifyOptions{Chain: "ins_1"})
			if err != nil {
				t.Fatal(err)
			}
			if report.OK() != (tc.problem == "") || !strings.Contains(report.Problem, tc.problem) {
				t.Errorf("problem %q, want %q", report.Problem, tc.problem)
			}
			if report.OK() && len(report.Writers()) != tc.writers {
				t.Errorf("writers %+v, the last %s", report.Writers(), report.Writer)
			}
		})
	}
}
