package datadir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/recovery"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/runner/agent/datadir"
)

// A directory that starts now never opens the first form; one of an earlier
// version does, until it was told to end that.
func TestFirstFormEnds(t *testing.T) {
	t.Parallel()
	d := open(t)
	if _, err := d.Keys(); err != nil {
		t.Fatal(err)
	}
	if first, err := d.FirstForm(); err != nil || first {
		t.Errorf("a new directory takes the first form: %v, %v", first, err)
	}
	marker := filepath.Join(d.Path(), "seal-form")
	if err := os.Remove(marker); err != nil { // as an earlier version left it
		t.Fatal(err)
	}
	if _, err := d.Keys(); err != nil {
		t.Fatal(err)
	}
	if first, err := d.FirstForm(); err != nil || !first {
		t.Errorf("an old directory does not take the first form: %v, %v", first, err)
	}
	if err := d.EndFirstForm(); err != nil {
		t.Fatal(err)
	}
	if first, err := d.FirstForm(); err != nil || first {
		t.Errorf("it still takes the first form: %v, %v", first, err)
	}
	if err := os.WriteFile(marker, []byte("berth-seal-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.FirstForm(); err == nil {
		t.Error("a marker that says something else was taken")
	}
}

// What is sealed on the customer's side opens with the recovery key too, and a
// trust file keeps what others wrote into it.
func TestRecoveryKeyIsARecipient(t *testing.T) {
	t.Parallel()
	d := open(t)
	if err := datadir.WriteJSON(d.Trust(), map[string]any{"runner_api_url": "http://127.0.0.1", "later": "kept"}); err != nil {
		t.Fatal(err)
	}
	key, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.SetRecovery(key, time.Now()); err != nil {
		t.Fatal(err)
	}
	raw := map[string]any{}
	if _, err := datadir.ReadJSON(d.Trust(), &raw); err != nil || raw["later"] != "kept" {
		t.Errorf("trust = %v, %v", raw, err)
	}
	keys, err := d.Keys()
	if err != nil {
		t.Fatal(err)
	}
	who := datadir.Runner{OrgID: "org_1", InstallID: "ins_1"}
	sealed, err := seal.Seal(keys.Recipients(), datadir.SaltPurpose(who), keys.Salt)
	if err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]seal.Opener{"runner": keys.Open, "recovery key": key.Identity().Opener()} {
		if got, err := open(datadir.SaltPurpose(who), sealed); err != nil || string(got) != string(keys.Salt) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := open(datadir.PlanPurpose(who, "chg_1"), sealed); !errors.Is(err, seal.ErrOtherPurpose) {
			t.Errorf("%s opens the salt as a plan: %v", name, err)
		}
	}
	// A trust file that somebody broke must not silently lose the second recipient.
	raw["recovery"] = map[string]any{"key_id": "x", "signing_key": key.Public().SigningKey, "recipient": key.Public().Recipient}
	if err := datadir.WriteJSON(d.Trust(), raw); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Keys(); err == nil {
		t.Error("a damaged recovery key was taken")
	}
}
