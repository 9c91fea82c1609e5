package installs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/rehearsal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/stacks"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/release"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// CreateRequest asks for an install.
type CreateRequest struct {
	Name           string
	App            string // id or name
	Customer       string // id or name
	CreateCustomer bool
	Stack          string
	Inputs         Values
	Labels         map[string]string
	ApprovalOption string
	Release        string // id or number; empty for the newest
	Provision      bool   // there must be a release
	Actor          string
	// Rehearsal makes it one, for good; nil for a real install.
	Rehearsal *rehearsal.Rehearsal
}

// newInstall is a request that was checked, with what it comes to.
type newInstall struct {
	CreateRequest
	app       ctldb.App
	configID  string
	inputs    Inputs
	toggles   Toggles
	overrides Overrides
}

// Created is an install with the release that it would be provisioned with.
type Created struct {
	Install ctldb.Install
	Release string // id; empty when the app has none yet
}

// Service makes and changes installs.
type Service struct {
	Keys   sealer
	Stacks *stacks.Service
}

// Create makes an install with its resources, its stack, and the runner that
// the stack lets in.
func (s *Service) Create(ctx context.Context, tx *database.Tx, req CreateRequest) (Created, error) {
	if err := s.Stacks.Check(req.Stack); err != nil {
		return Created{}, err
	}
	app, err := tx.FindApp(ctx, req.App)
	if err != nil {
		return Created{}, named(err, "there is no app %q", req.App)
	}
	config, release, err := configFor(ctx, tx, app, req)
	if err != nil {
		return Created{}, err
	}
	if r := req.Rehearsal; r != nil {
		if err := checkRehearsal(&config.app, r); err != nil {
			return Created{}, err
		}
	}
	inputs, err := Apply(config.app.Inputs, Inputs{}, Change{Set: req.Inputs})
	if err != nil {
		return Created{}, err
	}
	install, err := s.insert(ctx, tx, newInstall{CreateRequest: req, app: app, configID: config.id, inputs: inputs})
	return Created{Install: install, Release: release}, err
}

// insert makes the rows of an install.
func (s *Service) insert(ctx context.Context, tx *database.Tx, req newInstall) (ctldb.Install, error) {
	customer, err := customerFor(ctx, tx, req.Customer, req.CreateCustomer)
	if err != nil {
		return ctldb.Install{}, err
	}
	labels, err := json.Marshal(orEmptyMap(req.Labels))
	if err != nil {
		return ctldb.Install{}, err
	}
	var rehearsed json.RawMessage
	if req.Rehearsal != nil {
		if rehearsed, err = json.Marshal(req.Rehearsal); err != nil {
			return ctldb.Install{}, err
		}
	}
	install, err := tx.InsertInstall(ctx, ctldb.InsertInstallParams{
		ID: id.New(id.Install), CustomerID: customer.ID, AppID: req.app.ID, Name: req.Name, StackKind: req.Stack,
		ApprovalOption: req.ApprovalOption, Labels: labels, InputsVersion: 1, CreatedBy: req.Actor, Rehearsal: rehearsed,
	})
	if err != nil {
		return ctldb.Install{}, err
	}
	if _, err := s.storeInputs(ctx, tx, newInputs{
		installID: install.ID, version: 1, inputs: req.inputs, overrides: req.overrides, actor: req.Actor,
	}); err != nil {
		return ctldb.Install{}, err
	}
	if len(req.toggles) > 0 {
		if err := storeToggles(ctx, tx, install.ID, req.toggles); err != nil {
			return ctldb.Install{}, err
		}
	}
	if err := EnsureResources(ctx, tx, install, req.configID); err != nil {
		return ctldb.Install{}, err
	}
	if err := s.Stacks.Create(ctx, tx, install, req.Actor); err != nil {
		return ctldb.Install{}, fmt.Errorf("create stack: %w", err)
	}
	return install, nil
}

// EnsureResources makes the rows of the stack, the sandbox and each component
// of a config that the install does not have yet.
func EnsureResources(ctx context.Context, tx *database.Tx, install ctldb.Install, configID string) error {
	if err := tx.EnsureResource(ctx, ctldb.EnsureResourceParams{ID: id.New(id.Resource), InstallID: install.ID, Kind: model.KindStack, Name: "stack", Type: install.StackKind}); err != nil {
		return fmt.Errorf("make resource: %w", err)
	}
	items, err := release.ConfigItems(ctx, tx.Tx, configID)
	if err != nil {
		return err
	}
	for _, it := range items {
		if it.Kind == model.KindScripts {
			continue
		}
		err := tx.EnsureResource(ctx, ctldb.EnsureResourceParams{
			ID: id.New(id.Resource), InstallID: install.ID, Kind: it.Kind, ComponentID: &it.ComponentID, Name: it.Name, Type: it.Type,
		})
		if err != nil {
			return fmt.Errorf("make resource: %w", err)
		}
	}
	return nil
}

