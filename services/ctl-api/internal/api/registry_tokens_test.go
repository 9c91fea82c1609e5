package api_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// TestRegistryTokens: a person's token for the registry pulls, ends soon, and
// ends with the token that made it.
func TestRegistryTokens(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	create := func(by caller, in ctlapi.RegistryTokenRequest) *ctlapi.RegistryToken {
		t.Helper()
		made, err := by.CreateRegistryTokenWithResponse(t.Context(), nil, in)
		must(t, made, err, http.StatusCreated)
		return made.JSON201
	}
	app, ten := "hello", 10
	me, err := admin.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
	org := me.JSON200.Org.ID
	whole, narrow := create(admin, ctlapi.RegistryTokenRequest{}), create(admin, ctlapi.RegistryTokenRequest{App: &app, Minutes: &ten})
	if whole.Host != "registry.test" || whole.PlainHTTP || whole.Username != "admin" || whole.Repositories != org || narrow.Repositories != org+"/hello" {
		t.Errorf("tokens: %+v, %+v", whole, narrow)
	}
	lasts := func(of *ctlapi.RegistryToken, want time.Duration) {
		t.Helper()
		if left := time.Until(of.ExpiresAt); left > want || left < want-time.Minute {
			t.Errorf("it lasts %s, want %s", left, want)
		}
	}
	lasts(whole, time.Hour)
	lasts(narrow, 10*time.Minute)
	if n := d.count(`select count(*) from registry_tokens where actions <> '{pull}' or registry_tokens::text like '%' || $1 || '%'`, whole.Secret); n != 0 {
		t.Error("one does more than pull, or is stored in clear")
	}

	long, none := 721, "nothing"
	refused, err := admin.CreateRegistryTokenWithResponse(t.Context(), nil, ctlapi.RegistryTokenRequest{Minutes: &long})
	problemOf(t, refused, err, http.StatusUnprocessableEntity, "invalid")
	refused, err = admin.CreateRegistryTokenWithResponse(t.Context(), nil, ctlapi.RegistryTokenRequest{App: &none})
	problemOf(t, refused, err, http.StatusNotFound, "not_found")
	made, err := admin.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	customer := admin.member(ctlapi.MemberRequest{
		Name: "carol", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator, Install: &made.JSON201.Name,
	})
	refused, err = customer.CreateRegistryTokenWithResponse(t.Context(), nil, ctlapi.RegistryTokenRequest{App: &app})
	problemOf(t, refused, err, http.StatusForbidden, "forbidden")

	// One made with a token ends with it, however early.
	bob := admin.member(ctlapi.MemberRequest{Name: "bob", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator})
	his, err := bob.GetMeWithResponse(t.Context())
	must(t, his, err, http.StatusOK)
	create(bob, ctlapi.RegistryTokenRequest{})
	open := `select count(*) from registry_tokens where revoked_at is null and token_id = $1`
	if n := d.count(open, his.JSON200.TokenID); n != 1 {
		t.Errorf("bob has %d tokens for the registry, want 1", n)
	}
	gone, err := admin.RevokeTokenWithResponse(t.Context(), his.JSON200.TokenID, nil)
	must(t, gone, err, http.StatusNoContent)
	if n := d.count(open, his.JSON200.TokenID); n != 0 {
		t.Errorf("bob's token was revoked, and %d for the registry live on", n)
	}
	if n := d.count(open, me.JSON200.TokenID); n != 2 {
		t.Errorf("the admin has %d tokens for the registry, want 2", n)
	}
	if _, err := d.db.Admin().Exec(t.Context(), `update tokens set expires_at = now() + interval '5 minutes' where id = $1`, me.JSON200.TokenID); err != nil {
		t.Fatal(err)
	}
	lasts(create(admin, ctlapi.RegistryTokenRequest{}), 5*time.Minute)
}
