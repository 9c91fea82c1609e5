package installs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// SyncRequest asks for the installs of an app to become what is declared.
type SyncRequest struct {
	App     string // id or name
	Wanted  []Wanted
	DryRun  bool   // only plan
	Version string // of the plan that was agreed to; empty for any
	Actor   string
}

// Synced is what a sync did, or would do.
type Synced struct {
	App       ctldb.App
	Decisions []Decision
	Version   string // names what is done: another plan has another one
}

// Changed tells whether there is anything to do.
func (s Synced) Changed() bool {
	for _, d := range s.Decisions {
		if d.Action == ActionCreate || d.Action == ActionUpdate {
			return true
		}
	}
	return false
}

// Sync makes and changes installs as they are declared, all or none. Syncs of
// one app go one after the other.
func (s *Service) Sync(ctx context.Context, tx *database.Tx, req SyncRequest) (Synced, error) {
	app, err := tx.FindApp(ctx, req.App)
	if err != nil {
		return Synced{}, named(err, "there is no app %q", req.App)
	}
	if app, err = tx.LockApp(ctx, app.ID); err != nil {
		return Synced{}, err
	}
	config, _, err := newestConfig(ctx, tx, app)
	if err != nil {
		return Synced{}, err
	}
	present, err := s.present(ctx, tx, app, req.Wanted)
	if err != nil {
		return Synced{}, err
	}
	out := Synced{App: app}
	if out.Decisions, err = Plan(&config.app, present, req.Wanted); err != nil {
		return out, fault.With(err, fault.Remedy("fix the install files; an input that is new in the app can be set once `berth sync` has made a release with it"))
	}
	if err := s.checkStacks(out.Decisions); err != nil {
		return out, err
	}
	out.Version = planVersion(config.id, out.Decisions)
	// A repeat of a request whose answer was lost finds nothing left to do.
	if req.Version != "" && req.Version != out.Version && out.Changed() {
		return out, fault.With(fault.Newf(fault.ErrPreconditionFailed, "the installs of app %s, or the app's inputs, have changed since this plan was made", app.Name),
			fault.Remedy("review the new plan"))
	}
	if req.DryRun {
		return out, nil
	}
	for _, d := range out.Decisions {
		var err error
		switch d.Action {
		case ActionCreate:
			_, err = s.insert(ctx, tx, d.newInstall(app, config.id, req.Actor))
		case ActionUpdate:
			err = s.update(ctx, tx, d, req.Actor)
		case ActionUnchanged, ActionNotDeclared:
		}
		if err != nil {
			return out, fmt.Errorf("sync install %s: %w", d.Name, err)
		}
	}
	return out, nil
}

// present reads the installs that a plan is made from. Those that may be
// changed are locked first, so that nobody else changes them meanwhile.
func (s *Service) present(ctx context.Context, tx *database.Tx, app ctldb.App, wanted []Wanted) ([]Present, error) {
	names := make([]string, 0, len(wanted))
	for _, w := range wanted {
		names = append(names, w.Name)
	}
	if _, err := tx.LockInstallsNamed(ctx, names); err != nil {
		return nil, err
	}
	rows, err := tx.InstallsForSync(ctx, ctldb.InstallsForSyncParams{AppID: app.ID, Names: names})
	if err != nil {
		return nil, err
	}
	all := make([]Present, 0, len(rows))
	for _, r := range rows {
		in := r.Install
		p := Present{
			ID: in.ID, Name: in.Name, CustomerID: in.CustomerID, CustomerName: r.CustomerName, Stack: in.StackKind,
			ApprovalOption: in.ApprovalOption, State: in.State, InputsVersion: in.InputsVersion, TogglesVersion: in.TogglesVersion,
		}
		if in.AppID != app.ID {
			p.App = r.AppName
		}
		if err := json.Unmarshal(in.Labels, &p.Labels); err != nil {
			return nil, fmt.Errorf("decode labels of install %s: %w", in.Name, err)
		}
		if p.Inputs, err = decode(s.Keys, keys.InputsAtRest(tx.OrgID(), in.ID, in.InputsVersion), r.InputValues, r.SealedInputs); err != nil {
			return nil, fmt.Errorf("install %s: %w", in.Name, err)
		}
		if p.Overrides, err = decodeOverrides(r.Overrides); err != nil {
			return nil, fmt.Errorf("install %s: %w", in.Name, err)
		}
		if p.Toggles, err = decodeToggles(in.Toggles); err != nil {
			return nil, fmt.Errorf("install %s: %w", in.Name, err)
		}
		all = append(all, p)
	}
	return all, s.taken(ctx, tx, all)
}