// config is a config with its parsed app.
type config struct {
	id  string
	app appconfig.App
}

// configFor finds the release that a new install of the app would have, and its
// config.
func configFor(ctx context.Context, tx *database.Tx, app ctldb.App, req CreateRequest) (config, string, error) {
	if req.Release == "" && !req.Provision {
		return newestConfig(ctx, tx, app)
	}
	release, err := FindRelease(ctx, tx, app, req.Release)
	if err != nil {
		return config{}, "", err
	}
	return configOfRelease(ctx, tx, release)
}

// newestConfig is the config of the newest release, with the release's id: that
// of the newest sync, and no id, while there is no release yet.
func newestConfig(ctx context.Context, tx *database.Tx, app ctldb.App) (config, string, error) {
	release, err := FindRelease(ctx, tx, app, "")
	if err == nil {
		return configOfRelease(ctx, tx, release)
	}
	if !errors.Is(err, fault.ErrNotFound) {
		return config{}, "", err
	}
	row, err := tx.NewestConfig(ctx, app.ID)
	if errors.Is(err, fault.ErrNotFound) {
		return config{}, "", fault.With(fault.Newf(fault.ErrConflict, "app %s has no config yet", app.Name), fault.Code("no_config"), fault.Remedy("run `berth sync` in its folder"))
	}
	if err != nil {
		return config{}, "", err
	}
	c, err := parseConfig(row)
	return c, "", err
}

func configOfRelease(ctx context.Context, tx *database.Tx, release ctldb.Release) (config, string, error) {
	row, err := tx.FindConfig(ctx, ctldb.FindConfigParams{ID: release.ConfigID})
	if err != nil {
		return config{}, "", err
	}
	c, err := parseConfig(row.Config)
	return c, release.ID, err
}

// FindRelease finds a release of an app by id or number, the newest with an
// empty ref.
func FindRelease(ctx context.Context, tx *database.Tx, app ctldb.App, ref string) (ctldb.Release, error) {
	params := ctldb.FindReleaseOfAppParams{AppID: app.ID}
	if n, err := strconv.ParseInt(ref, 10, 32); err == nil && n > 0 {
		params.Number = int32(n)
	} else {
		params.ID = ref
	}
	release, err := tx.FindReleaseOfApp(ctx, params)
	switch {
	case errors.Is(err, fault.ErrNotFound) && ref == "":
		return release, fault.With(fault.Newf(fault.ErrNotFound, "app %s has no release yet", app.Name), fault.Code("no_release"),
			fault.Remedy("sync the app and wait for its builds to succeed"))
	case errors.Is(err, fault.ErrNotFound):
		return release, fault.Newf(fault.ErrNotFound, "app %s has no release %q", app.Name, ref)
	}
	return release, err
}

func parseConfig(row ctldb.Config) (config, error) {
	c := config{id: row.ID}
	if err := json.Unmarshal(row.Body, &c.app); err != nil {
		return c, fmt.Errorf("decode config %s: %w", row.ID, err)
	}
	return c, nil
}

func customerFor(ctx context.Context, tx *database.Tx, ref string, create bool) (ctldb.Customer, error) {
	customer, err := tx.FindCustomer(ctx, ref)
	switch {
	case errors.Is(err, fault.ErrNotFound) && create:
		return tx.InsertCustomer(ctx, ctldb.InsertCustomerParams{ID: id.New(id.Customer), Name: ref, Labels: json.RawMessage(`{}`)})
	case errors.Is(err, fault.ErrNotFound):
		return customer, fault.With(fault.Newf(fault.ErrNotFound, "there is no customer %q", ref), fault.Code("customer_not_found"),
			fault.Remedy("add the customer first, or set create_customer"))
	}
	return customer, err
}

// named gives a missing thing a name.
func named(err error, format string, args ...any) error {
	if errors.Is(err, fault.ErrNotFound) {
		return fault.Newf(fault.ErrNotFound, format, args...)
	}
	return err
}

func orEmptyMap(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}
