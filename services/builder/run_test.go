package main

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/setting"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
)

// This test's executable also stands for berth-runner, which has nothing to do
// here: the test itself does the jobs. And it is the builder of a replica.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "--data" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		for builder := os.Getppid(); ctx.Err() == nil && os.Getppid() == builder; { // a killed test leaves none
			time.Sleep(100 * time.Millisecond)
		}
		os.Exit(0)
	}
	if os.Getenv(asBuilder) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// builder is a whole one, as main runs it.
type builder struct {
	t    *testing.T
	db   *pgtest.DB
	cfg  Config
	host string
}

func newBuilder(t *testing.T) *builder {
	t.Helper()
	b := &builder{t: t, db: pgtest.New(t)}
	dsn, libexec := filepath.Join(t.TempDir(), "builder.dsn"), t.TempDir()
	if err := os.WriteFile(dsn, []byte(b.db.DSN(store.RoleBuilder)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(libexec, "berth-runner")); err != nil {
		t.Fatal(err)
	}
	b.cfg, err = setting.Load[Config](func(name string) string {
		return map[string]string{"BERTH_DSN_FILE": dsn, "BERTH_DATA": t.TempDir(), "BERTH_LIBEXEC": libexec, "BERTH_BUILD_WORKERS": "2"}[name]
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// start runs it until the returned function is called.
func (b *builder) start() (stop func()) {
	b.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.t.Fatal(err)
	}
	b.cfg.Listener, b.host = listener, listener.Addr().String()
	ctx, cancel := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, b.cfg) }()
	return func() {
		b.t.Helper()
		cancel()
		if err := <-ended; err != nil {
			b.t.Errorf("builder: %v", err)
		}
	}
}

func (b *builder) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Admin().Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
}

func (b *builder) eventually(what, sql string, args ...any) {
	b.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		var is bool
		if err := b.db.Admin().QueryRow(b.t.Context(), sql, args...).Scan(&is); err != nil {
			b.t.Fatalf("%s: %v", sql, err)
		}
		if is {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("never: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// sync stores an app with one component, of an uploaded folder.
func (b *builder) sync() (org, buildID string) {
	b.t.Helper()
	org, buildID = id.New(id.Org), id.New(id.Build)
	app, config, component, revision := id.New(id.App), id.New(id.Config), id.New(id.Component), id.New(id.Revision)
	dir := b.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "main.tf"), []byte("# nothing"), 0o600); err != nil {
		b.t.Fatal(err)
	}
	archive, digest, err := bundle.ArchiveDirectory(os.DirFS(dir), ".")
	if err != nil {
		b.t.Fatal(err)
	}
	b.exec(`insert into orgs (org_id, name) values ($1, 'acme-' || right($1, 8))`, org)
	b.exec(`insert into apps (id, org_id, name) values ($1, $2, 'hello')`, app, org)
	b.exec(`insert into blobs (org_id, digest, size_bytes, body) values ($1, $2, $3, $4)`, org, digest, len(archive), archive)
	b.exec(`insert into configs (id, org_id, app_id, number, digest, bundle_digest, body, created_by) values ($1, $2, $3, 1, 'd', $4, '{}', 'test')`, config, org, app, digest)
	b.exec(`insert into components (id, org_id, app_id, kind, name) values ($1, $2, $3, 'component', 'card')`, component, org, app)
	b.exec(`insert into component_revisions (id, org_id, component_id, type, build_digest, deploy_digest, spec) values ($1, $2, $3, 'terraform_module', 'b', 'd', '{}')`, revision, org, component)
	b.exec(`insert into builds (id, org_id, app_id, component_id, revision_id, build_digest, source, requested_by) values ($1, $2, $3, $4, $5, 'b', $6, 'test')`,
		buildID, org, app, component, revision, fmt.Sprintf(`{"kind": "local", "digest": %q}`, digest))
	b.exec(`insert into config_items (org_id, config_id, component_id, revision_id, build_id) values ($1, $2, $3, $4, $5)`, org, config, component, revision, buildID)
	return org, buildID
}

// wake is what ctl-api and runner-api do after a change.
func (b *builder) wake(role store.Role, org, buildID string) {
	b.t.Helper()
	err := b.db.AsRole(role).Tx(b.t.Context(), org, func(ctx context.Context, tx *store.Tx) error { return runnerdb.New(tx.DB()).WakeBuild(ctx, buildID) })
	if err != nil {
		b.t.Fatal(err)
	}
}

// enrol gives the Build Runner its key, as runner-api does. Before that nothing
// can be ordered of it.
func (b *builder) enrol(org, buildID string) {
	b.t.Helper()
	b.eventually("a Build Runner", `select exists (select from runners where org_id = $1)`, org)
	b.exec(`update runners set state = 'active', public_key = $2 where org_id = $1`, org, capsule.EncodePublicKey(make(ed25519.PublicKey, ed25519.PublicKeySize)))
	b.wake(store.RoleRunner, org, buildID)
}

func TestWholeBuilder(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	stop := b.start()
	org, buildID := b.sync()
	b.wake(store.RoleCtl, org, buildID)
	b.enrol(org, buildID)
	b.eventually("a job for the Build Runner", `select exists (select from runner_jobs where build_id = $1 and state = 'queued')`, buildID)
	b.eventually("the Build Runner may enrol", `select exists (select from enrolments where org_id = $1 and state = 'open')`, org)

	b.finishJob(org, buildID)
	b.wake(store.RoleRunner, org, buildID)
	b.eventually("the release", `select exists (select from releases r join release_items i on i.release_id = r.id where i.build_id = $1 and r.number = 1)`, buildID)
	stop()
}

// What happened while builder was away is found when it comes back, without
// anybody telling it.
func TestOpenBuildsGoOnAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	org, buildID := b.sync()
	stop := b.start()
	b.enrol(org, buildID)
	b.eventually("a job for the Build Runner", `select exists (select from runner_jobs where build_id = $1)`, buildID)
	b.finishJob(org, buildID)
	stop()
	stop = b.start()
	b.eventually("the build has succeeded", `select state = 'succeeded' from builds where id = $1`, buildID)
	stop()
}

