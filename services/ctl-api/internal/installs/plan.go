package installs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/internal/fault"
)

// Wanted is an install as a file of an app folder declares it.
type Wanted struct {
	Name           string
	Customer       string // id or name; empty for the one that it has, or one of the install's name
	Stack          string // of a new one
	ApprovalOption string
	Labels         map[string]string // nil leaves them as they are
	Inputs         Values            // those not named stay as they are
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
	State          string
	Inputs         Inputs
	InputsVersion  int32
	TakenVersion   int32 // the newest version of inputs that a workflow took to deploy it
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
	NextDeploy    Next = "deploy"    // no workflow has taken its inputs yet
)

// FieldChange is one field of an install that becomes another. Old is nil for
// what was not there, New for what goes, and both are for sensitive inputs.
type FieldChange struct {
	Field     string // approval_option, customer, stack, labels.NAME, inputs.NAME
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

	present *Present // nil for one to create
	wanted  *Wanted  // nil for one that is not declared
	inputs  Inputs   // as they will be
}

// Plan decides, from what there is and what is declared alone, what becomes of
// each install of an app, by name. It does no I/O. Everything that is wrong is
// told at once, each fault with its place in the list of the wanted. present
// also has those of other apps whose names are wanted.
func Plan(defined []appconfig.Input, present []Present, wanted []Wanted) ([]Decision, error) {
	p := planner{defined: defined, present: map[string]*Present{}}
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
		return nil, fault.With(fault.Newf(fault.ErrInvalid, "the installs cannot become what is declared, so none was changed"),
			fault.Code("installs_invalid"), fault.Fields(p.faults...))
	}
	slices.SortFunc(all, func(a, b Decision) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

type planner struct {
	defined []appconfig.Input
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
		p.fail(i, "name", "name_taken", "install %q is one of app %s", want.Name, now.App)
		return d
	}
	if d.present == nil {
		d.change("customer", nil, new(customerOf(*want)))
		d.change("stack", nil, &want.Stack)
	} else if want.Customer != "" && want.Customer != now.CustomerID && want.Customer != now.CustomerName {
		p.fail(i, "customer", "customer_differs", "install %q is one of customer %s, and cannot become one of %s", want.Name, now.CustomerName, want.Customer)
	}
	if want.ApprovalOption != now.ApprovalOption {
		d.change("approval_option", orNil(now.ApprovalOption), &want.ApprovalOption)
	}
	if want.Labels != nil {
		d.labels(now.Labels, want.Labels)
	}
	next, err := Apply(p.defined, now.Inputs, Change{Set: want.Inputs})
	p.inputFaults(i, err)
	d.inputChanges(now.Inputs, next)
	for name := range together(next) {
		if _, named := want.Inputs[name]; !named {
			d.Kept = append(d.Kept, name)
		}
	}
	slices.Sort(d.Kept)
	d.inputs = next
	if d.present != nil && len(d.Changes) > 0 {
		d.Action = ActionUpdate
	}
	d.Next = d.next(now)
	return d
}

// inputFaults gives the faults of one install's inputs their place in the list.
func (p *planner) inputFaults(i int, err error) {
	if err == nil {
		return
	}
	for _, f := range fault.From(err).Errors {
		f.Pointer = fmt.Sprintf("/installs/%d%s", i, f.Pointer)
		p.faults = append(p.faults, f)
	}
}

func (d *Decision) change(field string, was, becomes *string) {
	d.Changes = append(d.Changes, FieldChange{Field: field, Old: was, New: becomes})
}

func (d *Decision) labels(now, want map[string]string) {
	for _, name := range sortedNames(now, want) {
		was, becomes := lookup(now, name), lookup(want, name)
		if !same(was, becomes) {
			d.change("labels."+name, was, becomes)
		}
	}
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
	return d.present != nil && d.wanted != nil && !equal(d.inputs, d.present.Inputs)
}

// next is what the install wants afterwards. One that was taken down is left to
// those who took it down.
func (d *Decision) next(now Present) Next {
	version := now.InputsVersion
	if d.setsInputs() {
		version++
	}
	switch {
	case now.State == stateDeprovisioning || now.State == stateDeprovisioned:
		return NextNothing
	case now.TakenVersion == 0:
		return NextProvision
	case version > now.TakenVersion:
		return NextDeploy
	}
	return NextNothing
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
