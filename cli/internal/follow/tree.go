package follow

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/cli/internal/changes"
	"github.com/berth-dev/berth/cli/internal/output"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/visible"
)

// Finished tells whether nothing moves in a workflow any more.
func Finished(s ctlapi.WorkflowState) bool {
	return s == ctlapi.WorkflowStateSucceeded || s == ctlapi.WorkflowStateFailed || s == ctlapi.WorkflowStateCancelled
}

// Title names a workflow: "provision acme (wfl_…)".
func Title(w ctlapi.Workflow) string { return visible.Row(title(w)) }

func title(w ctlapi.Workflow) string {
	title := strings.ReplaceAll(string(w.Kind), "_", " ") + " " + w.Install.Name
	if w.Action != nil {
		title = "run " + *w.Action + " in " + w.Install.Name
	}
	if w.PlanOnly {
		title = "plan of " + title
	}
	return title + " (" + w.ID + ")"
}

// Tree are the lines of a workflow and its steps, as of now.
func Tree(w ctlapi.Workflow, now time.Time, color bool) []string {
	state := State(w)
	lines := []string{Title(w) + "  " + output.Paint(color, output.StyleOf(state), state) + span(w.StartedAt, w.FinishedAt, now)}
	if held := heldBy(w); held != "" {
		lines = append(lines, "  "+output.Paint(color, output.Notice, "!")+" its jobs wait for the runner:", "    "+held)
	}
	if hold := HoldLine(w); hold != "" {
		lines = append(lines, "  "+output.Paint(color, output.Notice, "!")+" "+hold)
	}
	if w.OnFailure == ctlapi.OnFailureContinue {
		lines = append(lines, "  "+output.Paint(color, output.Dim, "after a failure: continues with what does not need the failed step"))
	}
	width := 0
	for _, s := range w.Steps {
		width = max(width, utf8.RuneCountInString(visible.Line(s.Name)))
	}
	for _, s := range w.Steps {
		mark, style := markOf(s)
		line := "  " + output.Paint(color, style, mark) + " " + visible.Line(s.Name) + strings.Repeat(" ", width-utf8.RuneCountInString(visible.Line(s.Name)))
		lines = append(lines, strings.TrimRight(line+detail(s, now), " "))
		if progress := Progress(s, now); progress != "" {
			lines = append(lines, "      "+output.Paint(color, output.Dim, progress))
		}
	}
	return lines
}

// State is how a workflow stands, in words. One that ended because somebody said no,
// or nobody said anything, did not fail.
func State(w ctlapi.Workflow) string { return cmp.Or(Ended(w.Ended, w.EndedBy), string(w.State)) }

// Ended is how a workflow that did not fail came to its end without success: "denied
// by ada"; "" for all others.
func Ended(how *ctlapi.Ended, by *string) string {
	switch api.Value(how) {
	case ctlapi.EndedDenied:
		return "denied by " + visible.Line(api.Value(by))
	case ctlapi.EndedExpired:
		return "expired: nobody decided"
	}
	return ""
}

// markOf is the sign before a step, as what became of its change has it.
func markOf(s ctlapi.Step) (string, output.Style) {
	switch {
	case Superseded(s):
		return "-", output.Dim
	case Denied(s):
		return "-", output.Notice
	}
	return Mark(s.State)
}

// Mark is the sign before a step.
func Mark(s ctlapi.StepState) (string, output.Style) {
	switch s {
	case ctlapi.StepStateSucceeded:
		return "✓", output.Good
	case ctlapi.StepStateFailed:
		return "✗", output.Bad
	case ctlapi.StepStateRunning:
		return "▸", output.Notice
	case ctlapi.StepStateWaiting:
		return "…", output.Notice
	case ctlapi.StepStateSkipped, ctlapi.StepStateCancelled:
		return "-", output.Dim
	}
	return "·", output.Dim
}

