package agent

import (
	"time"

	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/gauges"
)

// numbers are this runner's, for monitoring.
func (a *agent) numbers() gauges.Facts {
	var s Status
	_, _ = datadir.ReadJSON(a.dir.Status(), &s) // as people see it; without it, it is not connected
	room, _ := a.disk.Now()
	f := gauges.Facts{Connected: s.Connected, Jobs: a.jobs.Running(), DiskFree: room.Free}
	if settings, _ := a.current(); settings.Version > 0 {
		f.SettingsLeft = settings.until().Sub(a.cfg.Now()).Round(time.Second)
	}
	return f
}