// taken fills in what workflows have taken to deploy the installs.
func (s *Service) taken(ctx context.Context, tx *database.Tx, installs []Present) error {
	byID, ids := map[string]*Present{}, []string{}
	for i := range installs {
		byID[installs[i].ID] = &installs[i]
		ids = append(ids, installs[i].ID)
	}
	rows, err := tx.InputsTaken(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range rows {
		t := Taken{Version: r.Version, TogglesVersion: r.TogglesVersion}
		if t.Inputs, err = decode(s.Keys, keys.InputsAtRest(tx.OrgID(), r.InstallID, r.Version), r.Values, r.Sealed); err != nil {
			return fmt.Errorf("install %s: %w", r.InstallID, err)
		}
		if t.Overrides, err = decodeOverrides(r.Overrides); err != nil {
			return fmt.Errorf("install %s: %w", r.InstallID, err)
		}
		p := byID[r.InstallID]
		if r.Component == "" {
			p.Taken = t
			continue
		}
		if p.TakenAlone == nil {
			p.TakenAlone = map[string]Taken{}
		}
		p.TakenAlone[r.Component] = t
	}
	switched, err := tx.TogglesTaken(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range switched {
		byID[id].Taken.TogglesVersion = byID[id].TogglesVersion
	}
	for i := range installs {
		maps.DeleteFunc(installs[i].TakenAlone, func(_ string, t Taken) bool { return t.Version <= installs[i].Taken.Version })
	}
	return nil
}

// checkStacks refuses new installs whose runner could not get in.
func (s *Service) checkStacks(decisions []Decision) error {
	for _, d := range decisions {
		if d.Action != ActionCreate {
			continue
		}
		if err := s.Stacks.Check(d.wanted.Stack); err != nil {
			return fmt.Errorf("install %s: %w", d.Name, err)
		}
	}
	return nil
}

// newInstall is the install of a decision to create one.
func (d Decision) newInstall(app ctldb.App, configID, actor string) newInstall {
	return newInstall{
		CreateRequest: CreateRequest{
			Name: d.Name, Customer: customerOf(*d.wanted), CreateCustomer: true, Stack: d.wanted.Stack,
			Labels: d.wanted.Labels, ApprovalOption: d.wanted.ApprovalOption, Actor: actor,
		},
		app: app, configID: configID, inputs: d.inputs, toggles: d.toggles, overrides: d.overrides,
	}
}

func (s *Service) update(ctx context.Context, tx *database.Tx, d Decision, actor string) error {
	labels := d.present.Labels
	if d.wanted.Labels != nil {
		labels = d.wanted.Labels
	}
	raw, err := json.Marshal(orEmptyMap(labels))
	if err != nil {
		return err
	}
	change := ctldb.UpdateInstallSettingsParams{ID: d.present.ID, ApprovalOption: d.wanted.ApprovalOption, Labels: raw}
	if err := tx.UpdateInstallSettings(ctx, change); err != nil {
		return err
	}
	if d.setsToggles() {
		if err := storeToggles(ctx, tx, d.present.ID, d.toggles); err != nil {
			return err
		}
	}
	if !d.setsInputs() {
		return nil
	}
	version, err := tx.NextInputs(ctx, d.present.ID)
	if err != nil {
		return err
	}
	if _, err := s.storeInputs(ctx, tx, newInputs{
		installID: d.present.ID, version: version, inputs: d.inputs, overrides: d.overrides, actor: actor,
	}); err != nil {
		return err
	}
	if err := tx.SetInputsVersion(ctx, ctldb.SetInputsVersionParams{InstallID: d.present.ID, Version: version}); err != nil {
		return err
	}
	return tx.WakeInstall(ctx, d.present.ID)
}

// planVersion names a plan: the config that inputs were checked against, each
// install's versions before, and what becomes of it. Sensitive values are not in
// it, so it does not tell whether they were guessed right.
func planVersion(configID string, decisions []Decision) string {
	type item struct {
		Name, ID string
		Versions [2]int32
		Action   Action
		Changes  []FieldChange
	}
	items := make([]item, 0, len(decisions))
	for _, d := range decisions {
		it := item{Name: d.Name, Action: d.Action, Changes: d.Changes}
		if d.present != nil {
			it.ID, it.Versions = d.present.ID, [2]int32{d.present.InputsVersion, d.present.TogglesVersion}
		}
		items = append(items, it)
	}
	raw, _ := json.Marshal([]any{configID, items}) // strings and numbers only
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}
