package pulumi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

// preview is what `pulumi preview --json` writes, as far as it is read.
type preview struct {
	Steps       []step       `json:"steps"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type step struct {
	Op             string         `json:"op"`
	URN            string         `json:"urn"`
	OldState       *state         `json:"oldState"`
	NewState       *state         `json:"newState"`
	DiffReasons    []string       `json:"diffReasons"`
	ReplaceReasons []string       `json:"replaceReasons"`
	Detailed       map[string]any `json:"detailedDiff"`
}

type state struct {
	Type    string         `json:"type"`
	ID      string         `json:"id,omitempty"`
	Inputs  map[string]any `json:"inputs,omitempty"`
	Outputs map[string]any `json:"outputs,omitempty"`
}

type diagnostic struct {
	Message  string `json:"message"`
	Severity string `json:"severity"`
}

// errors are the messages of errors, without empty ones.
func (p preview) errors() (all []string) {
	for _, d := range p.Diagnostics {
		if text := strings.TrimSpace(d.Message); d.Severity == "error" && text != "" {
			all = append(all, text)
		}
	}
	return all
}

// actions are the operations that change something, in words for people. Steps of a
// replacement other than "replace" itself say the same thing again.
var actions = map[string]string{
	"create": "create", "update": "update", "replace": "replace", "delete": "delete", "import": "import",
	"read": "read", "read-replacement": "read", "discard": "forget", "remove-pending-replace": "delete", "import-replacement": "import",
	"create-replacement": "", "delete-replaced": "", "discard-replaced": "", "same": "", "refresh": "",
}

// summarise tells people what a preview does.
func summarise(p preview) jobspec.PlanSummary {
	var s jobspec.PlanSummary
	for _, at := range p.Steps {
		action, known := actions[at.Op]
		if !known {
			action = "update" // an operation of a newer Pulumi: better shown than not
		}
		if action == "" || action == "read" {
			continue // a read gives the program a value
		}
		switch action {
		case "create":
			s.Create++
		case "update":
			s.Update++
		case "replace":
			s.Replace++
		case "delete":
			s.Delete++
		}
		s.Objects = append(s.Objects, jobspec.ObjectChange{Address: address(at.URN), Action: action, Fields: at.fields(), Reason: at.reason()})
	}
	slices.SortStableFunc(s.Objects, func(a, b jobspec.ObjectChange) int { return strings.Compare(a.Address, b.Address) })
	s.NoChange = len(s.Objects) == 0
	s.Text = text(s)
	return s
}

func (s step) reason() string {
	if len(s.ReplaceReasons) == 0 {
		return ""
	}
	return "forced by " + strings.Join(slices.Sorted(slices.Values(s.ReplaceReasons)), " and ")
}

// fields are what differs. What somebody changed outside is the same on both sides
// of the program, so there the value before is the one that was found.
func (s step) fields() []jobspec.FieldChange {
	var before, after map[string]any
	if s.OldState != nil {
		before = maps.Clone(s.OldState.Inputs)
		for _, name := range slices.Concat(s.DiffReasons, s.ReplaceReasons) {
			if found, ok := s.OldState.Outputs[name]; ok {
				before[name] = found
			}
		}
	}
	if s.NewState != nil && s.Op != "delete" {
		after = s.NewState.Inputs
	}
	if s.Op == "delete" {
		return nil // all of it goes
	}
	var fields []jobspec.FieldChange
	compare("", before, after, &fields)
	return fields
}

// compare collects where two values differ, in the order of their names.
func compare(path string, before, after any, fields *[]jobspec.FieldChange) {
	a, isObject := before.(map[string]any)
	b, bothObjects := after.(map[string]any)
	if (isObject || before == nil) && (bothObjects || after == nil) && len(a)+len(b) > 0 {
		names := map[string]bool{}
		for name := range a {
			names[name] = true
		}
		for name := range b {
			names[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(names)) {
			below := name
			if path != "" {
				below = path + "." + name
			}
			compare(below, a[name], b[name], fields)
		}
		return
	}
	if was, is := show(before), show(after); was != is {
		*fields = append(*fields, jobspec.FieldChange{Path: path, Before: was, After: is})
	}
}

// What stands for a value in the output of the command.
const (
	secretValue  = "[secret]"
	unknownValue = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
)

func show(v any) string {
	switch v {
	case nil, "":
		return ""
	case secretValue:
		return jobspec.Sensitive // the command tells no more of it
	case unknownValue:
		return "(known after apply)"
	}
	data, err := job.Marshal(v)
	if err != nil {
		return fmt.Sprintf("(%v)", err)
	}
	return string(data)
}

// text is the summary as lines.
func text(s jobspec.PlanSummary) string {
	if s.NoChange {
		return "No changes.\n"
	}
	marks := map[string]string{"create": "+", "update": "~", "replace": "+-", "delete": "-"}
	var b strings.Builder
	for _, o := range s.Objects {
		mark := marks[o.Action]
		if mark == "" {
			mark = o.Action
		}
		fmt.Fprintf(&b, "%2s %s", mark, o.Address)
		if o.Reason != "" {
			fmt.Fprintf(&b, " (%s)", o.Reason)
		}
		b.WriteString("\n")
		for _, f := range o.Fields {
			fmt.Fprintf(&b, "     %s: %s -> %s\n", f.Path, orNothing(f.Before), orNothing(f.After))
		}
	}
	return b.String()
}

func orNothing(s string) string {
	if s == "" {
		return "(nothing)"
	}
	return s
}

// canonical is what of a preview is approved: every step, without what differs
// between two previews of the same thing.
func canonical(p preview, destroy bool) ([]byte, error) {
	steps := []step{}
	for _, at := range p.Steps {
		if at.Op != "same" && at.Op != "refresh" {
			steps = append(steps, at)
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Compare(a.URN+" "+a.Op, b.URN+" "+b.Op) })
	return json.Marshal(map[string]any{"destroy": destroy, "steps": steps})
}
