package fleet

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// A control plane that lies about a capsule is found out by the key that was pinned.
func TestAttackCapsule(t *testing.T) {
	t.Parallel()
	public, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	other, otherKey, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	order := capsule.Order{ChangeID: "chg_1", InstallID: "ins_1", EffectDigest: "sha256:a", Fence: 3, IssuedAt: at, ExpiresAt: at}
	answer := func(o capsule.Order) ctlapi.Capsule {
		envelope, err := capsule.Sign(key, capsule.KeyID(public), capsule.OrderType, o)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(envelope)
		if err != nil {
			t.Fatal(err)
		}
		payload, err := base64.StdEncoding.DecodeString(envelope.Payload)
		if err != nil {
			t.Fatal(err)
		}
		got := ctlapi.Capsule{ChangeID: "chg_1", Envelope: string(raw)}
		if err := json.Unmarshal(payload, &got.Order); err != nil {
			t.Fatal(err)
		}
		return got
	}
	honest := answer(order)
	if err := verify(honest, "chg_1", public); err != nil {
		t.Errorf("an honest answer: %v", err)
	}
	anothers := order
	anothers.ChangeID = "chg_2"
	forged, err := capsule.Sign(otherKey, capsule.KeyID(public), capsule.OrderType, order)
	if err != nil {
		t.Fatal(err)
	}
	forgedRaw, err := json.Marshal(forged)
	if err != nil {
		t.Fatal(err)
	}
	otherType, err := capsule.Sign(key, capsule.KeyID(public), "application/x", order)
	if err != nil {
		t.Fatal(err)
	}
	otherTypeRaw, err := json.Marshal(otherType)
	if err != nil {
		t.Fatal(err)
	}
	shown, cut := honest, honest
	shown.Order.EffectDigest = "sha256:b"
	cut.Envelope = honest.Envelope[:40]
	for name, got := range map[string]ctlapi.Capsule{
		"the capsule of another change":       answer(anothers),
		"another view than what was signed":   shown,
		"signed by another key with its name": {Envelope: string(forgedRaw), Order: honest.Order},
		"signed as something else":            {Envelope: string(otherTypeRaw), Order: honest.Order},
		"no signature":                        {Envelope: strings.Replace(honest.Envelope, `"signatures":[`, `"x":[`, 1), Order: honest.Order},
	} {
		if err := verify(got, "chg_1", public); !errors.Is(err, capsule.ErrSignature) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := verify(cut, "chg_1", public); err == nil {
		t.Error("half an envelope passes")
	}
	if err := verify(honest, "chg_1", other); !errors.Is(err, capsule.ErrSignature) {
		t.Errorf("with another key: %v", err)
	}

	file := filepath.Join(t.TempDir(), "dispatch.pub")
	if err := os.WriteFile(file, []byte(capsule.EncodePublicKey(public)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, given := range []string{file, capsule.EncodePublicKey(public)} {
		if got, err := publicKey(given); err != nil || !got.Equal(public) {
			t.Errorf("--key %s: %v", given, err)
		}
	}
	if _, err := publicKey("nonsense"); err == nil {
		t.Error("nonsense is a key")
	}
}
