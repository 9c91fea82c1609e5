package rehearse

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/berth-dev/berth/cli/internal/rehearse/stage"
	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// Kinds of lines that are about no definition with a name of its own.
const (
	kindTrigger     = "trigger"
	kindNestedStack = "nested stack"
	kindReadme      = "readme"
	kindLabels      = "labels"
	kindFile        = "file"
)

// inventory is what the lines of definitions that nobody deploys are made from.
type inventory struct {
	app     *appconfig.App
	changes stage.Changes
	broken  map[stage.Part]bool
	lost    map[string]string
	given   map[string]string // inputs
	madeUp  map[string]string // inputs
	fired   map[string]bool   // steps of the provision that succeeded, by name
	verdict map[stage.Part]Verdict
	state   interpolate.State // nil when nothing could be installed
	now     time.Time
}

// others gives a line to everything in the app folder that is neither the sandbox nor a
// component nor an action: nothing that it holds is missing in a report.
func (v inventory) others() []Line {
	waiting := check.Waiting(v.app)
	var lines []Line
	for _, b := range stage.Blocks(v.app) {
		if a := v.app.Action(b.Part.Name()); a != nil && b.Part.Kind() == appconfig.BlockAction {
			lines = append(lines, v.triggers(a)...)
		}
		if stage.Works(b.Part) {
			continue
		}
		for _, l := range v.block(b) {
			lines = append(lines, v.waits(l, b, waiting))
		}
	}
	lines = slices.Concat(lines, v.runner(), v.files())
	for i, l := range lines {
		for _, w := range waiting {
			if part, ok := stage.PartAt(v.app, w.At); ok && w.At.Key != "" && part == stage.Part(strings.TrimSuffix(l.Kind+"/"+l.Name, "/")) {
				lines[i].Notes = append(lines[i].Notes, w.Why)
			}
		}
	}
	return lines
}

// waits says of a definition that all of it has no effect yet.
func (v inventory) waits(l Line, b stage.Block, waiting []check.Obstacle) Line {
	for _, w := range waiting {
		switch {
		case b.At.File != w.At.File || w.At.Key != "" || l.Verdict == Failed || b.Part == appconfig.BlockMetadata:
		case l.Verdict == Mocked || l.Kind == appconfig.BlockRunbook && v.lostIn(b.At) == "":
			l.Verdict, l.Why = NotPlanned, w.Why
		default:
			l.Notes = append(l.Notes, w.Why)
		}
	}
	return l
}

func (v inventory) runner() []Line {
	switch r := v.app.Runner; {
	case r == nil:
		return nil
	case r.RunnerType == "local":
		return []Line{{Kind: appconfig.BlockRunner, Name: r.RunnerType, Verdict: Real}}
	default:
		return []Line{{Kind: appconfig.BlockRunner, Name: r.RunnerType, Verdict: Mocked, Why: "a runner of the rehearsal stands in for it"}}
	}
}

// files gives the lines of files that no rehearsal reads, and of those left out.
func (v inventory) files() (lines []Line) {
	for _, other := range []struct {
		is   bool
		name string
	}{{v.app.InstallsRepo != nil, "installs.toml"}, {v.app.Installer != nil, "installer.toml"}, {v.app.Metadata.CustomerManaged != nil, "customer_managed"}} {
		if other.is {
			lines = append(lines, Line{Kind: kindFile, Name: other.name, Verdict: NotPlanned, Why: noPart})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.changes.Files)) {
		l := Line{Kind: kindFile, Name: name, Verdict: NotPlanned, Why: v.changes.Files[name]}
		lost := v.lostIn(place.Place{File: name})
		switch {
		case lost != "":
			l.Why = lost
		case name == "stack.toml" && v.app.Stack == nil:
			l.Why = "there is none; made-up outputs stand in for it"
		case v.broken[stage.Part(name)]:
			l.Verdict = Failed
		}
		lines = append(lines, l)
	}
	return lines
}

const noPart = "it is no part of a rehearsal"

// block gives the lines of one definition.
func (v inventory) block(b stage.Block) []Line {
	l := Line{Kind: b.Part.Kind(), Name: cmp.Or(b.Part.Name(), b.Part.Kind()), Verdict: Mocked}
	switch why := v.changes.Why(b.Part); {
	case v.broken[b.Part]:
		l.Verdict, l.Why = Failed, cmp.Or(why, v.changes.Files[b.At.File])
		return []Line{l}
	case why != "":
		l.Verdict, l.Why = NotPlanned, why
		return []Line{l}
	}
	if why := v.lostIn(b.At); why != "" {
		l.Verdict, l.Why = NotPlanned, why
		if l.Kind == appconfig.BlockMetadata {
			l.Kind, l.Name = kindReadme, kindReadme
		}
		return []Line{l}
	}
	switch l.Kind {
	case "input":
		return []Line{v.input(l)}
	case "input-group":
		l.Verdict = Real
		return []Line{l}
	case appconfig.BlockRole, "break-glass":
		l.Why = "its texts were rendered; there is no account to make it in"
	case appconfig.BlockPolicy:
		l.Why = "its text was rendered; nothing is held against it"
	case appconfig.BlockRunbook:
		l.Verdict, l.Why = NotPlanned, "a provision does not run it; its texts were rendered"
	case "secret":
		l.Why = "its value is made up"
	case "kubernetes-context":
		return []Line{v.context(l)}
	case appconfig.BlockOperationRoles:
		l.Why = fmt.Sprintf("%d rules were checked; there is no account with these roles", len(v.app.OperationRoles.Rules))
	case appconfig.BlockStack:
		return v.stack(b, l)
	case appconfig.BlockMetadata:
		return v.metadata(b)
	default:
		l.Verdict, l.Why = NotPlanned, noPart
		return []Line{l}
	}
	return []Line{v.rendered(b.Part, l, "")}
}

