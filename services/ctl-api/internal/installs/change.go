package installs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/destruction"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// InputsView is what people see of the inputs of an install: every input that
// the app defines, and the version that is in force.
type InputsView struct {
	Defined []appconfig.Input
	Values  Inputs
	// Overrides are what the version has of single components.
	Overrides Overrides
	Row       ctldb.InstallInput // zero when version 0
}

// ReadInputs reads the inputs in force.
func (s *Service) ReadInputs(ctx context.Context, tx *database.Tx, install ctldb.Install) (InputsView, error) {
	config, err := s.configOf(ctx, tx, install)
	if err != nil {
		return InputsView{}, err
	}
	view := InputsView{Defined: config.app.Inputs}
	if install.InputsVersion == 0 {
		return view, nil
	}
	if view.Row, err = tx.GetInputs(ctx, ctldb.GetInputsParams{InstallID: install.ID, Version: install.InputsVersion}); err != nil {
		return view, err
	}
	if view.Overrides, err = decodeOverrides(view.Row.Overrides); err != nil {
		return view, err
	}
	view.Values, err = decode(s.Keys, keys.InputsAtRest(tx.OrgID(), install.ID, view.Row.Version), view.Row.Values, view.Row.Sealed)
	return view, err
}

// InputsSet names the inputs that installs set, sensitive ones too, by install.
func (s *Service) InputsSet(ctx context.Context, tx *database.Tx, installIDs []string) (map[string][]string, error) {
	rows, err := tx.InputsInForce(ctx, installIDs)
	if err != nil {
		return nil, fmt.Errorf("read inputs: %w", err)
	}
	set := map[string][]string{}
	for _, row := range rows {
		values, err := decode(s.Keys, keys.InputsAtRest(tx.OrgID(), row.InstallID, row.Version), row.Values, row.Sealed)
		if err != nil {
			return nil, fmt.Errorf("install %s: %w", row.InstallID, err)
		}
		set[row.InstallID] = slices.AppendSeq(slices.Collect(maps.Keys(values.Plain)), maps.Keys(values.Sensitive))
	}
	return set, nil
}

// SetInputs makes a new version of the inputs. A change that changes nothing
// makes none.
func (s *Service) SetInputs(ctx context.Context, tx *database.Tx, installID string, change Change) (view InputsView, changed bool, err error) {
	install, err := tx.LockInstallRow(ctx, installID)
	if err != nil {
		return view, false, err
	}
	if view, err = s.ReadInputs(ctx, tx, install); err != nil {
		return view, false, err
	}
	next, err := Apply(view.Defined, view.Values, change)
	if err != nil || equal(next, view.Values) {
		return view, false, err
	}
	view.Values = next
	version, err := tx.NextInputs(ctx, install.ID)
	if err != nil {
		return view, false, err
	}
	view.Row, err = s.storeInputs(ctx, tx, newInputs{
		installID: install.ID, version: version, inputs: next, overrides: view.Overrides, actor: change.Actor,
	})
	if err != nil {
		return view, false, err
	}
	return view, true, tx.SetInputsVersion(ctx, ctldb.SetInputsVersionParams{InstallID: install.ID, Version: view.Row.Version})
}

// PreviewInputs stores what a change would make of the inputs, for a preview, and
// returns its version: below 0, so never in force, or the one in force when
// nothing changes. The errors are those of SetInputs.
func (s *Service) PreviewInputs(ctx context.Context, tx *database.Tx, installID string, change Change) (version int32, err error) {
	install, err := tx.LockInstallRow(ctx, installID)
	if err != nil {
		return 0, err
	}
	view, err := s.ReadInputs(ctx, tx, install)
	if err != nil {
		return 0, err
	}
	next, err := Apply(view.Defined, view.Values, change)
	if err != nil || equal(next, view.Values) {
		return install.InputsVersion, err
	}
	if version, err = tx.NextPreviewInputs(ctx, install.ID); err != nil {
		return 0, err
	}
	_, err = s.storeInputs(ctx, tx, newInputs{installID: install.ID, version: version, inputs: next, overrides: view.Overrides, actor: change.Actor})
	return version, err
}

