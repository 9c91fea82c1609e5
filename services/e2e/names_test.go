package e2e_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNames goes through a day at the command line without typing an id: what
// people type is found by name, or by the beginning of an id.
func TestNames(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	says := func(want string, code int, args ...string) {
		t.Helper()
		out, errOut, got := s.run(args...)
		if got != code || !strings.Contains(out+errOut, want) {
			t.Errorf("berth %s: exit code %d, want %d and %q\n%s%s", strings.Join(args, " "), got, code, want, out, errOut)
		}
	}
	says("acme", 0, "__complete", "deploy", "")
	says("acme/one", 0, "__complete", "deploy", "acme/")
	says(`there is no install "acmee"; did you mean acme?`, 1, "deploy", "acmee")
	says(`did you mean one?`, 1, "deploy", "acme/noe")
	says("nothing of acme waits for a decision", 1, "approve", "acme")
	says("app probe has no release 9; its newest is 1", 1, "deploy", "acme", "--to", "9")

	// A release that says what it is for.
	file := filepath.Join(in.app, "components", "one.toml")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(data, []byte(`"v1"`), []byte(`"v2"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	s.must("sync", in.app, "--app", "probe", "--wait", "-m", "Say v2")
	says("Say v2", 0, "releases", "list", "probe")
	says("release 1 → 2", 2, "diff", "acme")

	// Denied, cancelled and approved by name.
	var deploy struct{ ID string }
	begin := func() {
		t.Helper()
		if err := json.Unmarshal([]byte(s.must("deploy", "acme/one", "-o", "json")), &deploy); err != nil {
			t.Fatal(err)
		}
		in.proposed(deploy.ID, "component/one")
	}
	begin()
	says("acme/one", 0, "__complete", "approve", "")
	says("denied chg_", 0, "deny", "acme/one", "--note", "not now")
	in.finished(deploy.ID, goOnTimeout)
	s.eventually(goOnTimeout, "the denial in the history", func() error { // events get their numbers after the commit
		if out := s.must("history", "acme", "--limit", "1"); !strings.Contains(out, "denied by admin") {
			return errors.New(out)
		}
		return nil
	})
	says("denied by admin", 0, "workflows", "list", "--limit", "1")
	says("deploy denied by admin", 0, "status", "acme")
	says(`"ended_by": "admin"`, 0, "workflows", "get", deploy.ID, "-o", "json")
	if out := s.must("status", "acme") + s.must("history", "acme") + s.must("why", "acme") + s.must("workflows", "get", deploy.ID); strings.Contains(out, "failed") {
		t.Errorf("a denial shows as a failure:\n%s", out)
	}

	// Planned again, then skipped: nothing of it is done, and the workflow goes on.
	begin()
	first := in.proposed(deploy.ID, "component/one").ID
	says(first, 0, "changes", "list", "--waiting", "-o", "name")
	says("planned again instead of "+first, 0, "changes", "plan-again", "acme/one", "--note", "once more")
	if again := in.proposed(deploy.ID, "component/one").ID; again == first {
		t.Error("there is no second change")
	}
	says("planned again, asked for by admin: once more", 0, "changes", "show", first)
	says("denied chg_", 0, "deny", "acme/one", "--skip")
	in.finished(deploy.ID, goOnTimeout)
	says("skipped", 0, "workflows", "get", deploy.ID)
	says("nothing waits for a decision", 0, "changes", "list", "--waiting")
	says("release 1 → 2", 2, "diff", "acme")

	begin()
	says(deploy.ID, 0, "workflows", "show", "acme", "-o", "name")
	says(deploy.ID, 0, "cancel", "acme", "-o", "name")
	in.finished(deploy.ID, goOnTimeout)
	begin()
	change := in.proposed(deploy.ID, "component/one").ID
	says(change, 0, "changes", "show", change[:len(change)-2], "-o", "name")
	says("approved "+change, 0, "approve", "acme/one", "--auto-approve", "--watch")
	in.finished(deploy.ID, goOnTimeout)

	// What happened, what came of it, and back.
	says("deploy", 0, "history", "acme", "--limit", "1")
	says("acme", 0, "ps", "acme")
	says("one", 0, "outputs", "acme", "one")
	says("ring: canary", 0, "installs", "set", "acme", "label=ring=canary", "-o", "yaml")
	says("no live install matches", 1, "deploy", "--label", "ring=stable")
	says("deploy acme", 0, "deploy", "--label", "ring=canary")
	says("rolling acme back from release 2 to 1", 0, "rollback", "acme")
	says("admin", 0, "members", "list")
}
