package installs

import (
	"context"
	"fmt"
	"maps"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Back asks for the inputs of a version of then.
type Back struct {
	Version int32 // the version whose values come back; 0 when none were set then
	// Defined are the inputs that the release of then has. What it does not have stays
	// as it is now: the release does not read it, and a later deploy forward needs it.
	Defined []appconfig.Input
	Actor   string
	// Look stores nothing, and says what would differ.
	Look bool
	// Preview stores them below 0, so that they never come into force.
	Preview bool
}

// WentBack is what bringing inputs back made.
type WentBack struct {
	Version   int32    // the stored version; the one in force when nothing differs
	Inputs    []string // the names of those that differ from the ones in force
	Overrides []string // the components whose overrides differ
}

// BringBack stores the inputs and overrides of then as a version of its own, which
// is not in force yet. The install's row has to be locked, unless it only
// looks.
func (s *Service) BringBack(ctx context.Context, tx *database.Tx, install ctldb.Install, b Back) (WentBack, error) {
	now, nowOverrides, err := s.inputsOrNone(ctx, tx, install.ID, install.InputsVersion)
	if err != nil {
		return WentBack{}, err
	}
	was, wasOverrides, err := s.inputsOrNone(ctx, tx, install.ID, b.Version)
	if err != nil {
		return WentBack{}, err
	}
	next := returned(b.Defined, now, was)
	back := WentBack{Version: install.InputsVersion, Inputs: differing(now.all(), next.all()), Overrides: differing(nowOverrides, wasOverrides)}
	if b.Look || len(back.Inputs) == 0 && len(back.Overrides) == 0 {
		return back, nil
	}
	number := tx.NextInputs
	if b.Preview {
		number = tx.NextPreviewInputs
	}
	if back.Version, err = number(ctx, install.ID); err != nil {
		return back, fmt.Errorf("number inputs: %w", err)
	}
	_, err = s.storeInputs(ctx, tx, newInputs{installID: install.ID, version: back.Version, inputs: next, overrides: wasOverrides, actor: b.Actor})
	return back, err
}

// inputsOrNone is inputsAt, and no inputs at all for version 0.
func (s *Service) inputsOrNone(ctx context.Context, tx *database.Tx, installID string, version int32) (Inputs, Overrides, error) {
	if version == 0 {
		return Inputs{}, Overrides{}, nil
	}
	return s.inputsAt(ctx, tx, installID, version)
}

// returned are the inputs as they were, and as they are now where the release of
// then has no such input. What is sensitive anywhere is stored so.
func returned(defined []appconfig.Input, now, was Inputs) Inputs {
	known, secret := map[string]bool{}, map[string]bool{}
	for _, in := range defined {
		known[in.Name] = true
		secret[in.Name] = in.Sensitive
	}
	for _, sealed := range []Values{now.Sensitive, was.Sensitive} {
		for name := range sealed {
			secret[name] = true
		}
	}
	values := was.all()
	maps.DeleteFunc(values, func(name, _ string) bool { return !known[name] })
	for name, value := range now.all() {
		if !known[name] {
			values[name] = value
		}
	}
	next := Inputs{Plain: Values{}, Sensitive: Values{}}
	for name, value := range values {
		if secret[name] {
			next.Sensitive[name] = value
		} else {
			next.Plain[name] = value
		}
	}
	return next
}
