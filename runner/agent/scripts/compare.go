package scripts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
)

// Review is what a release brings that was not accepted, and what it brings no
// more.
type Review struct {
	New     []jobspec.Script
	Changed []Pair
	Gone    []Accepted
}

// Pair is a script before and after.
type Pair struct {
	Before Accepted
	After  jobspec.Script
}

// Compare says what is new in a release, next to the scripts that were accepted.
// A new script counts as changed when one of its name goes; the one with the same
// schedule, if there is one.
func Compare(accepted []Accepted, release jobspec.Release) (Review, error) {
	var r Review
	known := map[string]bool{}
	for _, a := range accepted {
		known[a.Digest] = true
	}
	brought := map[string]bool{}
	for _, script := range release.Scripts {
		digest, err := script.Digest()
		if err != nil {
			return r, fmt.Errorf("script %q: %w", script.Action.Name, err)
		}
		if !brought[digest] && !known[digest] {
			r.New = append(r.New, script)
		}
		brought[digest] = true
	}
	for _, a := range accepted {
		if !brought[a.Digest] {
			r.Gone = append(r.Gone, a)
		}
	}
	// Of versions of a plugin that stay accepted the latest is what a new one is shown next to.
	slices.SortStableFunc(r.Gone, latestFirst)
	r.pair(func(before, after jobspec.Script) bool { return before.Cron == after.Cron })
	r.pair(func(jobspec.Script, jobspec.Script) bool { return true })
	// A plugin stays accepted: what it made is removed with it, by then maybe without
	// a release that still has it.
	r.Gone = slices.DeleteFunc(r.Gone, func(a Accepted) bool { return a.Script.Plugin != "" })
	byName := func(a, b jobspec.Script) int {
		return cmp.Or(cmp.Compare(a.Action.Name, b.Action.Name), cmp.Compare(a.Cron, b.Cron))
	}
	slices.SortStableFunc(r.New, byName)
	slices.SortStableFunc(r.Gone, func(a, b Accepted) int { return byName(a.Script, b.Script) })
	slices.SortStableFunc(r.Changed, func(a, b Pair) int { return byName(a.After, b.After) })
	return r, nil
}

func latestFirst(a, b Accepted) int { return b.Since.Compare(a.Since) }

// Grown names the permissions of a plugin that is not accepted and that the version accepted
// last had not: of the same component, or else of the same type. A plugin of which none was
// accepted is new and has not grown. Of one whose text is not here nothing is known, so that
// all permissions of the next one count.
func Grown(accepted []Accepted, is jobspec.Script) []string {
	if is.Plugin == "" {
		return nil
	}
	list := slices.SortedStableFunc(slices.Values(accepted), latestFirst)
	i := slices.IndexFunc(list, func(a Accepted) bool { return a.Script.Action.Name == is.Action.Name })
	if i < 0 {
		i = slices.IndexFunc(list, func(a Accepted) bool { return a.Script.Plugin == is.Plugin })
	}
	if i < 0 {
		return nil
	}
	had := list[i].Script.PluginPermissions()
	return slices.DeleteFunc(is.PluginPermissions(), func(name string) bool { return jobspec.PermissionCovered(had, name) })
}

// pair turns new scripts into changed ones where one of the same name goes.
func (r *Review) pair(alike func(before, after jobspec.Script) bool) {
	r.New = slices.DeleteFunc(r.New, func(after jobspec.Script) bool {
		i := slices.IndexFunc(r.Gone, func(before Accepted) bool {
			return before.Script.Action.Name == after.Action.Name && alike(before.Script, after)
		})
		if i < 0 {
			return false
		}
		r.Changed = append(r.Changed, Pair{Before: r.Gone[i], After: after})
		r.Gone = slices.Delete(r.Gone, i, i+1)
		return true
	})
}

// Nothing says that nobody has to be asked: the release brings no script that was
// not accepted. What it brings no more leaves the set with the next acceptance.
func (r Review) Nothing() bool { return len(r.New) == 0 && len(r.Changed) == 0 }

// Summary is the review as people are shown it: every text whole, a changed one
// with a mark before each line that comes (+) or goes (-).
func (r Review) Summary() jobspec.PlanSummary {
	s := jobspec.PlanSummary{Create: len(r.New), Update: len(r.Changed), Delete: len(r.Gone)}
	for _, script := range r.New {
		s.Objects = append(s.Objects, jobspec.ObjectChange{Address: address(script), Action: "create", Fields: fields(nil, script)})
	}
	for _, p := range r.Changed {
		s.Objects = append(s.Objects, jobspec.ObjectChange{Address: address(p.After), Action: "update", Fields: fields(&p.Before, p.After)})
	}
	for _, gone := range r.Gone {
		s.Objects = append(s.Objects, jobspec.ObjectChange{Address: address(gone.Script), Action: "delete", Fields: []jobspec.FieldChange{digestField(&gone, nil)}})
	}
	return s
}

func address(s jobspec.Script) string {
	if s.Plugin != "" {
		return s.Action.Name
	}
	return "script " + s.Action.Name
}

