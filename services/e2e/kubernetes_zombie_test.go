package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestKubernetesZombie freezes agent and engine while a chart's pods are rolled
// out, until another machine has taken their place and rolled out something
// else. When they wake up, they write nothing any more.
func TestKubernetesZombie(t *testing.T) {
	t.Parallel()
	s := startOnCluster(t, "BERTH_LEASE_TTL=10s")
	k := s.slowShop()
	db := s.database()

	k.limit("70Mi")
	w := k.deploy(true, "web")
	k.rollingOut(w.ID, "70Mi")
	frozen := k.freeze(2) // agent, engine
	t.Cleanup(func() { k.thaw(frozen) })
	zombie := k.onlyJob(db, `operation = 'apply' and state = 'leased'`)
	k.eventually(time.Minute, "the lease is lost", func() error {
		return k.expect(db, `select state from berth.leases where job_id = $1`, zombie, "lost")
	})

	k.replaceMachine()
	if got := k.finished(w.ID, rolloutTimeout); got.State != "succeeded" {
		t.Fatalf("the other machine did not go on: %s", k.explain(got))
	}
	k.limit("71Mi")
	k.deployed("web")
	k.settledRelease("71Mi")

	before, history := k.objects(), k.history()
	k.thaw(frozen)
	k.eventually(time.Minute, "the zombie's engine came to its end", func() error {
		if left := k.enginesOf(k.runnerDir()); len(left) > 0 {
			return fmt.Errorf("%d processes are left", len(left))
		}
		return nil
	})
	k.eventually(time.Minute, "the zombie's agent was told that it is over", func() error {
		raw, err := os.ReadFile(filepath.Join(k.dir, "log", "runner-"+k.runner+".log"))
		if err == nil && !bytes.Contains(raw, []byte("session_void")) {
			err = errors.New("its log does not say so")
		}
		return err
	})
	k.noLinesLost()
	if diff := cmp.Diff(before, k.objects()); diff != "" {
		t.Errorf("the zombie wrote (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(history, k.history()); diff != "" {
		t.Errorf("the zombie changed the release (-before +after):\n%s", diff)
	}
}

// history is what the Helm CLI shows of the shop's release.
func (k *shop) history() []json.RawMessage {
	k.t.Helper()
	var history []json.RawMessage
	k.helm(&history, "history", "web")
	return history
}
