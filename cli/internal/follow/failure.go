package follow

import (
	"regexp"
	"strings"

	"github.com/berth-dev/berth/cli/internal/api"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// mostReason is how long the reason of a failure may be where it stands next to
// its step, in characters. The whole error follows once, below the steps.
const mostReason = 60

// reason is the error of a step in a few words: what led to it, which the step's
// name says, is left out, and a long one is cut.
func reason(step, text string) string {
	text = flat(text)
	if i := strings.LastIndexByte(step, '/'); i >= 0 {
		step = step[i+1:]
	}
	for _, subject := range []string{" of component ", " of sandbox ", " of action "} {
		if _, after, ok := strings.Cut(text, subject+step+": "); ok {
			text = after
		}
	}
	if runes := []rune(text); len(runes) > mostReason {
		text = string(runes[:mostReason-1]) + "…"
	}
	return text
}

// flat is a text on one line.
func flat(text string) string { return strings.Join(strings.Fields(text), " ") }

// places are how tools name the file and the line of a mistake: (main.tf:33), and
// "on main.tf line 46".
var places = regexp.MustCompile(`\((\S+\.\w+):(\d+)\)|\bon (\S+\.\w+) line (\d+)\b`)

// placeOf is the file and the line that an error names first, "" for none.
func placeOf(text string) string {
	found := places.FindStringSubmatch(flat(text))
	if found == nil {
		return ""
	}
	return found[1] + found[3] + ":" + found[2] + found[4]
}

// Failures says, in a block each, why steps of a workflow failed and what to do
// about it. A line that begins with spaces belongs to the one above it.
func Failures(w ctlapi.Workflow) []string {
	var lines []string
	for _, s := range w.Steps {
		if s.State == ctlapi.StepStateFailed {
			lines = append(lines, failure(w.Install.Name, s)...)
		}
	}
	return append(lines, offer(w)...)
}

// offer says how a failed workflow can be gone back from; nothing for a rollback
// itself, and where there is nothing to go back to.
func offer(w ctlapi.Workflow) []string {
	if w.Rollback == nil || w.Rollback.Command == nil {
		return nil
	}
	lines := []string{"to go back: " + flat(*w.Rollback.Command)}
	if back := w.Rollback; len(back.Components) > 1 && !strings.Contains(*back.Command, "--component") {
		lines = append(lines, "  or one of "+flat(strings.Join(back.Components, ", "))+" alone: --component NAME")
	}
	for _, line := range w.Rollback.Says {
		lines = append(lines, "  "+flat(line))
	}
	return lines
}

// failure says, in one block, which step of an install failed and where, its whole
// error, where its log is, and the one thing to do about it. What gave way to a
// newer request needs nothing: its work is done there.
func failure(install string, s ctlapi.Step) []string {
	why, name := flat(api.Value(s.Error)), nameOf(install, s)
	if Superseded(s) || Denied(s) {
		lines := []string{s.Name + " of " + install + " was not done: " + why}
		if Denied(s) {
			lines = append(lines, "  to plan and ask again: berth retry "+name)
		}
		return lines
	}
	head := s.Name + " of " + install + " failed"
	if place := placeOf(why); place != "" {
		head += " at " + place
	}
	lines := []string{head + ":"}
	if why != "" {
		lines = append(lines, "  "+why)
	}
	if partOf(s) != "" { // the others wait for something, and do nothing that has a log
		lines = append(lines, "  log: berth logs "+name)
	}
	return append(lines, "  try: "+advice(s)+" berth retry "+name)
}

// advice is what to do before a step is tried again.
func advice(s ctlapi.Step) string {
	switch given := flat(api.Value(s.Remedy)); {
	case given == "":
		return "fix the cause, then"
	case strings.Contains(given, "retry"):
		return given + ":"
	default:
		return given + ", then"
	}
}

// nameOf is what a person calls a step: acme/web for one about a component or an
// action, else its install.
func nameOf(install string, s ctlapi.Step) string {
	if part := partOf(s); part != "" {
		return install + "/" + part
	}
	return install
}

// toApprove is what a person calls a change that waits for a decision. Its id is
// left for what shares the name of its install with other changes.
func toApprove(w ctlapi.Workflow, question []ctlapi.ChangeSummary) string {
	switch first := question[0]; {
	case first.Resource != nil:
		return w.Install.Name + "/" + first.Resource.Name
	case len(Questions(w)) == 1:
		return w.Install.Name
	default:
		return first.ID
	}
}

// ToWatch is what a person calls a workflow that was just started, to follow it:
// its install or, when others of the install are open, its id.
func ToWatch(w ctlapi.Workflow) string {
	if len(w.Others) > 0 || w.Install.Name == "" {
		return w.ID
	}
	return w.Install.Name
}
