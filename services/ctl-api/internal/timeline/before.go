package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/services/ctl-api/internal/treediff"
)

// Break is the first failure of the newest row of failures, and when all was well
// last.
type Break struct {
	First Entry
	// Good is the entry that says so; nil when there is none.
	Good *Entry
	// Resource is what failed first, as far as one is named.
	Resource string
	// Between are the entries between the two, newest first.
	Between []Entry
}

// workflows is the subject of failures that are not a verdict about something.
const workflows = "workflows"

// subject is what an entry says something good or bad about; empty for neither.
func subject(e Entry) (of string, good bool) {
	if e.PlanOnly {
		return "", false
	}
	switch e.Kind {
	case "workflow.failed":
		if e.Ended != "" { // denied, or nobody decided: nothing broke
			return "", false
		}
		return workflows, false
	case "change.failed", "change.refused", "change.uncertain":
		return workflows, false
	case "workflow.succeeded":
		if e.WorkflowKind == "action_run" || e.WorkflowKind == "role_switch" { // a run says nothing about the rest
			return "", false
		}
		return workflows, true
	case "health.changed", "check.changed":
		if e.Body.To == "healthy" || e.Body.To == "unhealthy" {
			return string(e.Kind) + e.Body.Resource + e.Body.Check, e.Body.To == "healthy"
		}
	}
	return "", false
}

// FindBreak finds the newest failure among entries, which are newest first, goes back
// to the first of its row, and to the entry that last said that this was well. A
// success ends the row of what it is about: a verdict that turned bad after a deploy
// succeeded is a new row, and that deploy stands in between.
func FindBreak(entries []Entry) (Break, bool) {
	var b Break
	first := -1
	row, closed := map[string]bool{}, map[string]bool{}
	end := len(entries)
	for i := range entries {
		of, good := subject(entries[i])
		switch {
		case of == "" || closed[of]:
			continue
		case good && row[of]:
			b.Good, end = &entries[i], i
		case good:
			closed[of] = true
			continue
		default:
			row[of] = true
			first = i
		}
		if b.Good != nil {
			break
		}
	}
	if first < 0 {
		return b, false
	}
	b.First = entries[first]
	for _, e := range entries[:first+1] {
		if e.Body.Resource != "" && isBad(e) {
			b.Resource = e.Body.Resource // the oldest that names one
		}
	}
	b.Between = entries[first+1 : end]
	return b, true
}

func isBad(e Entry) bool {
	of, good := subject(e)
	return of != "" && !good
}

// Differences are what a Break is judged by, besides the entries.
type Differences struct {
	// Snapshot is what differs between the install then and now; nil when one of the
	// times lies before its history.
	Snapshot []treediff.Change
	// Releases are the numbers that the install stood on, and was brought to; equal or 0
	// for no difference. Components are those whose build or settings differ between them.
	FromRelease, ToRelease int
	Components             []string
}

// Suspect is something that changed before a failure.
type Suspect struct {
	Text, Why string
	Weight    int // 0 to 100
	At        time.Time
	Entry     *Entry
	Changes   []treediff.Change
}

// Suspects ranks what changed before a failure, the likeliest cause first: what was
// brought to the install before what happened around it, what is about the resource
// that failed before the rest, and then the later before the earlier.
func Suspects(b Break, d Differences) []Suspect {
	var found []Suspect
	if d.FromRelease != 0 && d.ToRelease != 0 && d.FromRelease != d.ToRelease {
		found = append(found, b.release(d))
	}
	for i := range b.Between {
		if s, ok := b.suspect(&b.Between[i], d); ok {
			found = append(found, s)
		}
	}
	found = append(found, b.unseen(d.Snapshot)...)
	slices.SortStableFunc(found, func(x, y Suspect) int {
		return cmp.Or(cmp.Compare(y.Weight, x.Weight), y.At.Compare(x.At))
	})
	return found
}

// release is the suspect that another release came.
func (b Break) release(d Differences) Suspect {
	s := Suspect{Text: fmt.Sprintf("release %d became %d", d.FromRelease, d.ToRelease), Why: "other code or settings came with it", Weight: 90}
	if len(d.Components) > 0 {
		s.Text += ": " + strings.Join(d.Components, ", ")
	}
	switch {
	case b.Resource != "" && slices.Contains(d.Components, b.Resource):
		s.Weight, s.Why = 95, "it changes "+b.Resource+", which failed"
	case b.Resource != "" && len(d.Components) > 0:
		s.Weight, s.Why = 75, "other code or settings came with it, but not of "+b.Resource
	case len(d.Components) == 0:
		s.Weight, s.Why = 40, "no component differs between the two"
	}
	for i := range b.Between { // the oldest that brings it
		if b.Between[i].Kind == "workflow.queued" && b.Between[i].Release == d.ToRelease {
			s.Entry, s.At = &b.Between[i], b.Between[i].At
		}
	}
	return s
}

