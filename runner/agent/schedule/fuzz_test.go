package schedule_test

import (
	"crypto/ed25519"
	"encoding/json"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/runner/agent/schedule"
)

// FuzzSettings offers whatever a control plane that was taken over could sign:
// what is taken is for this install, newer, not of the future, and good for a
// week at most, also after it was stored.
func FuzzSettings(f *testing.F) {
	public, private, err := capsule.GenerateKey()
	if err != nil {
		f.Fatal(err)
	}
	install := schedule.Install{Keys: map[string]ed25519.PublicKey{"k": public}, OrgID: "org_1", ID: "ins_1"}
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	const inForce = 7
	f.Add([]byte(`{"version":8,"org_id":"org_1","install_id":"ins_1","issued_at":"2026-11-20T10:00:00Z","expires_at":"2026-11-27T10:00:00Z","schedule":[]}`))
	f.Add([]byte(`{"version":9007199254740991,"org_id":"org_1","install_id":"ins_1","issued_at":"2099-01-01T00:00:00Z","expires_at":"2099-01-02T00:00:00Z","schedule":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) {
			return
		}
		env, err := capsule.Sign(private, "k", capsule.SettingsType, json.RawMessage(raw))
		if err != nil {
			return // it has no canonical form, so nobody can sign it
		}
		s, err := install.Accept(env, inForce, now)
		if err != nil {
			return
		}
		if s.OrgID != "org_1" || s.InstallID != "ins_1" || s.Version <= inForce || s.Version > inForce+1_000_000 ||
			s.IssuedAt.After(now.Add(5*time.Minute)) || schedule.Expiry(s, now).After(now.Add(7*24*time.Hour)) {
			t.Fatalf("taken: %s", raw)
		}
		stored := schedule.Stored{ReceivedAt: now, Envelope: env}
		if _, version, err := install.Again(stored, now); err != nil || version != s.Version {
			t.Fatalf("taken, and refused once stored (%v): %s", err, raw)
		}
		if _, _, err := install.Again(stored, now.Add(7*24*time.Hour)); err == nil {
			t.Fatalf("good for more than a week: %s", raw)
		}
	})
}
