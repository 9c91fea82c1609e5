package chain_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/pkg/chain"
)

func accepted(reason string, abandoned ...chain.Head) chain.Record {
	return chain.Record{Actor: "customer", Kind: chain.Event, What: "chain accepted", Accepted: &chain.Acceptance{Reason: reason, Problem: "p", Abandoned: abandoned}}
}

// A decision never makes kept heads of other records good: they are counted, and
// those that it does not name stay bad.
func TestVerifyTellsOfADecision(t *testing.T) {
	t.Parallel()
	s := signer("ins_1", 1)
	whole := lines(t, s, event("one"), event("two"), event("three"), event("four"))
	after := lines(t, s, event("one"), accepted("disk lost", whole[2].Head), event("new"), event("newer"))
	kept := func(ls []chain.Line, seq int) chain.SignedHead { return chain.SignHead(ls[seq-1].Head, s) }
	for name, tc := range map[string]struct {
		heads     []chain.SignedHead
		bad       int64
		abandoned int
	}{
		"heads of the records that were given up": {[]chain.SignedHead{kept(whole, 1), kept(whole, 2), kept(whole, 3)}, 0, 2},
		"a head beyond those":                     {[]chain.SignedHead{kept(whole, 4)}, 4, 0},
		"heads of what came afterwards":           {[]chain.SignedHead{kept(whole, 3), kept(after, 4)}, 0, 1},
	} {
		report, err := chain.Verify(bytes.NewReader(file(after)), chain.VerifyOptions{Keys: keysOf(s), Heads: tc.heads})
		if err != nil {
			t.Fatal(err)
		}
		if report.FirstBad != tc.bad || tc.bad == 0 && (!report.OK() || report.HeadsAbandoned != tc.abandoned || len(report.Decisions) != 1) {
			t.Errorf("%s: %+v", name, report)
		}
	}
	// A head from before the decision was never given up by it.
	forged := lines(t, s, event("ONE"), accepted("disk lost", whole[2].Head))
	if report, err := chain.Verify(bytes.NewReader(file(forged)), chain.VerifyOptions{Keys: keysOf(s), Heads: []chain.SignedHead{kept(whole, 1)}}); err != nil || report.FirstBad != 1 {
		t.Errorf("a record from before the decision was rewritten: %+v, %v", report, err)
	}
}

func TestVerifyTellsOfADispute(t *testing.T) {
	t.Parallel()
	s := signer("ins_1", 1)
	dispute := event("another process holds the key of this runner")
	dispute.Result, dispute.Detail = chain.Disputed, "it ended this one's session"
	report, err := chain.Verify(bytes.NewReader(file(lines(t, s, event("one"), dispute, event("three")))), chain.VerifyOptions{Keys: keysOf(s)})
	if err != nil || !report.OK() || len(report.Disputes) != 1 || report.Disputes[0].Seq != 2 || report.Disputes[0].Detail != dispute.Detail {
		t.Errorf("report = %+v, %v", report, err)
	}
}

func TestAdoptGoesOnWithACopy(t *testing.T) {
	t.Parallel()
	s := signer("ins_1", 1)
	path := filepath.Join(t.TempDir(), "chain.jsonl")
	whole := lines(t, s, event("one"), intent("two"), outcome(2, "applied"), event("four"))
	own := lines(t, s, event("one"), event("fork"))
	if err := os.WriteFile(path, file(own), 0o600); err != nil {
		t.Fatal(err)
	}
	w := open(t, path, s)
	if err := w.Adopt(1, whole[2:], accepted("why")); err == nil || w.Head() != own[1].Head {
		t.Errorf("lines with a gap were taken: %v, head %+v", err, w.Head())
	}
	if err := w.Adopt(1, whole[1:], accepted("why", own[1].Head)); err != nil {
		t.Fatal(err)
	}
	if d := w.Decisions(); w.Head().Seq != 5 || len(w.OpenIntents()) != 0 || len(d) != 1 || d[0].Seq != 5 {
		t.Errorf("head %+v, open %v, decisions %+v", w.Head(), w.OpenIntents(), d)
	}
	if _, err := w.Append(t.Context(), event("six")); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(path)
	if err != nil || !bytes.HasPrefix(raw, file(whole)) {
		t.Errorf("the copy is not at the start of the file: %v", err)
	}
	if report, err := chain.Verify(bytes.NewReader(raw), chain.VerifyOptions{Keys: keysOf(s)}); err != nil || !report.OK() || report.Records != 6 {
		t.Errorf("report %+v, %v", report, err)
	}
}
