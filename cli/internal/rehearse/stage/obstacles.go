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

// Obstacles are the definitions that this version does not deploy, by the table of the
// checks, and those that take something from elsewhere that could not be fetched: lost
// says why, by address.
func Obstacles(app *appconfig.App, lost map[string]string) (c Changes) {
	for _, o := range check.Obstacles(app) {
		if part, ok := PartAt(app, o.At); ok {
			c.Add(app, part, o.Why)
		}
	}
	for _, f := range app.Fetched {
		if why := lost[f.Address]; why != "" {
			if part, ok := PartAt(app, f.At); ok && Works(part) {
				c.Add(app, part, why)
			}
		}
	}
	return c
}

// Works tells whether a part is deployed or run. What is said of the others is read.
func Works(part Part) bool {
	kind, _, _ := strings.Cut(string(part), "/")
	return kind == appconfig.BlockSandbox || kind == appconfig.BlockComponent || kind == appconfig.BlockAction
}

// InPlaceOf is what stands in the folder's copy in the place of a file that could not
// be fetched, by where it is used. It is valid there, and does nothing.
func InPlaceOf(app *appconfig.App, wanted fetch.Wanted) string {
	part, _ := PartAt(app, wanted.At)
	kind, _, _ := strings.Cut(string(part), "/")
	switch {
	case wanted.Include: // TOML
	case kind == appconfig.BlockRole, kind == kindBreakGlass:
		return `{"Version": "2012-10-17", "Statement": []}`
	case kind == appconfig.BlockAction, kind == appconfig.BlockRunbook && !strings.HasSuffix(wanted.At.Key, "readme"):
		return "#!/bin/sh\n# It could not be fetched for this rehearsal.\nexit 0\n"
	case kind == appconfig.BlockPolicy:
		for i := range app.Policies {
			if p := &app.Policies[i]; p.At == blockAt(app, part) && p.Engine == "opa" {
				return "package nuon\n"
			}
		}
		return "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata:\n  name: rehearsal\nspec:\n  rules:\n  - name: nothing\n" +
			"    match: {any: [{resources: {kinds: [ConfigMap], names: [no-such-thing]}}]}\n    validate: {message: none, pattern: {kind: \"*\"}}\n"
	}
	return "# It could not be fetched for this rehearsal.\n"
}

func blockAt(app *appconfig.App, part Part) place.Place {
	for _, b := range Blocks(app) {
		if b.Part == part {
			return b.At
		}
	}
	return place.Place{}
}

// add keeps the first reason of a part.
func (s StandIns) add(part Part, why string) {
	if s[part] == "" {
		s[part] = why
	}
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
