package follow

import (
	"fmt"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

const (
	// progressEvery is how often, at most, the progress of one step is printed
	// where there is no tree to see it in.
	progressEvery = 30 * time.Second
	// progressOld is when it is said how old a progress is: the runner tells it
	// every 20 s, and may not be heard.
	progressOld = time.Minute
)

// Progress is what a running step works on: "aws_db_instance.main: creating, 3m10s
// (4 of 12)"; "" when that is not known.
func Progress(s ctlapi.Step, now time.Time) string {
	p := s.Progress
	if p == nil || s.State != ctlapi.StepStateRunning {
		return ""
	}
	text := visible.Line(p.What) + ": "
	if doing := strings.TrimSpace(visible.Line(p.Doing)); doing != "" {
		text += doing + ", "
	}
	age := now.Sub(p.ReportedAt)
	if age > progressOld {
		now = p.ReportedAt // it says no more than this
	}
	text += elapsed(now.Sub(p.StartedAt))
	if p.Total > 0 {
		text += fmt.Sprintf(" (%d of %d)", p.Done, p.Total)
	}
	if age > progressOld {
		text += ", as of " + Duration(age) + " ago"
	}
	return text
}

// elapsed is a duration that is watched while it grows, to the second.
func elapsed(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// printed says when the progress of each step was last printed.
type printed map[string]time.Time

// due are the lines about running steps that are to be printed now, at most one
// per step in progressEvery.
func (p printed) due(w ctlapi.Workflow, now time.Time) []string {
	var lines []string
	for _, s := range w.Steps {
		text := Progress(s, now)
		if last, ok := p[s.ID]; text == "" || ok && now.Sub(last) < progressEvery {
			continue
		}
		p[s.ID] = now
		lines = append(lines, now.Local().Format(time.TimeOnly)+"  "+s.Name+": "+text)
	}
	return lines
}