// fields tells all of a script, next to what it was; accepted is nil for a new one. Of
// one whose text is not here, all of the new text counts as coming.
func fields(accepted *Accepted, is jobspec.Script) []jobspec.FieldChange {
	before := jobspec.Script{}
	var was *jobspec.Script
	if accepted != nil {
		before, was = accepted.Script, &accepted.Script
	}
	out := []jobspec.FieldChange{digestField(accepted, &is)}
	add := func(path, before, after string) {
		switch {
		case was == nil && after != "", was != nil && before == after && after != "":
			out = append(out, jobspec.FieldChange{Path: path, After: after})
		case before != after:
			out = append(out, jobspec.FieldChange{Path: path, Before: before, After: after})
		}
	}
	if is.Plugin != "" {
		out = append(out, permissions(was, is)...)
	}
	add("runs", runs(was), runs(&is))
	add("schedule", before.Cron, is.Cron)
	add("role", before.Role, is.Role)
	add("break-glass role", before.Action.BreakGlassRole, is.Action.BreakGlassRole)
	add("timeout", seconds(before.TimeoutSeconds), seconds(is.TimeoutSeconds))
	add("inputs", strings.Join(before.Inputs, ", "), strings.Join(is.Inputs, ", "))
	add("tools", strings.Join(before.Action.Tools, ", "), strings.Join(is.Action.Tools, ", "))
	add("image", before.Action.Image, is.Action.Image)
	add("image digest", before.Action.ImageDigest, is.Action.ImageDigest)
	for i, step := range is.Action.Steps {
		path := fmt.Sprintf("step %d %s: ", i+1, step.Name)
		old := jobspec.ActionStep{}
		if j := slices.IndexFunc(before.Action.Steps, func(o jobspec.ActionStep) bool { return o.Name == step.Name }); j >= 0 {
			old = before.Action.Steps[j]
		}
		if was == nil || text(old) == text(step) {
			out = append(out, jobspec.FieldChange{Path: path + "script", After: text(step)})
		} else {
			out = append(out, jobspec.FieldChange{Path: path + "script, changed", After: Diff(text(old), text(step))})
		}
		add(path+"directory", directory(old), directory(step))
		for _, name := range slices.Sorted(maps.Keys(union(old.EnvVars, step.EnvVars))) {
			add(path+"env "+name, variable(old, name), variable(step, name))
		}
		add(path+"kubeconfig", kubeconfig(was, old), kubeconfig(&is, step))
	}
	for _, old := range before.Action.Steps {
		if !slices.ContainsFunc(is.Action.Steps, func(s jobspec.ActionStep) bool { return s.Name == old.Name }) {
			out = append(out, jobspec.FieldChange{Path: "step " + old.Name + ": script, removed", After: Diff(text(old), "")})
		}
	}
	return out
}

// digestField shows the digests of a script; what has none is shown without.
func digestField(was *Accepted, is *jobspec.Script) jobspec.FieldChange {
	f := jobspec.FieldChange{Path: "digest"}
	if was != nil {
		f.Before = was.Digest
	}
	if is != nil {
		f.After, _ = is.Digest()
	}
	return f
}

// permissions tells what a plugin may, one field each, next to what it might before: who
// reads nothing else sees what grew.
func permissions(was *jobspec.Script, is jobspec.Script) []jobspec.FieldChange {
	var had []string
	if was != nil {
		had = was.PluginPermissions()
	}
	has := is.PluginPermissions()
	var out []jobspec.FieldChange
	for _, name := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(had, has)))) {
		before, after := "no", "yes"
		if slices.Contains(had, name) {
			before = "yes"
		}
		if !slices.Contains(has, name) {
			after = "no"
		}
		if was == nil || before == after {
			before = ""
		}
		out = append(out, jobspec.FieldChange{Path: "permission " + name, Before: before, After: after})
	}
	return out
}

// runs says when a script runs.
func runs(s *jobspec.Script) string {
	switch {
	case s == nil:
		return ""
	case s.HealthCheck && s.Cron != "":
		return "as a health check: by itself on its schedule, and when it is asked for"
	case s.HealthCheck:
		return "as a health check: when it is asked for"
	case s.Action.ReadOnly:
		return "without a decision: it only reads"
	}
	if s.Unattended {
		return "BY ITSELF on its schedule, without a decision on each run, and it may change things; other runs only with a decision"
	}
	if s.Action.BreakGlassRole != "" {
		text := "only with a decision on each run, and while the customer has its role switched on"
		if s.WhenRoleIsOff {
			text += "; also after that role was switched off, then without it"
		}
		return text
	}
	return "only with a decision on each run"
}

func seconds(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d s", n)
}

func text(s jobspec.ActionStep) string {
	if s.InlineContents != "" {
		return s.InlineContents
	}
	return s.Command
}

// directory is the one of a repository that a step runs in, "" for none.
func directory(s jobspec.ActionStep) string {
	if s.Artifact == nil {
		return ""
	}
	return s.Artifact.Digest
}

// variable is a variable of a step's environment, "" for none.
func variable(s jobspec.ActionStep, name string) string {
	value, there := s.EnvVars[name]
	if there && value == "" {
		return "(empty)"
	}
	return value
}

func kubeconfig(s *jobspec.Script, step jobspec.ActionStep) string {
	switch {
	case s == nil || s.Plugin != "" || step.Name == "" && text(step) == "": // plugins get none
		return ""
	case step.NoKubeConfig:
		return "no"
	}
	return "yes, if the runner has a cluster"
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b)
	return all
}
