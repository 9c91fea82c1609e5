package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestEvents follows the stream of an org at the command line and with a receiver that
// fails half the time, while ctl-api is killed: both get everything, once.
func TestEvents(t *testing.T) {
	t.Parallel()
	s := start(t, webhookAllow)
	hook := s.receives("pager")
	var at ctlapi.EventPage
	s.get("/events?from_now=true", &at)
	lines := s.followEvents(at.Position)

	in := s.probe("acme")
	w := in.deploy(true, "one")
	s.signal(s.pid("ctl-api"), syscall.SIGKILL)
	in.back("ctl-api")
	if w = in.finished(w.ID, time.Minute); w.State != "succeeded" {
		t.Fatalf("the deploy: %s", in.explain(w))
	}

	kinds := hook.gotAll(s, at.Position)
	for _, want := range []string{"install.created", "workflow.succeeded", "change.applied", "build.succeeded"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no event %s", want)
		}
	}
	var all ctlapi.EventPage
	s.get(fmt.Sprintf("/events?limit=500&after=%d", at.Position), &all)
	var want []int64
	for _, e := range all.Items {
		want = append(want, e.Seq)
	}
	var got []int64
	s.eventually(goOnTimeout, "the command line shows all events", func() error {
		got = nil
		for line := range strings.Lines(lines()) {
			var e ctlapi.Event
			if !strings.HasSuffix(line, "\n") {
				break // being written
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			got = append(got, e.Seq)
		}
		if len(got) < len(want) {
			return fmt.Errorf("%d of %d", len(got), len(want))
		}
		return nil
	})
	if diff := cmp.Diff(want, got[:len(want)]); diff != "" {
		t.Errorf("berth events --follow (-want +got):\n%s", diff)
	}

	// A page of the list, and one install alone.
	if out := s.must("events", "--since", fmt.Sprint(at.Position), "--install", "acme", "--type", "workflow.*"); !strings.Contains(out, "workflow.succeeded") || strings.Contains(out, "build.") {
		t.Errorf("berth events shows\n%s", out)
	}
	// What was delivered is sent again on demand, under the same ids.
	s.must("webhooks", "replay", "pager", "--after", fmt.Sprint(at.Position), "--up-to", fmt.Sprint(at.Position+10))
	s.eventually(goOnTimeout, "ten events are replayed", func() error {
		hook.mu.Lock()
		defer hook.mu.Unlock()
		again := 0
		for _, e := range all.Items[:10] {
			if hook.arrived[e.ID] > 1 {
				again++
			}
		}
		if again < 10 {
			return fmt.Errorf("%d came again", again)
		}
		return nil
	})
	hook.recovers()
	s.must("webhooks", "test", "pager")

	// The capsule of a change: as signed, verified with the org's key, and by nobody else's.
	var keys ctlapi.KeyPage
	s.get("/keys?purpose=dispatch", &keys)
	if out := s.must("changes", "capsule", in.changes("applied")[0].ID, "--raw", "--key", keys.Items[0].PublicKey); !strings.Contains(out, `"payloadType":"application/vnd.berth.order.v1+json"`) {
		t.Errorf("the capsule is %s", out)
	}
}

// followEvents starts `berth events --follow`, which ends with the test, and returns what
// it has shown so far.
func (s *system) followEvents(since int64) (shown func() string) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "berth"), "events", "--follow", "--since", fmt.Sprint(since), "-o", "json")
	var out watched
	var errOut bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &out, &errOut
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		if s.t.Failed() {
			s.t.Logf("berth events --follow said: %s", errOut.String())
		}
	})
	return out.String
}
