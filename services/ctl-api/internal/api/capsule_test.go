package api_test

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/ctlapi"
)

// The capsule of a change arrives as it was signed, and with its key it verifies; a
// change without one says why.
func TestCapsuleOfChange(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme", "globex")
	d.proposed("acme", 2)
	d.proposed("globex", 2)

	none, err := admin.GetCapsuleWithResponse(t.Context(), "chg_globex")
	if p := problemOf(t, none, err, http.StatusNotFound, "no_capsule"); !strings.Contains(*p.Detail, "waits for a decision") {
		t.Errorf("the reason: %s", *p.Detail)
	}
	unknown, err := admin.GetCapsuleWithResponse(t.Context(), "chg_nope")
	problemOf(t, unknown, err, http.StatusNotFound, "not_found")

	public, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	order := capsule.Order{
		OrgID: "org", InstallID: "ins", JobID: "job_2", Kind: "terraform_module", Operation: "apply", ChangeID: "chg_acme", OriginID: "chg_acme",
		SpecDigest: "sha256:a", EffectDigest: "sha256:x", Fence: 7, Nonce: "n", Starts: 1, IssuedAt: at, ExpiresAt: at.Add(time.Hour), Actor: "ada",
	}
	envelope, err := capsule.Sign(key, capsule.KeyID(public), capsule.OrderType, order)
	if err != nil {
		t.Fatal(err)
	}
	// As no encoder of ours writes it: it comes back all the same.
	signed, err := json.MarshalIndent(envelope, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	d.sql(`insert into runner_jobs (id, org_id, runner_id, install_id, change_id, resource_id, kind, operation, mutates, state, spec, signed_order, fence, timeout_seconds)
		select x.id, i.org_id, r.id, i.id, 'chg_acme', (select s.id from resources s where s.install_id = i.id and s.name = 'api'), 'terraform_module', x.operation, x.operation = 'apply', 'queued', '{}', x.signed::json, case x.operation when 'apply' then 7 end, 60
		from installs i join runners r on r.install_id = i.id, (values ('job_1', 'plan', '{}'), ('job_2', 'apply', $1)) x (id, operation, signed) where i.name = 'acme'`, string(signed))

	got, err := admin.GetCapsuleWithResponse(t.Context(), "chg_acme")
	must(t, got, err, http.StatusOK)
	c := got.JSON200
	if c.Envelope != string(signed) || c.JobID != "job_2" || c.PayloadDigest != envelope.PayloadDigest() || c.PayloadType != capsule.OrderType {
		t.Errorf("capsule: %s", got.Body)
	}
	if diff := cmp.Diff([]string{capsule.KeyID(public)}, c.KeyIds); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	var back capsule.Envelope
	var verified capsule.Order
	if err := json.Unmarshal([]byte(c.Envelope), &back); err != nil {
		t.Fatal(err)
	}
	if _, err := capsule.Verify(map[string]ed25519.PublicKey{capsule.KeyID(public): public}, capsule.OrderType, back, &verified); err != nil {
		t.Error(err)
	}
	// The decoded view has every field that was signed, and no other.
	shown, err := json.Marshal(c.Order)
	if err != nil {
		t.Fatal(err)
	}
	var fields, wantFields map[string]any
	wantRaw, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(shown, &fields) != nil || json.Unmarshal(wantRaw, &wantFields) != nil {
		t.Fatal("not JSON")
	}
	if diff := cmp.Diff(wantFields, fields); diff != "" {
		t.Errorf("order (-signed +shown):\n%s", diff)
	}

	customer := admin.member(ctlapi.MemberRequest{Name: "carl", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleCustomer, Customer: new("customer-of-globex")})
	other, err := customer.GetCapsuleWithResponse(t.Context(), "chg_acme")
	must(t, other, err, http.StatusNotFound)
}
