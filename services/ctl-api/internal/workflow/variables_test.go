package workflow_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/statetree"
	"github.com/berth-dev/berth/services/ctl-api/internal/variables"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/store/ctldb"
)

// ensureState makes the install's tree for its release.
func (r *rig) ensureState() (state ctldb.StateVersion) {
	r.t.Helper()
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		install, err := tx.LockInstallRow(ctx, r.install)
		if err != nil {
			return err
		}
		state, err = statetree.Ensure(ctx, tx, r.engine.Keys, statetree.Wanted{Install: install, InputsVersion: 1, ReleaseID: r.release, Cause: "test"})
		return err
	})
	return state
}

// A sealed input keeps its seal until it is set to something else, so that what
// differs between two versions of the tree was set. The runner opens the kept one.
func TestStateKeepsTheSealOfWhatStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	leafOf := func(state ctldb.StateVersion) string {
		t.Helper()
		var tree struct {
			Inputs struct{ Inputs map[string]json.RawMessage }
		}
		if err := json.Unmarshal(state.Tree, &tree); err != nil {
			t.Fatal(err)
		}
		return string(tree.Inputs.Inputs["passphrase"])
	}
	var last ctldb.StateVersion
	ensure := func(version int32) string {
		t.Helper()
		r.tx(func(ctx context.Context, tx *database.Tx) error {
			install, err := tx.LockInstallRow(ctx, r.install)
			if err != nil {
				return err
			}
			last, err = statetree.Ensure(ctx, tx, r.engine.Keys, statetree.Wanted{Install: install, InputsVersion: version, ReleaseID: r.release, Cause: "test"})
			return err
		})
		return leafOf(last)
	}
	set := func(version int32, changed any) {
		r.exec(`insert into install_inputs (org_id, install_id, version, values, sealed, changed, created_by) values ($1, $2, $3, jsonb_build_object('greeting', $3::int::text), $4, $5, 'test')`,
			r.org, r.install, version, r.sealedInputs(version), changed)
	}
	first := ensure(1)
	set(2, []string{"greeting"})
	if ensure(2) != first || last.Version != 2 {
		t.Errorf("version %d: what stayed was sealed again", last.Version)
	}
	var tree any
	if err := json.Unmarshal(last.Tree, &tree); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.OpenLeaves(r.seal.Opener(), tree, interpolate.SealedLeaves(r.org, r.install, tree)); err != nil {
		t.Errorf("the runner cannot open it: %v", err)
	}
	set(3, []string{"passphrase"})
	third := ensure(3)
	if third == first {
		t.Error("what was set has the old seal")
	}
	set(4, nil) // by an older release
	if ensure(4) == third {
		t.Error("what may have been set has the old seal")
	}
}

// opened is what the install's runner reads of the variables in a tree.
func (r *rig) opened(id *seal.Identity, state ctldb.StateVersion) any {
	r.t.Helper()
	var tree any
	if err := json.Unmarshal(state.Tree, &tree); err != nil {
		r.t.Fatal(err)
	}
	out, err := seal.OpenLeaves(id.Opener(), tree, interpolate.SealedLeaves(r.org, r.install, tree))
	if err != nil {
		r.t.Fatal(err)
	}
	return out.(map[string]any)["app"].(map[string]any)["variables"]
}

func (r *rig) setVariable(v variables.Variable) {
	r.t.Helper()
	app := r.value(`select app_id from installs where id = $1`, r.install)
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		_, _, err := variables.Set(ctx, tx, r.engine.Keys, variables.SetRequest{AppID: app, Variable: v, Actor: "ada"})
		return err
	})
}

const variableCanary = "a variable that nobody may see"