// suspect judges one entry; false for one that changes nothing.
func (b Break) suspect(e *Entry, d Differences) (Suspect, bool) {
	s := Suspect{Text: e.Text, At: e.At, Entry: e}
	same := b.Resource != "" && e.Body.Resource == b.Resource
	say := func(weight int, why string) (Suspect, bool) {
		s.Weight, s.Why = weight, why
		return s, true
	}
	switch e.Kind {
	case "inputs.changed":
		return b.inputs(s, d.Snapshot), true
	case "install.updated":
		if len(e.Body.Toggles) == 0 {
			return say(10, "settings of the install, which no component reads")
		}
		for name := range e.Body.Toggles {
			s.Changes = append(s.Changes, under(d.Snapshot, "component_toggles."+name)...)
			if name == b.Resource {
				return say(85, "it switches "+name+", which failed")
			}
		}
		return say(60, "components came or went")
	case "variables.changed", "secret.set", "secret.removed":
		return say(65, "templates may read them")
	case "drift.changed":
		if e.Body.To != "drifted" {
			return s, false
		}
		if same {
			return say(85, "somebody changed "+b.Resource+" past Berth, which failed")
		}
		return say(60, "somebody changed it past Berth")
	case "change.applied":
		switch {
		case e.Body.ChangeKind == "accept":
			return say(30, "other scripts may run")
		case same:
			return say(80, "it changed "+b.Resource+", which failed")
		}
		return say(50, "it changed something of the install")
	case "step.skipped":
		return say(55, "something was left as it was")
	case "runner.enrolled":
		return say(55, "another machine or another version of the runner")
	case "runner.switched":
		return say(40, "the customer allows the runner more or less")
	case "runner.offline", "runner.online":
		return say(25, "the runner was away")
	case "action_run.failed":
		return say(45, "a script stopped half-way")
	case "action_run.succeeded":
		return say(35, "a script ran")
	}
	return s, false
}

// inputs judges inputs that were set.
func (b Break) inputs(s Suspect, snapshot []treediff.Change) Suspect {
	for _, name := range s.Entry.Body.Changed {
		s.Changes = append(s.Changes, under(snapshot, "inputs.values."+name)...)
	}
	s.Weight, s.Why = 70, "components that refer to them get other values"
	taken := slices.ContainsFunc(b.Between, func(e Entry) bool {
		return e.Kind == "workflow.queued" && s.Entry.Place().before(e.Place())
	})
	switch {
	case b.Resource != "" && slices.Contains(s.Entry.Body.Overrides, b.Resource):
		s.Weight, s.Why = 90, "the install's own values of "+b.Resource+", which failed"
	case snapshot != nil && len(s.Changes) == 0 && len(s.Entry.Body.Overrides) == 0:
		s.Weight, s.Why = 20, "but the values were the same again when it failed"
	case taken:
		s.Weight, s.Why = 80, "a workflow that followed took them"
	}
	return s
}

// unseen are differences that no entry tells: outputs, and the runner's version.
func (b Break) unseen(snapshot []treediff.Change) []Suspect {
	var found []Suspect
	byResource := map[string][]treediff.Change{}
	for _, c := range snapshot {
		if c.Path == "runner.version" && c.Op == treediff.Changed {
			found = append(found, Suspect{
				Text: fmt.Sprintf("runner version %s became %s", unquoted(c.Old), unquoted(c.New)), Why: "jobs run with other code", Weight: 55, At: b.First.At,
				Changes: []treediff.Change{c},
			})
		}
		rest, isResource := strings.CutPrefix(c.Path, "resources.")
		if name, _, isOutput := strings.Cut(rest, ".outputs."); isResource && isOutput && c.Op != treediff.Added && c.Op != treediff.Removed {
			byResource[name] = append(byResource[name], c)
		}
	}
	for name, changes := range byResource {
		var outputs []string
		for _, c := range changes {
			_, output, _ := strings.Cut(c.Path, ".outputs.")
			outputs = append(outputs, output)
		}
		found = append(found, Suspect{
			Text: fmt.Sprintf("outputs of %s changed: %s", name, strings.Join(outputs, ", ")), Why: "what reads them gets other values", Weight: 45, At: b.First.At,
			Changes: changes,
		})
	}
	slices.SortFunc(found, func(x, y Suspect) int { return strings.Compare(x.Text, y.Text) })
	return found
}

// under are the changes of a path and of what is below it.
func under(changes []treediff.Change, path string) []treediff.Change {
	var found []treediff.Change
	for _, c := range changes {
		if c.Path == path || strings.HasPrefix(c.Path, path+".") {
			found = append(found, c)
		}
	}
	return found
}

func unquoted(raw []byte) string { return strings.Trim(string(raw), `"`) }
