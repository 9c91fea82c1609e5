package sync_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/sync"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestSyncLine(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	end := start.Add(14 * time.Second)
	item := func(name, build string, action ctlapi.SyncItemAction) ctlapi.SyncItem {
		return ctlapi.SyncItem{Component: name, BuildID: api.Optional(build), Action: action}
	}
	items := []ctlapi.SyncItem{item("api", "bld_1", ctlapi.SyncItemActionBuild), item("web", "bld_2", ctlapi.SyncItemActionReuse), item("db", "bld_3", ctlapi.SyncItemActionReuse)}
	for _, tc := range []struct {
		name   string
		result ctlapi.SyncResult
		builds map[string]ctlapi.Build
		want   string
	}{
		{"just synced", ctlapi.SyncResult{Created: true, Config: &ctlapi.NumberRef{Number: 3}, Items: items}, nil, "config 3 · api is built · web, db reused"},
		{"released", ctlapi.SyncResult{Created: true, Config: &ctlapi.NumberRef{Number: 3}, Release: &ctlapi.NumberRef{Number: 2}, Items: items},
			map[string]ctlapi.Build{"bld_1": {StartedAt: &start, FinishedAt: &end}}, "config 3 · api built 14 s · web, db reused → release 2"},
		{"the same folder again", ctlapi.SyncResult{Config: &ctlapi.NumberRef{Number: 3}, Release: &ctlapi.NumberRef{Number: 2}, Items: items[1:]}, nil,
			"config 3 (unchanged) · web, db reused → release 2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := sync.Line(&tc.result, tc.builds); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}