func TestStateHasTheVariablesOfTheApp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	r.setVariable(variables.Variable{Name: "token", Value: variableCanary, Sensitive: true})
	r.setVariable(variables.Variable{Name: "region", Value: "eu"})

	first := r.ensureState()
	if diff := cmp.Diff(any(map[string]any{"token": variableCanary, "region": "eu"}), r.opened(r.seal, first)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if bytes.Contains(first.Tree, []byte(variableCanary)) || !bytes.Contains(first.Tree, []byte(`"region":"eu"`)) {
		t.Errorf("the stored tree does not seal just what is sensitive: %s", first.Tree)
	}
	if again := r.ensureState(); again.Version != first.Version {
		t.Errorf("nothing changed, and there is version %d after %d", again.Version, first.Version)
	}
	// Setting to the same value is no change either.
	r.setVariable(variables.Variable{Name: "token", Value: variableCanary, Sensitive: true})
	if again := r.ensureState(); again.Version != first.Version {
		t.Errorf("the same value made version %d after %d", again.Version, first.Version)
	}

	r.setVariable(variables.Variable{Name: "token", Value: variableCanary + " 2", Sensitive: true})
	second := r.ensureState()
	if second.Version != first.Version+1 {
		t.Errorf("a changed secret made version %d after %d", second.Version, first.Version)
	}
	if diff := cmp.Diff(any(map[string]any{"token": variableCanary + " 2", "region": "eu"}), r.opened(r.seal, second)); diff != "" {
		t.Errorf("changed variables (-want +got):\n%s", diff)
	}
	// Something else changed: the sealed leaves stay, and the tree is another.
	r.exec(`update stack_versions set outputs = '{"install_dir": "/elsewhere"}' where install_id = $1`, r.install)
	third := r.ensureState()
	if third.Version != second.Version+1 || !bytes.Contains(third.Tree, sealedLeaf(t, second, "app", "variables", "token")) {
		t.Errorf("version %d after %d, or another sealed leaf", third.Version, second.Version)
	}
	app := r.value(`select app_id from installs where id = $1`, r.install)
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		_, err := variables.Delete(ctx, tx, ctldb.App{ID: app, Name: "hello"}, "token")
		return err
	})
	if diff := cmp.Diff(any(map[string]any{"region": "eu"}), r.opened(r.seal, r.ensureState())); diff != "" {
		t.Errorf("variables after one is deleted (-want +got):\n%s", diff)
	}
	for _, table := range []string{"state_versions", "app_variables", "runner_jobs", "chain_records"} {
		if n := r.value(`select count(*)::text from `+table+` x where x::text like '%' || $1 || '%'
			or x::text like '%' || encode(convert_to($1, 'utf8'), 'hex') || '%'`, variableCanary); n != "0" {
			t.Errorf("%s rows of %s have the secret in clear", n, table)
		}
	}
}

// newMachine makes runner-api's row say that another machine is enrolled, as
// somebody with its database password could.
func (r *rig) newMachine() (*seal.Identity, ed25519.PrivateKey) {
	r.t.Helper()
	identity, err := seal.GenerateIdentity()
	if err != nil {
		r.t.Fatal(err)
	}
	_, key, err := capsule.GenerateKey()
	if err != nil {
		r.t.Fatal(err)
	}
	r.exec(`update runners set seal_recipient = $2, public_key = $3 where id = $1`, r.runner, identity.Recipient(), publicOf(key))
	return identity, key
}

// refusedState tries to make a tree, which needs somebody to seal to.
func (r *rig) refusedState() error {
	return r.engine.Store.Tx(r.t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
		install, err := tx.LockInstallRow(ctx, r.install)
		if err != nil {
			return err
		}
		_, err = statetree.Ensure(ctx, tx, r.engine.Keys, statetree.Wanted{Install: install, InputsVersion: 1, ReleaseID: r.release, Cause: "test"})
		return err
	})
}

// Without a recovery key another machine takes over with the customer's consent;
// what was sealed to the one before is sealed again.
func TestStateIsSealedToTheRunnerThatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	r.setVariable(variables.Variable{Name: "token", Value: variableCanary, Sensitive: true})
	first := r.ensureState()
	next, key := r.newMachine()
	if err := r.refusedState(); !errors.Is(err, fault.ErrConflict) {
		t.Fatalf("a machine that nobody consented to: %v, want ErrConflict", err)
	}
	r.exec(`insert into enrolments (id, org_id, runner_id, secret_hash, state, replaces, bound_key, created_by, expires_at)
		values ('enr_x', $1, $2, 'x', 'used', true, $3, 'ada', now())`, r.org, r.runner, publicOf(key))
	second := r.ensureState()
	if second.Version != first.Version+1 {
		t.Errorf("another runner made version %d after %d", second.Version, first.Version)
	}
	// Opening all of the tree opens the sensitive input too.
	if diff := cmp.Diff(any(map[string]any{"token": variableCanary}), r.opened(next, second)); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if again := r.ensureState(); again.Version != second.Version {
		t.Errorf("nothing changed, and there is version %d after %d", again.Version, second.Version)
	}
}

