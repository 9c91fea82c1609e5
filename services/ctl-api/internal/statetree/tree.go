package statetree

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/recipient"
	"github.com/berth-dev/berth/services/ctl-api/internal/releaseview"
	"github.com/berth-dev/berth/services/ctl-api/internal/variables"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// Wanted is the tree that is asked for.
type Wanted struct {
	Install       ctldb.Install
	InputsVersion int32 // 0 for an install without inputs, below 0 for those of a preview
	ReleaseID     string
	Cause         string // kept with a new version: what it was made for
	// Preview: what is new is stored, but does not come into force.
	Preview bool
}

// Ensure makes the tree that templates of an install read, from its rows, and
// stores it as a new version unless it is what the newest one holds. Sensitive
// leaves are sealed to the install's own key; without one (no runner yet) an
// install with sensitive inputs has no tree: ErrConflict.
//
// The caller holds the install's row (LockInstallRow): two who make a version at
// once would give it the same number, or wait for each other.
func Ensure(ctx context.Context, tx *database.Tx, ring *keys.Ring, w Wanted) (ctldb.StateVersion, error) {
	last, next, err := newest(ctx, tx, w)
	if err != nil {
		return ctldb.StateVersion{}, fmt.Errorf("read state: %w", err)
	}
	b := builder{tx: tx, ring: ring, Wanted: w}
	// Before the variables themselves: one that is set in between counts as another
	// version the next time, and none is missed.
	if b.variablesVersion, err = tx.AppVariablesVersion(ctx, w.Install.AppID); err != nil {
		return ctldb.StateVersion{}, fmt.Errorf("read version of variables: %w", err)
	}
	if b.runner, err = tx.InstallRunner(ctx, w.Install.ID); err != nil && !errors.Is(err, fault.ErrNotFound) {
		return ctldb.StateVersion{}, fmt.Errorf("read runner: %w", err)
	}
	if b.to, err = recipient.Of(ctx, tx, b.runner); err != nil {
		return ctldb.StateVersion{}, fmt.Errorf("whom to seal to: %w", err)
	}
	same := w.isOf(last)
	if err := b.keep(ctx, last, same); err != nil {
		return ctldb.StateVersion{}, err
	}
	tree, err := b.build(ctx)
	if err != nil {
		return ctldb.StateVersion{}, err
	}
	raw, err := capsule.Canonical(tree)
	if err != nil {
		return ctldb.StateVersion{}, fmt.Errorf("encode state: %w", err)
	}
	if same {
		old, err := capsule.Canonical(last.Tree)
		if err == nil && bytes.Equal(old, raw) {
			return last, nil
		}
	}
	return b.store(ctx, next, raw)
}

// newest is the tree that a new one is compared with, and the version of the new
// one. A preview's are apart, and their versions count down from -1.
func newest(ctx context.Context, tx *database.Tx, w Wanted) (last ctldb.StateVersion, next int32, err error) {
	last, err = tx.GetStateTree(ctx, ctldb.GetStateTreeParams{InstallID: w.Install.ID})
	if err != nil && !errors.Is(err, fault.ErrNotFound) || !w.Preview {
		return last, last.Version + 1, ignoreNone(err)
	}
	preview, err := tx.NewestPreviewTree(ctx, w.Install.ID)
	if w.isOf(preview) {
		last = preview
	}
	return last, preview.Version - 1, ignoreNone(err)
}

// isOf says whether a stored tree was made of the wanted inputs and release.
func (w Wanted) isOf(v ctldb.StateVersion) bool {
	return v.Version != 0 && v.InputsVersion == w.InputsVersion && optional.Value(v.ReleaseID) == w.ReleaseID
}

func ignoreNone(err error) error {
	if errors.Is(err, fault.ErrNotFound) {
		return nil
	}
	return err
}

// builder makes one tree.
type builder struct {
	Wanted
	tx               *database.Tx
	ring             *keys.Ring
	variablesVersion int32
	runner           ctldb.Runner        // zero when there is none
	to               *recipient.Verified // nil when nobody may be sealed to
	// inputs and variables are those of the newest version, unless they have to be
	// made again.
	inputs    map[string]any
	variables map[string]any
	// sealedInputs are sealed leaves of inputs that did not change since the newest
	// version, so that what differs between two versions does.
	sealedInputs map[string]any
}

