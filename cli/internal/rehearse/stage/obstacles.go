package stage

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/fetch"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/interpolate"
)

// Obstacles are the parts that this version does not deploy, by the table of the
// checks, and those that take something from elsewhere that cannot be fetched.
func Obstacles(app *appconfig.App, fetched map[string]fetch.Result) StandIns {
	stands := StandIns{}
	for _, o := range check.Obstacles(app) {
		if part, ok := PartAt(app, o.At); ok {
			stands.add(part, o.Why)
		}
	}
	for _, f := range appconfig.Fetches(app) {
		part, ok := PartAt(app, f.At)
		if problem := fetched[f.Address].Problem; ok && problem != "" {
			stands.add(part, "source "+f.Address+" unreachable")
		}
	}
	return stands
}

// add keeps the first reason of a part.
func (s StandIns) add(part Part, why string) {
	if s[part] == "" {
		s[part] = why
	}
}

// PartAt is the part that a place is in.
func PartAt(app *appconfig.App, at place.Place) (Part, bool) {
	in := func(block place.Place) bool {
		return block.File == at.File && (block.Key == "" || at.Key == block.Key || strings.HasPrefix(at.Key, block.Key+".") || strings.HasPrefix(at.Key, block.Key+"["))
	}
	if app.Sandbox != nil && in(app.Sandbox.At) {
		return Sandbox, true
	}
	for i := range app.Components {
		if in(app.Components[i].At) {
			return Component(app.Components[i].Name), true
		}
	}
	for i := range app.Actions {
		if in(app.Actions[i].At) {
			return Action(app.Actions[i].Name), true
		}
	}
	return "", false
}

// UsersOf are the parts that a build is for: a component, the sandbox, or the actions
// with a step that runs in a directory of scripts.
func UsersOf(app *appconfig.App, item, kind string) []Part {
	switch kind {
	case appconfig.BlockSandbox:
		return []Part{Sandbox}
	case appconfig.BlockComponent:
		return []Part{Component(item)}
	}
	var parts []Part
	for i := range app.Actions {
		a := &app.Actions[i]
		for j := range a.Steps {
			if src, ok := a.Steps[j].Source(); ok && src.Name == item && !slices.Contains(parts, Action(a.Name)) {
				parts = append(parts, Action(a.Name))
			}
		}
	}
	return parts
}

// calledFrom is what stands before a command in a script: the beginning of a line, what
// separates commands, words that take one, or the quote of `sh -c`.
const calledFrom = `(?m)(?:^|[;|&({` + "`" + `]|\b(?:then|do|else|if|while|until|exec|sudo|xargs|time|eval|timeout \S+)\s|!\s|-c\s*["'])\s*(?:\w+=\S*\s+)*`

// Tools that reach a cloud, and those that reach a cluster.
var (
	cloudTools   = regexp.MustCompile(calledFrom + `(aws|gcloud|gsutil|bq|az|eksctl)[ \t]+[a-z-]`)
	clusterTools = regexp.MustCompile(calledFrom + `(kubectl|helm|k9s|kustomize|istioctl|argocd)[ \t]+[a-z-]`)
)

// Hopeless are the actions that a rehearsal cannot run: their scripts call a cloud, or
// a cluster where there is none.
func Hopeless(app *appconfig.App, cluster bool) StandIns {
	stands := StandIns{}
	for i := range app.Actions {
		a := &app.Actions[i]
		for j := range a.Steps {
			text := withoutComments(a.Steps[j].Command + "\n" + inline(a.Steps[j]))
			if m := cloudTools.FindStringSubmatch(text); m != nil {
				stands.add(Action(a.Name), "its script runs "+m[1]+", which needs the cloud")
			}
			if m := clusterTools.FindStringSubmatch(text); m != nil && !cluster {
				stands.add(Action(a.Name), "its script runs "+m[1]+", and there is no cluster")
			}
		}
	}
	return stands
}

func inline(s appconfig.Step) string {
	if s.InlineContents == nil {
		return ""
	}
	return s.InlineContents.Contents
}

var comment = regexp.MustCompile(`(?m)^[ \t]*#.*$`)

func withoutComments(script string) string { return comment.ReplaceAllString(script, "") }

// Reads says which made-up values a part reads; madeUp tells whether a path of the
// state tree is made up. A part that a stand-in comes before reads one too.
func Reads(app *appconfig.App, part Part, madeUp func(path string) bool) []string {
	found := map[string]bool{}
	for _, block := range check.Blocks(app) {
		if Part(block.Kind+"/"+block.Name) != part && (block.Kind != appconfig.BlockSandbox || part != Sandbox) {
			continue
		}
		for _, value := range block.Templates() {
			refs, _ := value.References() // what does not parse, the sync reports
			for _, ref := range refs {
				path := strings.Join(ref.Path, ".")
				if ref.Root == interpolate.RootTree && madeUp(path) {
					found[path] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
