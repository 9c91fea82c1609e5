package follow_test

import (
	"testing"
	"time"

	"github.com/berth-dev/berth/cli/internal/follow"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

func TestTakes(t *testing.T) {
	t.Parallel()
	release := ctlapi.Release{
		Number: 7, Config: ctlapi.NumberRef{Number: 4}, SyncedBy: "ann@initech.example",
		SyncedAt: *ago(3 * time.Minute), CreatedAt: *ago(2 * time.Minute),
	}
	for _, tc := range []struct {
		name   string
		by     ctlapi.ReleaseMadeBy
		chosen bool
		want   string
	}{
		{"the newest", ctlapi.ReleaseMadeBySync, false, "release 7, the newest: synced 3 min ago by ann@initech.example"},
		{"one that was named", ctlapi.ReleaseMadeBySync, true, "release 7, as asked: synced 3 min ago by ann@initech.example"},
		{"of builds made again", ctlapi.ReleaseMadeByRebuild, false, "release 7, the newest: built again 2 min ago from config 4"},
		{"of chosen builds", ctlapi.ReleaseMadeByPromotion, false, "release 7, the newest: made 2 min ago from chosen builds of config 4"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			release := release
			release.MadeBy = tc.by
			if got := follow.Takes(release, tc.chosen, now); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