// keep takes over the sealed leaves of the newest version, which differ each time
// they are made, as long as they say the same to the same runner. same says that
// the newest version has the wanted inputs and release.
func (b *builder) keep(ctx context.Context, last ctldb.StateVersion, same bool) error {
	if last.Version == 0 || optional.Value(last.SealRecipient) != optional.Value(b.sealedTo()) {
		return nil
	}
	var tree struct {
		Inputs struct {
			Inputs map[string]any `json:"inputs"`
		} `json:"inputs"`
		App struct {
			Variables map[string]any `json:"variables"`
		} `json:"app"`
	}
	if err := json.Unmarshal(last.Tree, &tree); err != nil {
		return fmt.Errorf("read state %d: %w", last.Version, err)
	}
	if last.VariablesVersion == b.variablesVersion {
		b.variables = tree.App.Variables
	}
	if same {
		b.inputs = tree.Inputs.Inputs
		return nil
	}
	return b.keepSealed(ctx, last.InputsVersion, tree.Inputs.Inputs)
}

// keepSealed takes over the sealed inputs of another version of the inputs that were
// not set to something else in between.
func (b *builder) keepSealed(ctx context.Context, version int32, inputs map[string]any) error {
	if version < 1 || b.InputsVersion < 1 {
		return nil // of a preview, or none
	}
	rows, err := b.tx.InputsChangedSince(ctx, ctldb.InputsChangedSinceParams{
		InstallID: b.Install.ID, After: min(version, b.InputsVersion), UpTo: max(version, b.InputsVersion),
	})
	if err != nil {
		return fmt.Errorf("read changed inputs: %w", err)
	}
	kept := maps.Clone(inputs)
	for _, row := range rows {
		if row.Changed == nil {
			return nil // an older release did not say
		}
		for _, name := range row.Changed {
			delete(kept, name)
		}
	}
	maps.DeleteFunc(kept, func(_ string, v any) bool { return !seal.IsSealed(v) })
	b.sealedInputs = kept
	return nil
}

// store keeps a tree as a new version.
func (b *builder) store(ctx context.Context, version int32, tree json.RawMessage) (ctldb.StateVersion, error) {
	next := ctldb.StateVersion{
		OrgID: b.Install.OrgID, InstallID: b.Install.ID, Version: version, Tree: tree, InputsVersion: b.InputsVersion,
		VariablesVersion: b.variablesVersion, SealRecipient: b.sealedTo(), ReleaseID: optional.Of(b.ReleaseID), Cause: b.Cause,
	}
	err := b.tx.InsertStateVersion(ctx, ctldb.InsertStateVersionParams{
		InstallID: next.InstallID, Version: version, Tree: tree, InputsVersion: next.InputsVersion,
		VariablesVersion: next.VariablesVersion, SealRecipient: next.SealRecipient, ReleaseID: next.ReleaseID, Cause: next.Cause,
	})
	if err != nil {
		return ctldb.StateVersion{}, fmt.Errorf("store state: %w", err)
	}
	if b.Preview {
		return next, nil
	}
	return next, b.tx.SetInstallStateVersion(ctx, ctldb.SetInstallStateVersionParams{ID: next.InstallID, Version: version})
}

