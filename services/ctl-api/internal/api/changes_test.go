package api

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Clients tell from it what a step waited for a person.
func TestChangeSummarySaysSinceWhenItWaited(t *testing.T) {
	t.Parallel()
	proposed := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	decided := proposed.Add(time.Hour)
	got, err := changeSummary(ctldb.Change{ID: "chg_1", ProposedAt: &proposed, DecidedAt: &decided}, apigen.Ref{}, nil)
	if err != nil || got.ProposedAt == nil || !got.ProposedAt.Equal(proposed) || got.DecidedAt == nil || !got.DecidedAt.Equal(decided) {
		t.Errorf("%v: proposed %v, decided %v; want %s, %s", err, got.ProposedAt, got.DecidedAt, proposed, decided)
	}
}
