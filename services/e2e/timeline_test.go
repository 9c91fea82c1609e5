package e2e_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestTimeline leads an install through new inputs, a toggle, a run of an action and a
// deploy that fails, and looks back at it from the command line.
func TestTimeline(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := &install{system: s, name: "acme", app: folder(t, "testdata/probe")}
	edit(t, filepath.Join(in.app, "components", "three.toml"), "type              =", "toggleable        = true\ntype              =")
	for _, name := range []string{"one", "two", "three"} {
		edit(t, filepath.Join(in.app, "components", name+".toml"), `lines  = "20"`, `lines  = "1"`)
	}
	s.sync("probe", in.app)
	s.post("/installs", map[string]any{
		"name": "acme", "app": "probe", "customer": "acme", "create_customer": true, "stack": "local", "inputs": ctlapi.InputValues{"canary": canary},
	}, nil)
	s.must("installs", "provision", "acme", "--auto-approve")
	provisioned := time.Now().UTC()

	const other = "another-canary-of-the-timeline-5d20"
	secrets := filepath.Join(t.TempDir(), "inputs")
	if err := os.WriteFile(secrets, []byte("canary="+other+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("installs", "inputs", "acme", "--input-file", secrets)
	s.must("installs", "toggle", "acme", "three", "off")
	s.must("actions", "run", "acme", "alive", "--auto-approve", "--watch")
	edit(t, filepath.Join(in.app, "src", "work", "main.tf"), "      exec 9>>", "      [ \"${var.value}\" != broken ] || { echo no such bucket >&2; exit 3; }\n      exec 9>>")
	edit(t, filepath.Join(in.app, "components", "two.toml"), `value  = "v1"`, `value  = "broken"`)
	in.change("v2")
	if _, _, code := s.run("deploy", "acme", "--auto-approve", "--confirm", "acme"); code == 0 {
		t.Fatal("the deploy did not fail")
	}

	shows := func(out string, want ...string) {
		t.Helper()
		for _, text := range want {
			if !strings.Contains(out, text) {
				t.Errorf("no %q in:\n%s", text, out)
			}
		}
		if strings.Contains(out, canary) || strings.Contains(out, other) {
			t.Errorf("an input shows:\n%s", out)
		}
	}
	// Events get their numbers within milliseconds of their commit.
	var out string
	s.eventually(goOnTimeout, "the failure is in the timeline", func() error {
		if out = s.must("history", "acme", "--limit", "0"); !strings.Contains(out, "deploy #3 (release 2) failed") {
			return errors.New(out)
		}
		return nil
	})
	t.Logf("berth history:\n%s", out)
	shows(out, "inputs set, version 2: canary", "three switched off", "action alive succeeded", "deploy of two failed", "provision #1 (release 1) succeeded",
		"install made, stack local", "release 2 made", "runner enrolled")
	t.Logf("berth history -o wide:\n%s", s.must("history", "acme", "-o", "wide", "--limit", "5"))
	shows(s.must("history", "acme", "-o", "csv"), "age,time,what,by,kind", "inputs.changed")
	if out := s.must("history", "acme", "--kind", "inputs.changed", "--oldest"); strings.Count(out, "\n") != 2 {
		t.Errorf("only inputs:\n%s", out)
	}
	if out := s.must("history", "acme", "--resource", "two", "--since", provisioned.Format(time.RFC3339Nano)); strings.Contains(out, "deploy of one") || !strings.Contains(out, "deploy of two failed") {
		t.Errorf("only two:\n%s", out)
	}
	if _, errOut, code := s.run("history", "acme", "--since", "yesterday"); code != 64 || !strings.Contains(errOut, "not a time") {
		t.Errorf("a time that is none: exit %d: %s", code, errOut)
	}

	// What changed before it broke: what two is made of comes first.
	out = s.must("history", "acme", "--before-failure")
	t.Logf("berth history --before-failure:\n%s", out)
	shows(out, "deploy of two failed", "provision #1 (release 1) succeeded", " 1. release 1 became 2: ", "it changes two, which failed", "inputs set, version 2: canary", "three switched off")
	var before ctlapi.BeforeFailure
	if err := json.Unmarshal([]byte(s.must("history", "acme", "--before-failure", "-o", "json")), &before); err != nil {
		t.Fatal(err)
	}
	if before.Failure == nil || before.Failure.Kind != "change.failed" || len(before.Suspects) < 3 || before.Suspects[0].Weight != 95 {
		t.Errorf("as JSON: %+v", before)
	}

	// The state tree through time.
	out = s.must("installs", "state", "acme", "--versions")
	t.Logf("berth installs state --versions:\n%s", out)
	shows(out, "inputs set, version 2: canary", "inputs.inputs.canary", "deploy of one (release 1) applied")
	was := s.must("installs", "state", "acme", "--at", provisioned.Format(time.RFC3339Nano))
	shows(was, `"three"`, "(sealed)")
	out = s.must("installs", "state", "acme", "--diff", provisioned.Format(time.RFC3339Nano))
	t.Logf("berth installs state --diff:\n%s", out)
	shows(out, "inputs.inputs.canary", "(sealed, replaced)")
	if strings.Contains(out, "components.two.") {
		t.Errorf("two did not change:\n%s", out)
	}
	if _, errOut, code := s.run("installs", "state", "acme", "--at", "2001-01-01"); code != 1 || !strings.Contains(errOut, "had no state") {
		t.Errorf("a state before there was one: exit %d: %s", code, errOut)
	}

	// What it was at a time.
	out = s.must("installs", "snapshot", "acme", "--at", provisioned.Format(time.RFC3339Nano))
	t.Logf("berth installs snapshot --at:\n%s", out)
	shows(out, "release    1 (config 1)", "version 1", "canary = (sealed)", "switch run")
	if strings.Contains(out, "three off") {
		t.Errorf("the toggle was not there yet:\n%s", out)
	}
	out = s.must("installs", "snapshot", "acme", "--diff", provisioned.Format(time.RFC3339Nano))
	t.Logf("berth installs snapshot --diff:\n%s", out)
	shows(out, "component_toggles.three", "inputs.values.canary", "(sealed, replaced)", "resources.two.state")
	if _, errOut, code := s.run("installs", "snapshot", "acme", "--at", "2001-01-01"); code != 1 || !strings.Contains(errOut, "is known from") {
		t.Errorf("a time before its history: exit %d: %s", code, errOut)
	}

	// A change that waits, as it waited then.
	edit(t, filepath.Join(in.app, "components", "two.toml"), `value  = "broken"`, `value  = "v3"`)
	in.change("v3")
	s.must("deploy", "acme", "--confirm", "acme")
	var w ctlapi.WorkflowPage
	s.get("/workflows?install=acme&limit=1", &w)
	change := in.proposed(w.Items[0].ID, "component/two")
	waited := time.Now().UTC()
	s.must("cancel", "acme")
	in.finished(w.Items[0].ID, goOnTimeout)
	var then, now ctlapi.Snapshot
	s.get("/installs/acme/snapshot?at="+waited.Format(time.RFC3339Nano), &then)
	s.get("/installs/acme/snapshot", &now)
	waits := func(snap ctlapi.Snapshot) bool {
		return slices.ContainsFunc(snap.Approvals, func(a ctlapi.SnapshotApproval) bool { return a.ChangeID == change.ID })
	}
	if !waits(then) || waits(now) {
		t.Errorf("%s waited then: %+v; now: %+v", change.ID, then.Approvals, now.Approvals)
	}
}
