package egress_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/egress"
)

// The ledger of a machine that took over is its own: what the chain names of the ledger
// of the machine before does not count against it.
func TestAnchorsOfTheMachineThatTookOver(t *testing.T) {
	t.Parallel()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	var head chain.Head
	add := func(r chain.Record) {
		t.Helper()
		r.Actor, r.Kind = "runner", chain.Event
		line, err := chain.Next(head, r, chain.Signer{Chain: "ins_1", Key: key})
		if err != nil {
			t.Fatal(err)
		}
		head = line.Head
		text.Write(append(line.Raw, '\n'))
	}
	anchor := func(seq int64) egress.Head {
		h := egress.Head{Seq: seq, Hash: capsule.DigestBytes([]byte{byte(seq)})}
		add(chain.Record{What: egress.AnchorWhat, Detail: egress.AnchorDetail(h)})
		return h
	}
	anchors := func() []egress.Head {
		t.Helper()
		list, err := egress.Anchors(strings.NewReader(text.String()))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := anchor(90)
	if diff := cmp.Diff([]egress.Head{before}, anchors()); diff != "" {
		t.Errorf("of the first machine (-want +got):\n%s", diff)
	}
	add(chain.Record{What: "handover", Handover: &capsule.Envelope{}})
	after := []egress.Head{anchor(3), anchor(7)}
	if diff := cmp.Diff(after, anchors()); diff != "" {
		t.Errorf("of the second (-want +got):\n%s", diff)
	}
}
