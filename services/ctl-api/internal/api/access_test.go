package api_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/internal/model"
)

func TestTokens(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	made, err := c.CreateTokenWithResponse(t.Context(), nil, ctlapi.TokenRequest{Name: "ci"})
	must(t, made, err, http.StatusCreated)
	secret := made.JSON201.Secret
	other := d.as(secret)
	me, err := other.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
	if m := me.JSON200; m.Account.Name != "admin" || m.Org.Name != "initech" || m.TokenID != made.JSON201.Token.ID || len(m.Grants) != 2 {
		t.Errorf("me: %s", me.Body)
	}
	if n := d.count(`select count(*) from tokens where tokens::text like '%' || $1 || '%'`, secret); n != 0 {
		t.Errorf("a token is stored in clear")
	}
	list, err := c.ListTokensWithResponse(t.Context(), nil)
	must(t, list, err, http.StatusOK)
	if strings.Contains(string(list.Body), secret) || len(list.JSON200.Items) != 2 {
		t.Errorf("tokens: %s", list.Body)
	}

	revoked, err := c.RevokeTokenWithResponse(t.Context(), made.JSON201.Token.ID, nil)
	must(t, revoked, err, http.StatusNoContent)
	me, err = other.GetMeWithResponse(t.Context())
	problemOf(t, me, err, http.StatusUnauthorized, "unauthenticated")

	for _, bad := range []string{"", "brt_nothing", "brs_" + strings.TrimPrefix(secret, "brt_"), secret + "x"} {
		got, err := d.as(bad).GetMeWithResponse(t.Context())
		problemOf(t, got, err, http.StatusUnauthorized, "unauthenticated")
	}
}

// A token does not make one that outlives it, for nobody; and what a stolen one
// made can be revoked with it.
func TestAttackTokensThatOutliveTheirMaker(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	create := func(by caller, request ctlapi.TokenRequest) (ctlapi.Token, caller) {
		t.Helper()
		made, err := by.CreateTokenWithResponse(t.Context(), nil, request)
		must(t, made, err, http.StatusCreated)
		return made.JSON201.Token, d.as(made.JSON201.Secret)
	}
	days := func(n int) *int { return &n }
	admin.member(ctlapi.MemberRequest{Name: "bob", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleViewer})
	bob := "bob"
	parent, stolen := create(admin, ctlapi.TokenRequest{Name: "a week", ExpiresInDays: days(7)})
	for _, request := range []ctlapi.TokenRequest{{Name: "for ever"}, {Name: "ten years", ExpiresInDays: days(3650)}, {Name: "bob's", Member: &bob}} {
		child, _ := create(stolen, request)
		if child.ExpiresAt == nil || child.ExpiresAt.After(*parent.ExpiresAt) {
			t.Errorf("%s: a token until %s made one until %v", request.Name, parent.ExpiresAt, child.ExpiresAt)
		}
		if child.MadeWith == nil || *child.MadeWith != parent.ID {
			t.Errorf("%s: made with %v, want %s", request.Name, child.MadeWith, parent.ID)
		}
	}
	if child, _ := create(stolen, ctlapi.TokenRequest{Name: "a day", ExpiresInDays: days(1)}); !child.ExpiresAt.Before(*parent.ExpiresAt) {
		t.Errorf("a token of a day is good until %s", child.ExpiresAt)
	}

	_, child := create(stolen, ctlapi.TokenRequest{Name: "child"})
	_, grandchild := create(child, ctlapi.TokenRequest{Name: "grandchild", Member: &bob})
	alone, err := admin.RevokeTokenWithResponse(t.Context(), parent.ID, nil)
	must(t, alone, err, http.StatusNoContent)
	me, err := grandchild.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK) // a token may make its successor and end
	yes := true
	all, err := admin.RevokeTokenWithResponse(t.Context(), parent.ID, &ctlapi.RevokeTokenParams{MadeWithIt: &yes})
	must(t, all, err, http.StatusNoContent)
	for _, c := range []caller{stolen, child, grandchild} {
		me, err := c.GetMeWithResponse(t.Context())
		problemOf(t, me, err, http.StatusUnauthorized, "unauthenticated")
	}
	me, err = admin.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
}

