package installs

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Moved says what changed between each version of the inputs that a resource of the
// install stands on and another version, which is the one in force unless it is a
// preview's. What was left behind by an apply that failed stands on none (0): every
// input counts as changed for it. It names inputs, and has no value of them.
func (s *Service) Moved(ctx context.Context, tx *database.Tx, install ctldb.Install, version int32) (map[int32]flow.Moved, error) {
	now, overrides, err := s.inputsAt(ctx, tx, install.ID, version)
	if err != nil {
		return nil, err
	}
	resources, err := tx.ResourcesOfInstall(ctx, install.ID)
	if err != nil {
		return nil, fmt.Errorf("read resources: %w", err)
	}
	all := map[int32]flow.Moved{0: {All: true}}
	for _, r := range resources {
		if r.LiveInputsVersion == nil {
			continue
		}
		from := *r.LiveInputsVersion
		if _, known := all[from]; known {
			continue
		}
		was, wasOverrides, err := s.inputsAt(ctx, tx, install.ID, from)
		if err != nil {
			return nil, err
		}
		all[from] = flow.Moved{Inputs: differing(was.all(), now.all()), Overrides: differing(wasOverrides, overrides)}
	}
	return all, nil
}

// inputsAt reads a version of the inputs of an install.
func (s *Service) inputsAt(ctx context.Context, tx *database.Tx, installID string, version int32) (Inputs, Overrides, error) {
	row, err := tx.GetInputs(ctx, ctldb.GetInputsParams{InstallID: installID, Version: version})
	if err != nil {
		return Inputs{}, nil, fmt.Errorf("read inputs version %d: %w", version, err)
	}
	in, err := decode(s.Keys, keys.InputsAtRest(tx.OrgID(), installID, row.Version), row.Values, row.Sealed)
	if err != nil {
		return in, nil, err
	}
	overrides, err := decodeOverrides(row.Overrides)
	return in, overrides, err
}

// SealedNames names the sensitive inputs of a row, sorted.
func (s *Service) SealedNames(row ctldb.InstallInput) ([]string, error) {
	in, err := decode(s.Keys, keys.InputsAtRest(row.OrgID, row.InstallID, row.Version), row.Values, row.Sealed)
	return slices.Sorted(maps.Keys(in.Sensitive)), err
}

// all are the inputs by name, whether they are sensitive or not.
func (in Inputs) all() map[string]string {
	all := map[string]string{}
	maps.Copy(all, in.Plain)
	maps.Copy(all, in.Sensitive)
	return all
}

// differing names, sorted, what two maps do not have in common.
func differing[M ~map[string]V, V comparable](a, b M) []string {
	var names []string
	for name, value := range a {
		if other, there := b[name]; !there || other != value {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, there := a[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
