package installs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
)

// Wanted is an install as a file of an app folder declares it.
type Wanted struct {
	Name           string
	Customer       string // id or name; empty for the one that it has, or one of the install's name
	Stack          string // of a new one
	ApprovalOption string
	Labels         map[string]string // nil leaves them as they are
	Inputs         Values            // those not named stay as they are
	Toggles        Toggles           // nil leaves them as they are
	Overrides      Overrides         // nil leaves them as they are
}

// Present is an install as it is.
type Present struct {
	ID             string
	Name           string
	App            string // empty for the app whose installs are planned
	CustomerID     string
	CustomerName   string
	Stack          string
	ApprovalOption string
	Labels         map[string]string
	State          model.InstallState
	Inputs         Inputs
	Overrides      Overrides
	InputsVersion  int32
	Toggles        Toggles
	TogglesVersion int32
	Taken          Taken            // by a workflow for every component; zero when there was none
	TakenAlone     map[string]Taken // by later ones for single components
}

// Taken is the newest version of inputs that workflows took to deploy an install.
type Taken struct {
	Version        int32
	Inputs         Inputs
	Overrides      Overrides
	TogglesVersion int32
}

// Action is what is done with one install.
type Action string

// The values of Action.
const (
	ActionCreate      Action = "create"
	ActionUpdate      Action = "update"
	ActionUnchanged   Action = "unchanged"
	ActionNotDeclared Action = "not_declared" // no file names it; it is left alone
)

// Next is what an install wants for what is declared to be in force.
type Next string

// The values of Next.
const (
	NextNothing   Next = ""
	NextProvision Next = "provision" // it never was
	NextDeploy    Next = "deploy"    // no workflow has taken its inputs or toggles yet
)

// FieldChange is one field of an install that becomes another. Old is nil for
// what was not there, New for what goes, and both are for sensitive inputs.
type FieldChange struct {
	Field     string // approval_option, customer, stack, labels.NAME, inputs.NAME, component_toggles.NAME, components.NAME.KEY
	Old, New  *string
	Sensitive bool
}

// Decision is what a plan does with one install.
type Decision struct {
	Name    string
	Action  Action
	Changes []FieldChange
	Kept    []string // inputs that are set, and that the file does not name
	Next    Next
	// Components are enough for Next; empty means all.
	Components []string

	present   *Present  // nil for one to create
	wanted    *Wanted   // nil for one that is not declared
	inputs    Inputs    // as they will be
	overrides Overrides // as they will be
	toggles   Toggles   // as they will be
}

