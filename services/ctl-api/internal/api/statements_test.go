package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/consent"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/offer"
)

// What the vendor signs is computed from the contents alone, stored once, and only when
// it is about this very release.
func TestReleaseStatements(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	got, err := c.GetReleaseContentsWithResponse(t.Context(), "hello@1")
	must(t, got, err, http.StatusOK)
	var release jobspec.Release
	if err := json.Unmarshal(got.JSON200.Release, &release); err != nil {
		t.Fatal(err)
	}
	manifest, err := release.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	digest, err := manifest.Digest()
	if err != nil {
		t.Fatal(err)
	}
	show := func() *ctlapi.Release {
		t.Helper()
		resp, err := c.GetReleaseWithResponse(t.Context(), "hello@1")
		must(t, resp, err, http.StatusOK)
		return resp.JSON200
	}
	if shown := show(); shown.Manifest.Digest != digest || len(shown.Statements) != 0 {
		t.Fatalf("the manifest is %s, computed %s; statements %v", shown.Manifest.Digest, digest, shown.Statements)
	}

	_, key, err := capsule.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	by := consent.Ed25519Signer(key)
	at := time.Now().UTC().Truncate(time.Second)
	signed := func(edit func(*offer.Statement)) ctlapi.SignedStatement {
		t.Helper()
		s := offer.Statement{
			OrgID: got.JSON200.OrgID, AppID: got.JSON200.App.ID, App: "hello", ReleaseID: release.ID, Number: release.Number, Manifest: digest,
			Issued: at, Expires: at.Add(time.Hour),
		}
		edit(&s)
		env, err := offer.Sign(by, s)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(env)
		if err != nil {
			t.Fatal(err)
		}
		var body ctlapi.SignedStatement
		if err := json.Unmarshal(raw, &body); err != nil {
			t.Fatal(err)
		}
		return body
	}
	add := func(body ctlapi.SignedStatement, want int) {
		t.Helper()
		resp, err := c.AddReleaseStatementWithResponse(t.Context(), "hello@1", body)
		must(t, resp, err, want)
	}
	for name, edit := range map[string]func(*offer.Statement){
		"org":            func(s *offer.Statement) { s.OrgID = "org_2" },
		"app":            func(s *offer.Statement) { s.AppID = "app_2" },
		"release":        func(s *offer.Statement) { s.ReleaseID = "rel_2" },
		"release number": func(s *offer.Statement) { s.Number = 2 },
		"manifest":       func(s *offer.Statement) { s.Manifest = capsule.DigestBytes([]byte("other")) },
	} {
		resp, err := c.AddReleaseStatementWithResponse(t.Context(), "hello@1", signed(edit))
		if p := problemOf(t, resp, err, http.StatusUnprocessableEntity, "invalid"); !strings.Contains(*p.Detail, "about "+name+" ") {
			t.Errorf("a statement about another %s: %s", name, *p.Detail)
		}
	}
	for range 2 { // the first adds it, the second finds it
		add(signed(func(*offer.Statement) {}), map[bool]int{true: http.StatusCreated, false: http.StatusOK}[len(show().Statements) == 0])
	}
	if told := d.count(`select count(*) from event_outbox where kind = 'release.signed' and app_id = $1 and body @> '{"number": 1}'`, got.JSON200.App.ID); told != 1 {
		t.Errorf("it was told %d times, want once", told)
	}
	shown := show().Statements
	if len(shown) != 1 || !shown[0].Matches || shown[0].KeyID != by.Key.ID || shown[0].AddedBy == "" || !shown[0].ExpiresAt.Equal(at.Add(time.Hour)) {
		t.Errorf("statements: %+v", shown)
	}
	for i := 1; i < offer.MaxPerRelease; i++ {
		add(signed(func(s *offer.Statement) { s.Issued = at.Add(time.Duration(i) * time.Second) }), http.StatusCreated)
	}
	add(signed(func(s *offer.Statement) { s.Issued = at.Add(-time.Hour) }), http.StatusConflict)
}