// lostIn says why a text of a definition could not be fetched; "" when all could.
func (v inventory) lostIn(at place.Place) string {
	for _, f := range v.app.Fetched {
		if why := v.lost[f.Address]; why != "" && f.At.File == at.File && (at.Key == "" || f.At.Key == at.Key || strings.HasPrefix(f.At.Key, at.Key+".") || strings.HasPrefix(f.At.Key, at.Key+"[")) {
			return why
		}
	}
	return ""
}

// rendered renders the templates of a definition below a key, and says which does not.
func (v inventory) rendered(part stage.Part, l Line, below string) Line {
	if v.state == nil {
		return l
	}
	for _, block := range check.Blocks(v.app) {
		kind := part.Kind()
		if kind == "break-glass" {
			kind = appconfig.BlockRole
		}
		if block.Kind != kind || block.Name != part.Name() {
			continue
		}
		failed := check.NotRendered(v.app, block, v.state, check.PreviewOptions{Now: v.now})
		for _, key := range slices.Sorted(maps.Keys(failed)) {
			if strings.HasPrefix(key, below) {
				l.Verdict, l.Why = NotPlanned, fmt.Sprintf("the template of %s needs real values: %s", key, short(failed[key]))
				return l
			}
		}
	}
	return l
}

func (v inventory) input(l Line) Line {
	in := v.app.Input(l.Name)
	l.Type, l.Verdict = string(in.Type), Real
	_, given := v.given[in.Name]
	_, madeUp := v.madeUp[in.Name]
	switch {
	case given:
		l.Why = "given"
	case madeUp:
		l.Verdict, l.Why = Mocked, "it is required and has no default, so its value is made up"
	case in.Default != nil:
		l.Why = "its default"
	default:
		l.Why = "empty"
	}
	return l
}

func (v inventory) context(l Line) Line {
	maker := v.app.ClusterMaker(l.Name)
	l.Verdict, l.Why = NotPlanned, "no component makes its cluster"
	if maker != "" {
		verdict := v.verdict[stage.Component(maker)]
		l.Why = fmt.Sprintf("component %s, which makes its cluster, is %s", maker, verdict)
		if verdict == Real || verdict == Mocked {
			l.Verdict = Mocked
		}
	}
	return l
}

// stack gives the lines of a stack: its own, and one for each template in it.
func (v inventory) stack(b stage.Block, l Line) []Line {
	s := v.app.Stack
	l.Type = string(s.Type)
	l.Why = "no stack is applied; made-up outputs, or those that were given, stand in for it"
	if !s.InCloud() {
		l.Verdict, l.Why = Real, ""
	}
	lines := []Line{v.rendered(b.Part, l, "")}
	nested := func(name, url, key, why string) {
		lines = append(lines, v.rendered(b.Part, Line{Kind: kindNestedStack, Name: name, Source: url, Verdict: Mocked, Why: why}, key))
	}
	const notApplied = "its address was rendered; the template is not applied"
	if s.VPCNestedTemplateURL != "" {
		nested("vpc", s.VPCNestedTemplateURL, "vpc_nested_template_url", notApplied)
	}
	if s.RunnerNestedTemplateURL != "" {
		nested("runner", s.RunnerNestedTemplateURL, "runner_nested_template_url", notApplied)
	}
	for i, n := range s.CustomNestedStacks {
		nested(n.Name, n.TemplateURL, fmt.Sprintf("custom_nested_stacks[%d].", i), "its address and parameters were rendered; the template is not applied, and outputs that the app reads are made up")
	}
	return lines
}

// metadata gives the lines of the README and the labels.
func (v inventory) metadata(b stage.Block) (lines []Line) {
	m := v.app.Metadata
	lines = append(lines, Line{Kind: appconfig.BlockMetadata, Name: appconfig.BlockMetadata, Verdict: Real})
	if m.Readme != nil {
		lines = append(lines, v.rendered(b.Part, Line{Kind: kindReadme, Name: kindReadme, Verdict: Mocked, Why: "it was rendered, with made-up values in it"}, "readme"))
	}
	if len(m.DefaultLabels) > 0 {
		lines = append(lines, v.rendered(b.Part, Line{Kind: kindLabels, Name: "default_labels", Verdict: Mocked, Why: "they were rendered"}, "default_labels"))
	}
	return lines
}

// triggers gives a line to each trigger of an action.
func (v inventory) triggers(a *appconfig.Action) (lines []Line) {
	part := stage.Action(a.Name)
	for _, t := range a.Triggers {
		l := Line{Kind: kindTrigger, Name: a.Name + ": " + string(t.Type), Verdict: NotPlanned}
		step := string(t.Type) + "/"
		if t.ComponentName != "" {
			l.Name += " " + t.ComponentName
			step += t.ComponentName + "/"
		}
		verdict := v.verdict[part]
		switch {
		case v.changes.Why(part) != "" || verdict == Failed:
			l.Why = fmt.Sprintf("its action is %s", cmp.Or(verdict, NotPlanned))
		case v.fired[step+a.Name] || t.ComponentName == "" && v.firedAny(string(t.Type), a.Name):
			l.Verdict = Real
		default:
			l.Why = "a provision does not fire it"
		}
		lines = append(lines, l)
	}
	return lines
}

// firedAny tells whether a trigger fired for any component.
func (v inventory) firedAny(trigger, action string) bool {
	for step := range v.fired {
		if strings.HasPrefix(step, trigger+"/") && strings.HasSuffix(step, "/"+action) {
			return true
		}
	}
	return false
}