// A token that another replica revoked ends here by its notification, long
// before the cache would let go of it.
func TestRevocationReachesOtherReplicas(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	other := c.member(ctlapi.MemberRequest{Name: "bob", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleViewer})
	me, err := other.GetMeWithResponse(t.Context()) // now it is cached
	must(t, me, err, http.StatusOK)
	if _, err := d.db.Admin().Exec(t.Context(), `update tokens set revoked_at = now() where id = $1`, me.JSON200.TokenID); err != nil {
		t.Fatal(err)
	}
	if _, err := d.db.Admin().Exec(t.Context(), `select pg_notify($1, $2)`, model.ChannelRevoked, me.JSON200.TokenID); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(patience)
	for {
		got, err := other.GetMeWithResponse(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.StatusCode() == http.StatusUnauthorized {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the revoked token still works")
		}
	}
}

func TestMembersAndRoles(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	for _, name := range []string{"acme", "globex"} {
		req := acme()
		req.Name, req.Customer = name, name
		made, err := admin.CreateInstallWithResponse(t.Context(), nil, req)
		must(t, made, err, http.StatusCreated)
	}
	user := ctlapi.MemberRequestKindUser
	viewer := admin.member(ctlapi.MemberRequest{Name: "vic", Kind: user, Role: ctlapi.MemberRequestRoleViewer})
	operator := admin.member(ctlapi.MemberRequest{Name: "olga", Kind: user, Role: ctlapi.MemberRequestRoleOperator})
	customer := admin.member(ctlapi.MemberRequest{Name: "carl", Kind: user, Role: ctlapi.MemberRequestRoleCustomer, Customer: new("acme")})
	local := admin.member(ctlapi.MemberRequest{Name: "lena", Kind: user, Role: ctlapi.MemberRequestRoleOperator, Install: new("acme")})

	const patch, body = "PATCH", `{"labels":{"a":"b"}}`
	tests := []struct {
		name               string
		who                caller
		method, path, body string
		want               int
	}{
		{"a viewer reads", viewer, "GET", "/installs/acme", "", 200},
		{"a viewer changes nothing", viewer, patch, "/installs/acme", body, 403},
		{"a viewer makes no token for others", viewer, "POST", "/tokens", `{"name":"x","member":"admin"}`, 403},
		{"a viewer makes a token for itself", viewer, "POST", "/tokens", `{"name":"x"}`, 201},
		{"an operator changes installs", operator, patch, "/installs/globex", body, 200},
		{"an operator adds no members", operator, "POST", "/members", `{"name":"x","kind":"user","role":"viewer"}`, 403},
		{"an admin without platform could not make orgs; an operator cannot", operator, "POST", "/orgs", `{"name":"x","admin":"y"}`, 403},
		{"a customer reads its install", customer, "GET", "/installs/acme", "", 200},
		{"a customer does not know of another's", customer, "GET", "/installs/globex", "", 404},
		{"a customer changes nothing of its install", customer, patch, "/installs/acme", body, 403},
		{"a customer does not see the org", customer, "GET", "/customers", "", 403},
		{"a customer lists workflows only of its installs", customer, "GET", "/workflows?install=acme", "", 200},
		{"a customer lists no workflows of others", customer, "GET", "/workflows?install=globex", "", 404},
		{"a customer lists no workflows of all", customer, "GET", "/workflows", "", 403},
		{"an operator of one install changes it", local, patch, "/installs/acme", body, 200},
		{"an operator of one install makes none", local, "POST", "/installs", `{"name":"x","app":"hello","customer":"acme"}`, 403},
		{"an operator of one install does not know of another", local, patch, "/installs/globex", body, 404},
		{"a route that is not there", admin, "GET", "/nothing", "", 404},
		{"a field that is not known", admin, "POST", "/customers", `{"name":"x","nmae":"y"}`, 422},
		{"another org than the token's", admin, "GET", "/me", "", 404},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var header []string
			if strings.HasPrefix(tt.name, "another org") {
				header = []string{"Berth-Org", "umbrella"}
			}
			status, _, answer := tt.who.raw(tt.method, tt.path, tt.body, header...)
			if status != tt.want {
				t.Errorf("%s %s answered %d, want %d: %s", tt.method, tt.path, status, tt.want, answer)
			}
		})
	}

	list, err := customer.ListInstallsWithResponse(t.Context(), nil)
	must(t, list, err, http.StatusOK)
	if len(list.JSON200.Items) != 1 || list.JSON200.Items[0].Name != "acme" {
		t.Errorf("a customer lists: %s", list.Body)
	}

	gone, err := admin.RemoveMemberWithResponse(t.Context(), "vic")
	must(t, gone, err, http.StatusNoContent)
	if status, _, _ := viewer.raw("GET", "/me", ""); status != http.StatusUnauthorized {
		t.Errorf("a removed member still gets %d", status)
	}
	last, err := admin.RemoveMemberWithResponse(t.Context(), "admin")
	problemOf(t, last, err, http.StatusConflict, "conflict")
}

