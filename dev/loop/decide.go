package main

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// supervisor stands among executables for `berth up`: the part of berth that keeps
// all others running.
const supervisor = "supervisor"

// workspaceFile belongs to every executable.
const workspaceFile = "go.work"

// sources say which executables a folder belongs to.
type sources struct {
	// packages by folder, with slashes and relative to the root.
	packages map[string]pkg
	all      []string // executables, sorted
}

// A pkg is a package of Go that an executable is made of.
type pkg struct {
	executables []string // sorted; supervisor may be among them
	embeds      bool     // other files of its folder, too
}

// A plan is what to do about saved files.
type plan struct {
	build    []string // executables, sorted
	takeover bool     // `berth up` itself changes
	relist   bool     // a file is of a package that is not known
	hints    []string
	files    []string // the saved files that count
}

// lacks is what another plan for the same files has and this one has not.
func (p plan) lacks(other plan) plan {
	missed := plan{takeover: other.takeover && !p.takeover, files: other.files}
	for _, name := range other.build {
		if !slices.Contains(p.build, name) {
			missed.build = append(missed.build, name)
		}
	}
	return missed
}

// decide says what saved files change. It does no I/O.
func decide(s sources, saved []string) plan {
	var todo plan
	affected := map[string]bool{}
	hints := map[string]bool{}
	for _, file := range saved {
		if ignored(file) {
			continue
		}
		if generates(file) {
			hints[file+" is saved: make generate writes the code that follows from it"] = true
			continue
		}
		executables, known := s.of(file)
		todo.relist = todo.relist || !known
		if len(executables) > 0 {
			todo.files = append(todo.files, file)
		}
		for _, name := range executables {
			affected[name] = true
		}
	}
	todo.takeover = affected[supervisor]
	delete(affected, supervisor)
	todo.build = slices.Sorted(maps.Keys(affected))
	todo.hints = slices.Sorted(maps.Keys(hints))
	return todo
}

// of are the executables that a file belongs to; known is false when it is Go of a
// package that none of them had when they were listed.
func (s sources) of(file string) (executables []string, known bool) {
	folder, name := path.Split(file)
	folder = path.Clean(folder)
	switch {
	case file == workspaceFile, file == "go.work.sum",
		(name == "go.mod" || name == "go.sum") && s.within(folder):
		return append([]string{supervisor}, s.all...), true
	case path.Ext(name) == ".go":
		p, ok := s.packages[folder]
		return p.executables, ok
	}
	for ; folder != "."; folder = path.Dir(folder) {
		if p, ok := s.packages[folder]; ok {
			if p.embeds {
				return p.executables, true
			}
			return nil, true
		}
	}
	return nil, true
}

// within tells whether a folder has packages of executables, in it or below.
func (s sources) within(folder string) bool {
	for of := range s.packages {
		if of == folder || strings.HasPrefix(of, folder+"/") {
			return true
		}
	}
	return false
}

// generates tells whether code is generated from a file.
func generates(file string) bool {
	return strings.HasPrefix(file, "openapi/") && path.Ext(file) == ".yaml" ||
		strings.HasPrefix(file, "services/internal/store/queries/") ||
		file == "services/sqlc.yaml"
}

// ignored tells whether no executable can be made of a file: tests and what they
// read, what is made (.bin), what others keep (.git, node_modules), and what
// editors write for themselves.
func ignored(file string) bool {
	for _, segment := range strings.Split(file, "/") {
		if skipped(segment) {
			return true
		}
	}
	name := path.Base(file)
	return strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "~") || strings.HasPrefix(name, "#") ||
		strings.HasSuffix(name, ".swp") || strings.HasSuffix(name, ".tmp") || name == "4913" // vim asks with that whether it may write
}

// skipped are folders that are not looked into, and files without a name to speak
// of.
func skipped(segment string) bool {
	return strings.HasPrefix(segment, ".") || segment == "node_modules" || segment == "testdata" || segment == "dist"
}

// outcome is the line that ends a round.
func outcome(saved, parts []string, built, all time.Duration) string {
	what := "what was saved before"
	if len(saved) > 0 {
		what = saved[0]
	}
	if len(saved) > 1 {
		what += fmt.Sprintf(" and %d more", len(saved)-1)
	}
	if len(parts) == 0 {
		return fmt.Sprintf("✓ %s: built in %s; no part that runs is made of it", what, seconds(built))
	}
	return fmt.Sprintf("✓ %s runs after %s (build %s): %s", what, seconds(all), seconds(built), strings.Join(parts, ", "))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// union of two sorted lists.
func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
