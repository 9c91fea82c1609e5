package appconfig

import (
	"io/fs"
	"path"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/folder"
	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// scripts reports commands that name a file which is not in the app folder. A
// step with a repository finds its file there, and is looked at where mapped
// says that the repository stands on this machine.
func (l *loader) scripts(mapped func(Source) (fs.FS, string, bool)) {
	for i := range l.app.Actions {
		a := &l.app.Actions[i]
		for j := range a.Steps {
			s, at := &a.Steps[j], a.At.Below("steps").Item(j).Below("command")
			src, inRepo := s.Source()
			switch {
			case !inRepo:
				l.script(at, "actions", s.Command)
			case mapped != nil:
				l.scriptOfRepo(at, src, s.Command, mapped)
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
func (l *loader) script(at place.Place, base, command string) {
	script := scriptOf(command)
	if script == "" {
		return
	}
	for _, dir := range []string{base, path.Dir(at.File), "."} {
		name := path.Join(dir, script)
		if l.folder.Allowed(name) == nil && l.folder.Exists(name) {
			return
		}
	}
	l.Diags = append(l.Diags, l.At(place.Error, place.CodeReference, at, "script %q is not in the app folder", script).
		WithRemedy("looked for %s; add it, name the repository that has it, or put the script into inline_contents", path.Join(base, script)))
}

// scriptOfRepo looks for the file in the directory of a repository that is at
// hand.
func (l *loader) scriptOfRepo(at place.Place, src Source, command string, mapped func(Source) (fs.FS, string, bool)) {
	script := scriptOf(command)
	root, dir, ok := mapped(src)
	if script == "" || !ok {
		return
	}
	if !fs.ValidPath(path.Clean(script)) {
		l.Diags = append(l.Diags, l.At(place.Error, place.CodeReference, at, "script %q is above the directory that the step gets of %s", script, src.Repo).
			WithRemedy("name a directory that holds it, and the script below that"))
		return
	}
	name := path.Join(dir, script)
	if in := folder.New(root); in.Allowed(name) == nil && in.Exists(name) {
		return
	}
	l.Diags = append(l.Diags, l.At(place.Error, place.CodeReference, at, "script %q is not in the repository %s", script, src.Repo).
		WithRemedy("looked for %s; correct the command, or the directory and branch of the repository", path.Join(src.Directory, script)))
}

// scriptOf is the file that a command begins with, "" when it begins with none.
func scriptOf(command string) string {
	words := strings.Fields(command)
	if len(words) == 0 || !hasAnyPrefix(words[0], "./", "../") || strings.Contains(words[0], "{{") {
		return ""
	}
	return words[0]
}
