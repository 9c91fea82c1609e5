package alerts

import (
	"strings"
	"time"

	"github.com/berth-dev/berth/services/internal/model"
)

// Work is a change of an install that runs, or has ended not long ago.
type Work struct {
	Kind      model.ResourceKind // of the resource that it changes; "" for none
	Name      string
	StartedAt time.Time
	EndedAt   time.Time // zero while it runs
}

// PlannedUntil is until when work holds back an alert about a subject; zero when none
// touches it. The subject of a component is component/NAME, or begins so with a slash. The sandbox and the stack are under everything, and a check speaks of the
// whole install. A change that does not end holds nothing back after two hours.
func PlannedUntil(subject string, work []Work, now time.Time) (until time.Time) {
	component, one := strings.CutPrefix(subject, "component/")
	for _, w := range work {
		if one && w.Kind == model.KindComponent && w.Name != component && !strings.HasPrefix(component, w.Name+"/") {
			continue
		}
		end := w.EndedAt.Add(Grace)
		if w.EndedAt.IsZero() {
			end = Earlier(now.Add(Grace), w.StartedAt.Add(longestWork))
		}
		if end.After(until) {
			until = end
		}
	}
	if !until.After(now) {
		return time.Time{}
	}
	return until
}