func (b *builder) build(ctx context.Context) (map[string]any, error) {
	parts := interpolate.Parts{
		Install: interpolate.Install{ID: b.Install.ID, Name: b.Install.Name},
		Org:     interpolate.Named{ID: b.Install.OrgID, Status: "active"},
		App:     interpolate.App{ID: b.Install.AppID, Status: "active"},
	}
	org, err := b.tx.GetOrg(ctx)
	if err != nil {
		return nil, fmt.Errorf("read org: %w", err)
	}
	parts.Org.Name = org.Name
	varNames := map[string]string{}
	var declared []appconfig.Input
	var rehearsed *appconfig.App
	if b.ReleaseID != "" {
		app, name, err := releaseview.Named(ctx, b.tx.Queries, b.ReleaseID)
		if err != nil {
			return nil, err
		}
		parts.App.Name = name
		for _, c := range app.Components {
			varNames[c.Name] = c.VarName
		}
		declared, rehearsed = app.Inputs, app
	}
	if b.runner.ID != "" {
		parts.Runner = interpolate.Runner{Populated: true, ID: b.runner.ID, Status: string(b.runner.State)}
	}
	if parts.Inputs, err = b.readInputs(ctx, declared); err != nil {
		return nil, err
	}
	if parts.App.Variables, err = b.readVariables(ctx); err != nil {
		return nil, err
	}
	stack, err := b.tx.NewestStack(ctx, b.Install.ID)
	if err != nil && !errors.Is(err, fault.ErrNotFound) {
		return nil, fmt.Errorf("read stack: %w", err)
	}
	if err == nil {
		parts.Stack = interpolate.Stack{Populated: stack.State == model.StackActive, Status: string(stack.State)}
		if parts.Stack.Outputs, err = object("outputs of the stack", stack.Outputs); err != nil {
			return nil, err
		}
	}
	if err := b.resources(ctx, &parts, varNames); err != nil {
		return nil, err
	}
	if err := b.actions(ctx, &parts, rehearsed); err != nil {
		return nil, err
	}
	if err := b.secrets(ctx, &parts, rehearsed); err != nil {
		return nil, err
	}
	origins, err := b.rehearse(&parts, rehearsed)
	tree := interpolate.NewTree(parts)
	withoutCopies(tree, origins != nil)
	if origins != nil {
		tree[RehearsalKey] = origins
	}
	return tree, err
}

// readInputs joins what the install sets with the release's defaults; an input
// that has neither is the empty string, as templates of the format expect. Sensitive
// ones are opened with the org's key and sealed to the install's at once.
func (b *builder) readInputs(ctx context.Context, declared []appconfig.Input) (map[string]any, error) {
	plain, secret := map[string]any{}, map[string]any{}
	for _, in := range declared {
		plain[in.Name] = "" // without value and default it is there, and empty
	}
	if b.inputs != nil {
		maps.Copy(plain, b.inputs)
		return plain, nil
	}
	for _, in := range declared {
		switch {
		case in.Default == nil:
		case in.Sensitive:
			secret[in.Name] = *in.Default
		default:
			plain[in.Name] = *in.Default
		}
	}
	if b.InputsVersion != 0 {
		row, err := b.tx.GetInputs(ctx, ctldb.GetInputsParams{InstallID: b.Install.ID, Version: b.InputsVersion})
		if err != nil {
			return nil, fmt.Errorf("read inputs: %w", err)
		}
		values, err := object("inputs", row.Values)
		if err != nil {
			return nil, err
		}
		maps.Copy(plain, values)
		if len(row.Sealed) > 0 {
			opened, err := b.ring.Open(keys.InputsAtRest(b.Install.OrgID, b.Install.ID, row.Version), row.Sealed)
			if err != nil {
				return nil, fmt.Errorf("open inputs: %w", err)
			}
			var values map[string]any
			if json.Unmarshal(opened, &values) != nil { // its error quotes what is secret
				return nil, errors.New("read inputs: the sealed ones are no JSON object")
			}
			maps.Copy(secret, values)
			for name := range values {
				if leaf, kept := b.sealedInputs[name]; kept {
					plain[name] = leaf
					delete(secret, name)
				}
			}
		}
	}
	return b.sealed("inputs", interpolate.InputPurpose, plain, secret)
}

// readVariables opens the sensitive variables of the app and seals them to the
// install's key at once.
func (b *builder) readVariables(ctx context.Context) (map[string]any, error) {
	if b.variables != nil {
		return b.variables, nil
	}
	values, err := variables.Read(ctx, b.tx, b.ring, b.Install.AppID)
	if err != nil {
		return nil, err
	}
	return b.sealed("app variables", interpolate.VariablePurpose, values.Plain, values.Sensitive)
}

// sealForm stands before the recipients in state_versions.seal_recipient: leaves
// that were sealed in another form are sealed again.
const sealForm = "berth-seal-2 "

// recipients are who opens the sealed leaves.
func (b *builder) recipients() []string {
	if b.to == nil {
		return nil
	}
	return b.to.Recipients()
}

// sealedTo says in which form and to whom leaves are sealed, nil without anybody.
func (b *builder) sealedTo() *string {
	to := b.recipients()
	if len(to) == 0 {
		return nil
	}
	text := sealForm + strings.Join(to, " ")
	return &text
}

