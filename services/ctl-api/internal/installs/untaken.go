package installs

import (
	"context"
	"fmt"
	"maps"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Untaken is what was set for an install and no workflow has taken yet.
type Untaken struct{ Inputs, Toggles bool }

// Untaken reads it for installs, by id. One that was never provisioned has
// nothing: its provision takes everything.
func (s *Service) Untaken(ctx context.Context, tx *database.Tx, list []ctldb.Install) (map[string]Untaken, error) {
	all := make([]Present, 0, len(list))
	for _, in := range list {
		all = append(all, Present{ID: in.ID, InputsVersion: in.InputsVersion, TogglesVersion: in.TogglesVersion})
	}
	if err := s.taken(ctx, tx, all); err != nil {
		return nil, err
	}
	out := map[string]Untaken{}
	for _, p := range all {
		if p.InputsVersion > p.Taken.Version && p.Taken.Version > 0 {
			row, err := tx.GetInputs(ctx, ctldb.GetInputsParams{InstallID: p.ID, Version: p.InputsVersion})
			if err != nil {
				return nil, fmt.Errorf("read inputs of install %s: %w", p.ID, err)
			}
			if p.Inputs, err = decode(s.Keys, keys.InputsAtRest(tx.OrgID(), p.ID, row.Version), row.Values, row.Sealed); err != nil {
				return nil, fmt.Errorf("install %s: %w", p.ID, err)
			}
			if p.Overrides, err = decodeOverrides(row.Overrides); err != nil {
				return nil, fmt.Errorf("install %s: %w", p.ID, err)
			}
		}
		out[p.ID] = untaken(p)
	}
	return out, nil
}

// untaken compares what is set with what workflows have taken, to deploy every
// component or single ones.
func untaken(p Present) Untaken {
	if p.Taken.Version == 0 {
		return Untaken{}
	}
	u := Untaken{Toggles: p.TogglesVersion > p.Taken.TogglesVersion}
	if p.InputsVersion <= p.Taken.Version {
		return u
	}
	if u.Inputs = !equal(p.Inputs, p.Taken.Inputs); u.Inputs {
		return u
	}
	components := maps.Clone(p.Taken.Overrides)
	if components == nil {
		components = Overrides{}
	}
	maps.Copy(components, p.Overrides)
	for component := range components {
		taken := p.Taken
		if alone, ok := p.TakenAlone[component]; ok {
			taken = alone
		}
		u.Inputs = u.Inputs || p.Overrides[component] != taken.Overrides[component]
	}
	return u
}
