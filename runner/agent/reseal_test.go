package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent"
	"github.com/berth-dev/berth/runner/agent/datadir"
	"github.com/berth-dev/berth/runner/agent/stateproxy"
)

// keptSealed is what the control plane keeps of an install; it opens nothing.
type keptSealed map[string]runnerapi.Sealed

func (s keptSealed) ListSealed(context.Context) (runnerapi.SealedList, error) {
	var list runnerapi.SealedList
	for _, r := range s {
		list.Resources = append(list.Resources, runnerapi.SealedResource{ID: r.ID, Kind: r.Kind, Name: r.Name})
	}
	return list, nil
}

func (s keptSealed) Sealed(_ context.Context, id string) (runnerapi.Sealed, error) { return s[id], nil }

func (s keptSealed) PutSealed(_ context.Context, id string, w runnerapi.SealedWrite) error {
	r := s[id]
	r.Outputs, r.State = w.Outputs, w.State
	s[id] = r
	return nil
}

// A machine that lost everything but the customer's recovery key seals states and
// outputs to itself; without the key nothing opens, and what the control plane
// swapped does not either.
func TestResealWithTheRecoveryKey(t *testing.T) {
	t.Parallel()
	who := datadir.Runner{OrgID: "org_1", InstallID: "ins_1"}
	machine := func() datadir.Keys {
		dir, err := datadir.At(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := dir.Make(0); err != nil {
			t.Fatal(err)
		}
		keys, err := dir.Keys()
		if err != nil {
			t.Fatal(err)
		}
		return keys
	}
	key, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	lost, heir := machine(), machine()
	lost.Recovery, heir.Recovery = key.Public(), key.Public()
	state := []byte(`{"version":4,"serial":3,"lineage":"lin","outputs":{}}`)
	fill := func() keptSealed {
		body, err := seal.Seal(lost.Recipients(), datadir.StatePurpose(who, "res_db", "lin", 3), state)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := seal.SealLeaves(lost.Recipients(), "s3cret", func([]string) (seal.Purpose, bool) {
			return interpolate.ComponentOutput("org_1", "ins_1", "res_db", "db", "dsn"), true
		})
		if err != nil {
			t.Fatal(err)
		}
		value, err := json.Marshal(leaf)
		if err != nil {
			t.Fatal(err)
		}
		return keptSealed{"res_db": {
			ID: "res_db", Kind: "component", Name: "db",
			Outputs: jobspec.Outputs{"dsn": {Value: value, Sensitive: true}, "url": {Value: json.RawMessage(`"http://x"`)}},
			State:   &runnerapi.SealedState{Serial: 3, Lineage: "lin", Digest: stateproxy.Digest(lost.Salt, state), Body: body},
		}}
	}
	with := seal.EitherOf(heir.Open, key.Identity().Opener())
	reseal := func(store keptSealed, open seal.Opener) (int, error) {
		return agent.Resealer{Store: store, Runner: who, Keys: heir, Open: open}.All(t.Context())
	}

	if n, err := reseal(fill(), heir.Open); n != 0 || !errors.Is(err, seal.ErrNotForUs) {
		t.Errorf("without the recovery key: %d, %v", n, err)
	}
	if _, err := reseal(fill(), with); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("with another salt: %v, want the digest to differ", err)
	}
	heir.Salt = lost.Salt
	kept := fill()
	for range 2 { // once more changes nothing
		if n, err := reseal(kept, with); n != 1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	got, err := seal.Open(heir.Seal, datadir.StatePurpose(who, "res_db", "lin", 3), kept["res_db"].State.Body)
	if err != nil || string(got) != string(state) {
		t.Errorf("the new machine reads %q, %v", got, err)
	}
	if out := kept["res_db"].Outputs; string(out["url"].Value) != `"http://x"` || !seal.HasSealed(out["dsn"].Value) {
		t.Errorf("outputs = %v", out)
	}

	// The control plane passes the output off as that of another component, to have
	// it sealed for that.
	swapped := fill()
	other := swapped["res_db"]
	other.ID, other.Name, other.State = "res_web", "web", nil
	swapped["res_web"] = other
	if n, err := reseal(swapped, with); n != 1 || !errors.Is(err, seal.ErrOtherPurpose) {
		t.Errorf("an output of another component: %d, %v", n, err)
	}
}