func TestCreateOrg(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	platform := d.org("initech")
	made, err := platform.CreateOrgWithResponse(t.Context(), nil, ctlapi.OrgRequest{Name: "umbrella", Admin: "eve"})
	must(t, made, err, http.StatusCreated)
	eve := d.as(made.JSON201.Token.Secret)
	me, err := eve.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
	if me.JSON200.Org.Name != "umbrella" || len(me.JSON200.Grants) != 1 {
		t.Errorf("me: %s", me.Body)
	}
	further, err := eve.CreateOrgWithResponse(t.Context(), nil, ctlapi.OrgRequest{Name: "more", Admin: "eve"})
	problemOf(t, further, err, http.StatusForbidden, "forbidden")
	taken, err := platform.CreateOrgWithResponse(t.Context(), nil, ctlapi.OrgRequest{Name: "umbrella", Admin: "eve"})
	problemOf(t, taken, err, http.StatusConflict, "already_exists")
}

// Every mutation is in the org's chain, which verifies offline.
func TestChainRecordsMutations(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	bob := c.member(ctlapi.MemberRequest{Name: "bob", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator})
	for _, name := range []string{"acme", "acme"} { // the second one is refused, and so not recorded
		if _, err := bob.CreateCustomerWithResponse(t.Context(), nil, ctlapi.CustomerRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	records, err := c.ListChainRecordsWithResponse(t.Context(), "org", nil)
	must(t, records, err, http.StatusOK)
	keys, err := c.ListKeysWithResponse(t.Context(), nil)
	must(t, keys, err, http.StatusOK)
	public, err := capsule.ParsePublicKey(keys.JSON200.Items[0].PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	var told []string
	for _, r := range records.JSON200.Items {
		raw, err := base64.StdEncoding.DecodeString(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		record, err := chain.ParseRecord(raw)
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, record.Actor+": "+strings.Join(strings.Fields(record.What)[:2], " "))
		lines.Write(append(raw, '\n'))
	}
	want := []string{"test: create org", "admin: add member", "admin: create token", "bob: add customer"}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("the chain tells (-want +got):\n%s", diff)
	}
	report, err := chain.Verify(strings.NewReader(lines.String()), chain.VerifyOptions{Keys: map[string]ed25519.PublicKey{capsule.KeyID(public): public}})
	if err != nil || !report.OK() {
		t.Errorf("the chain does not verify: %v (%+v)", err, report)
	}
	if records.JSON200.HeadSeq != 4 {
		t.Errorf("head is %d, want 4", records.JSON200.HeadSeq)
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	key := &ctlapi.CreateTokenParams{IdempotencyKey: new("k1")}
	first, err := c.CreateTokenWithResponse(t.Context(), key, ctlapi.TokenRequest{Name: "ci"})
	must(t, first, err, http.StatusCreated)
	second, err := c.CreateTokenWithResponse(t.Context(), key, ctlapi.TokenRequest{Name: "ci"})
	must(t, second, err, http.StatusCreated)
	if diff := cmp.Diff(string(first.Body), string(second.Body)); diff != "" {
		t.Errorf("the repeat was answered differently:\n%s", diff)
	}
	if n := d.count(`select count(*) from tokens where name = 'ci'`); n != 1 {
		t.Errorf("%d tokens, want 1", n)
	}
	if n := d.count(`select count(*) from idempotency_keys where idempotency_keys::text like '%brt_%' or encode(response, 'escape') like '%brt_%'`); n != 0 {
		t.Errorf("the kept answer shows the secret")
	}
	other, err := c.CreateTokenWithResponse(t.Context(), key, ctlapi.TokenRequest{Name: "else"})
	problemOf(t, other, err, http.StatusConflict, "idempotency_key_reused")

	// A request that was refused may be tried again with its key.
	req := ctlapi.InstallRequest{Name: "acme", App: "hello", Customer: "acme", CreateCustomer: true}
	again := &ctlapi.CreateInstallParams{IdempotencyKey: new("k2")}
	refused, err := c.CreateInstallWithResponse(t.Context(), again, req)
	must(t, refused, err, http.StatusNotFound)
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), again, req)
	must(t, made, err, http.StatusCreated)

	// A crash after the commit, before the answer was kept: not done again.
	if _, err := d.db.Admin().Exec(t.Context(), `update idempotency_keys set status = 1, response = null, created_at = now() - interval '1 hour' where key = 'k1'`); err != nil {
		t.Fatal(err)
	}
	lost, err := c.CreateTokenWithResponse(t.Context(), key, ctlapi.TokenRequest{Name: "ci"})
	problemOf(t, lost, err, http.StatusConflict, "idempotency_answer_lost")
	// A crash before the commit: the next caller is the first.
	if _, err := d.db.Admin().Exec(t.Context(), `update idempotency_keys set status = 0, response = null, created_at = now() - interval '1 hour' where key = 'k1'`); err != nil {
		t.Fatal(err)
	}
	redone, err := c.CreateTokenWithResponse(t.Context(), key, ctlapi.TokenRequest{Name: "ci"})
	must(t, redone, err, http.StatusCreated)
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	file := filepath.Join(t.TempDir(), "token")
	bootstrap := func() access.Bootstrapped {
		done, err := access.Bootstrap(t.Context(), d.store, d.keys, "initech", file)
		if err != nil {
			t.Fatal(err)
		}
		return done
	}
	read := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	first := bootstrap()
	if !first.Created || !first.Token {
		t.Errorf("first: %+v", first)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("token file: %v %v", info.Mode(), err)
	}
	me, err := d.as(read()).GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
	if second := bootstrap(); second.Created || second.Token || second.OrgID != first.OrgID {
		t.Errorf("second: %+v, want nothing done", second)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if third := bootstrap(); third.Created || !third.Token {
		t.Errorf("without the file: %+v, want a new token", third)
	}
	me, err = d.as(read()).GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
}

func TestReferenceIsServed(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	for path, want := range map[string]string{"/openapi.json": "application/json", "/reference": "text/html; charset=utf-8"} {
		status, header, body := d.as("").raw("GET", path, "")
		if status != http.StatusOK || header.Get("Content-Type") != want || len(body) < 500 {
			t.Errorf("%s answered %d %s with %d bytes", path, status, header.Get("Content-Type"), len(body))
		}
	}
}
