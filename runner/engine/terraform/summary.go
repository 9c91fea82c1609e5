package terraform

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	tfjson "github.com/hashicorp/terraform-json"

	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/runner/engine/job"
)

const unknown = "(known after apply)"

// changes tells whether an apply of the plan would do anything, also to the
// state alone: outputs, moves, imports.
func changes(plan *tfjson.Plan) bool {
	for _, r := range plan.ResourceChanges {
		if a := action(r); a != "" && a != actionRead {
			return true
		}
	}
	for _, c := range plan.OutputChanges {
		if !c.Actions.NoOp() {
			return true
		}
	}
	return len(plan.DeferredChanges) > 0 || len(plan.ActionInvocations) > 0
}

// summarise tells people what a plan does. What Terraform knows to be
// sensitive is masked, with a digest when there is a key; the agent's redactor sees the
// rest. Nothing is cut: what is approved is shown.
func summarise(plan *tfjson.Plan, key jobspec.DigestKey) jobspec.PlanSummary {
	s := jobspec.PlanSummary{NoChange: !changes(plan)}
	for _, r := range plan.ResourceChanges {
		object := jobspec.ObjectChange{Address: r.Address, Action: action(r), Reason: reason(r)}
		switch object.Action {
		case "":
			continue
		case actionRead:
			if s.NoChange { // it is not applied, so nothing is read
				continue
			}
		case "create":
			s.Create++
		case "update":
			s.Update++
		case "replace":
			s.Replace++
		case "delete":
			s.Delete++
		}
		if r.DeposedKey != "" {
			object.Address += " (deposed " + r.DeposedKey + ")"
		}
		object.Fields = differ{key: key, of: r.Address}.fields(r.Change)
		s.Objects = append(s.Objects, object)
	}
	slices.SortStableFunc(s.Objects, func(a, b jobspec.ObjectChange) int { return strings.Compare(a.Address, b.Address) })
	for _, name := range slices.Sorted(maps.Keys(plan.OutputChanges)) {
		if c := plan.OutputChanges[name]; !c.Actions.NoOp() {
			s.Outputs = append(s.Outputs, outputFields(name, c, key)...)
		}
	}
	return s
}

// outputFields are the fields of an output that changes. One with nothing in it
// but null comes or goes as a whole.
func outputFields(name string, c *tfjson.Change, key jobspec.DigestKey) []jobspec.FieldChange {
	before, after := side{c.Before, c.BeforeSensitive, nil}, side{c.After, c.AfterSensitive, c.AfterUnknown}
	d := differ{key: key, of: "output"}
	d.compare(name, before, after)
	if len(d.found) > 0 {
		return d.found
	}
	whole := d.field(name, before, after)
	if whole.Before == whole.After { // absent and null are the same in JSON
		whole.After = "null"
	}
	return []jobspec.FieldChange{whole}
}

// actionRead is a data source that only the apply can read. It changes nothing.
const actionRead = "read"

// action names what happens to a resource, "" for nothing.
func action(r *tfjson.ResourceChange) string {
	switch a := r.Change.Actions; {
	case a.Replace():
		return "replace"
	case a.Create():
		return "create"
	case a.Update():
		return "update"
	case a.Delete():
		return "delete"
	case a.Forget():
		return "forget"
	case a.Read():
		return actionRead
	case !a.NoOp():
		return "update" // an action of a newer Terraform: better shown than not
	case r.Change.Importing != nil:
		return "import"
	case r.PreviousAddress != "":
		return "move"
	}
	return ""
}

func reason(r *tfjson.ResourceChange) string {
	var parts []string
	if r.ActionReason != "" {
		parts = append(parts, strings.ReplaceAll(string(r.ActionReason), "_", " "))
	}
	if forced := replacePaths(r.Change); len(forced) > 0 {
		parts = append(parts, "forced by "+strings.Join(forced, " and "))
	}
	if r.PreviousAddress != "" && r.PreviousAddress != r.Address {
		parts = append(parts, "moved from "+r.PreviousAddress)
	}
	if r.Change.Importing != nil {
		parts = append(parts, "imported")
	}
	return strings.Join(parts, ", ")
}

// replacePaths are the fields that force a replace, as fields are called here. Terraform
// gives each as a list of names and indices. What is below a sensitive value is not
// named.
func replacePaths(c *tfjson.Change) []string {
	var names []string
	for _, steps := range c.ReplacePaths {
		path := ""
		list, _ := steps.([]any)
		before, after := side{c.Before, c.BeforeSensitive, nil}, side{c.After, c.AfterSensitive, nil}
		for _, step := range list {
			if before.hidden() || after.hidden() {
				break
			}
			if key, isName := step.(string); isName {
				path = join(path, key)
				before, after = before.at(key, -1), after.at(key, -1)
				continue
			}
			path = fmt.Sprintf("%s[%v]", path, step)
			index, err := strconv.Atoi(fmt.Sprint(step))
			if err != nil {
				break
			}
			before, after = before.at("", index), after.at("", index)
		}
		if path != "" && !slices.Contains(names, path) {
			names = append(names, path)
		}
	}
	slices.Sort(names)
	return names
}

func (d differ) fields(c *tfjson.Change) []jobspec.FieldChange {
	d.compare("", side{c.Before, c.BeforeSensitive, nil}, side{c.After, c.AfterSensitive, c.AfterUnknown})
	return d.found
}

// side is a value before or after, with what is hidden and not known of it: the
// marks have the same shape, with true where they hold.
type side struct{ value, sensitive, unknown any }