// finishJob pushes something as the Build Runner and stores the result.
func (b *builder) finishJob(org, buildID string) {
	b.t.Helper()
	token, hash := registry.NewToken()
	b.exec(`insert into registry_tokens (hash, org_id, actions, expires_at) values ($1, $2, '{pull,push}', now() + interval '5 minutes')`, hash, org)
	var jobID string
	var raw []byte
	if err := b.db.Admin().QueryRow(b.t.Context(), `select id, spec from runner_jobs where build_id = $1`, buildID).Scan(&jobID, &raw); err != nil {
		b.t.Fatal(err)
	}
	var spec jobspec.Spec
	if err := json.Unmarshal(raw, &spec); err != nil {
		b.t.Fatal(err)
	}
	remote := func(repository string) oci.Remote {
		return oci.Remote{Registry: b.host, Repository: repository, PlainHTTP: true, Token: func(context.Context) (string, error) { return token, nil }}
	}
	layout, err := oci.Open(b.t.TempDir())
	if err != nil {
		b.t.Fatal(err)
	}
	digest, dir := godigest.Digest(spec.Source.Archive.Digest), filepath.Join(b.t.TempDir(), "source")
	err = errors.Join(
		remote(spec.Source.Archive.Repository).Pull(b.t.Context(), digest, layout, oci.TransferOptions{}),
		layout.Unpack(b.t.Context(), digest, dir, oci.Limits{}))
	if err != nil {
		b.t.Fatal(err)
	}
	packed, err := oci.Pack(b.t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: dir})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := remote(spec.Source.Push).Push(b.t.Context(), layout, packed.Digest.String(), oci.TransferOptions{}); err != nil {
		b.t.Fatal(err)
	}
	result, err := json.Marshal(jobspec.Result{Artifact: &jobspec.BuiltArtifact{Repository: spec.Source.Push, Digest: packed.Digest.String()}})
	if err != nil {
		b.t.Fatal(err)
	}
	err = b.db.AsRole(store.RoleRunner).Tx(b.t.Context(), org, func(ctx context.Context, tx *store.Tx) error {
		return runnerdb.New(tx.DB()).RunnerFinishJob(ctx, runnerdb.RunnerFinishJobParams{ID: jobID, State: "succeeded", Result: result})
	})
	if err != nil {
		b.t.Fatal(err)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	stop := b.start()
	defer stop()
	for path, want := range map[string]string{"/healthz": `200 {"status":"ok"}`, "/readyz": `200 {"status":"ready"}`, "/v2/": "401 "} {
		res, err := http.Get("http://" + b.host + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if got := fmt.Sprint(res.StatusCode, " ", string(body)); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, %v; want %s", path, got, err, want)
		}
	}
}

func TestMissingRunnerIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	b.cfg.Libexec = t.TempDir()
	b.cfg.RegistryListen = "127.0.0.1:0"
	err := Run(t.Context(), b.cfg)
	want := fmt.Sprintf("there is no executable %s/berth-runner: set BERTH_LIBEXEC to the folder of berth-runner", b.cfg.Libexec)
	if err == nil || err.Error() != want {
		t.Errorf("Run: %v, want %s", err, want)
	}
}
