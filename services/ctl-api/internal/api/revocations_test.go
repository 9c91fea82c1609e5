package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/offer"
)

// A revocation is stored once, and only when it is about this very release; the app's
// installs are looked at, so that their settings carry it.
func TestReleaseRevocations(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	release := c.release("hello@1")
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	contents, err := c.GetReleaseContentsWithResponse(t.Context(), "hello@1")
	must(t, contents, err, http.StatusOK)
	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	by := consent.Ed25519Signer(key)
	at := time.Now().UTC().Truncate(time.Second)
	signed := func(edit func(*offer.Revocation)) (body ctlapi.SignedStatement) {
		t.Helper()
		r := offer.Revocation{
			OrgID: contents.JSON200.OrgID, AppID: contents.JSON200.App.ID, App: "hello", ReleaseID: release.ID, Number: 1, Reason: "it loses data", Issued: at,
		}
		edit(&r)
		env, err := offer.Revoke(by, r)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(env)
		if err == nil {
			err = json.Unmarshal(raw, &body)
		}
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	asItIs := func(*offer.Revocation) {}
	for name, edit := range map[string]func(*offer.Revocation){
		"org":            func(r *offer.Revocation) { r.OrgID = "org_2" },
		"app":            func(r *offer.Revocation) { r.AppID = "app_2" },
		"release":        func(r *offer.Revocation) { r.ReleaseID = "rel_2" },
		"release number": func(r *offer.Revocation) { r.Number = 2 },
	} {
		resp, err := c.AddReleaseRevocationWithResponse(t.Context(), "hello@1", signed(edit))
		if p := problemOf(t, resp, err, http.StatusUnprocessableEntity, "invalid"); !strings.Contains(*p.Detail, "about "+name+" ") {
			t.Errorf("a revocation about another %s: %s", name, *p.Detail)
		}
	}
	wrong := signed(asItIs)
	wrong.PayloadType = offer.ForRelease.Type
	resp, err := c.AddReleaseRevocationWithResponse(t.Context(), "hello@1", wrong)
	problemOf(t, resp, err, http.StatusUnprocessableEntity, "invalid")
	unknown, err := c.AddReleaseRevocationWithResponse(t.Context(), "hello@9", signed(asItIs))
	problemOf(t, unknown, err, http.StatusNotFound, "not_found")
	statement, err := c.AddReleaseStatementWithResponse(t.Context(), "hello@1", signed(asItIs)) // it is no statement
	problemOf(t, statement, err, http.StatusUnprocessableEntity, "invalid")

	woken := func() int {
		return d.count(`select count(*) from river_ctl.river_job where kind = 'install_advance' and args->>'install_id' = $1`, made.JSON201.ID)
	}
	before := woken()
	for _, want := range []int{http.StatusCreated, http.StatusOK} {
		resp, err := c.AddReleaseRevocationWithResponse(t.Context(), "hello@1", signed(asItIs))
		must(t, resp, err, want)
	}
	if got := woken() - before; got != 1 {
		t.Errorf("the install was woken %d times, want once", got)
	}
	told := d.count(`select count(*) from event_outbox where kind = 'release.revoked' and body @> jsonb_build_object('release_id', $1::text, 'number', 1, 'key_id', $2::text, 'reason', 'it loses data')`, release.ID, by.Key.ID)
	if told != 1 {
		t.Errorf("it was told %d times, want once", told)
	}
	shown := c.release("hello@1").Revocations
	if len(shown) != 1 || shown[0].KeyID != by.Key.ID || shown[0].Reason != "it loses data" || shown[0].AddedBy == "" || !shown[0].IssuedAt.Equal(at) {
		t.Errorf("revocations: %+v", shown)
	}
	for i := 1; i <= offer.MaxPerRelease; i++ {
		want := http.StatusCreated
		if i == offer.MaxPerRelease {
			want = http.StatusConflict
		}
		resp, err := c.AddReleaseRevocationWithResponse(t.Context(), "hello@1", signed(func(r *offer.Revocation) { r.Reason = fmt.Sprint("reason ", i) }))
		must(t, resp, err, want)
	}
}
