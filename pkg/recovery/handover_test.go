package recovery_test

import (
	"errors"
	"testing"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/recovery"
)

func TestChangeNeedsTheKeyBefore(t *testing.T) {
	t.Parallel()
	keys := make([]*recovery.Key, 3)
	for i := range keys {
		var err error
		if keys[i], err = recovery.New(); err != nil {
			t.Fatal(err)
		}
	}
	first, next, thief := keys[0], keys[1], keys[2]
	change := recovery.Change{OrgID: "org_1", InstallID: "ins_1", Next: next.Public()}
	signed, err := first.SignChange(change)
	if err != nil {
		t.Fatal(err)
	}
	stolen, err := thief.SignChange(change)
	if err != nil {
		t.Fatal(err)
	}
	_, machine, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	introduced, err := recovery.Introduce(machine, change)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(env capsule.Envelope, install string, next *recovery.Key) error {
		return recovery.VerifyChange(first.Public(), env, recovery.Change{OrgID: "org_1", InstallID: install, Next: next.Public()})
	}
	if err := verify(signed, "ins_1", next); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"another key signed":    verify(stolen, "ins_1", next),
		"the machine signed":    verify(introduced, "ins_1", next),
		"for another install":   verify(signed, "ins_2", next),
		"for another key":       verify(signed, "ins_1", thief),
		"no signature":          verify(capsule.Envelope{}, "ins_1", next),
		"no handover, a change": handover(first, signed),
	} {
		if !errors.Is(err, recovery.ErrRefused) {
			t.Errorf("%s: %v, want ErrRefused", name, err)
		}
	}
}

// handover takes an envelope for a handover.
func handover(key *recovery.Key, env capsule.Envelope) error {
	_, err := recovery.VerifyHandover(key.Public(), env, recovery.Handover{OrgID: "org_1", InstallID: "ins_1"})
	return err
}