// Plan decides, only from what exists and what is declared, what becomes of
// each install of an app, by name. It does no I/O. It reports all mistakes at
// once, each with its place in the list of wanted installs. present also has
// those of other apps whose names are wanted.
func Plan(app *appconfig.App, present []Present, wanted []Wanted) ([]Decision, error) {
	p := planner{app: app, present: map[string]*Present{}}
	declared := map[string]bool{}
	for i := range present {
		p.present[present[i].Name] = &present[i]
	}
	var all []Decision
	for i := range wanted {
		if declared[wanted[i].Name] {
			p.fail(i, "name", "duplicate", "install %q is declared twice", wanted[i].Name)
			continue
		}
		declared[wanted[i].Name] = true
		all = append(all, p.decide(i, &wanted[i]))
	}
	for i := range present {
		if in := &present[i]; in.App == "" && !declared[in.Name] {
			all = append(all, Decision{Name: in.Name, Action: ActionNotDeclared, present: in})
		}
	}
	if len(p.faults) > 0 {
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "the declared installs are not valid, so no install was changed"),
			fault.Code("installs_invalid"), fault.Fields(p.faults...))
	}
	slices.SortFunc(all, func(a, b Decision) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

type planner struct {
	app     *appconfig.App
	present map[string]*Present
	faults  []fault.FieldError
}

func (p *planner) fail(i int, field, code, format string, args ...any) {
	p.faults = append(p.faults, fault.FieldError{Pointer: fmt.Sprintf("/installs/%d/%s", i, field), Code: code, Detail: fmt.Sprintf(format, args...)})
}

func (p *planner) decide(i int, want *Wanted) Decision {
	d := Decision{Name: want.Name, Action: ActionCreate, wanted: want, present: p.present[want.Name]}
	now := Present{Name: want.Name}
	if d.present != nil {
		now, d.Action = *d.present, ActionUnchanged
	}
	if now.App != "" {
		p.fail(i, "name", "name_taken", "install %q belongs to app %s", want.Name, now.App)
		return d
	}
	if d.present == nil {
		d.change("customer", nil, new(customerOf(*want)))
		d.change("stack", nil, &want.Stack)
	} else if want.Customer != "" && want.Customer != now.CustomerID && want.Customer != now.CustomerName {
		p.fail(i, "customer", "customer_differs", "install %q belongs to customer %s and cannot move to %s", want.Name, now.CustomerName, want.Customer)
	}
	if want.ApprovalOption != now.ApprovalOption {
		d.change("approval_option", orNil(now.ApprovalOption), &want.ApprovalOption)
	}
	if want.Labels != nil {
		d.fields("labels", now.Labels, want.Labels)
	}
	next, err := Apply(p.app.Inputs, now.Inputs, Change{Set: want.Inputs})
	p.inputFaults(i, err)
	d.inputChanges(now.Inputs, next)
	for name := range together(next) {
		if _, named := want.Inputs[name]; !named {
			d.Kept = append(d.Kept, name)
		}
	}
	slices.Sort(d.Kept)
	d.inputs = next
	p.components(i, &d, now)
	if d.present != nil && len(d.Changes) > 0 {
		d.Action = ActionUpdate
	}
	d.Next, d.Components = d.next(p.app, now)
	return d
}

// components decides what the install says of single components.
func (p *planner) components(i int, d *Decision, now Present) {
	d.toggles, d.overrides = now.Toggles, now.Overrides
	if d.wanted.Toggles != nil {
		next, faults := applyToggles(p.app, now.Toggles, d.wanted.Toggles)
		p.within(i, faults)
		d.toggles = next
		d.fields("component_toggles", onOff(now.Toggles), onOff(next))
	}
	if d.wanted.Overrides != nil {
		next, faults := applyOverrides(p.app, d.wanted.Overrides)
		p.within(i, faults)
		d.overrides = next
		d.fields("components", now.Overrides.texts(), next.texts())
	}
}

// inputFaults gives the faults of one install's inputs their place in the list.
func (p *planner) inputFaults(i int, err error) {
	if err == nil {
		return
	}
	p.within(i, fault.From(err).Errors)
}

// within gives faults of one install their place in the list.
func (p *planner) within(i int, faults []fault.FieldError) {
	for _, f := range faults {
		f.Pointer = fmt.Sprintf("/installs/%d%s", i, f.Pointer)
		p.faults = append(p.faults, f)
	}
}

func (d *Decision) change(field string, was, becomes *string) {
	d.Changes = append(d.Changes, FieldChange{Field: field, Old: was, New: becomes})
}

// fields tells what of a table becomes something else.
func (d *Decision) fields(table string, now, want map[string]string) {
	for _, name := range sortedNames(now, want) {
		was, becomes := lookup(now, name), lookup(want, name)
		if !same(was, becomes) {
			d.change(table+"."+name, was, becomes)
		}
	}
}

// onOff shows toggles as texts.
func onOff(toggles Toggles) map[string]string {
	texts := make(map[string]string, len(toggles))
	for name, on := range toggles {
		texts[name] = "off"
		if on {
			texts[name] = "on"
		}
	}
	return texts
}

// texts shows overrides by component and key.
func (o Overrides) texts() map[string]string {
	texts := map[string]string{}
	for name, override := range o {
		for key, text := range map[string]string{"helm_values": override.HelmValues, "tf_vars": override.TFVars} {
			if text != "" {
				texts[name+"."+key] = text
			}
		}
	}
	return texts
}

// inputChanges tells which inputs become others, and nothing of the values of
// those that are sensitive, or were.
func (d *Decision) inputChanges(now, next Inputs) {
	for _, name := range sortedNames(together(now), together(next)) {
		plainWas, plainBecomes := lookup(now.Plain, name), lookup(next.Plain, name)
		sealedWas, sealedBecomes := lookup(now.Sensitive, name), lookup(next.Sensitive, name)
		switch {
		case !same(sealedWas, sealedBecomes):
			d.Changes = append(d.Changes, FieldChange{Field: "inputs." + name, Sensitive: true})
		case !same(plainWas, plainBecomes):
			d.change("inputs."+name, plainWas, plainBecomes)
		}
	}
}

// setsInputs tells whether a new version of the inputs is made.
func (d *Decision) setsInputs() bool {
	return d.present != nil && d.wanted != nil && (!equal(d.inputs, d.present.Inputs) || !maps.Equal(d.overrides, d.present.Overrides))
}

// setsToggles tells whether a new version of the toggles is made.
func (d *Decision) setsToggles() bool {
	return d.present != nil && d.wanted != nil && !maps.Equal(d.toggles, d.present.Toggles)
}

// next is what the install wants afterwards, and the components for which that is
// enough. One that was taken down is left to those who took it down.
func (d *Decision) next(app *appconfig.App, now Present) (Next, []string) {
	toggles := now.TogglesVersion
	if d.setsToggles() {
		toggles++
	}
	switch {
	case now.State == model.InstallDeprovisioning || now.State == model.InstallDeprovisioned:
		return NextNothing, nil
	case now.Taken.Version == 0:
		return NextProvision, nil
	case toggles > now.Taken.TogglesVersion || !equal(d.inputs, now.Taken.Inputs):
		return NextDeploy, nil
	}
	var some []string
	for i := range app.Components {
		c := &app.Components[i]
		taken := now.Taken
		if alone, ok := now.TakenAlone[c.Name]; ok {
			taken = alone
		}
		if c.EnabledIn(d.toggles) && (!equal(d.inputs, taken.Inputs) || d.overrides[c.Name] != taken.Overrides[c.Name]) {
			some = append(some, c.Name)
		}
	}
	if len(some) == 0 {
		return NextNothing, nil
	}
	slices.Sort(some)
	return NextDeploy, some
}

// customerOf is whom a new install is made for.
func customerOf(w Wanted) string {
	if w.Customer != "" {
		return w.Customer
	}
	return w.Name
}

// together is both sorts of inputs.
func together(in Inputs) Values {
	both := Values{}
	maps.Copy(both, in.Plain)
	maps.Copy(both, in.Sensitive)
	return both
}

func sortedNames[M ~map[string]string](a, b M) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

func lookup[M ~map[string]string](m M, name string) *string {
	if value, ok := m[name]; ok {
		return &value
	}
	return nil
}

func same(a, b *string) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}