func detail(s ctlapi.Step, now time.Time) string {
	waited := asked(s, now)
	took := worked(s, waited, now)
	switch s.State {
	case ctlapi.StepStatePending:
		return ""
	case ctlapi.StepStateWaiting:
		switch {
		case s.Wait == nil:
		case waited > 0:
			return took + "  waits: " + s.Wait.Reason + ", for " + Duration(waited)
		default:
			return took + "  waits: " + s.Wait.Reason
		}
	case ctlapi.StepStateFailed:
		if s.Error != nil {
			return took + "  " + reason(s.Name, *s.Error)
		}
	case ctlapi.StepStateSkipped, ctlapi.StepStateCancelled:
		if Applied(s) {
			return "  " + string(s.State) + ", after its change was applied: " + changes.Counts(s.Change.Kind, s.Change.Counts)
		}
		if len(s.MayChange) > 0 {
			return "  cannot be planned yet: reads " + unforeseen(s.MayChange)
		}
		if _, why, found := strings.Cut(s.Reason, "; skipped: "); found {
			return "  skipped: " + why
		}
		return "  " + string(s.State)
	case ctlapi.StepStateRunning:
		if s.Change != nil {
			return took + "  " + strings.ReplaceAll(string(s.Change.State), "_", " ")
		}
	case ctlapi.StepStateSucceeded:
		switch {
		case s.Change == nil || s.Change.Counts == nil:
		case len(s.MayChange) == 0:
			return took + "  " + changes.Counts(s.Change.Kind, s.Change.Counts)
		case !changesSomething(s.Change.Counts):
			return took + "  may change: reads " + unforeseen(s.MayChange)
		default:
			return took + "  " + changes.Counts(s.Change.Kind, s.Change.Counts) + "; more may change: reads " + unforeseen(s.MayChange)
		}
	}
	return took
}

// unforeseen lists what a step of a preview reads and the preview changes; where
// the step was not planned, what is missing.
func unforeseen(list []ctlapi.MayChange) string {
	absent := slices.ContainsFunc(list, func(m ctlapi.MayChange) bool { return m.Absent })
	var names []string
	for _, m := range list {
		if m.Absent == absent {
			names = append(names, visible.Line(m.Reads))
		}
	}
	text := strings.Join(names, ", ")
	switch {
	case absent && len(names) > 1:
		text += ", which are not there yet"
	case absent:
		text += ", which is not there yet"
	}
	return text
}

// Undecided are the changes of a workflow that wait for a decision.
func Undecided(w ctlapi.Workflow) []ctlapi.ChangeSummary {
	if w.ApproveAll {
		return nil // whatever it proposes was answered beforehand
	}
	var open []ctlapi.ChangeSummary
	for _, s := range w.Steps {
		if s.Change != nil && s.Change.State == ctlapi.ChangeStateProposed && s.State == ctlapi.StepStateWaiting {
			open = append(open, *s.Change)
		}
	}
	return open
}

// Questions groups the changes that wait for a decision by what is asked at once.
// The scripts of a release are shown and decided together with the first plan
// that waits: nobody is asked twice for one deploy. They wait for it while
// something is still being planned.
func Questions(w ctlapi.Workflow) [][]ctlapi.ChangeSummary {
	var release []ctlapi.ChangeSummary
	var questions [][]ctlapi.ChangeSummary
	for _, open := range Undecided(w) {
		if open.Kind == ctlapi.ChangeKindAccept {
			release = append(release, open)
		} else {
			questions = append(questions, []ctlapi.ChangeSummary{open})
		}
	}
	switch {
	case len(release) == 0:
	case len(questions) > 0:
		questions[0] = append(questions[0], release...)
	case !planning(w):
		questions = append(questions, release)
	}
	return questions
}

// planning tells whether a plan is being made that will need a decision, too.
func planning(w ctlapi.Workflow) bool {
	return slices.ContainsFunc(w.Steps, func(s ctlapi.Step) bool {
		return s.State == ctlapi.StepStateRunning && s.Change != nil && s.Change.State == ctlapi.ChangeStatePreparing
	})
}

// OnlyDecisionsHelp tells whether a workflow continues only when somebody
// decides: something waits for a decision, and nothing else moves.
func OnlyDecisionsHelp(w ctlapi.Workflow) bool {
	for _, s := range w.Steps {
		switch s.State {
		case ctlapi.StepStateRunning:
			return false
		case ctlapi.StepStateWaiting:
			held := s.Wait != nil && s.Wait.Reason == waitRelease // for a decision on the release
			if !held && (s.Change == nil || s.Change.State != ctlapi.ChangeStateProposed) {
				return false
			}
		}
	}
	return len(Undecided(w)) > 0 && w.State == ctlapi.WorkflowStateWaiting
}
