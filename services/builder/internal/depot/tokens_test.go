package depot_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/depot"
	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// A person's token pulls what it is for, and nothing else; revoked, it opens
// nothing from then on.
func TestAttackTokenOfAPerson(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	reg, err := registry.New(registry.Config{
		Dir: t.TempDir(), Secret: "test", Auth: registry.NewTokens(depot.NewTokens(database.New(db.AsRole(store.RoleBuilder))), time.Now),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(reg)
	t.Cleanup(func() {
		server.Close()
		if err := reg.Close(); err != nil {
			t.Error(err)
		}
	})
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	token := func(org, actions, repositories string) string {
		t.Helper()
		secret, hash := registry.NewToken()
		exec(`insert into registry_tokens (hash, org_id, actions, expires_at, repositories) values ($1, $2, $3::text[], now() + interval '1 hour', $4)`,
			hash, org, actions, repositories)
		return secret
	}
	ask := func(method, path, secret string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth("ada", secret)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	org, other := id.New(id.Org), id.New(id.Org)
	exec(`insert into orgs (org_id, name) values ($1, 'acme'), ($2, 'globex')`, org, other)
	pusher, puller := token(org, "{pull,push}", ""), token(org, "{pull}", org+"/shop")
	for _, repository := range []string{org + "/shop/web", org + "/shopping/web"} {
		if got := ask(http.MethodPost, "/v2/"+repository+"/blobs/uploads/", pusher); got != http.StatusAccepted {
			t.Fatalf("push to %s: %d", repository, got)
		}
	}
	missing := "/blobs/sha256:" + strings.Repeat("0", 64)
	const empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{http.MethodGet, "/v2/", http.StatusOK},
		{http.MethodGet, "/v2/" + org + "/shop/web" + missing, http.StatusNotFound},
		{http.MethodPost, "/v2/" + org + "/shop/web/blobs/uploads/", http.StatusForbidden},
		{http.MethodDelete, "/v2/" + org + "/shop/web" + missing, http.StatusForbidden},
		// Not told that they are there.
		{http.MethodPost, "/v2/" + org + "/shopping/web/blobs/uploads/", http.StatusNotFound},
		{http.MethodPost, "/v2/" + other + "/shop/web/blobs/uploads/", http.StatusNotFound},
		{http.MethodPost, "/v2/" + org + "/shop/../shopping/web/blobs/uploads/", http.StatusNotFound},
		// Nor is the short way to push one around that.
		{http.MethodPost, "/v2/" + org + "/shop/web/blobs/uploads/?digest=" + empty, http.StatusForbidden},
		{http.MethodPost, "/v2/" + org + "/shopping/web/blobs/uploads/?digest=" + empty, http.StatusNotFound},
		{http.MethodPost, "/v2/" + org + "/shop/web/blobs/uploads/?mount=" + empty + "&from=" + org + "/shopping/web", http.StatusForbidden},
		{http.MethodPut, "/v2/" + org + "/shop/web/manifests/v1", http.StatusForbidden},
	} {
		if got := ask(tt.method, tt.path, puller); got != tt.want {
			t.Errorf("%s %s: %d, want %d", tt.method, tt.path, got, tt.want)
		}
	}
	// All of them were used a moment ago, and what is known of a token is kept: that it
	// ended is not.
	for _, end := range []string{
		`update registry_tokens set expires_at = now() - interval '1 second' where hash = $1`,
		`update registry_tokens set revoked_at = now() where hash = $1`,
		`delete from registry_tokens where hash = $1`,
	} {
		secret := token(org, "{pull}", "")
		if got := ask(http.MethodGet, "/v2/", secret); got != http.StatusOK {
			t.Fatalf("before %s: %d", end, got)
		}
		exec(end, registry.HashToken(secret))
		if got := ask(http.MethodGet, "/v2/", secret); got != http.StatusUnauthorized {
			t.Errorf("after %s: %d, want 401", end, got)
		}
	}
}

// Each request of a client looks its token up.
func BenchmarkTokenLookup(b *testing.B) {
	db := pgtest.New(b)
	org := id.New(id.Org)
	_, hash := registry.NewToken()
	if _, err := db.Admin().Exec(b.Context(), `insert into orgs (org_id, name) values ($1, 'acme')`, org); err != nil {
		b.Fatal(err)
	}
	if _, err := db.Admin().Exec(b.Context(), `insert into registry_tokens (hash, org_id, actions, expires_at) values ($1, $2, '{pull}', now() + interval '1 hour')`, hash, org); err != nil {
		b.Fatal(err)
	}
	st := database.New(db.AsRole(store.RoleBuilder))
	for name, tokens := range map[string]func() *depot.Tokens{
		"first": func() *depot.Tokens { return depot.NewTokens(st) },
		"again": sync.OnceValue(func() *depot.Tokens { return depot.NewTokens(st) }),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if grant, err := tokens().LookupRegistryToken(b.Context(), hash); err != nil || grant.OrgID != org {
					b.Fatal(grant, err)
				}
			}
		})
	}
}
