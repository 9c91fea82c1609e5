package helm

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/release"
)

// A revision as the tables below write it: its status, and what it says of
// itself when that counts.
type revision struct {
	status      release.Status
	description string
}

func historyOf(revisions ...revision) []*release.Release {
	list := make([]*release.Release, len(revisions))
	for i, r := range revisions {
		list[i] = &release.Release{Version: i + 1, Info: &release.Info{Status: r.status, Description: r.description}}
	}
	return list
}

func TestStand(t *testing.T) {
	t.Parallel()
	var (
		deployed   = revision{status: release.StatusDeployed}
		superseded = revision{release.StatusSuperseded, "Upgrade complete"}
		failed     = revision{status: release.StatusFailed}
		installing = revision{status: release.StatusPendingInstall}
		upgrading  = revision{status: release.StatusPendingUpgrade}
		rollback   = revision{status: release.StatusPendingRollback}
		removing   = revision{status: release.StatusUninstalling}
		removed    = revision{status: release.StatusUninstalled}
		renamed    = revision{release.StatusSuperseded, replaced}
	)
	for _, tc := range []struct {
		name    string
		history []*release.Release
		base    int
		after   []int
		says    string
	}{
		{name: "nothing was ever there"},
		{name: "deployed", history: historyOf(superseded, deployed), base: 2},
		{name: "an upgrade failed", history: historyOf(deployed, failed, failed), base: 1, after: []int{2, 3}, says: "revision 3 failed"},
		{name: "an upgrade was killed", history: historyOf(superseded, deployed, upgrading), base: 2, after: []int{3}, says: "revision 3 was left pending-upgrade; the apply marks it failed and goes on from revision 2"},
		{name: "a rollback was killed", history: historyOf(deployed, rollback), base: 1, after: []int{2}, says: "left pending-rollback"},
		{name: "an upgrade was killed just before its last word", history: historyOf(superseded, upgrading), base: 1, after: []int{2}},
		{name: "a failed one is marked, the one below not yet deployed again", history: historyOf(superseded, failed), base: 1, after: []int{2}},
		{name: "a first install was killed", history: historyOf(installing), after: []int{1}, says: "revision 1 was left pending-install and nothing was ever deployed"},
		{name: "a first install failed", history: historyOf(failed), after: []int{1}, says: "installs again"},
		{name: "a second try at a first install was killed", history: historyOf(renamed, installing), after: []int{1, 2}},
		{name: "that was marked", history: historyOf(renamed, failed), after: []int{1, 2}},
		{name: "killed while the name was taken over", history: historyOf(renamed), after: []int{1}},
		{name: "a removal was killed", history: historyOf(superseded, removing), after: []int{1, 2}, says: "revision 2 was left uninstalling"},
		{name: "removed with its history kept", history: historyOf(superseded, removed)},
		{name: "an install after that was killed", history: historyOf(superseded, removed, installing), after: []int{3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := stand(tc.history)
			if s.live() != tc.base {
				t.Errorf("base is revision %d, want %d", s.live(), tc.base)
			}
			if s.last() != len(tc.history) {
				t.Errorf("last is revision %d, want %d", s.last(), len(tc.history))
			}
			var after []int
			for _, r := range s.After {
				after = append(after, r.Version)
			}
			if len(after) != len(tc.after) {
				t.Fatalf("after it are %v, want %v", after, tc.after)
			}
			for i := range after {
				if after[i] != tc.after[i] {
					t.Errorf("after it are %v, want %v", after, tc.after)
				}
			}
			if got := s.describe(); !strings.Contains(got, tc.says) || tc.says == "" && tc.base == len(tc.history) && got != "" {
				t.Errorf("it says %q, want %q", got, tc.says)
			}
		})
	}
}
