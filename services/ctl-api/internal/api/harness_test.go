package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/riverqueue/river"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/api"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/browser"
	"github.com/berth-dev/berth/services/ctl-api/internal/bulk"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/installs"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/logproxy"
	"github.com/berth-dev/berth/services/ctl-api/internal/oidclogin"
	"github.com/berth-dev/berth/services/ctl-api/internal/stacks"
	"github.com/berth-dev/berth/services/ctl-api/internal/webhooks"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/httpserver"
	"github.com/berth-dev/berth/services/internal/jobs"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/reference"
	"github.com/berth-dev/berth/services/internal/store"
)

// patience bounds every wait of a test.
const patience = 30 * time.Second

// door is the API behind its real HTTP door, on a database of its own.
type door struct {
	t      testing.TB
	url    string
	db     *pgtest.DB
	store  *database.Store
	keys   *keys.Ring
	stacks *stacks.Service
	server *api.Server
	// stop asks the door to end, and returns when it has. It may be called more
	// than once.
	stop func()
}

// wiring is what a test may have otherwise than usual.
type wiring struct {
	logURL string
	oidc   oidclogin.Config
	log    *slog.Logger // nil: the test's output
}

func newDoor(t testing.TB) *door {
	t.Helper()
	return newDoorWith(t, func(*wiring) {})
}

func newDoorWith(t testing.TB, change func(*wiring)) *door {
	t.Helper()
	master, err := seal.LoadOrCreateMasterKey(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	wired := wiring{logURL: "http://logs.test"}
	change(&wired)
	return wired.door(t, pgtest.New(t), keys.New(master))
}

// newDoorOn is one more replica of the API on a database.
func newDoorOn(t testing.TB, db *pgtest.DB, ring *keys.Ring) *door {
	t.Helper()
	return wiring{logURL: "http://logs.test"}.door(t, db, ring)
}

func (w wiring) door(t testing.TB, db *pgtest.DB, ring *keys.Ring) *door {
	t.Helper()
	d := &door{t: t, db: db, keys: ring}
	d.store = database.New(d.db.AsRole(store.RoleCtl))
	d.stacks = &stacks.Service{Keys: d.keys, RunnerAPIURL: "http://runner-api.test", LogURL: w.logURL, PublicURL: "https://berth.test"}
	workers := river.NewWorkers()
	river.AddWorker(workers, &stacks.HandoverWorker{})
	river.AddWorker(workers, &stacks.RemovalWorker{})
	(&webhooks.Courier{}).AddWorkers(workers)
	log := w.log
	if log == nil {
		log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	office := &bulk.Office{Store: d.store, Keys: d.keys, Start: api.StartBulk}
	river.AddWorker(workers, &bulk.Worker{Office: office})
	client, err := jobs.New(d.store.Store, jobs.Config{Schema: store.RiverCtl, Workers: workers, Log: log}) // inserts only
	if err != nil {
		t.Fatal(err)
	}
	d.stacks.Insert = func(ctx context.Context, tx *database.Tx, args river.JobArgs) error {
		return client.Insert(ctx, tx.Tx, args)
	}

	office.InsertAt = client.InsertAt

	guard, err := webhooks.NewGuard("")
	if err != nil {
		t.Fatal(err)
	}
	authenticator := access.NewAuthenticator(d.store, nil)
	listener := d.store.NewListener(api.Channels...)
	listener.Handle(model.ChannelRevoked, authenticator.Revoked)
	port, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &api.Server{
		Sites: browser.NewSites("", port.Addr().String()), Provider: w.oidc.Provider(),
		Store: d.store, Keys: d.keys, Auth: authenticator, Stacks: d.stacks, Installs: &installs.Service{Keys: d.keys, Stacks: d.stacks},
		Webhooks: &webhooks.Office{Keys: d.keys, Jobs: client, Guard: guard}, Bulk: office,
		Listener: listener, Version: "test", LogURL: w.logURL, RegistryURL: "https://registry.test", Log: log,
		Traces: "https://traces.test/{trace_id}",
	}
	d.server = server
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	front := httpserver.New(httpserver.Config{
		Name: "ctl-api", Log: log, Spec: spec, Listener: port, Middleware: server.Middleware(spec), Reference: reference.Of("ctl-api"), Drain: patience,
	})
	server.Register(front.Router())
	logs, err := logproxy.New(w.logURL)
	if err != nil {
		t.Fatal(err)
	}
	logs.Credential, logs.Auth, logs.Listener = server.Sites.Credential, authenticator, listener
	logs.Register(front.Admitted())
	if w.oidc.Issuer != "" {
		login := &oidclogin.Login{
			Config: w.oidc, Store: d.store, Keys: d.keys, Sites: server.Sites, Open: server.Logins.Open, Revoked: server.Logins.Revoked, Log: log,
		}
		if err := login.Register(front.Admitted()); err != nil {
			t.Fatal(err)
		}
	}
	d.url = "http://" + port.Addr().String()
	ended := runUntilStopped(t, listener.Run)
	t.Cleanup(ended)
	d.stop = runUntilStopped(t, front.Run)
	t.Cleanup(d.stop)
	<-listener.Ready()
	return d
}

// runUntilStopped runs in the background until the returned function is called,
// which waits for the end.
func runUntilStopped(t testing.TB, run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return func() { cancel(); <-ended }
}

// caller is somebody with a token, or a browser with a session.
type caller struct {
	*ctlapi.ClientWithResponses
	d     *door
	token string
	// cookie is a Cookie header: what raw sends is then from a page of the dashboard.
	cookie string
}

// org makes an org and returns its admin, who may also make orgs.
func (d *door) org(name string) caller {
	d.t.Helper()
	made, err := access.CreateOrg(d.t.Context(), d.store, d.keys, access.OrgSpec{Name: name, Admin: "admin", Roles: []auth.Role{auth.RolePlatform, auth.RoleAdmin}, Actor: "test"})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.as(made.Token.Secret)
}

func (d *door) as(token string) caller {
	d.t.Helper()
	client, err := ctlapi.NewClientWithResponses(d.url, ctlapi.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}))
	if err != nil {
		d.t.Fatal(err)
	}
	return caller{ClientWithResponses: client, d: d, token: token}
}

