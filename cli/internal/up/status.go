package up

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// Status is what `berth up --status` shows.
type Status struct {
	Running bool   `json:"running"`
	URL     string `json:"url,omitempty"`
	Dir     string `json:"dir"`
	PID     int    `json:"pid,omitempty"` // of the supervisor
	// Kubeconfig is the cluster of local installs, "" without one.
	Kubeconfig string       `json:"kubeconfig,omitempty"`
	Parts      []PartHealth `json:"parts"`
}

// HasCluster tells whether local installs of a folder's Berth have a cluster, by what
// it wrote down when it started.
func HasCluster(l Layout) bool {
	var s State
	found, err := readJSON(l.State(), &s)
	return err == nil && found && s.Kubeconfig != ""
}

// Healthy tells whether everything runs and is ready.
func (s Status) Healthy() bool {
	return s.Running && !slices.ContainsFunc(s.Parts, func(p PartHealth) bool { return !p.Ready })
}

// Outdated are the parts, and the supervisor, that run an executable which has
// been replaced since: by a build or an upgrade.
func (s Status) Outdated() (names []string) {
	if s.PID != 0 && isOutdated(s.PID, "") {
		names = append(names, "supervisor")
	}
	for _, p := range s.Parts {
		if p.PID != 0 && (isOutdated(p.PID, p.Path) || p.hasOldCopy()) {
			names = append(names, p.Name)
		}
	}
	return names
}

// hasOldCopy tells whether an executable that the part uses is a copy of a file
// that is another one now.
func (p PartHealth) hasOldCopy() bool {
	for to, from := range p.Copies {
		if same, err := sameContents(from, to); err == nil && !same {
			return true
		}
	}
	return false
}

// PartHealth is a part with its answer to "are you ready?".
type PartHealth struct {
	PartStatus
	Ready bool   `json:"ready"`
	Why   string `json:"why,omitempty"` // not
}

// statusTimeout is for asking a supervisor, which asks all its parts.
const statusTimeout = 5 * time.Second

// status asks every part, side by side.
func (s *supervisor) status(ctx context.Context) Status {
	keepers := s.allKeepers()
	out := Status{Running: true, URL: URL(s.Port), Dir: s.Layout.Dir, Kubeconfig: s.cluster, Parts: make([]PartHealth, len(keepers))}
	if self := s.ledger.read().Supervisor; self != nil {
		out.PID = self.PID
	}
	done := make(chan struct{}, len(keepers))
	for i, k := range keepers {
		go func() {
			defer func() { done <- struct{}{} }()
			health := PartHealth{PartStatus: k.Status()}
			switch err := k.part.Ready(ctx); {
			case health.PID == 0:
				health.Why = firstOf(health.Last, "not started")
			case err != nil:
				health.Why = err.Error()
			case health.Looping: // alive for the moment
				health.Why = firstOf(health.Last, "just started again")
			default:
				health.Ready = true
			}
			out.Parts[i] = health
		}()
	}
	for range keepers {
		<-done
	}
	return out
}

// allKeepers are those of all parts: in the order in which they were started, then
// those of runners, sorted by id.
func (s *supervisor) allKeepers() []*keeper {
	s.mu.Lock()
	defer s.mu.Unlock()
	keepers := slices.Clone(s.keepers)
	ids := make([]string, 0, len(s.runners))
	for id := range s.runners {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		keepers = append(keepers, s.runners[id].keeper)
		if registry := s.runners[id].registry; registry != nil {
			keepers = append(keepers, registry)
		}
	}
	return keepers
}

// AskStatus asks the supervisor of a data folder. Without one it tells from
// state.json what was left running.
func AskStatus(ctx context.Context, l Layout) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	resp, err := ask(ctx, l, http.MethodGet, "/status")
	if ctx.Err() != nil {
		return Status{}, problem(err, "wait and ask again, or berth down, which ends it", "the supervisor of %s does not answer", l.Dir)
	}
	if err != nil {
		return notRunning(l), nil // nobody is there: that is the status
	}
	defer func() { _ = resp.Body.Close() }()
	var s Status
	if err := json.NewDecoder(resp.Body).Decode(&s); err != nil {
		return s, fmt.Errorf("supervisor: %w", err)
	}
	return s, nil
}

func notRunning(l Layout) Status {
	s := Status{Dir: l.Dir}
	var state State
	if found, err := readJSON(l.State(), &state); err != nil || !found {
		return s
	}
	for _, left := range recorded(state) {
		s.Parts = append(s.Parts, PartHealth{
			PartStatus: PartStatus{Name: left.name, PID: left.PID},
			Why:        "left over by a supervisor that is gone; berth up takes it over, berth down ends it",
		})
	}
	return s
}
