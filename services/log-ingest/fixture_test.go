package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/logapi"
	"github.com/berth-dev/berth/pkg/logship"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
)

// replica is one running log-ingest.
type replica struct {
	url  string
	stop func() // and wait
}

// start runs a replica on addr ("127.0.0.1:0" for any port) until the test ends.
func start(t testing.TB, pg *pgtest.DB, addr string) replica {
	t.Helper()
	dsn := filepath.Join(t.TempDir(), "log.dsn")
	if err := os.WriteFile(dsn, []byte(pg.DSN(store.RoleLog)), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	config, err := setting.Load[Config](func(name string) string { return map[string]string{"BERTH_DSN_FILE": dsn}[name] })
	if err != nil {
		t.Fatal(err)
	}
	go func() { done <- Run(ctx, config, listener, slog.New(slog.NewTextHandler(t.Output(), nil))) }()
	stopped := false
	stop := func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("log-ingest: %v", err)
		}
	}
	t.Cleanup(stop)
	r := replica{url: "http://" + listener.Addr().String(), stop: stop}
	// The port is open already, so this waits until it is served.
	resp, err := http.Get(r.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return r
}

func (r replica) client(t testing.TB) *logapi.ClientWithResponses {
	t.Helper()
	client, err := logapi.NewClientWithResponses(r.url)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func as(token string) logapi.RequestEditorFn {
	return func(_ context.Context, req *http.Request) error {
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		return nil
	}
}

// tenant is an org with a viewer and a runner.
type tenant struct {
	pg                    *pgtest.DB
	org, runner, session  string
	viewer, nobody, other string // tokens: a viewer, an account without a grant, a viewer of another customer
}

func exec(t testing.TB, pg *pgtest.DB, sql string, args ...any) {
	t.Helper()
	if _, err := pg.Admin().Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func newTenant(t testing.TB, pg *pgtest.DB, name string) tenant {
	t.Helper()
	n := tenant{pg: pg, org: id.New(id.Org), runner: id.New(id.Runner), session: id.New(id.Session)}
	exec(t, pg, `insert into orgs (org_id, name) values ($1, $2)`, n.org, name)
	n.viewer, n.nobody, n.other = n.account(t, "viewer"), n.account(t, "nobody"), n.account(t, "other")
	exec(t, pg, `insert into grants (id, org_id, account_id, role) select $1, org_id, id, 'viewer' from accounts where org_id = $2 and name = 'viewer'`, id.New(id.Grant), n.org)
	customer := id.New(id.Customer)
	exec(t, pg, `insert into customers (id, org_id, name) values ($1, $2, 'acme')`, customer, n.org)
	exec(t, pg, `insert into grants (id, org_id, account_id, role, customer_id) select $1, org_id, id, 'customer', $3 from accounts where org_id = $2 and name = 'other'`, id.New(id.Grant), n.org, customer)
	exec(t, pg, `insert into runners (id, org_id, kind, name) values ($1, $2, 'build', 'build')`, n.runner, n.org)
	exec(t, pg, `insert into runner_sessions (id, org_id, runner_id, epoch, token_hash) values ($1, $2, $3, 1, sha256(convert_to($1::text, 'UTF8')))`, n.session, n.org, n.runner)
	return n
}

func (n tenant) account(t testing.TB, name string) (token string) {
	t.Helper()
	account := id.New(id.Account)
	token, hash, _ := auth.NewToken()
	exec(t, n.pg, `insert into accounts (id, org_id, kind, name) values ($1, $2, 'user', $3)`, account, n.org, name)
	exec(t, n.pg, `insert into tokens (id, org_id, account_id, name, prefix, hash) values ($1, $2, $3, 'test', 'brt_', $4)`, id.New(id.Token), n.org, account, hash)
	return token
}

// attempt is a stream and the token that appends to it.
type attempt struct {
	stream, token string
}

// attempt makes a stream as runner-api does at a claim, with its role.
func (n tenant) attempt(t testing.TB) attempt {
	t.Helper()
	job := id.New(id.Job)
	exec(t, n.pg, `insert into runner_jobs (id, org_id, runner_id, kind, operation, spec, timeout_seconds) values ($1, $2, $3, 'build', 'run', '{}', 60)`, job, n.org, n.runner)
	var a attempt
	var hash []byte
	a.token, hash = auth.NewSecret(auth.LogPrefix)
	err := n.pg.AsRole(store.RoleRunner).Tx(context.Background(), n.org, func(ctx context.Context, tx *store.Tx) (err error) {
		statements := runnerdb.New(tx.DB())
		a.stream, err = statements.OpenLogStream(ctx, runnerdb.OpenLogStreamParams{ID: id.New(id.Stream), JobID: job, Attempt: 1})
		if err != nil {
			return err
		}
		return statements.MintLogToken(ctx, runnerdb.MintLogTokenParams{
			Hash: hash, StreamID: a.stream, RunnerID: n.runner, SessionID: n.session, ExpiresAt: time.Now().Add(time.Hour),
		})
	})
	if err != nil {
		t.Fatalf("open a stream as runner-api: %v", err)
	}
	return a
}

func (a attempt) sink(t testing.TB, r replica) logship.HTTPSink {
	return logship.HTTPSink{Client: r.client(t), Stream: a.stream, Token: func() string { return a.token }}
}

// frames of the lines "line first" to "line last".
func frames(first, last int) (b []byte) {
	for n := first; n <= last; n++ {
		b = logship.AppendFrame(b, logship.Record{Time: time.Unix(int64(n), 0), Source: logship.Stdout, Text: fmt.Sprintf("line %d", n)})
	}
	return b
}

func head(t testing.TB, last int) logship.Head {
	t.Helper()
	h, _, err := logship.Start().Advance(frames(1, last), 0)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func batch(t testing.TB, first, last int) logship.Batch {
	t.Helper()
	return logship.Batch{FirstSeq: int64(first), PrevHash: head(t, first-1).Hash, Frames: frames(first, last)}
}

// mustAppend appends the lines first to last.
func (a attempt) mustAppend(t testing.TB, r replica, first, last int) {
	t.Helper()
	next, err := a.sink(t, r).Append(context.Background(), batch(t, first, last))
	if err != nil || next != int64(last+1) {
		t.Fatalf("append %d to %d: next %d, error %v", first, last, next, err)
	}
}

// lines reads a whole stream, in small pages.
func (n tenant) lines(t testing.TB, r replica, stream string) (texts []string) {
	t.Helper()
	after, limit := int64(0), 333
	for {
		resp, err := r.client(t).ListRecordsWithResponse(context.Background(), stream, &logapi.ListRecordsParams{After: &after, Limit: &limit}, as(n.viewer))
		if err != nil || resp.JSON200 == nil {
			t.Fatalf("list records: %v, %s", err, resp.Body)
		}
		for i, record := range resp.JSON200.Items {
			if record.Seq != after+int64(i)+1 {
				t.Fatalf("record %d of the page after %d has number %d", i, after, record.Seq)
			}
			texts = append(texts, record.Text)
		}
		if resp.JSON200.Next == nil {
			return texts
		}
		after = *resp.JSON200.Next
	}
}

func wantLines(t testing.TB, got []string, lines int) {
	t.Helper()
	if len(got) != lines {
		t.Fatalf("got %d lines, want %d", len(got), lines)
	}
	for i, text := range got {
		if want := fmt.Sprintf("line %d", i+1); text != want {
			t.Fatalf("line %d: got %q, want %q", i+1, text, want)
		}
	}
}

// event is one server-sent event.
type event struct{ id, name, data string }

// tail reads events until each returns false, the answer ends, or ctx does.
func (n tenant) tail(ctx context.Context, r replica, stream, lastID string, each func(event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/streams/"+stream+"/tail", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+n.viewer)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("tail: %s", resp.Status)
	}
	var e event
	for scan := bufio.NewScanner(resp.Body); scan.Scan(); {
		field, value, _ := strings.Cut(scan.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if e.name != "" && !each(e) {
				return nil
			}
			e = event{}
		}
	}
	return nil
}

func text(t testing.TB, e event) string {
	t.Helper()
	var record logapi.Record
	if err := json.Unmarshal([]byte(e.data), &record); err != nil {
		t.Fatalf("event %q: %v", e.data, err)
	}
	return record.Text
}