// member adds a member and returns it as a caller.
func (c caller) member(req ctlapi.MemberRequest) caller {
	c.d.t.Helper()
	ctx := c.d.t.Context()
	added, err := c.CreateMemberWithResponse(ctx, nil, req)
	must(c.d.t, added, err, http.StatusCreated)
	token, err := c.CreateTokenWithResponse(ctx, nil, ctlapi.TokenRequest{Name: "t", Member: &added.JSON201.ID})
	must(c.d.t, token, err, http.StatusCreated)
	return c.d.as(token.JSON201.Secret)
}

// answered is what every generated response can tell.
type answered interface {
	StatusCode() int
	GetBody() []byte
}

// must fails the test unless a call was answered with this status.
func must(t testing.TB, got answered, err error, want int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if got.StatusCode() != want {
		t.Fatalf("answered %d, want %d: %s", got.StatusCode(), want, got.GetBody())
	}
}

// problemOf fails the test unless a call was refused with this status and code.
func problemOf(t *testing.T, got answered, err error, status int, code string) ctlapi.Problem {
	t.Helper()
	must(t, got, err, status)
	var p ctlapi.Problem
	if err := json.Unmarshal(got.GetBody(), &p); err != nil {
		t.Fatalf("not a problem: %s", got.GetBody())
	}
	if p.Code != code {
		t.Fatalf("code is %q, want %q: %s", p.Code, code, got.GetBody())
	}
	return p
}

// raw sends a request that is not made by the generated client.
func (c caller) raw(method, path, body string, header ...string) (int, http.Header, []byte) {
	c.d.t.Helper()
	req, err := http.NewRequestWithContext(c.d.t.Context(), method, c.d.url+path, strings.NewReader(body))
	if err != nil {
		c.d.t.Fatal(err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.cookie != "" {
		req.Header.Set("Cookie", c.cookie)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i+1] == "" && header[i] == "Sec-Fetch-Site" {
			req.Header.Del(header[i])
		}
	}
	return c.d.do(req)
}

func (d *door) do(req *http.Request) (int, http.Header, []byte) {
	d.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp.StatusCode, resp.Header, nil // it does not end
	}
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, answer
}

// hello is a small app folder: a sandbox and two components, one of which needs
// the other.
func hello() fstest.MapFS {
	component := func(name, vars string) string {
		return "name = \"" + name + "\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n" +
			"[berth]\nlocal_source = \"src/" + name + "\"\n[vars]\n" + vars
	}
	files := map[string]string{
		"metadata.toml":       "version = \"v2\"\ndisplay_name = \"Hello\"\n",
		"runner.toml":         "runner_type = \"local\"\n",
		"stack.toml":          "type = \"local\"\nname = \"hello\"\ndescription = \"Runs here.\"\n",
		"sandbox.toml":        "terraform_version = \"1.11.4\"\n[berth]\nlocal_source = \"src/sandbox\"\n",
		"components/api.toml": component("api", "text = \"{{ .nuon.inputs.inputs.greeting }}\"\n"),
		"components/web.toml": component("web", "api = \"{{ .nuon.components.api.outputs.url }}\"\n"),
		"inputs.toml": `
[[group]]
name = "all"
display_name = "All"
description = "All inputs."
[[input]]
name = "greeting"
display_name = "Greeting"
description = "What is said."
group = "all"
default = "Ahoy"
[[input]]
name = "api_key"
display_name = "API key"
description = "A secret."
group = "all"
sensitive = true
[[input]]
name = "port"
display_name = "Port"
description = "A number."
group = "all"
type = "number"
`,
		"actions/look.toml": `
name = "look"
timeout = "30s"
[labels]
type = "health-check"
[[triggers]]
type = "manual"
[[steps]]
name = "look"
inline_contents = "true"
`,
		"src/sandbox/main.tf": "# sandbox\n",
		"src/api/main.tf":     "# api\n",
		"src/web/main.tf":     "# web\n",
	}
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	}
	return out
}

