package chain_test

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
)

// Another machine goes on with a chain only by a handover that the recovery key
// signed which the chain names, at just the place where it stands.
func TestHandoverChangesTheWriter(t *testing.T) {
	t.Parallel()
	pair := func() (string, ed25519.PrivateKey) {
		public, private, err := capsule.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		return capsule.EncodePublicKey(public), private
	}
	oldText, oldKey := pair()
	newText, newKey := pair()
	recoveryText, recoveryKey := pair()
	_, thiefKey := pair()
	keyID := func(k ed25519.PrivateKey) string { return capsule.KeyID(k.Public().(ed25519.PublicKey)) }

	build := func(signer, writer ed25519.PrivateKey, named string, change func(*chain.Handover)) []byte {
		t.Helper()
		var out bytes.Buffer
		head := chain.Head{}
		add := func(key ed25519.PrivateKey, r chain.Record) {
			t.Helper()
			r.Actor, r.Kind, r.What = "runner", chain.Event, "x"
			line, err := chain.Next(head, r, chain.Signer{Chain: "ins_1", Key: key})
			if err != nil {
				t.Fatal(err)
			}
			head = line.Head
			out.Write(append(line.Raw, '\n'))
		}
		add(oldKey, chain.Record{Keys: &chain.Keys{Machine: oldText, Recovery: named}})
		add(oldKey, chain.Record{})
		h := chain.Handover{InstallID: "ins_1", OldMachine: keyID(oldKey), NewMachine: newText, ChainHead: head}
		change(&h)
		signed, err := capsule.Sign(signer, keyID(signer), chain.HandoverType, h)
		if err != nil {
			t.Fatal(err)
		}
		add(writer, chain.Record{Handover: &signed})
		add(writer, chain.Record{})
		return out.Bytes()
	}
	asItIs := func(*chain.Handover) {}
	for name, tc := range map[string]struct {
		signer, writer ed25519.PrivateKey
		named          string
		change         func(*chain.Handover)
		problem        string
	}{
		"the recovery key signed":           {recoveryKey, newKey, recoveryText, asItIs, ""},
		"another key signed":                {thiefKey, newKey, recoveryText, asItIs, "has not signed"},
		"the new machine signed for itself": {newKey, newKey, recoveryText, asItIs, "has not signed"},
		"the chain names no recovery key":   {recoveryKey, newKey, "", asItIs, "no record before it names"},
		"somebody else writes":              {recoveryKey, thiefKey, recoveryText, asItIs, "wrote it"},
		"another install":                   {recoveryKey, newKey, recoveryText, func(h *chain.Handover) { h.InstallID = "ins_2" }, "another place"},
		"a chain that was cut before":       {recoveryKey, newKey, recoveryText, func(h *chain.Handover) { h.ChainHead.Seq = 9 }, "another place"},
		"from another machine":              {recoveryKey, newKey, recoveryText, func(h *chain.Handover) { h.OldMachine = "x" }, "another place"},
	} {
		report, err := chain.Verify(bytes.NewReader(build(tc.signer, tc.writer, tc.named, tc.change)), chain.VerifyOptions{
			Keys: map[string]ed25519.PublicKey{keyID(oldKey): oldKey.Public().(ed25519.PublicKey)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if report.OK() != (tc.problem == "") || !strings.Contains(report.Problem, tc.problem) || tc.problem == "" && report.Handovers != 1 {
			t.Errorf("%s: %q after %d records, want %q", name, report.Problem, report.Records, tc.problem)
		}
	}
}
