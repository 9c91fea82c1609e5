package order_test

import (
	"crypto/ed25519"
	"encoding/json"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/runner/agent/order"
)

// FuzzOrder judges whatever a control plane that was taken over could sign, and
// whatever anybody could send: what is obeyed agrees with all that the runner
// knows, and nothing unsigned ever is.
func FuzzOrder(f *testing.F) {
	t := &testing.T{}
	for _, s := range []*scene{newScene(t), newCheck(t), newBuild(t)} {
		raw, err := json.Marshal(s.order)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, uint8(0))
		f.Add(raw, uint8(1))
		f.Add(raw, uint8(2))
	}
	f.Add([]byte(`{"payloadType":"`+capsule.OrderType+`","payload":"e30=","signatures":[{"keyid":"key_dispatch","sig":""}]}`), uint8(3))
	f.Fuzz(func(t *testing.T, raw []byte, kind uint8) {
		s := []func(*testing.T) *scene{newScene, newCheck, newBuild}[int(kind)%3](t)
		var unsigned capsule.Envelope
		if json.Unmarshal(raw, &unsigned) == nil {
			if v := order.Judge(s.keys, &unsigned, s.facts); v.Outcome == "" {
				t.Fatalf("an unsigned order is obeyed: %s", raw)
			}
		}
		if !json.Valid(raw) {
			return
		}
		env, err := capsule.Sign(s.signer, dispatchKey, capsule.OrderType, json.RawMessage(raw))
		if err != nil {
			return // it has no canonical form, so nobody can sign it
		}
		stranger := map[string]ed25519.PublicKey{dispatchKey: make(ed25519.PublicKey, ed25519.PublicKeySize)}
		if v := order.Judge(order.Keys{Dispatch: stranger, Builder: stranger}, &env, s.facts); v.Outcome == "" {
			t.Fatal("an order of another key is obeyed")
		}
		v := order.Judge(s.keys, &env, s.facts)
		if v.Outcome != "" {
			return
		}
		o, facts := v.Order, s.facts
		switch {
		case o.OrgID != facts.OrgID, o.InstallID != facts.InstallID, o.RunnerID != facts.RunnerID, o.MachineKeyID != facts.MachineKeyID:
			t.Fatalf("it is for somebody else: %+v", o)
		case o.JobID != facts.JobID, o.SpecDigest != facts.SpecDigest, o.StateDigest != facts.StateDigest:
			t.Fatalf("it is for another job: %+v", o)
		case o.Kind != string(facts.Spec.Kind), o.Operation != string(facts.Spec.Operation), o.ChangeID != facts.Spec.ChangeID, o.BuildID != facts.Spec.BuildID:
			t.Fatalf("it is for other work: %+v", o)
		case !facts.Now.Before(o.ExpiresAt), o.ExpiresAt.Sub(o.IssuedAt) > 24*time.Hour, o.IssuedAt.After(facts.Now.Add(5 * time.Minute)):
			t.Fatalf("it is not good now: %+v", o)
		case o.Starts < 1, o.Starts > v.Rule.Starts:
			t.Fatalf("it may begin %d times: %+v", o.Starts, o)
		case v.Rule.Mutates && (o.Nonce == "" || o.EffectDigest == ""):
			t.Fatalf("a mutation without nonce or effect: %+v", o)
		}
	})
}
