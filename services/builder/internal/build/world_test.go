package build

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	godigest "github.com/opencontainers/go-digest"

	"github.com/berth-dev/berth/pkg/appconfig/bundle"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/oci"
	"github.com/berth-dev/berth/services/builder/internal/database"
	"github.com/berth-dev/berth/services/builder/internal/depot"
	"github.com/berth-dev/berth/services/builder/internal/fleet"
	"github.com/berth-dev/berth/services/builder/internal/orders"
	"github.com/berth-dev/berth/services/builder/internal/registry"
	"github.com/berth-dev/berth/services/builder/internal/source"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/optional"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
	"github.com/berth-dev/berth/services/internal/store/runnerdb"
)

// world is a database, a registry over HTTP and a worker, with one org and app.
// Runner rows are made, runners are not started: the test is the runner.
type world struct {
	t        testing.TB
	db       *pgtest.DB
	worker   *Worker
	registry string // host:port
	org, app string
	configs  int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	db := pgtest.New(t)
	st := database.New(db.AsRole(store.RoleBuilder))
	reg, err := registry.New(registry.Config{Dir: t.TempDir(), Secret: "test", Auth: registry.NewTokens(depot.NewTokens(st), time.Now)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(reg)
	t.Cleanup(func() {
		server.Close()
		if err := reg.Close(); err != nil {
			t.Errorf("close registry: %v", err)
		}
	})
	keys, err := orders.Open(filepath.Join(t.TempDir(), "orders.key"))
	if err != nil {
		t.Fatal(err)
	}
	runners, err := fleet.New(st, fleet.Config{Dir: t.TempDir(), Executable: "/nonexistent", RunnerAPIURL: "http://127.0.0.1:1", Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, db: db, registry: server.Listener.Addr().String(), app: id.New(id.App),
		worker: &Worker{
			Store: st, Runners: runners, Keys: keys, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
			Resolver: source.NewResolver(source.Config{AllowFile: true}),
			Registry: depot.New(st, server.Listener.Addr().String(), t.TempDir()),
		},
	}
	w.org = w.addOrg("acme")
	w.exec(`insert into apps (id, org_id, name) values ($1, $2, 'hello')`, w.app, w.org)
	return w
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Admin().Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) addOrg(name string) string {
	w.t.Helper()
	org := id.New(id.Org)
	w.exec(`insert into orgs (org_id, name) values ($1, $2)`, org, name)
	// Its Build Runner has enrolled: orders name its key.
	w.exec(`insert into runners (id, org_id, kind, name, state, public_key) values ($1, $2, 'build', 'build-runner', 'active', $3)`,
		id.New(id.Runner), org, capsule.EncodePublicKey(make(ed25519.PublicKey, ed25519.PublicKeySize)))
	return org
}

// component is what a config says of one.
type component struct {
	name        string
	buildDigest string
	source      source.Source
	build       string // an earlier build that stands for it; else a new one
	policies    string // of its build, JSON; "" for none
	imageKey    string // image_key below [berth]
}

// addConfig stores a config as a sync does, and returns its builds by name.
func (w *world) addConfig(components ...component) (configID string, builds map[string]string) {
	w.t.Helper()
	w.configs++
	configID, builds = id.New(id.Config), map[string]string{}
	w.exec(`insert into blobs (org_id, digest, size_bytes, body) values ($1, $2, 1, 'x') on conflict do nothing`, w.org, someDigest)
	w.exec(`insert into configs (id, org_id, app_id, number, digest, bundle_digest, body, created_by) values ($1, $2, $3, $4, $5, $6, '{}', 'test')`,
		configID, w.org, w.app, w.configs, fmt.Sprintf("config %d", w.configs), someDigest)
	for _, c := range components {
		componentID, revision := w.addRevision(c)
		if c.build == "" {
			c.build = w.addBuild(componentID, revision, c)
		}
		builds[c.name] = c.build
		w.exec(`insert into config_items (org_id, config_id, component_id, revision_id, build_id) values ($1, $2, $3, $4, $5)`,
			w.org, configID, componentID, revision, c.build)
	}
	return configID, builds
}

func (w *world) addRevision(c component) (componentID, revision string) {
	w.t.Helper()
	w.exec(`insert into components (id, org_id, app_id, kind, name) values ($1, $2, $3, 'component', $4) on conflict do nothing`,
		id.New(id.Component), w.org, w.app, c.name)
	componentID = w.text(`select id from components where org_id = $1 and app_id = $2 and name = $3`, w.org, w.app, c.name)
	w.exec(`insert into component_revisions (id, org_id, component_id, type, build_digest, deploy_digest, spec, policies)
		values ($1, $2, $3, 'terraform_module', $4, 'd', jsonb_build_object('build_timeout', '5m0s', 'at', jsonb_build_object('file', 'components/it.toml'), 'berth', jsonb_build_object('image_key', $5::text)),
		nullif($6, '')::jsonb) on conflict do nothing`,
		id.New(id.Revision), w.org, componentID, c.buildDigest, c.imageKey, c.policies)
	return componentID, w.text(`select id from component_revisions where component_id = $1 and build_digest = $2`, componentID, c.buildDigest)
}

func (w *world) addBuild(componentID, revision string, c component) string {
	w.t.Helper()
	buildID := id.New(id.Build)
	src, err := json.Marshal(c.source)
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`insert into builds (id, org_id, app_id, component_id, revision_id, build_digest, source, requested_by) values ($1, $2, $3, $4, $5, $6, $7, 'test')`,
		buildID, w.org, w.app, componentID, revision, c.buildDigest, src)
	return buildID
}

// rebuild queues one more build of the same, as a person does.
func (w *world) rebuild(c component) string {
	w.t.Helper()
	componentID, revision := w.addRevision(c)
	return w.addBuild(componentID, revision, c)
}

func (w *world) text(sql string, args ...any) string {
	w.t.Helper()
	var out *string
	if err := w.db.Admin().QueryRow(w.t.Context(), sql, args...).Scan(&out); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return optional.Value(out)
}

func (w *world) count(sql string, args ...any) (n int) {
	w.t.Helper()
	if err := w.db.Admin().QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// localSource uploads a directory with one file and returns it as a source.
func (w *world) localSource(contents string) source.Source {
	w.t.Helper()
	dir := w.t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "src"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "src", "main.tf"), []byte(contents), 0o600); err != nil {
		w.t.Fatal(err)
	}
	archive, digest, err := bundle.ArchiveDirectory(os.DirFS(dir), "src")
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`insert into blobs (org_id, digest, size_bytes, body) values ($1, $2, $3, $4) on conflict do nothing`, w.org, digest, len(archive), archive)
	return source.Source{Kind: source.KindLocal, Digest: digest}
}

