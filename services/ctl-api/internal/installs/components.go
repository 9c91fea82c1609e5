package installs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Toggles say which components an install switches on or off.
type Toggles map[string]bool

// Overrides are an install's own values of single components, by name.
type Overrides map[string]appconfig.InstallComponent

// applyToggles checks toggles against an app. What is as it was, of a component
// that the app no longer lets be switched, is dropped. The faults point below
// component_toggles. It does no I/O.
func applyToggles(app *appconfig.App, now, want Toggles) (Toggles, []fault.FieldError) {
	var faults []fault.FieldError
	fail := func(name, code, format string, args ...any) {
		faults = append(faults, fault.FieldError{Pointer: "/component_toggles/" + name, Code: code, Detail: fmt.Sprintf(format, args...)})
	}
	next := Toggles{}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		was, said := now[name]
		c := app.Component(name)
		switch {
		case c != nil && c.Toggleable:
			next[name] = want[name]
		case said && was == want[name]:
		case c == nil:
			fail(name, "unknown_component", "the app has no component %q", name)
		default:
			fail(name, "not_toggleable", "component %q is not toggleable", name)
		}
	}
	for _, c := range check.ToggleConflicts(app, next) {
		fail(c.Component, "component_needed", "%s", c.Message)
	}
	return next, faults
}

// applyOverrides checks overrides against an app, and leaves out those that say
// nothing. The faults point below components. It does no I/O.
func applyOverrides(app *appconfig.App, want Overrides) (Overrides, []fault.FieldError) {
	var faults []fault.FieldError
	next := Overrides{}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		override, c := want[name], app.Component(name)
		if c == nil {
			faults = append(faults, fault.FieldError{
				Pointer: "/components/" + name, Code: "unknown_component", Detail: fmt.Sprintf("the app has no component %q", name),
			})
			continue
		}
		problems := check.OverrideProblems(override, c)
		for _, key := range slices.Sorted(maps.Keys(problems)) {
			faults = append(faults, fault.FieldError{Pointer: "/components/" + name + "/" + key, Code: "value", Detail: key + ": " + problems[key]})
		}
		if override != (appconfig.InstallComponent{}) {
			next[name] = override
		}
	}
	return next, faults
}

// SetToggles makes these the toggles of an install whose row is locked. The same
// ones again are no change.
func (s *Service) SetToggles(ctx context.Context, tx *database.Tx, install ctldb.Install, want Toggles) error {
	now, next, err := s.switched(ctx, tx, install, want)
	if err != nil || maps.Equal(now, next) {
		return err
	}
	return storeToggles(ctx, tx, install.ID, next)
}

// PreviewToggles says what the toggles of an install would be if these were
// switched and the others stayed. The errors are those of SetToggles.
func (s *Service) PreviewToggles(ctx context.Context, tx *database.Tx, install ctldb.Install, change Toggles) (Toggles, error) {
	want, err := decodeToggles(install.Toggles)
	if err != nil {
		return nil, err
	}
	maps.Copy(want, change)
	_, next, err := s.switched(ctx, tx, install, want)
	return next, err
}

// switched checks toggles against the app's newest release: ErrInvalid with code
// toggles_invalid.
func (s *Service) switched(ctx context.Context, tx *database.Tx, install ctldb.Install, want Toggles) (now, next Toggles, err error) {
	config, err := s.configOf(ctx, tx, install)
	if err != nil {
		return nil, nil, err
	}
	if now, err = decodeToggles(install.Toggles); err != nil {
		return nil, nil, err
	}
	next, faults := applyToggles(&config.app, now, want)
	if len(faults) > 0 {
		return nil, nil, fault.With(fault.Newf(fault.ErrInvalid, "cannot switch the components of install %s this way: %s", install.Name, faults[0].Detail),
			fault.Code("toggles_invalid"), fault.Fields(faults...))
	}
	return now, next, nil
}

func storeToggles(ctx context.Context, tx *database.Tx, installID string, toggles Toggles) error {
	raw, err := json.Marshal(toggles)
	if err != nil {
		return err
	}
	return tx.SetInstallToggles(ctx, ctldb.SetInstallTogglesParams{ID: installID, Toggles: raw})
}

func decodeToggles(raw json.RawMessage) (Toggles, error) {
	toggles := Toggles{}
	if err := json.Unmarshal(raw, &toggles); err != nil {
		return nil, fmt.Errorf("decode toggles: %w", err)
	}
	return toggles, nil
}

func (o Overrides) encode() (json.RawMessage, error) {
	if o == nil {
		o = Overrides{}
	}
	return json.Marshal(o)
}

func decodeOverrides(raw json.RawMessage) (Overrides, error) {
	overrides := Overrides{}
	if err := json.Unmarshal(raw, &overrides); err != nil {
		return nil, fmt.Errorf("decode overrides: %w", err)
	}
	return overrides, nil
}
