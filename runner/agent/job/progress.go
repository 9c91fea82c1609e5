package job

import (
	"strings"
	"time"
	"unicode"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/egress"
)

// Bounds of what we report of an engine's progress: the engine runs vendor code, and
// the control plane refuses more.
const (
	maxProgressText    = 200 // characters
	maxProgressCount   = 1_000_000
	maxProgressSeconds = 10_000_000
)

// Progress is what the engines of the jobs do right now, of those that tell. It
// reads their files; call it as often as leases are renewed.
func (s *Set) Progress() []runnerapi.JobProgress {
	if s.deps.Off != nil && s.deps.Off.Off(egress.Progress) {
		return nil
	}
	s.mu.Lock()
	var running []*job
	for _, j := range s.jobs {
		if j.tick == nil && !isClosed(j.over) {
			running = append(running, j)
		}
	}
	s.mu.Unlock()
	var all []runnerapi.JobProgress
	for _, j := range running {
		var p jobspec.Progress
		if found, err := j.dir.ReadOutJSON("out/progress.json", jobspec.MaxProgress, &p); err != nil || !found {
			continue // nothing depends on it
		}
		told := tell(p, j.secrets.set.String, j.deps.Now())
		told.JobID, told.Attempt = j.attempt.Assignment.JobID, j.attempt.Assignment.Attempt
		all = append(all, told)
	}
	return all
}

// tell is what may be said of a progress: what is redacted in the log is redacted
// here, before anything is cut, as a part of a secret is not recognised.
func tell(p jobspec.Progress, redact func(string) string, now time.Time) runnerapi.JobProgress {
	return runnerapi.JobProgress{
		What: short(redact(p.What)), Doing: short(redact(p.Doing)),
		Seconds: bounded(int(now.Sub(p.Since)/time.Second), maxProgressSeconds),
		Done:    bounded(p.Done, maxProgressCount), Total: bounded(p.Total, maxProgressCount),
	}
}

func bounded(n, most int) int { return min(max(n, 0), most) }

// short makes text one line of printable characters, cut to its bound.
func short(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }), " ")
	if runes := []rune(text); len(runes) > maxProgressText {
		text = string(runes[:maxProgressText-1]) + "…"
	}
	return text
}
