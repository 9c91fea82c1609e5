package e2e_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestSignedReleases: an install whose customer pinned the vendor's key. What the vendor
// has not signed is not planned, no matter who holds the control plane and its database; what it
// signed and the customer accepted may return; and the key can be replaced.
func TestSignedReleases(t *testing.T) {
	t.Parallel()
	s := start(t)
	in := s.probe("acme")
	db := s.database()
	customer := func(args ...string) (string, error) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-runner"), append([]string{"--data", in.runnerDir()}, args...)...).CombinedOutput()
		return string(out), err
	}
	mustCustomer := func(args ...string) string {
		t.Helper()
		out, err := customer(args...)
		if err != nil {
			t.Fatalf("berth-runner %v: %v\n%s", args, err, out)
		}
		return out
	}
	to := func(release string) ctlapi.Workflow {
		t.Helper()
		var w ctlapi.Workflow
		in.post("/installs/acme/workflows", map[string]any{"kind": "deploy", "release": strings.TrimPrefix(release, "probe@"), "approve_all": true}, &w)
		return in.finished(w.ID, 2*time.Minute)
	}
	refused := func(release, why string) {
		t.Helper()
		before := in.effects()
		w := to(release)
		if text := in.explain(w); w.State != "failed" || !strings.Contains(text, "signed releases only") || !strings.Contains(text, why) {
			t.Errorf("%s is %s: %s; want it refused: %s", release, w.State, text, why)
		}
		if after := in.effects(); !slices.Equal(before, after) {
			t.Errorf("%s took effect: %v", release, after[len(before):])
		}
	}
	taken := func(release string) {
		t.Helper()
		if w := to(release); w.State != "succeeded" {
			t.Fatalf("%s is %s: %s", release, w.State, in.explain(w))
		}
	}

	if out := mustCustomer("status"); !strings.Contains(out, "taken unsigned") {
		t.Errorf("status without a key:\n%s", out)
	}
	key, next := filepath.Join(t.TempDir(), "vendor.key"), filepath.Join(t.TempDir(), "next.key")
	s.must("releases", "keygen", key)
	s.must("releases", "keygen", next)
	var app ctlapi.App
	s.get("/apps/probe", &app)
	mustCustomer("trust", "vendor-key", "add", key+".pub", "--app", app.ID)
	if out := mustCustomer("status"); !strings.Contains(out, "only those signed by ed25519:") {
		t.Errorf("status with a key:\n%s", out)
	}
	sign := func(release string, key string) { t.Helper(); s.must("releases", "sign", release, "--key", key) }

	// Unsigned: refused, and the vendor is told what to do.
	in.change("v2")
	refused("probe@2", "signature")
	if out := s.must("why", "acme"); !strings.Contains(out, "berth releases sign") {
		t.Errorf("why:\n%s", out)
	}
	if out := s.must("releases", "show", "probe@2"); !strings.Contains(out, "not signed") {
		t.Errorf("an unsigned release:\n%s", out)
	}

	// Signed: what was shown is what was signed, and it is deployed.
	out := s.must("releases", "sign", "probe@2", "--key", key, "--dry-run")
	if !strings.Contains(out, "\n  artifact  one ") || !strings.Contains(out, "\n  config    one ") || !strings.Contains(out, app.ID) {
		t.Errorf("what is signed:\n%s", out)
	}
	if _, errOut, code := s.run("releases", "sign", "probe@2", "--key", key, "--expect", "sha256:"+strings.Repeat("0", 64)); code == 0 || !strings.Contains(errOut, "nothing was signed") {
		t.Errorf("another manifest than expected: exit %d: %s", code, errOut)
	}
	sign("probe@2", key)
	if out := s.must("releases", "show", "probe@2"); !strings.Contains(out, "signed by ed25519:") {
		t.Errorf("a signed release:\n%s", out)
	}
	taken("probe@2")
	signedAt := time.Now().UTC()
	if got := in.output("one"); got["value"] != "v2" {
		t.Errorf("one has %v", got["value"])
	}

	// Downgrade: release 3 is signed, was never accepted, and is older than 4.
	in.change("v3")
	sign("probe@3", key)
	in.change("v4")
	sign("probe@4", key)
	taken("probe@4")
	refused("probe@3", "downgrade")
	s.must("rollback", "acme", "--auto-approve") // an accepted one may return
	if got := in.output("one"); got["value"] != "v2" {
		t.Errorf("after the rollback one has %v", got["value"])
	}

	// Mixed: somebody edits the database.
	in.change("v5")
	sign("probe@5", key)
	tag, err := db.Exec(t.Context(), `update berth.release_items set artifact_digest = (select artifact_digest from berth.release_items i join berth.components c on c.id = i.component_id where c.kind = 'sandbox' and i.release_id = release_items.release_id)
		where release_id = (select r.id from berth.releases r join berth.apps a on a.id = r.app_id where a.name = 'probe' and r.number = 5) and component_id = (select id from berth.components where name = 'one' limit 1)`)
	if err != nil || tag.RowsAffected() != 1 {
		t.Fatalf("%d artifacts were swapped: %v", tag.RowsAffected(), err)
	}
	refused("probe@5", "manifest")
	if out := s.must("releases", "show", "probe@5"); !strings.Contains(out, "FOR ANOTHER MANIFEST") {
		t.Errorf("a mixed release:\n%s", out)
	}

	// Rotation: the old key signs the new one, the customer compares and accepts.
	rotation := filepath.Join(t.TempDir(), "rotation.json")
	if err := os.WriteFile(rotation, []byte(s.must("releases", "rotate-key", "probe", "--key", key, "--new-key", next+".pub")), 0o600); err != nil {
		t.Fatal(err)
	}
	shown, err := customer("trust", "vendor-key", "accept", rotation)
	if err == nil || !strings.Contains(shown, "old key  ed25519:") || !strings.Contains(shown, "new key  ed25519:") {
		t.Fatalf("a rotation that nobody compared: %v\n%s", err, shown)
	}
	_, id, _ := strings.Cut(shown, "new key  ")
	id, _, _ = strings.Cut(id, "\n")
	mustCustomer("trust", "vendor-key", "accept", rotation, "--yes", id)
	in.change("v6")
	sign("probe@6", key)
	refused("probe@6", "another key")
	sign("probe@6", next)
	taken("probe@6")
	taken("probe@4") // that the old key signed, and that was accepted then
	taken("probe@6")

	// The vendor takes one back, with the key that counts: for good, also when the control
	// plane forgets about it. The old key takes nothing back.
	in.change("v7")
	sign("probe@7", next)
	taken("probe@7")
	s.must("releases", "revoke", "probe@6", "--key", key, "--reason", "signed by a key of before")
	s.must("releases", "revoke", "probe@7", "--key", next, "--reason", "it loses data")
	if out := s.must("releases", "show", "probe@7"); !strings.Contains(out, "REVOKED by ed25519:") || !strings.Contains(out, "it loses data") {
		t.Errorf("a revoked release:\n%s", out)
	}
	in.eventually(time.Minute, "the revocation at the runner", func() error {
		if out := mustCustomer("trust", "vendor-key", "list"); !strings.Contains(out, "by the vendor (ed25519:") {
			return errors.New(out)
		}
		return nil
	})
	if _, err := db.Exec(t.Context(), `alter table berth.release_revocations disable trigger all; delete from berth.release_revocations`); err != nil {
		t.Fatal(err)
	}
	refused("probe@7", "revoked")
	in.change("v8")
	sign("probe@8", next)
	taken("probe@8")
	refused("probe@7", "revoked")
	taken("probe@6")

	// The customer takes one back; what is there can be removed all the same.
	mustCustomer("trust", "vendor-key", "revoke-release", "4", "--reason", "recalled")
	refused("probe@4", "revoked")
	mustCustomer("trust", "vendor-key", "revoke-release", "6", "--reason", "recalled, too")
	s.must("installs", "teardown", "acme", "one", "--with-dependents", "--confirm", "acme", "--auto-approve")

	// Scheduled checks are scripts of a release as well: they went on once that was accepted.
	in.eventually(2*time.Minute, "a scheduled check of a signed release", func() error {
		if n := len(column(t, db, `select id from berth.action_runs where state = 'succeeded' and scheduled_at > '`+signedAt.Format(time.RFC3339)+`'`)); n == 0 {
			return errors.New("none yet")
		}
		return nil
	})

	var list struct {
		Accepted []struct{ Number int }
		Revoked  []struct{ Number int }

		RevokedByVendor []struct{ Number int } `json:"revoked_by_vendor"`
	}
	if err := json.Unmarshal([]byte(mustCustomer("trust", "vendor-key", "list", "--json")), &list); err != nil || len(list.Accepted) != 5 || len(list.Revoked) != 2 || len(list.RevokedByVendor) != 1 {
		t.Errorf("what the runner knows: %+v, %v", list, err)
	}
	verified, err := exec.CommandContext(t.Context(), filepath.Join(s.bin, "berth-verify"), "chain", filepath.Join(in.runnerDir(), "chain.jsonl"), "--keys").CombinedOutput()
	if err != nil || strings.Count(string(verified), "vouches as vendor") != 2 || !strings.Contains(string(verified), "replaced by "+id+" in record") {
		t.Errorf("berth-verify: %v\n%s", err, verified)
	}
}