// with returns the folder with a file changed, or removed when text is empty.
func with(folder fstest.MapFS, name, text string) fstest.MapFS {
	out := fstest.MapFS{}
	for n, f := range folder {
		out[n] = f
	}
	out[name] = &fstest.MapFile{Data: []byte(text), Mode: 0o644}
	if text == "" {
		delete(out, name)
	}
	return out
}

// put uploads an archive.
func (c caller) put(archive []byte, digest string) string {
	c.d.t.Helper()
	got, err := c.PutBlobWithBodyWithResponse(c.d.t.Context(), digest, "application/octet-stream", bytes.NewReader(archive))
	if err != nil || got.StatusCode()/100 != 2 {
		c.d.t.Fatalf("upload: %v %s", err, got.Body)
	}
	return digest
}

// putBundle uploads the bundle of a folder.
func (c caller) putBundle(folder fstest.MapFS) string {
	c.d.t.Helper()
	packed := bundleOf(c.d.t, folder)
	for _, pack := range packed.All() {
		c.put(pack.Bytes, pack.Digest)
	}
	return packed.Index.Digest
}

// putIndex uploads an index that names these packs.
func (c caller) putIndex(packs ...string) string {
	c.d.t.Helper()
	raw, err := json.Marshal(map[string]any{"format": "berth.bundle/v1", "packs": packs})
	if err != nil {
		c.d.t.Fatal(err)
	}
	return c.put(raw, digestOf(raw))
}

func bundleOf(t testing.TB, folder fstest.MapFS) bundle.Bundle {
	t.Helper()
	packed, err := bundle.Make(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// upload packs a folder, uploads what is missing, and returns the sync request.
func (c caller) upload(folder fstest.MapFS) ctlapi.SyncRequest {
	c.d.t.Helper()
	put := func(archive []byte, digest string, err error) string {
		if err != nil {
			c.d.t.Fatal(err)
		}
		return c.put(archive, digest)
	}
	req := ctlapi.SyncRequest{BundleDigest: c.putBundle(folder), CreateApp: true, CliVersion: "test"}
	app, _ := appconfig.Load(folder, appconfig.LoadOptions{})
	for _, src := range appconfig.Sources(app) {
		name := src.Name
		if src.Block == appconfig.BlockSandbox {
			name = "sandbox"
		}
		req.Sources = append(req.Sources, ctlapi.SyncSource{Component: name, Digest: put(bundle.ArchiveDirectory(folder, src.Directory))})
	}
	return req
}

// sync syncs a folder and answers what came of it.
func (c caller) sync(app string, folder fstest.MapFS, change ...func(*ctlapi.SyncRequest)) *ctlapi.SyncResult {
	c.d.t.Helper()
	req := c.upload(folder)
	for _, fn := range change {
		fn(&req)
	}
	got, err := c.SyncAppWithResponse(c.d.t.Context(), app, nil, req)
	if err != nil {
		c.d.t.Fatal(err)
	}
	switch {
	case got.JSON200 != nil:
		return got.JSON200
	case got.JSON201 != nil:
		return got.JSON201
	}
	c.d.t.Fatalf("sync answered %d: %s", got.StatusCode(), got.Body)
	return nil
}

// finishBuilds does what builder does with builds that are queued.
func (d *door) finishBuilds(state string) {
	d.t.Helper()
	_, err := d.db.Admin().Exec(d.t.Context(), `
		update builds set state = $1, finished_at = now(), error = case when $1 = 'failed' then 'broken' end,
			artifact_repository = case when $1 = 'succeeded' then org_id || '/x' end,
			artifact_digest = case when $1 = 'succeeded' then 'sha256:' || md5(build_digest) || md5(id) end
		where state in ('queued', 'running')`, state)
	if err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.db.Admin().Exec(d.t.Context(), `select pg_notify($1, id) from apps`, model.ChannelBuild); err != nil {
		d.t.Fatal(err)
	}
}

// released syncs a folder until it has a release.
func (c caller) released(app string, folder fstest.MapFS) *ctlapi.SyncResult {
	c.d.t.Helper()
	c.sync(app, folder)
	c.d.finishBuilds("succeeded")
	got := c.sync(app, folder)
	if got.Release == nil {
		c.d.t.Fatalf("no release after all builds succeeded: %+v", got)
	}
	return got
}

// count answers a question of the form "select count(*) …" to all rows.
func (d *door) count(sql string, args ...any) int {
	d.t.Helper()
	var n int
	if err := d.db.Admin().QueryRow(d.t.Context(), sql, args...).Scan(&n); err != nil {
		d.t.Fatal(fmt.Errorf("%s: %w", sql, err))
	}
	return n
}
