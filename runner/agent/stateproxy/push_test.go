package stateproxy_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/runner/agent/control"
)

// left are the files of the proxy's directory. None has the state in clear.
func (b *bench) left() (names []string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range entries {
		raw, err := os.ReadFile(filepath.Join(b.dir, e.Name()))
		if err != nil {
			b.t.Fatal(err)
		}
		if bytes.Contains(raw, []byte("secret content")) {
			b.t.Errorf("%s has the state in clear", e.Name())
		}
		names = append(names, e.Name())
	}
	return names
}

// Terraform's own write is refused, so it lets go of its lock and leaves the state in a
// file.
func TestPushOfARefusedState(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	if status, _ := b.ask(http.MethodPost, "/lock", lock); status != http.StatusOK {
		t.Fatal(status)
	}
	b.refuse = &control.Error{Status: http.StatusConflict, Code: "state_refused"}
	if status, _ := b.ask(http.MethodPost, "/?ID=L1", state); status != http.StatusConflict {
		t.Fatalf("the write: %d", status)
	}
	b.refuse = nil
	if status, _ := b.ask(http.MethodDelete, "/lock", lock); status != http.StatusOK {
		t.Fatal(status)
	}
	if left := b.left(); len(left) != 1 || !strings.HasPrefix(left[0], "refused-state-") {
		t.Fatalf("after the refusal there are %v", left)
	}
	serial, err := b.proxy.Push(t.Context(), []byte(state))
	if err != nil || len(b.writes) != 1 || b.writes[0].Serial != serial {
		t.Fatalf("serial %d, %v, writes %+v", serial, err, b.writes)
	}
	own := b.writes[0].LockID
	if b.locked[len(b.locked)-1].LockID != own || b.locked[len(b.locked)-1].Fence != 5 || b.freed[len(b.freed)-1].LockID != own {
		t.Errorf("written under lock %s, locked %+v, freed %+v", own, b.locked, b.freed)
	}
	if left := b.left(); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
	if _, got, ok := b.proxy.Present(); !ok || got != serial {
		t.Errorf("present serial is %d, %v", got, ok)
	}
}

// The agent is killed while the control plane is away: the next one delivers the state
// and frees the lock.
func TestPushSurvivesAKill(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	puts := make(chan struct{}, 1)
	b.onPut = func() error {
		select {
		case puts <- struct{}{}:
		default:
		}
		<-ctx.Done() // as a connection that hangs
		return errAway
	}
	if _, err := b.proxy.Push(ctx, []byte(state)); err == nil {
		t.Fatal("it was taken in an outage")
	}
	<-puts
	if left := b.left(); len(left) != 2 {
		t.Fatalf("on disk are %v, want the state and the lock", left)
	}
	b.mu.Lock()
	b.onPut = nil
	b.mu.Unlock()
	if err := b.proxy.Finish(t.Context()); err != nil { // what a new agent calls, on the same directory
		t.Fatal(err)
	}
	if len(b.writes) != 1 || len(b.freed) == 0 || b.freed[len(b.freed)-1].LockID != b.writes[0].LockID {
		t.Errorf("writes %+v, freed %+v", b.writes, b.freed)
	}
	if left := b.left(); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
}

// Where somebody else holds the state by now, it stays as evidence.
func TestPushIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.holder = &runnerapi.Lock{LockID: "other"}
	if _, err := b.proxy.Push(t.Context(), []byte(state)); err == nil || !strings.Contains(err.Error(), "somebody else holds the state") {
		t.Errorf("got %v", err)
	}
	if left := b.left(); len(left) != 1 || !strings.HasPrefix(left[0], "refused-state-") || len(b.writes) != 0 {
		t.Errorf("it left %v, wrote %d", left, len(b.writes))
	}
	if _, err := b.proxy.Push(t.Context(), []byte("{")); err == nil {
		t.Error("half a state was taken")
	}
	if _, err := newBench(t, false).proxy.Push(t.Context(), []byte(state)); err == nil {
		t.Error("a plan handed in a state")
	}
}