// newInputs are a version of an install's inputs, before it is stored.
type newInputs struct {
	installID string
	version   int32
	inputs    Inputs
	overrides Overrides
	actor     string
}

func (s *Service) storeInputs(ctx context.Context, tx *database.Tx, in newInputs) (ctldb.InstallInput, error) {
	plain, sealed, err := in.inputs.encode(s.Keys, keys.InputsAtRest(tx.OrgID(), in.installID, in.version))
	if err != nil {
		return ctldb.InstallInput{}, err
	}
	raw, err := in.overrides.encode()
	if err != nil {
		return ctldb.InstallInput{}, err
	}
	changed, err := s.changedBy(ctx, tx, in)
	if err != nil {
		return ctldb.InstallInput{}, err
	}
	return tx.AddInputs(ctx, ctldb.AddInputsParams{
		InstallID: in.installID, Version: in.version, Plain: plain, Sealed: sealed, Overrides: raw, Changed: changed, CreatedBy: in.actor,
	})
}

// changedBy names the inputs that differ from the version before, which need not be
// the one in force; nil for a preview's.
func (s *Service) changedBy(ctx context.Context, tx *database.Tx, in newInputs) ([]string, error) {
	if in.version < 1 {
		return nil, nil
	}
	before, _, err := s.inputsOrNone(ctx, tx, in.installID, in.version-1)
	return append([]string{}, differing(before.all(), in.inputs.all())...), err
}

// configOf is the config of the app's newest release: what the next workflow
// takes its inputs for.
func (s *Service) configOf(ctx context.Context, tx *database.Tx, install ctldb.Install) (config, error) {
	c, _, err := newestConfig(ctx, tx, ctldb.App{ID: install.AppID})
	return c, err
}

// Forget takes an install out of sight and its runner out of service. Nothing
// may be left of it on the customer's side, and confirm is its name.
func (s *Service) Forget(ctx context.Context, tx *database.Tx, installID, confirm string) error {
	install, err := tx.LockInstallRow(ctx, installID)
	if err != nil {
		return err
	}
	if install.State == model.InstallForgotten {
		return nil
	}
	if !slices.Contains([]model.InstallState{model.InstallNew, model.InstallDeprovisioned}, install.State) {
		return fault.With(fault.Newf(fault.ErrConflict, "install %s is %s", install.Name, install.State), fault.Code("not_deprovisioned"),
			fault.Remedy("remove what it made first: `berth installs deprovision %s`", install.Name))
	}
	open, err := tx.CountOpenWorkflows(ctx, install.ID)
	if err != nil {
		return err
	}
	if open > 0 {
		return fault.With(fault.Newf(fault.ErrConflict, "install %s has an unfinished workflow", install.Name), fault.Code("workflow_open"),
			fault.Remedy("wait for it or cancel it"))
	}
	deed := destruction.Deed{What: "forgetting install " + install.Name, Name: install.Name, Goes: []string{"its inputs, state and history", "its runner"}}
	if err := deed.Confirmed(confirm); err != nil {
		return err
	}
	if err := tx.ForgetInstall(ctx, install.ID); err != nil {
		return err
	}
	return s.Stacks.Remove(ctx, tx, install)
}

// Find finds an install by id or name. One that is forgotten is found by id.
func Find(ctx context.Context, tx *database.Tx, ref string) (ctldb.Install, error) {
	install, err := tx.FindInstall(ctx, ref)
	if errors.Is(err, fault.ErrNotFound) {
		return install, fault.Newf(fault.ErrNotFound, "there is no install %q", ref)
	}
	return install, err
}

func equal(a, b Inputs) bool {
	same := func(x, y Values) bool {
		if len(x) != len(y) {
			return false
		}
		for name, value := range x {
			if other, ok := y[name]; !ok || other != value {
				return false
			}
		}
		return true
	}
	return same(a.Plain, b.Plain) && same(a.Sensitive, b.Sensitive)
}
