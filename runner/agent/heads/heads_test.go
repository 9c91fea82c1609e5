package heads_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/runner/agent/heads"
)

func TestJudge(t *testing.T) {
	t.Parallel()
	head := func(seq int64) chain.Head { return chain.Head{Seq: seq, Hash: fmt.Sprint("h", seq)} }
	other := func(seq int64) chain.Head { return chain.Head{Seq: seq, Hash: fmt.Sprint("x", seq)} }
	kept := func(h chain.Head) heads.Kept { return heads.Kept{By: "somebody", Head: h} }
	for _, tc := range []struct {
		name    string
		length  int64
		begun   bool
		kept    []heads.Kept
		givenUp []chain.Head
		want    heads.State
		worst   int64
	}{
		{name: "first start, before the identity", want: heads.Continues},
		{name: "crash between identity and chain", begun: true, kept: []heads.Kept{kept(chain.Head{})}, want: heads.Continues},
		{name: "crash after a record, before its head was kept", length: 4, begun: true, kept: []heads.Kept{kept(head(3))}, want: heads.Continues},
		{name: "crash while records are copied", length: 4, begun: true, kept: []heads.Kept{kept(head(4)), kept(head(1))}, want: heads.Continues},
		{name: "of a version that kept no second copy", length: 4, begun: true, want: heads.Continues},
		{name: "the copy at the control plane is empty", length: 4, begun: true, kept: []heads.Kept{kept(head(4)), kept(chain.Head{})}, want: heads.Continues},
		{name: "removed", begun: true, kept: []heads.Kept{kept(head(3))}, want: heads.Missing, worst: 3},
		{name: "removed with its second copy", begun: true, want: heads.Missing},
		{name: "removed, the second copy says it never began", begun: true, kept: []heads.Kept{kept(chain.Head{}), kept(head(5))}, want: heads.Missing, worst: 5},
		{name: "last records cut off", length: 2, begun: true, kept: []heads.Kept{kept(head(3))}, want: heads.Behind, worst: 3},
		{name: "an older backup of everything", length: 2, begun: true, kept: []heads.Kept{kept(head(2)), kept(head(7))}, want: heads.Behind, worst: 7},
		{name: "another history", length: 5, begun: true, kept: []heads.Kept{kept(head(5)), kept(other(4))}, want: heads.Forked, worst: 4},
		{name: "a fork counts more than a shorter chain", length: 5, begun: true, kept: []heads.Kept{kept(head(9)), kept(other(4))}, want: heads.Forked, worst: 4},
		{name: "given up by the customer", length: 5, begun: true, kept: []heads.Kept{kept(head(9))}, givenUp: []chain.Head{head(9)}, want: heads.Continues},
		{name: "another head than the one given up", length: 5, begun: true, kept: []heads.Kept{kept(head(10))}, givenUp: []chain.Head{head(9)}, want: heads.Behind, worst: 10},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := heads.Facts{Begun: tc.begun, Kept: tc.kept, GivenUp: tc.givenUp, At: func(seq int64) (chain.Head, bool) {
				return head(seq), seq <= tc.length
			}}
			if tc.length > 0 {
				f.Head = head(tc.length)
			}
			state, worst := heads.Judge(f)
			if state != tc.want || worst.Seq != tc.worst {
				t.Errorf("Judge = %q %d, want %q %d", state, worst.Seq, tc.want, tc.worst)
			}
			if text := heads.Describe(state, f.Head, worst); (text == "") != (state == heads.Continues) {
				t.Errorf("Describe = %q", text)
			}
		})
	}
}

// Whatever a crash leaves of the place that was being written, the other place
// still has the head before.
func TestCopySurvivesATornWrite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chain-head")
	c, found, err := heads.Open(path)
	if err != nil || found {
		t.Fatalf("Open = %v, %v", found, err)
	}
	if err := c.Reset(chain.Head{}); err != nil {
		t.Fatal(err)
	}
	for seq := int64(1); seq <= 3; seq++ {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Keep(chain.Head{Seq: seq, Hash: fmt.Sprintf("sha256:%064d", seq)}); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(path)
		if err != nil || len(after) != len(before) {
			t.Fatalf("the file went from %d to %d bytes: %v", len(before), len(after), err)
		}
		for cut := range len(after) {
			torn := append(append([]byte{}, after[:cut]...), before[cut:]...)
			if seq%2 == 1 { // the second place: what comes before it is written last
				torn = append(append([]byte{}, before[:cut]...), after[cut:]...)
			}
			other := filepath.Join(t.TempDir(), "torn")
			if err := os.WriteFile(other, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			got, found, err := heads.Open(other)
			if err != nil || !found || got.Head().Seq != seq && got.Head().Seq != seq-1 {
				t.Fatalf("cut at %d: head %d, found %v, %v; want %d or the one before", cut, got.Head().Seq, found, err, seq)
			}
		}
	}
	if again, found, err := heads.Open(path); err != nil || !found || again.Head().Seq != 3 {
		t.Errorf("Open = %+v, %v, %v", again.Head(), found, err)
	}
}
