package past

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestWhy(t *testing.T) {
	t.Parallel()
	change, condition, pods := "chg_1", "Available: 0/2", "pod web-1: CrashLoopBackOff\x1b[2J"
	bad, unknown := []ctlapi.CheckOutcome{{Ok: false}}, []ctlapi.CheckOutcome{{Ok: true, Unknown: new(true)}}
	checks := []ctlapi.Check{
		{Name: "good", Verdict: ctlapi.HealthVerdictHealthy, Recent: []ctlapi.CheckOutcome{{Ok: true}}},
		{Name: "answers", Verdict: ctlapi.HealthVerdictUnhealthy, Recent: bad, Says: "exit code 1"},
		{Name: "component/web", Verdict: ctlapi.HealthVerdictHealthy, Recent: bad, ChangeID: &change, Says: "not ready", Findings: []ctlapi.Finding{{Object: "Deployment shop/web", Condition: &condition, Pod: &pods}}},
		{Name: "component/own", Verdict: ctlapi.HealthVerdictUnknown, Recent: unknown, Findings: []ctlapi.Finding{{Object: "Basket shop/b"}}},
		{Name: "silent", Verdict: ctlapi.HealthVerdictUnknown},
	}
	want := `
answers
  exit code 1

component/web, last changed by chg_1
  Deployment shop/web
    condition  Available: 0/2
    pods       pod web-1: CrashLoopBackOff⟨U+001B⟩[2J

component/own
  Basket shop/b`
	if diff := cmp.Diff(want, strings.Join(Why(checks), "\n")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
