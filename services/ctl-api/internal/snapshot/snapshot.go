// Package snapshot says what an install was at a time, from rows that keep their
// history, and what differs between two times. Sealed values stay closed.
package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/treediff"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Snapshot is an install at a time.
type Snapshot struct {
	At           time.Time
	Install      ctldb.InstallAtRow
	Inputs       Inputs
	Resources    []ctldb.ResourcesAtRow
	Runner       *ctldb.RunnerAtRow // nil when there was none
	Approvals    []ctldb.ProposalsOpenAtRow
	StateVersion int32
}

// Inputs are what the install had set; sensitive ones are seal.Redacted.
type Inputs struct {
	Version int32
	SetBy   string
	SetAt   time.Time
	Values  map[string]string
}

// Reader reads snapshots.
type Reader struct {
	// Sealed names the sealed inputs of a row.
	Sealed func(row ctldb.InstallInput) ([]string, error)
}

// At reads an install as it was. ErrConflict, code history_begins, for a time before
// its history.
func (r Reader) At(ctx context.Context, tx *database.Tx, install ctldb.Install, at time.Time) (Snapshot, error) {
	s := Snapshot{At: at}
	var err error
	if s.Install, err = tx.InstallAt(ctx, ctldb.InstallAtParams{InstallID: install.ID, At: at}); err != nil {
		return s, r.tooEarly(ctx, tx, install, err)
	}
	if s.Inputs, err = r.inputs(ctx, tx, install.ID, s.Install.InputsVersion); err != nil {
		return s, err
	}
	if s.Resources, err = tx.ResourcesAt(ctx, ctldb.ResourcesAtParams{InstallID: install.ID, At: at}); err != nil {
		return s, fmt.Errorf("read resources: %w", err)
	}
	runner, err := tx.RunnerAt(ctx, ctldb.RunnerAtParams{InstallID: install.ID, At: at})
	switch {
	case err == nil:
		s.Runner = &runner
	case !errors.Is(err, fault.ErrNotFound):
		return s, fmt.Errorf("read runner: %w", err)
	}
	if s.Approvals, err = tx.ProposalsOpenAt(ctx, ctldb.ProposalsOpenAtParams{InstallID: install.ID, At: at}); err != nil {
		return s, fmt.Errorf("read proposals: %w", err)
	}
	s.StateVersion, err = tx.StateVersionAt(ctx, ctldb.StateVersionAtParams{InstallID: install.ID, At: at})
	if errors.Is(err, fault.ErrNotFound) {
		return s, nil
	}
	return s, err
}

func (r Reader) tooEarly(ctx context.Context, tx *database.Tx, install ctldb.Install, err error) error {
	if !errors.Is(err, fault.ErrNotFound) {
		return err
	}
	begins, err := tx.HistoryBegins(ctx, install.ID)
	if err != nil {
		return err
	}
	at := begins.UTC().Format(time.RFC3339Nano)
	return fault.With(fault.Newf(fault.ErrConflict, "what install %s was is known from %s on", install.Name, at),
		fault.Code("history_begins"), fault.Remedy("ask for that time or a later one"))
}

func (r Reader) inputs(ctx context.Context, tx *database.Tx, installID string, version int32) (Inputs, error) {
	in := Inputs{Version: version, Values: map[string]string{}}
	if version == 0 {
		return in, nil
	}
	row, err := tx.GetInputs(ctx, ctldb.GetInputsParams{InstallID: installID, Version: version})
	if err != nil {
		return in, fmt.Errorf("read inputs: %w", err)
	}
	in.SetBy, in.SetAt = row.CreatedBy, row.CreatedAt
	if err := json.Unmarshal(row.Values, &in.Values); err != nil {
		return in, fmt.Errorf("read inputs: %w", err)
	}
	sealed, err := r.Sealed(row)
	if err != nil {
		return in, err
	}
	for _, name := range sealed {
		in.Values[name] = seal.Redacted
	}
	return in, nil
}

// Outputs are outputs as they may be shown, by name.
func Outputs(raw json.RawMessage) any { return seal.RedactLeaves(outputs(raw)) }