// Somebody with runner-api's database password enrols a machine of his own, gives
// himself a consent and a recovery key, and waits for the secrets to be sealed to
// him. ctl-api believes the recovery key that it knows, and nothing else.
func TestAttackSecretsAreNotSealedToAnotherMachine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	r.setVariable(variables.Variable{Name: "token", Value: variableCanary, Sensitive: true})
	customer, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	bring := func(key *recovery.Key, signed capsule.Envelope) {
		t.Helper()
		raw, err := json.Marshal(signed)
		if err != nil {
			t.Fatal(err)
		}
		p := key.Public()
		r.exec(`insert into install_recovery (org_id, install_id, key_id, signing_key, recipient, change) values ($1, $2, $3, $4, $5, $6)
			on conflict (org_id, install_id) do update set key_id = $3, signing_key = $4, recipient = $5, change = $6`,
			r.org, r.install, p.KeyID, p.SigningKey, p.Recipient, raw)
	}
	introduced, err := recovery.Introduce(r.machine, recovery.Change{OrgID: r.org, InstallID: r.install, Next: customer.Public()})
	if err != nil {
		t.Fatal(err)
	}
	first := r.ensureState()
	bring(customer, introduced)
	second := r.ensureState()
	if second.Version != first.Version+1 {
		t.Errorf("a recovery key made version %d after %d", second.Version, first.Version)
	}
	for who, id := range map[string]*seal.Identity{"machine": r.seal, "recovery key": customer.Identity()} {
		if diff := cmp.Diff(any(map[string]any{"token": variableCanary}), r.opened(id, second)); diff != "" {
			t.Errorf("variables for the %s (-want +got):\n%s", who, diff)
		}
	}

	thief, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	old := r.machine
	_, key := r.newMachine()
	r.exec(`insert into enrolments (id, org_id, runner_id, secret_hash, state, replaces, bound_key, created_by, expires_at)
		values ('enr_x', $1, $2, 'x', 'used', true, $3, 'ada', now())`, r.org, r.runner, publicOf(key))
	if err := r.refusedState(); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("without a handover: %v, want ErrConflict", err)
	}
	own, err := recovery.Introduce(key, recovery.Change{OrgID: r.org, InstallID: r.install, Next: thief.Public()})
	if err != nil {
		t.Fatal(err)
	}
	bring(thief, own)
	handOver := func(signer *recovery.Key, h recovery.Handover) {
		t.Helper()
		signed, err := signer.Sign(h)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(signed)
		if err != nil {
			t.Fatal(err)
		}
		r.exec(`update install_recovery set handover = $3 where org_id = $1 and install_id = $2`, r.org, r.install, raw)
	}
	identity, key := r.newMachine()
	handover := recovery.Handover{
		OrgID: r.org, InstallID: r.install, RunnerID: r.runner, OldMachine: keyID(old), NewMachine: publicOf(key), SealRecipient: identity.Recipient(),
	}
	handOver(thief, handover)
	if err := r.refusedState(); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("with a handover that the thief's key signed: %v, want ErrConflict", err)
	}
	elsewhere := handover
	elsewhere.SealRecipient = customer.Public().Recipient
	handOver(customer, elsewhere)
	if err := r.refusedState(); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("with a handover to another recipient: %v, want ErrConflict", err)
	}
	elsewhere = handover
	elsewhere.InstallID = "ins_other"
	handOver(customer, elsewhere)
	if err := r.refusedState(); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("with the handover of another install: %v, want ErrConflict", err)
	}

	handOver(customer, handover)
	third := r.ensureState()
	for who, id := range map[string]*seal.Identity{"machine": identity, "recovery key": customer.Identity()} {
		if diff := cmp.Diff(any(map[string]any{"token": variableCanary}), r.opened(id, third)); diff != "" {
			t.Errorf("variables for the new %s (-want +got):\n%s", who, diff)
		}
	}
	var tree any
	if err := json.Unmarshal(third.Tree, &tree); err != nil {
		t.Fatal(err)
	}
	if _, err := seal.OpenLeaves(thief.Identity().Opener(), tree, interpolate.SealedLeaves(r.org, r.install, tree)); !errors.Is(err, seal.ErrNotForUs) {
		t.Errorf("the thief opens the tree: %v", err)
	}
}

func keyID(key ed25519.PrivateKey) string {
	public, _ := key.Public().(ed25519.PublicKey)
	return capsule.KeyID(public)
}

// A plan gets what is set when it is made, in ciphertext.
func TestPlanJobsCarryTheVariables(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	r.setVariable(variables.Variable{Name: "token", Value: variableCanary, Sensitive: true})
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	_, spec := r.openJob(w, "sandbox")
	if diff := cmp.Diff(any(map[string]any{"token": variableCanary}), r.opened(r.seal, ctldb.StateVersion{Tree: spec.State})); diff != "" {
		t.Errorf("variables of the job (-want +got):\n%s", diff)
	}
	if bytes.Contains(spec.State, []byte(variableCanary)) {
		t.Error("the job has the secret in clear")
	}
}

func sealedLeaf(t *testing.T, state ctldb.StateVersion, path ...string) []byte {
	t.Helper()
	var node any
	if err := json.Unmarshal(state.Tree, &node); err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		node = node.(map[string]any)[key]
	}
	leaf, err := json.Marshal(node)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}
