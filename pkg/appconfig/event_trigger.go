package appconfig

import (
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// EventTriggersFile is triggers.toml: what happens when an event comes in.
type EventTriggersFile struct {
	// The rules.
	Triggers []EventTrigger `toml:"triggers" alias:"trigger" json:"triggers,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// EventTrigger starts something when an event comes in from outside.
type EventTrigger struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// Unique in the app.
	Name string `toml:"name" json:"name" rule:"required"`
	// The sender of the event.
	EventSource string `toml:"event_source" json:"event_source" rule:"required"`
	// The types of event that count; all by default.
	EventTypes []string `toml:"event_types" json:"event_types,omitempty"`
	// Conditions on the event; all must hold.
	Filters []EventFilter `toml:"filters" json:"filters,omitempty"`
	// What is started.
	Target *EventTarget `toml:"target" json:"target,omitempty" rule:"required"`
}

// EventFilter holds one value of an event against another.
type EventFilter struct {
	// How they are compared.
	Op string `toml:"op" json:"op" rule:"required" enum:"eq"`
	// Where the value is in the event: a JSON Pointer, such as "/repository/name".
	Path string `toml:"path" json:"path" rule:"required"`
	// The value to match, as a string; by default any value matches.
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
			c.Diags = append(c.Diags, c.At(place.Error, place.CodeValue, t.At.Below("filters").Item(i).Below("path"), "path %q is not a JSON Pointer", f.Path).
				WithRemedy(`begin it with a slash, such as "/repository/name"`))
		}
	}
	if t.Target == nil {
		return
	}
	switch at := t.At.Below("target"); {
	case t.Target.Type == EventTargetBranchRun && t.Target.AppBranch == "" && !c.Misspelt(at, "app_branch"):
		c.Add(place.Error, place.CodeMissing, at, "target of trigger %q needs app_branch", t.Name)
	case t.Target.Type == EventTargetRunbook && t.Target.Runbook == "" && !c.Misspelt(at, "runbook"):
		c.Add(place.Error, place.CodeMissing, at, "target of trigger %q needs runbook", t.Name)
	}
}
