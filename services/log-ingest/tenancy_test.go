package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/log-ingest/internal/access"
	"github.com/berth-dev/berth/services/log-ingest/internal/apigen"
)

func TestEveryRouteHasARow(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	if err := access.Routes.Check(spec); err != nil {
		t.Error(err)
	}
}

// Each route with each kind of credential, of the own org and of another one,
// for an own stream, one of the other org, and one that does not exist.
func TestTenants(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	r := start(t, pg, "127.0.0.1:0")
	alpha, beta := newTenant(t, pg, "alpha"), newTenant(t, pg, "beta")
	own, sibling, foreign := alpha.attempt(t), alpha.attempt(t), beta.attempt(t)
	for _, a := range []attempt{own, sibling, foreign} {
		a.mustAppend(t, r, 1, 2)
		if err := a.sink(t, r).Finish(t.Context(), logship.End{TotalLines: 2, Hash: head(t, 2).Hash}); err != nil {
			t.Fatal(err) // so that a tail ends by itself
		}
	}
	missing := id.New(id.Stream)

	madeUp, _, _ := auth.NewToken()
	madeUpLog, _ := auth.NewSecret(auth.LogPrefix)
	session, _ := auth.NewSecret(auth.SessionPrefix)
	type expect map[auth.Permission]int // status by what the route asks for
	for _, tt := range []struct {
		name, token, stream string
		want                expect
	}{
		{"nothing", "", own.stream, expect{auth.LogsRead: 401, auth.LogsWrite: 401}},
		{"made up", madeUp, own.stream, expect{auth.LogsRead: 401, auth.LogsWrite: 401}},
		{"made up log token", madeUpLog, own.stream, expect{auth.LogsRead: 401, auth.LogsWrite: 401}},
		{"session token", session, own.stream, expect{auth.LogsRead: 401, auth.LogsWrite: 401}},
		{"viewer, own stream", alpha.viewer, own.stream, expect{auth.LogsRead: 200, auth.LogsWrite: 403}},
		{"viewer, stream of the other org", alpha.viewer, foreign.stream, expect{auth.LogsRead: 404, auth.LogsWrite: 403}},
		{"viewer, no such stream", alpha.viewer, missing, expect{auth.LogsRead: 404, auth.LogsWrite: 403}},
		{"account without a grant", alpha.nobody, own.stream, expect{auth.LogsRead: 403, auth.LogsWrite: 403}},
		{"viewer of another customer", alpha.other, own.stream, expect{auth.LogsRead: 404, auth.LogsWrite: 403}},
		{"log token, own stream", own.token, own.stream, expect{auth.LogsRead: 403, auth.LogsWrite: 200}},
		{"log token, stream of a sibling job", own.token, sibling.stream, expect{auth.LogsRead: 403, auth.LogsWrite: 404}},
		{"log token, stream of the other org", own.token, foreign.stream, expect{auth.LogsRead: 403, auth.LogsWrite: 404}},
		{"log token, no such stream", own.token, missing, expect{auth.LogsRead: 403, auth.LogsWrite: 404}},
	} {
		for operation, permission := range access.Routes {
			status, body := call(t, r, operation, tt.token, tt.stream)
			if want := tt.want[permission]; status != want {
				t.Errorf("%s: %s: got %d, want %d: %s", tt.name, operation, status, want, body)
			}
			if status != 200 && (strings.Contains(body, "line 1") || strings.Contains(body, beta.org)) {
				t.Errorf("%s: %s reveals: %s", tt.name, operation, body)
			}
		}
	}
}

// call makes a valid request of an operation.
func call(t *testing.T, r replica, operation, token, stream string) (status int, body string) {
	t.Helper()
	method, path, contentType, in := http.MethodGet, "", "", ""
	switch operation {
	case "GetStream":
	case "ListRecords":
		path = "/records"
	case "TailStream":
		path = "/tail"
	case "AppendRecords":
		method, contentType, in = http.MethodPost, "application/octet-stream", string(frames(1, 2))
		path = "/records?first_seq=1&prev_hash=" + logship.Hash{}.String()
	case "FinishStream":
		method, contentType, in = http.MethodPost, "application/json", fmt.Sprintf(`{"total_lines":2,"hash":%q}`, head(t, 2).Hash)
		path = "/finish"
	default:
		t.Fatalf("no request is known for %s", operation)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, r.url+"/streams/"+stream+path, strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode >= 400 && resp.Header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: %d has content type %q", operation, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	return resp.StatusCode, string(raw)
}

// The walls of the database itself, as each role that touches logs.
func TestRolesSeeOnlyTheirOwn(t *testing.T) {
	t.Parallel()
	pg := pgtest.New(t)
	r := start(t, pg, "127.0.0.1:0")
	alpha, beta := newTenant(t, pg, "alpha"), newTenant(t, pg, "beta")
	a := alpha.attempt(t)
	a.mustAppend(t, r, 1, 2)
	partition := ""
	if err := pg.Admin().QueryRow(t.Context(), `select tableoid::regclass::text from log_chunks`).Scan(&partition); err != nil {
		t.Fatal(err)
	}
	count := func(role store.Role, org, table string) (n int, err error) {
		err = pg.AsRole(role).Tx(t.Context(), org, func(ctx context.Context, tx *store.Tx) error {
			return tx.Raw().QueryRow(ctx, "select count(*) from "+table).Scan(&n)
		})
		return n, err
	}
	for _, tt := range []struct {
		role       store.Role
		org, table string
		want       int // -1: forbidden
	}{
		{store.RoleLog, alpha.org, "log_chunks", 1},
		{store.RoleLog, beta.org, "log_chunks", 0},
		{store.RoleLog, "org_none", "log_chunks", 0},
		{store.RoleLog, beta.org, "log_streams", 0},
		{store.RoleLog, beta.org, "log_tokens", 0},
		{store.RoleLog, alpha.org, partition, -1},
		{store.RoleRunner, alpha.org, "log_chunks", -1},
		{store.RoleRunner, beta.org, "log_streams", 0},
		{store.RoleCtl, alpha.org, "log_chunks", -1},
		{store.RoleBuilder, alpha.org, "log_streams", -1},
	} {
		n, err := count(tt.role, tt.org, tt.table)
		var denied *pgconn.PgError
		switch forbidden := errors.As(err, &denied) && denied.Code == "42501"; {
		case tt.want < 0 && !forbidden:
			t.Errorf("%s reads %s: got %d, %v; want it forbidden", tt.role, tt.table, n, err)
		case tt.want >= 0 && (err != nil || n != tt.want):
			t.Errorf("%s reads %s of %s: got %d, %v; want %d", tt.role, tt.table, tt.org, n, err, tt.want)
		}
	}
}