func (s side) hidden() bool     { return s.sensitive == true }
func (s side) notYet() bool     { return s.unknown == true }
func (s side) absent() bool     { return s.value == nil && !s.notYet() && !s.anyUnknown() }
func (s side) anyUnknown() bool { return marked(s.unknown) }

// at returns the side of an attribute, or of an element of a list.
func (s side) at(key string, index int) side {
	pick := func(v any) any {
		switch v := v.(type) {
		case map[string]any:
			return v[key]
		case []any:
			if index >= 0 && index < len(v) {
				return v[index]
			}
		case bool:
			return v // a mark on the whole holds for all parts
		}
		return nil
	}
	return side{pick(s.value), pick(s.sensitive), pick(s.unknown)}
}

// show is the value for people. hide says what stands for a sensitive one.
func (s side) show(hide func(value []byte) string) string {
	switch {
	case s.notYet():
		return unknown
	case s.absent():
		return ""
	case marked(s.sensitive) && s.anyUnknown():
		return jobspec.Sensitive // a part of it is not known yet
	}
	data, err := job.Marshal(s.known())
	switch {
	case marked(s.sensitive):
		return hide(data)
	case err != nil:
		return fmt.Sprintf("(%v)", err)
	}
	return string(data)
}

// known is the value with what is not known yet said in its place. Terraform
// leaves out such attributes and has null for such elements, which would read as
// if there were nothing.
func (s side) known() any {
	if s.notYet() {
		return unknown
	}
	switch marks := s.unknown.(type) {
	case map[string]any:
		value, isObject := s.value.(map[string]any)
		if s.value != nil && !isObject {
			return s.value
		}
		all := maps.Clone(value)
		if all == nil {
			all = map[string]any{}
		}
		for key, mark := range marks {
			if marked(mark) {
				all[key] = s.at(key, -1).known()
			}
		}
		return all
	case []any:
		value, isList := s.value.([]any)
		if s.value != nil && !isList {
			return s.value
		}
		all := slices.Clone(value)
		for i, mark := range marks {
			if i >= len(all) {
				all = append(all, nil)
			}
			if marked(mark) {
				all[i] = s.at("", i).known()
			}
		}
		return all
	}
	return s.value
}

// marked tells whether a mark holds anywhere inside.
func marked(mark any) bool {
	switch m := mark.(type) {
	case bool:
		return m
	case map[string]any:
		for _, v := range m {
			if marked(v) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(m, marked)
	}
	return false
}

// differ collects the fields in which two values of a thing differ.
type differ struct {
	found []jobspec.FieldChange
	key   jobspec.DigestKey
	of    string // the address of the thing
}

func (d *differ) field(path string, before, after side) jobspec.FieldChange {
	hide := func(value []byte) string { return d.key.Show(value, d.of, path) }
	return jobspec.FieldChange{Path: path, Before: before.show(hide), After: after.show(hide)}
}

func (d *differ) compare(path string, before, after side) {
	if !before.hidden() && !after.hidden() && !after.notYet() {
		if keys, ok := objectKeys(before, after); ok {
			for _, key := range keys {
				d.compare(join(path, key), before.at(key, -1), after.at(key, -1))
			}
			return
		}
		if n, ok := listLength(before, after); ok {
			for i := range n {
				d.compare(fmt.Sprintf("%s[%d]", path, i), before.at("", i), after.at("", i))
			}
			return
		}
	}
	if reflect.DeepEqual(before.value, after.value) && !after.anyUnknown() && before.hidden() == after.hidden() {
		return
	}
	d.found = append(d.found, d.field(path, before, after))
}

// objectKeys returns the keys of both sides when each is an object or absent,
// and one of them has keys.
func objectKeys(before, after side) ([]string, bool) {
	keys := map[string]bool{}
	for _, v := range []any{before.value, after.value} {
		m, isObject := v.(map[string]any)
		if v != nil && !isObject {
			return nil, false
		}
		for key := range m {
			keys[key] = true
		}
	}
	if m, ok := after.unknown.(map[string]any); ok {
		for key := range m {
			keys[key] = true
		}
	}
	return slices.Sorted(maps.Keys(keys)), len(keys) > 0
}

// listLength is the same for lists. A list that is only on one side is shown as
// one value.
func listLength(before, after side) (int, bool) {
	a, isList := before.value.([]any)
	b, alsoList := after.value.([]any)
	return max(len(a), len(b)), isList && alsoList
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	if strings.ContainsAny(key, ".[]\" ") {
		quoted, _ := json.Marshal(key)
		return path + "[" + string(quoted) + "]"
	}
	return path + "." + key
}

// planStarts are the first words of what Terraform shows of a plan.
var planStarts = []string{
	"\nTerraform used the selected providers", "\nTerraform will perform the following actions", "\nNo changes.",
	"\nOpenTofu used the selected providers", "\nOpenTofu will perform the following actions",
	"\nNote: Objects have changed outside of Terraform", "\nChanges to Outputs:",
}

// planText takes the plan out of what `terraform plan` wrote, which spares a
// `terraform show`. ok is false when it is not found there.
func planText(stdout string) (text string, ok bool) {
	stdout = "\n" + stdout
	start := -1
	for _, words := range planStarts {
		if i := strings.Index(stdout, words); i >= 0 && (start < 0 || i < start) {
			start = i
		}
	}
	if start < 0 {
		return "", false
	}
	text, _, _ = strings.Cut(stdout[start:], "\nSaved the plan to:")
	return strings.TrimRight(strings.TrimSpace(text), "─\n ") + "\n", true
}
