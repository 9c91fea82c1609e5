package appconfig

import "strings"

// EventTriggersFile is triggers.toml: what happens when an event comes in.
type EventTriggersFile struct {
	// The rules.
	Triggers []EventTrigger `toml:"triggers" alias:"trigger" json:"triggers,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// EventTrigger starts something when an event comes in from outside.
type EventTrigger struct {
	At Place `toml:"-" json:"at" digest:"-"`

	// Unique in the app.
	Name string `toml:"name" json:"name" rule:"required"`
	// Who sends the event.
	EventSource string `toml:"event_source" json:"event_source" rule:"required"`
	// The types of event that count; all by default.
	EventTypes []string `toml:"event_types" json:"event_types,omitempty"`
	// What must hold of the event; all of them.
	Filters []EventFilter `toml:"filters" json:"filters,omitempty"`
	// What is started.
	Target *EventTarget `toml:"target" json:"target,omitempty" rule:"required"`
}

// EventFilter holds one value of an event against another.
type EventFilter struct {
	// How they are compared.
	Op string `toml:"op" json:"op" rule:"required" enum:"eq"`
	// Where the value stands in the event: a JSON Pointer, such as "/repository/name".
	Path string `toml:"path" json:"path" rule:"required"`
	// What it must be, as a string; by default that it is there at all.
	Value *string `toml:"value" json:"value,omitempty"`
}

// EventTarget is what an event starts.
type EventTarget struct {
	// A run of a branch, or a runbook in an install.
	Type string `toml:"type" json:"type" rule:"required" enum:"app_branch_run,install_runbook"`
	// The branch.
	AppBranch string `toml:"app_branch" json:"app_branch,omitempty"`
	// The runbook.
	Runbook string `toml:"runbook" json:"runbook,omitempty"`
	// The install that it runs in.
	Install string `toml:"install" json:"install,omitempty"`
	// Inputs of the runbook: each a JSON Pointer into the event.
	Inputs map[string]string `toml:"inputs" json:"inputs,omitempty"`
}

// The kinds of targets.
const (
	EventTargetBranchRun = "app_branch_run"
	EventTargetRunbook   = "install_runbook"
)

func (t *EventTrigger) check(c *checker) {
	c.name(t.At, "trigger", t.Name)
	for i, f := range t.Filters {
		if f.Path != "" && !strings.HasPrefix(f.Path, "/") {
			c.diags = append(c.diags, c.at(Error, CodeValue, t.At.key("filters").item(i).key("path"), "path %q is not a JSON Pointer", f.Path).
				remedy(`begin it with a slash, such as "/repository/name"`))
		}
	}
	if t.Target == nil {
		return
	}
	switch at := t.At.key("target"); {
	case t.Target.Type == EventTargetBranchRun && t.Target.AppBranch == "":
		c.add(Error, CodeMissing, at, "target of trigger %q needs app_branch", t.Name)
	case t.Target.Type == EventTargetRunbook && t.Target.Runbook == "":
		c.add(Error, CodeMissing, at, "target of trigger %q needs runbook", t.Name)
	}
}

// eventTriggers checks names, and that targets exist.
func (v *validator) eventTriggers() {
	once := v.once("trigger")
	var branches, runbooks []string
	for _, b := range v.app.Branches {
		branches = append(branches, b.Name)
	}
	for _, r := range v.app.Runbooks {
		runbooks = append(runbooks, r.Name)
	}
	for _, t := range v.app.EventTriggers {
		once(t.At, t.Name)
		if t.Target == nil {
			continue
		}
		if len(branches) > 0 { // without files, branches are made elsewhere
			v.exists(t.At.key("target.app_branch"), "branch", t.Target.AppBranch, branches, "branches")
		}
		v.exists(t.At.key("target.runbook"), "runbook", t.Target.Runbook, runbooks, "runbooks")
	}
}
