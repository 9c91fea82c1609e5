package follow

import (
	"fmt"
	"time"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// span is how long something took, or takes by now.
func span(from, to *time.Time, now time.Time) string {
	if from == nil {
		return ""
	}
	if to != nil {
		now = *to
	}
	return "  " + Duration(now.Sub(*from))
}

// worked is how long a step took, or takes by now, without the time that it
// waited for a person.
func worked(s ctlapi.Step, waited time.Duration, now time.Time) string {
	if s.StartedAt == nil {
		return ""
	}
	from := s.StartedAt.Add(waited)
	return span(&from, s.FinishedAt, now)
}

// asked is how long the change that a step is at waited for a person's decision,
// or waits by now. What an earlier change of the step waited is not known here.
func asked(s ctlapi.Step, now time.Time) time.Duration {
	if s.Change == nil || s.Change.ProposedAt == nil {
		return 0
	}
	held := s.State == ctlapi.StepStateWaiting && api.Value(s.Wait).Reason == waitRelease
	until := now
	switch {
	case s.Change.DecidedAt != nil && !held: // a held one waits for the decision on its release
		until = *s.Change.DecidedAt
	case s.FinishedAt != nil: // nobody decided: it was cancelled, or gave way
		until = *s.FinishedAt
	}
	return max(0, until.Sub(*s.Change.ProposedAt))
}

// Duration is a duration as people say it.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d d", int(d.Hours()/24))
}
