package follow

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Takes says which release a workflow takes, and why. chosen: somebody named it.
func Takes(r ctlapi.Release, chosen bool, now time.Time) string {
	line := fmt.Sprintf("release %d, the newest: ", r.Number)
	if chosen {
		line = fmt.Sprintf("release %d, as asked: ", r.Number)
	}
	made := Duration(now.Sub(r.CreatedAt))
	switch r.MadeBy {
	case ctlapi.ReleaseMadeByRebuild:
		line += fmt.Sprintf("built again %s ago from config %d", made, r.Config.Number)
	case ctlapi.ReleaseMadeByPromotion:
		line += fmt.Sprintf("made %s ago from chosen builds of config %d", made, r.Config.Number)
	default:
		line += fmt.Sprintf("synced %s ago by %s", Duration(now.Sub(r.SyncedAt)), r.SyncedBy)
	}
	if r.Origin != nil && r.Origin.Message != "" {
		line += ": " + r.Origin.Message
	}
	return visible.Row(line)
}
