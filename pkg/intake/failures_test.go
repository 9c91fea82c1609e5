package intake_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/intake"
)

func TestFailures(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	f := intake.NewFailures(func() time.Time { return now })
	const attacker, neighbour, other = "192.0.2.7:1000", "192.0.2.7:2000", "192.0.2.8:1000"
	counted := 0
	for ; counted < 1000; counted++ {
		if _, over := f.Failed(attacker); over {
			break
		}
	}
	if counted != 300 {
		t.Errorf("%d failures were let pass, want 300", counted)
	}
	if retry, over := f.Failed(neighbour); !over || retry <= 0 || retry > time.Second {
		t.Errorf("the same address by another port: over %t, retry in %s", over, retry)
	}
	if _, over := f.Failed(other); over {
		t.Error("another address pays for it")
	}
	now = now.Add(time.Second)
	for range 20 {
		if _, over := f.Failed(attacker); over {
			t.Error("after a second, twenty more are counted")
		}
	}
	if _, over := f.Failed(attacker); !over {
		t.Error("and a twenty-first too")
	}
	if _, over := f.Failed("[2001:db8::1]:1"); over {
		t.Error("an address of IPv6 pays for it")
	}
	for range 310 {
		f.Failed(fmt.Sprintf("[2001:db8::%x]:1", counted))
		counted++
	}
	if _, over := f.Failed("[2001:db8::ffff]:1"); !over {
		t.Error("one network of IPv6 has as many tries as it has addresses")
	}
}

// Over the limit, look-ups stand in line; they are not refused.
func TestSuspectsStandInLine(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := intake.NewFailures(func() time.Time { return now })
	const attacker = "192.0.2.7:1000"
	for range 300 {
		f.Failed(attacker)
	}
	var leaves []func()
	for range 4 {
		leave, err := f.Enter(t.Context(), attacker)
		if err != nil {
			t.Fatal(err)
		}
		leaves = append(leaves, leave)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Enter(ended, attacker); !errors.Is(err, context.Canceled) {
		t.Errorf("a fifth look-up: %v, want it to wait", err)
	}
	if leave, err := f.Enter(ended, "192.0.2.8:1"); err != nil {
		t.Errorf("another address waits: %v", err)
	} else {
		leave()
	}
	leaves[0]()
	leaves[0]() // twice is once
	leave, err := f.Enter(t.Context(), attacker)
	if err != nil {
		t.Fatal(err)
	}
	leave()
}

func TestFailuresAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Now()
	f := intake.NewFailures(func() time.Time { return now })
	for i := range 100_000 {
		f.Failed(fmt.Sprintf("10.%d.%d.%d:1", i>>16&255, i>>8&255, i&255))
	}
	if n := f.Addresses(); n > 8192 {
		t.Errorf("%d addresses are remembered", n)
	}
}
