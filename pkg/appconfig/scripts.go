package appconfig

import (
	"path"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// scripts reports commands that name a file which is not in the app folder. A
// step with a repository finds its file there.
func (l *loader) scripts() {
	for i := range l.app.Actions {
		a := &l.app.Actions[i]
		for j, s := range a.Steps {
			if s.PublicRepo == nil && s.ConnectedRepo == nil {
				l.script(a.At.Below("steps").Item(j).Below("command"), "actions", s.Command)
			}
		}
	}
	for i := range l.app.Runbooks {
		r := &l.app.Runbooks[i]
		for j, s := range r.Steps {
			l.script(r.At.Below("steps").Item(j).Below("command"), "runbooks", s.Command)
		}
	}
}

// script looks for a file where "./x" may mean it: in the kind's folder, next
// to the file that names it, and in the app root.
func (l *loader) script(at place.Place, folder, command string) {
	words := strings.Fields(command)
	if len(words) == 0 || !hasAnyPrefix(words[0], "./", "../") || strings.Contains(words[0], "{{") {
		return
	}
	for _, base := range []string{folder, path.Dir(at.File), "."} {
		name := path.Join(base, words[0])
		if l.folder.Allowed(name) == nil && l.folder.Exists(name) {
			return
		}
	}
	l.Diags = append(l.Diags, l.At(place.Error, place.CodeReference, at, "script %q is not in the app folder", words[0]).
		WithRemedy("looked for %s; add it, name the repository that has it, or put the script into inline_contents", path.Join(folder, words[0])))
}
