package recovery_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/recovery"
)

func TestKeyRoundTrip(t *testing.T) {
	t.Parallel()
	key, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	again, err := recovery.Parse(key.String() + "\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(key.Public(), again.Public()); diff != "" || !key.Signer().Equal(again.Signer()) {
		t.Errorf("another key came back: %s", diff)
	}
	other, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	if other.Public() == key.Public() {
		t.Error("two keys are the same")
	}
	secret := strings.TrimPrefix(key.String(), "berth-recovery-key-v1:")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if text := fmt.Sprintf(verb, key); strings.Contains(text, secret) || !strings.Contains(text, key.Public().KeyID) {
			t.Errorf("%s prints %q", verb, text)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	key, err := recovery.New()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "AGE-SECRET-KEY-1", key.Public().Recipient, key.String()[:30], strings.TrimPrefix(key.String(), "berth-")} {
		if _, err := recovery.Parse(text); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("Parse(%q): %v", text, err)
		}
	}
}