// sealed adds to plain values the secret ones, each sealed to the install's key
// for its place in the tree.
func (b *builder) sealed(what string, purpose func(org, install, name string) seal.Purpose, plain, secret map[string]any) (map[string]any, error) {
	if len(secret) == 0 {
		return plain, nil
	}
	to := b.recipients()
	if len(to) == 0 && b.runner.SealRecipient != nil {
		return nil, fault.With(fault.Newf(fault.ErrConflict, "install %q has sensitive %s, but its machine replaced another one without a handover signed by the customer's recovery key", b.Install.Name, what),
			fault.Code("recipient_refused"), fault.Remedy("find out who enrolled it; the customer hands over with: berth-runner replace --recovery FILE"))
	}
	if len(to) == 0 {
		return nil, fault.Newf(fault.ErrConflict, "install %q has sensitive %s, but no runner yet to seal them to", b.Install.Name, what)
	}
	leaves, err := seal.SealLeaves(to, any(secret), func(path []string) (seal.Purpose, bool) {
		if len(path) != 1 {
			return seal.Purpose{}, false
		}
		return purpose(b.Install.OrgID, b.Install.ID, path[0]), true
	})
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", what, err)
	}
	maps.Copy(plain, leaves.(map[string]any))
	return plain, nil
}

// resources adds the sandbox and the components that are there.
func (b *builder) resources(ctx context.Context, parts *interpolate.Parts, varNames map[string]string) error {
	rows, err := b.tx.ResourcesOfInstall(ctx, b.Install.ID)
	if err != nil {
		return fmt.Errorf("read resources: %w", err)
	}
	parts.Components = map[string]interpolate.Component{}
	for _, row := range rows {
		populated := row.LiveReleaseID != nil
		outputs, err := outputValues(row.Outputs)
		if err != nil {
			return fmt.Errorf("read outputs of %s: %w", row.Name, err)
		}
		// A state that only says "being changed" is no news to a template.
		status := "absent"
		if populated {
			status = "active"
		}
		switch row.Kind {
		case model.KindSandbox:
			parts.Sandbox = interpolate.Sandbox{Populated: populated, Status: status, Type: row.Type, Outputs: outputs}
		case model.KindComponent:
			parts.Components[row.Name] = interpolate.Component{
				Populated: populated, VarName: varNames[row.Name], Status: status,
				ComponentID: optional.Value(row.ComponentID), InstallComponentID: row.ID, Outputs: outputs,
			}
		}
	}
	return nil
}

func (b *builder) actions(ctx context.Context, parts *interpolate.Parts, app *appconfig.App) error {
	rows, err := b.tx.LastActionRuns(ctx, ctldb.LastActionRunsParams{InstallID: b.Install.ID, Unattended: unattended(app)})
	if err != nil {
		return fmt.Errorf("read action runs: %w", err)
	}
	parts.Actions = map[string]interpolate.Action{}
	for _, row := range rows {
		a := interpolate.Action{Populated: true, Status: string(row.State), ID: row.ID, Outputs: map[string]any{}, Steps: map[string]map[string]any{}}
		outputs, err := object("outputs of action "+row.Action, row.Outputs)
		if err != nil {
			return err
		}
		for step, values := range outputs {
			if m, ok := values.(map[string]any); ok {
				a.Steps[step] = m
				for k, v := range m {
					a.Outputs[k] = v
				}
			}
		}
		parts.Actions[row.Action] = a
	}
	return nil
}

// unattended names the actions that a runner runs by itself and that are no checks.
func unattended(app *appconfig.App) []string {
	names := []string{}
	if app == nil {
		return names
	}
	for i := range app.Actions {
		if app.Actions[i].Unattended() {
			names = append(names, app.Actions[i].Name)
		}
	}
	return names
}

// outputValues strips outputs of what is said about them: sensitive ones are
// sealed leaves already.
func outputValues(raw json.RawMessage) (map[string]any, error) {
	var outputs jobspec.Outputs
	if err := json.Unmarshal(raw, &outputs); err != nil {
		return nil, err
	}
	values := map[string]any{}
	for name, o := range outputs {
		var v any
		if err := json.Unmarshal(o.Value, &v); err != nil {
			return nil, err
		}
		values[name] = v
	}
	return values, nil
}

// object reads a column that is an object by our own writing; none is an empty one.
func object(what string, raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return m, nil
}
