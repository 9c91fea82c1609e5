package waits_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/cli/internal/waits"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A person reads who can end each wait, what happens when, and a queue once.
func TestPrint(t *testing.T) {
	t.Setenv("TZ", "UTC")
	time.Local = time.UTC //nolint:gosmopolitan // times are shown as the reader's clock has them
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	retry, late := at.Add(15*time.Minute), at.Add(24*time.Hour)
	approver, change, unblock := "an approver", "chg_1", "berth why chg_1"
	turn := func(id string) ctlapi.ResourceTurn {
		return ctlapi.ResourceTurn{Change: id, Step: "component/api", WorkflowKind: "deploy", CreatedBy: "ann", Since: at}
	}
	lock := ctlapi.WhyItem{
		What: "component/api", Reason: "change chg_1 holds the resource", Code: ctlapi.WhyCodeLock, Who: ctlapi.WhyWhoAnotherChange, On: &change, RetryAt: &retry, Deadline: &late, Unblock: &unblock,
		Holders: []ctlapi.ResourceTurn{turn("chg_1")}, Queue: []ctlapi.ResourceTurn{turn("chg_2"), turn("chg_3")},
	}
	needs := ctlapi.WhyItem{What: "component/web", Reason: "it begins after component/api", Code: ctlapi.WhyCodeNeeds, Who: ctlapi.WhyWhoApprover, On: &approver}
	decision := ctlapi.WhyItem{What: "component/api", Reason: "its change is planned and needs a decision", Code: ctlapi.WhyCodeDecision, Who: ctlapi.WhyWhoApprover, On: &approver, Deadline: &late}
	const queue = `  holds  chg_1  component/api  deploy by ann, since 2026-11-24 03:00
  1.     chg_2  component/api  deploy by ann, approved 2026-11-24 03:00
  2.     chg_3  component/api  deploy by ann, approved 2026-11-24 03:00
`
	const ends = "waits for that change, Berth looks again at 2026-11-24 03:15, until 2026-11-25 03:00, then it is planned again\n"
	for _, tc := range []struct {
		name string
		in   ctlapi.Why
		want string
	}{
		{"nothing", ctlapi.Why{Summary: "acme waits for nothing"}, "acme waits for nothing\n"},
		{"one", ctlapi.Why{Summary: "S", Items: []ctlapi.WhyItem{lock}}, "S\n" + ends + queue + "  try: berth why chg_1\n"},
		{"two in one queue", ctlapi.Why{Summary: "S", Items: []ctlapi.WhyItem{lock, lock}}, "S\n- component/api: change chg_1 holds the resource; " + ends + queue +
			"  try: berth why chg_1\n- component/api: change chg_1 holds the resource; " + ends + "  try: berth why chg_1\n"},
		{"what comes later", ctlapi.Why{Summary: "step component/web: it begins after component/api", Items: []ctlapi.WhyItem{needs, decision}},
			"step component/web: it begins after component/api\n- component/api: its change is planned and needs a decision; waits for an approver, until 2026-11-25 03:00, then it counts as denied\n"},
	} {
		var out bytes.Buffer
		waits.Print(&out, 0, &tc.in)
		if diff := cmp.Diff(tc.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
