package agent

import (
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/disk"
)

// facts describe the machine, for people.
func (a *agent) facts() runnerapi.Facts {
	host, _ := os.Hostname()
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	facts := runnerapi.Facts{
		"hostname":      host,
		"os":            runtime.GOOS,
		"arch":          runtime.GOARCH,
		"kernel":        strings.TrimSpace(string(kernel)),
		"cpus":          runtime.NumCPU(),
		"isolation":     a.iso.text(),
		"limits":        a.iso.limitsText(),
		"engine_uid":    a.iso.engines.UID,
		"engine_uids":   a.cfg.EngineUIDs,
		"pid_namespace": a.iso.engines.PIDNamespace,
	}
	if pod := a.cfg.Pod; pod != nil {
		facts["namespace"], facts["pod"], facts["node"] = pod.Namespace, pod.Name, pod.Node
	}
	if problem := a.problem(); problem != "" {
		facts["problem"] = problem
	}
	return facts
}

// trustLevel says whether vendor code is kept apart from the agent's keys.
func (a *agent) trustLevel() runnerapi.Trust {
	if a.iso.weak != "" {
		return runnerapi.TrustDevelopment
	}
	return runnerapi.TrustIsolated
}

// Room measures the room in a data directory for people, against what its
// config.json wants, or minFree where that is not 0.
func Room(dir datadir.Dir, minFree int64) (disk.Room, error) {
	var file fileConfig
	_, _ = datadir.ReadJSON(dir.Config(), &file) // a damaged one is the agent's to tell
	return disk.Measure(dir.Path(), first(minFree, file.MinFree))
}

// Status is what the agent tells `berth-runner status` about itself.
type Status struct {
	PID             int       `json:"pid"`
	Version         string    `json:"version"`
	Connected       bool      `json:"connected"`
	Since           time.Time `json:"since,omitzero"`
	SessionID       string    `json:"session_id,omitempty"`
	Trust           string    `json:"trust"`
	Isolation       string    `json:"isolation,omitempty"`
	Limits          string    `json:"limits,omitempty"`
	Error           string    `json:"error,omitempty"`
	SettingsVersion int64     `json:"settings_version,omitempty"`
	SettingsExpire  time.Time `json:"settings_expire,omitzero"`
}

// writeStatus changes the status on disk. It is only for people: a failure is
// not worth stopping for.
func (a *agent) writeStatus(change func(*Status)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var s Status
	_, _ = datadir.ReadJSON(a.dir.Status(), &s)
	s.PID, s.Version, s.Trust = os.Getpid(), a.cfg.Version, string(a.trustLevel())
	s.Isolation, s.Limits = a.iso.text(), a.iso.limitsText()
	change(&s)
	if err := datadir.WriteJSON(a.dir.Status(), s); err != nil {
		a.cfg.Log.Debug("status cannot be written", "err", err)
	}
}
