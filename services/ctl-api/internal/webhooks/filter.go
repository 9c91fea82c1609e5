package webhooks

import (
	"slices"

	"github.com/berth-dev/berth/pkg/event"
	"github.com/berth-dev/berth/services/ctl-api/internal/stream"
)

// Filters say which events a webhook gets: those that pass all of them. An empty
// one lets all pass. They are stored as JSON.
type Filters struct {
	Kinds    []string          `json:"kinds,omitempty"`    // as in GET /events: "workflow.*"
	Apps     []string          `json:"apps,omitempty"`     // ids
	Installs []string          `json:"installs,omitempty"` // ids
	Labels   map[string]string `json:"labels,omitempty"`   // of the install, all of them
}

// Wants says whether events of a kind pass.
func (f Filters) Wants(kind event.Kind) bool {
	if len(f.Kinds) == 0 {
		return true
	}
	kinds, unknown := event.Expand(f.Kinds)
	return unknown == "" && slices.Contains(kinds, kind)
}

// limited says that not all places of the org are covered.
func (f Filters) limited() bool { return len(f.Apps) > 0 || len(f.Installs) > 0 || len(f.Labels) > 0 }

// Covers says whether an event happened where the webhook looks. labels are those that
// its install has now; nil when it is about none.
func (f Filters) Covers(e stream.Event, labels map[string]string) bool {
	if len(f.Apps) > 0 && !slices.Contains(f.Apps, e.AppID) {
		return false
	}
	if len(f.Installs) > 0 && !slices.Contains(f.Installs, e.InstallID) {
		return false
	}
	for key, value := range f.Labels {
		if has, ok := labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}