// outputs are outputs by name, without what is said about them; sealed ones stay so.
func outputs(raw json.RawMessage) map[string]any {
	values := map[string]any{}
	var reported map[string]json.RawMessage
	if json.Unmarshal(raw, &reported) != nil {
		return values
	}
	for name, value := range reported {
		var o struct {
			Value json.RawMessage `json:"value"`
		}
		if json.Unmarshal(value, &o) == nil && o.Value != nil {
			value = o.Value // a stack has no more than that
		}
		values[name] = value
	}
	return values
}

// Compare lists what differs between two snapshots of an install, by path.
func (r Reader) Compare(ctx context.Context, tx *database.Tx, from, to Snapshot) ([]treediff.Change, error) {
	resealed, err := resealed(ctx, tx, from, to)
	if err != nil {
		return nil, err
	}
	was, err := json.Marshal(from.tree())
	if err != nil {
		return nil, err
	}
	is, err := json.Marshal(to.tree())
	if err != nil {
		return nil, err
	}
	found, err := treediff.Compare(was, is)
	for _, name := range resealed {
		shown := json.RawMessage(`"` + seal.Redacted + `"`)
		found = append(found, treediff.Change{Path: "inputs.values." + name, Op: treediff.Replaced, Old: shown, New: shown})
	}
	treediff.Sort(found)
	return found, err
}

// resealed names the inputs that are sealed in both, and were set to something else
// in between; all of them where an older release did not note that.
func resealed(ctx context.Context, tx *database.Tx, from, to Snapshot) ([]string, error) {
	rows, err := tx.InputsChangedSince(ctx, ctldb.InputsChangedSinceParams{
		InstallID: to.Install.InstallID, After: min(from.Inputs.Version, to.Inputs.Version), UpTo: max(from.Inputs.Version, to.Inputs.Version),
	})
	if err != nil {
		return nil, fmt.Errorf("read changed inputs: %w", err)
	}
	all, changed := false, map[string]bool{}
	for _, row := range rows {
		all = all || row.Changed == nil
		for _, name := range row.Changed {
			changed[name] = true
		}
	}
	var names []string
	for name, value := range to.Inputs.Values {
		if value == seal.Redacted && from.Inputs.Values[name] == seal.Redacted && (all || changed[name]) {
			names = append(names, name)
		}
	}
	return names, nil
}

// tree is what of a snapshot is compared: ids of what differs at each time, as
// those of changes and workflows, say nothing.
func (s Snapshot) tree() map[string]any {
	resources := map[string]any{}
	for _, r := range s.Resources {
		name := r.Name
		if r.Kind != model.KindComponent {
			name = string(r.Kind)
		}
		if r.State == string(model.ResourceAbsent) {
			resources[name] = map[string]any{"state": r.State}
			continue
		}
		resources[name] = map[string]any{
			"type": r.Type, "state": r.State, "health": r.Health, "drift": r.Drift, "release": optional.Value(r.LiveReleaseNumber),
			"artifact_digest": optional.Value(r.LiveArtifactDigest), "inputs_version": optional.Value(r.LiveInputsVersion), "outputs": outputs(r.Outputs),
		}
	}
	approvals := map[string]any{}
	for _, a := range s.Approvals {
		approvals[a.ID] = string(a.Kind) + " " + a.Resource
	}
	tree := map[string]any{
		"name": s.Install.Name, "state": s.Install.State, "approval_option": s.Install.ApprovalOption, "approval_hours": s.Install.ApprovalHours,
		"labels": s.Install.Labels, "component_toggles": s.Install.Toggles,
		"release": optional.Value(s.Install.ReleaseNumber), "config": optional.Value(s.Install.ConfigNumber),
		"inputs":    map[string]any{"version": s.Inputs.Version, "values": s.Inputs.Values},
		"resources": resources, "approvals": approvals,
	}
	if s.Runner != nil {
		tree["runner"] = map[string]any{
			"id": s.Runner.ID, "version": s.Runner.Version, "state": s.Runner.State, "switch": s.Runner.Switch,
			"switch_reason": optional.Value(s.Runner.SwitchReason), "online": s.Runner.Online,
		}
	}
	return tree
}
