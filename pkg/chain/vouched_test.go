package chain_test

import (
	"bytes"
	"crypto/ed25519"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
)

func TestKeysVouch(t *testing.T) {
	t.Parallel()
	pair := func() (string, ed25519.PrivateKey, string) {
		public, private, err := capsule.GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		return capsule.EncodePublicKey(public), private, capsule.KeyID(public)
	}
	oldText, oldKey, oldID := pair()
	newText, newKey, newID := pair()
	recoveryText, recoveryKey, recoveryID := pair()
	var out bytes.Buffer
	head := chain.Head{}
	at := func(seq int64) time.Time { return start.Add(time.Duration(seq) * time.Hour) }
	add := func(key ed25519.PrivateKey, r chain.Record) {
		t.Helper()
		r.Actor, r.What, r.Time = "runner", "x", at(head.Seq+1)
		if r.Kind == "" {
			r.Kind = chain.Event
		}
		line, err := chain.Next(head, r, chain.Signer{Chain: "ins_1", Key: key})
		if err != nil {
			t.Fatal(err)
		}
		head = line.Head
		out.Write(append(line.Raw, '\n'))
	}
	add(oldKey, chain.Record{Keys: &chain.Keys{Machine: oldText, Recovery: recoveryText, Dispatch: []string{"key_1"}}})
	add(oldKey, chain.Record{Kind: chain.Intent, Effect: "sha256:e", Consent: &chain.Consent{Mode: "each", By: []string{"ada"}, Keys: []string{"SHA256:ada"}}})
	add(oldKey, chain.Record{Keys: &chain.Keys{Machine: oldText, Recovery: recoveryText, Dispatch: []string{"key_2"}}})
	signed, err := capsule.Sign(recoveryKey, recoveryID, chain.HandoverType, chain.Handover{InstallID: "ins_1", OldMachine: oldID, NewMachine: newText, ChainHead: head})
	if err != nil {
		t.Fatal(err)
	}
	add(newKey, chain.Record{Handover: &signed})
	add(newKey, chain.Record{})
	public, _ := oldKey.Public().(ed25519.PublicKey)
	report, err := chain.Verify(&out, chain.VerifyOptions{Keys: map[string]ed25519.PublicKey{oldID: public}})
	if err != nil || !report.OK() {
		t.Fatalf("Verify = %+v, %v", report, err)
	}
	want := []chain.Vouched{
		{KeyID: oldID, As: "writer", FirstSeq: 1, LastSeq: 3, From: at(1), Until: at(3), Records: 3, EndedBy: 4},
		{KeyID: recoveryID, As: "recovery", FirstSeq: 1, LastSeq: 5, From: at(1), Until: at(5), Records: 2, Unchecked: true},
		{KeyID: "key_1", As: "dispatch", FirstSeq: 1, LastSeq: 2, From: at(1), Until: at(2), Records: 1, EndedBy: 3, Unchecked: true},
		{KeyID: "SHA256:ada", As: "consent", Holder: "ada", FirstSeq: 2, LastSeq: 2, From: at(2), Until: at(2), Records: 1, Unchecked: true},
		{KeyID: "key_2", As: "dispatch", FirstSeq: 3, LastSeq: 5, From: at(3), Until: at(5), Records: 1, Unchecked: true},
		{KeyID: newID, As: "writer", FirstSeq: 4, LastSeq: 5, From: at(4), Until: at(5), Records: 2},
	}
	if diff := cmp.Diff(want, report.Keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}

// Two histories under one name: the report says where they part.
func TestForkIsNamed(t *testing.T) {
	t.Parallel()
	s := signer("ins_1", 1)
	ours := lines(t, s, event("a"), event("b"), event("c"), event("d"))
	theirs := lines(t, s, event("a"), event("b"), event("other"), event("d"))
	kept := []chain.SignedHead{chain.SignHead(theirs[1].Head, s), chain.SignHead(theirs[3].Head, s)}
	report, err := chain.Verify(bytes.NewReader(file(ours)), chain.VerifyOptions{Keys: keysOf(s), Heads: kept})
	if err != nil || report.OK() || report.Fork == nil {
		t.Fatalf("Verify = %+v, %v; want a fork", report, err)
	}
	if f := report.Fork; f.Seq != 4 || f.Common != 2 || f.Here != ours[3].Hash || f.Kept != theirs[3].Hash {
		t.Errorf("fork = %+v, want one between records 2 and 4", f)
	}
	if len(report.Keys) != 1 || report.Keys[0].LastSeq != 3 {
		t.Errorf("keys = %+v, want the writer's of the records before", report.Keys)
	}
}
