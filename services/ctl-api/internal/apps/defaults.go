package apps

import (
	"context"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/template"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/internal/model"
)

// InputsSet tells which inputs installs set themselves, sensitive ones too:
// names by install id.
type InputsSet interface {
	InputsSet(ctx context.Context, tx *database.Tx, installIDs []string) (map[string][]string, error)
}

// DefaultChange is an input that an install does not set and whose default is
// another one. nil is no default. A sensitive one has no values here.
type DefaultChange struct {
	Name          string
	Before, After *string
	Sensitive     bool
}

// defaultChanges lists the inputs whose value moves in an install because of their
// default. What only one side declares is no change of a default. It does no I/O.
func defaultChanges(before, after []appconfig.Input, set []string) []DefaultChange {
	var changes []DefaultChange
	for _, now := range after {
		i := slices.IndexFunc(before, func(was appconfig.Input) bool { return was.Name == now.Name })
		if i < 0 || slices.Contains(set, now.Name) || sameText(before[i].Default, now.Default) {
			continue
		}
		c := DefaultChange{Name: now.Name, Before: before[i].Default, After: now.Default, Sensitive: now.Sensitive || before[i].Sensitive}
		if c.Sensitive {
			c.Before, c.After = nil, nil
		}
		changes = append(changes, c)
	}
	return changes
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// readers adds to the effects on an install the components that would have stayed
// as they are, but read an input that moves.
func readers(effects []Effect, d Decision, app *appconfig.App, moved []DefaultChange) []Effect {
	for _, it := range d.Items {
		known := slices.ContainsFunc(effects, func(e Effect) bool { return e.Kind == it.Kind && e.Name == it.Name })
		if known || len(moved) == 0 {
			continue
		}
		reads := inputsRead(app, it)
		i := slices.IndexFunc(moved, func(c DefaultChange) bool { return slices.Contains(reads, c.Name) })
		if i < 0 {
			continue
		}
		e := Effect{Kind: it.Kind, Name: it.Name, Effect: EffectMayChange, Reason: "reads the input " + moved[i].Name + ", whose default changes"}
		if it.Kind == model.KindSandbox {
			e.Reason += onlyProvision
		}
		effects = append(effects, e)
	}
	return effects
}

// inputsRead names the inputs that an item's templates read.
func inputsRead(app *appconfig.App, it ItemDecision) []string {
	var values []template.Value
	if it.Kind == model.KindSandbox && app.Sandbox != nil {
		values = template.In(app.Sandbox.At, app.Sandbox)
	} else if c := app.Component(it.Name); c != nil {
		values = template.In(c.At, c)
	}
	var names []string
	for _, v := range values {
		refs, err := v.References()
		if err != nil {
			continue // check.Validate reports it
		}
		for _, ref := range refs {
			switch {
			case ref.Kind == interpolate.KindTree, ref.Kind == interpolate.KindInput && ref.Dynamic:
				for _, in := range app.Inputs {
					names = append(names, in.Name)
				}
			case ref.Kind == interpolate.KindInput:
				names = append(names, ref.Name)
			}
		}
	}
	return names
}

// defaultsBefore reads the inputs as the releases of installs declare them, each
// release once.
type defaultsBefore map[string][]appconfig.Input

func (b defaultsBefore) of(ctx context.Context, tx *database.Tx, releaseID string) ([]appconfig.Input, error) {
	if inputs, known := b[releaseID]; known || releaseID == "" {
		return inputs, nil
	}
	app, err := releaseview.App(ctx, tx.Queries, releaseID)
	if err != nil {
		return nil, fmt.Errorf("read the inputs of a release: %w", err)
	}
	b[releaseID] = app.Inputs
	return app.Inputs, nil
}