func (w *world) advance(buildID string) {
	w.t.Helper()
	if err := w.worker.Advance(w.t.Context(), buildID, 1); err != nil {
		w.t.Fatalf("advance: %v", err)
	}
}

// ended is what a person sees of a build.
type ended struct {
	State, Error, ReusedFrom, Repository, Digest, Commit string
}

func (w *world) ended(buildID string) (e ended) {
	w.t.Helper()
	err := w.db.Admin().QueryRow(w.t.Context(), `select state, coalesce(error, ''), coalesce(reused_from, ''), coalesce(artifact_repository, ''),
		coalesce(artifact_digest, ''), coalesce(source_commit, '') from builds where id = $1`, buildID).
		Scan(&e.State, &e.Error, &e.ReusedFrom, &e.Repository, &e.Digest, &e.Commit)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// jobOf is the runner job of a build.
func (w *world) jobOf(buildID string) (jobID string, spec jobspec.Spec) {
	w.t.Helper()
	var raw []byte
	err := w.db.Admin().QueryRow(w.t.Context(), `select id, spec from runner_jobs where build_id = $1`, buildID).Scan(&jobID, &raw)
	if err != nil {
		w.t.Fatalf("job of build: %v", err)
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		w.t.Fatal(err)
	}
	return jobID, spec
}

// token is one as runner-api gives to a Build Runner of an org.
func (w *world) token(org string, actions ...string) string {
	w.t.Helper()
	text, hash := registry.NewToken()
	w.exec(`insert into registry_tokens (hash, org_id, actions, expires_at) values ($1, $2, $3, now() + interval '5 minutes')`, hash, org, actions)
	return text
}

func (w *world) remote(token, repository string) oci.Remote {
	return oci.Remote{
		Registry: w.registry, Repository: repository, PlainHTTP: true,
		Token: func(context.Context) (string, error) { return token, nil },
	}
}

// work does a job as a Build Runner does: pulls the source, pushes an artifact
// of it, and has runner-api store the result.
func (w *world) work(buildID string) jobspec.BuiltArtifact {
	w.t.Helper()
	_, spec := w.jobOf(buildID)
	layout, err := oci.Open(w.t.TempDir())
	if err != nil {
		w.t.Fatal(err)
	}
	dir := filepath.Join(w.t.TempDir(), "source")
	token := w.token(w.org, "pull", "push")
	if archive := spec.Source.Archive; archive != nil {
		pull(w.t, w.remote(token, archive.Repository), archive.Digest, layout, dir)
	} else {
		writeFiles(w.t, dir, map[string]string{"commit": spec.Source.Commit})
	}
	packed, err := oci.Pack(w.t.Context(), layout, oci.PackInput{Kind: oci.KindTerraformModule, Dir: dir})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.remote(token, spec.Source.Push).Push(w.t.Context(), layout, packed.Digest.String(), oci.TransferOptions{}); err != nil {
		w.t.Fatal(err)
	}
	made := jobspec.BuiltArtifact{Repository: spec.Source.Push, Digest: packed.Digest.String(), SizeBytes: packed.Size}
	w.report(buildID, "succeeded", jobspec.Result{Artifact: &made, Tool: &jobspec.Tool{Name: "terraform", Version: "1.9.0"}})
	return made
}

// report ends the job of a build, with the role and the statement of runner-api.
func (w *world) report(buildID string, state model.JobState, result jobspec.Result) {
	w.t.Helper()
	jobID, _ := w.jobOf(buildID)
	body, err := json.Marshal(result)
	if err != nil {
		w.t.Fatal(err)
	}
	err = w.db.AsRole(store.RoleRunner).Tx(w.t.Context(), w.org, func(ctx context.Context, tx *store.Tx) error {
		return runnerdb.New(tx.DB()).RunnerFinishJob(ctx, runnerdb.RunnerFinishJobParams{ID: jobID, State: state, Result: body, Error: optional.Of(result.Error)})
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// releases are "number config made_by", in order.
func (w *world) releases() string {
	w.t.Helper()
	return w.text(`select string_agg(r.number || ' config ' || c.number || ' ' || r.made_by, ', ' order by r.number)
		from releases r join configs c on c.id = r.config_id where r.app_id = $1`, w.app)
}

func pull(t testing.TB, from oci.Remote, digest string, layout *oci.Layout, dir string) {
	t.Helper()
	desc := godigest.Digest(digest)
	if err := from.Pull(t.Context(), desc, layout, oci.TransferOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := layout.Unpack(t.Context(), desc, dir, oci.Limits{}); err != nil {
		t.Fatal(err)
	}
}

func writeFiles(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, contents := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(contents), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func repeated(c string) string { return "sha256:" + strings.Repeat(c, 64) }

func hashOf(token string) []byte { return registry.HashToken(token) }
