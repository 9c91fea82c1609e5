package main

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/pkg/runnerclient"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// recipient is a well-formed age recipient; nothing is sealed to it here.
const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

// patience is how long a test waits for an event; on a loaded machine it is
// not the time that the event takes.
const patience = 30 * time.Second

// world is a database with replicas of runner-api in front of it.
type world struct {
	t   testing.TB
	db  *pgtest.DB
	sql *pgxpool.Pool
	url string // of the first replica
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	db := pgtest.New(t)
	w := &world{t: t, db: db, sql: db.Admin()}
	w.url = w.replica(change...)
	return w
}

// replica starts one more runner-api and stops it after the test.
func (w *world) replica(change ...func(*Config)) (url string) {
	w.t.Helper()
	dsn := filepath.Join(w.t.TempDir(), "runner.dsn")
	if err := os.WriteFile(dsn, []byte(w.db.DSN(store.RoleRunner)), 0o600); err != nil {
		w.t.Fatal(err)
	}
	cfg := defaults()
	cfg.DSNFile, cfg.DatabaseConnections = dsn, 6
	var err error
	if cfg.Listener, err = (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", "127.0.0.1:0"); err != nil {
		w.t.Fatal(err)
	}
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan error, 1)
	go func() { done <- Run(ctx, cfg) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("runner-api ended: %v", err)
		}
	})
	return "http://" + cfg.Listener.Addr().String()
}

// exec arranges rows as the superuser, who sees all.
func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.sql.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
}

// one reads one value as the superuser.
func one[T any](w *world, sql string, args ...any) (value T) {
	w.t.Helper()
	if err := w.sql.QueryRow(w.t.Context(), sql, args...).Scan(&value); err != nil {
		w.t.Fatalf("%s: %v", sql, err)
	}
	return value
}

// notify is the wake-up that another service sends after its commit.
func (w *world) notify(channel, key string) { w.exec(`select pg_notify($1, $2)`, channel, key) }

// until waits for a condition on rows.
func (w *world) until(what, sql string, args ...any) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !one[bool](w, sql, args...) {
		if time.Now().After(deadline) {
			w.t.Fatalf("waited %s in vain for: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond) // between two looks, up to the deadline
	}
}

// org is a vendor's tenant with one install.
type org struct {
	id, app, component, install, resource string
}

func (w *world) org() org {
	w.t.Helper()
	o := org{id.New(id.Org), id.New(id.App), id.New(id.Component), id.New(id.Install), id.New(id.Resource)}
	customer := id.New(id.Customer)
	w.exec(`insert into orgs (org_id, name) values ($1, $2)`, o.id, "o-"+o.id[4:])
	w.exec(`insert into customers (id, org_id, name) values ($1, $2, 'c')`, customer, o.id)
	w.exec(`insert into apps (id, org_id, name) values ($1, $2, 'a')`, o.app, o.id)
	w.exec(`insert into components (id, org_id, app_id, kind, name) values ($1, $2, $3, 'component', 'api')`, o.component, o.id, o.app)
	w.exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, created_by) values ($1, $2, $3, $4, 'i', 'local', 'test')`,
		o.install, o.id, customer, o.app)
	w.exec(`insert into resources (id, org_id, install_id, kind, component_id, name) values ($1, $2, $3, 'component', $4, 'api')`,
		o.resource, o.id, o.install, o.component)
	return o
}

// runner makes a runner row of this kind: install or build.
func (w *world) runner(o org, kind string) (runnerID string) {
	w.t.Helper()
	runnerID = id.New(id.Runner)
	var install *string
	if kind == "install" {
		install = &o.install
	}
	w.exec(`insert into runners (id, org_id, install_id, kind, name) values ($1, $2, $3, $4, 'r')`, runnerID, o.id, install, kind)
	return runnerID
}

// enrolment makes a secret for a runner.
func (w *world) enrolment(o org, runnerID string, replaces bool) (text string) {
	w.t.Helper()
	text, hash := auth.NewSecret(auth.EnrolmentPrefix)
	w.exec(`insert into enrolments (id, org_id, runner_id, secret_hash, replaces, created_by, expires_at)
		values ($1, $2, $3, $4, $5, 'test', now() + interval '1 hour')`, id.New(id.Enrolment), o.id, runnerID, hash, replaces)
	return text
}

// agent is the machine of a runner: a key, and the generated client.
type agent struct {
	w         *world
	o         org
	id        string
	key       ed25519.PrivateKey
	transport *runnerclient.Transport
	*runnerapi.ClientWithResponses
}

// machine makes a key without an identity.
func (w *world) machine(o org, url string) *agent {
	w.t.Helper()
	_, key, err := capsule.GenerateKey()
	if err != nil {
		w.t.Fatal(err)
	}
	return w.machineWith(o, url, key)
}

func (w *world) machineWith(o org, url string, key ed25519.PrivateKey) *agent {
	w.t.Helper()
	base := &http.Transport{}
	w.t.Cleanup(base.CloseIdleConnections)
	a := &agent{w: w, o: o, key: key, transport: runnerclient.New(base, key)}
	var err error
	a.ClientWithResponses, err = runnerapi.NewClientWithResponses(url, runnerapi.WithHTTPClient(a.transport.Client()))
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// publish stores settings of the install that schedule things by these names,
// good for as long as is said, as ctl-api does. Nobody checks their signature
// here.
func (w *world) publish(o org, good time.Duration, names ...string) {
	w.t.Helper()
	settings := jobspec.Settings{OrgID: o.id, InstallID: o.install, Schedule: []jobspec.Scheduled{}}
	for _, name := range names {
		item := jobspec.Scheduled{Action: jobspec.Action{Name: name}}
		if resource, ok := strings.CutPrefix(name, jobspec.ProbePrefix); ok {
			item = jobspec.Scheduled{Probe: &jobspec.Probe{Resource: jobspec.Resource{Name: resource}}}
		}
		if resource, ok := jobspec.DriftNamed(name); ok {
			item = jobspec.Scheduled{Probe: &jobspec.Probe{Resource: resource}, Drift: &jobspec.DriftLook{}}
			settings.Surveys = append(settings.Surveys, item)
			continue
		}
		settings.Schedule = append(settings.Schedule, item)
	}
	w.publishSettings(o, good, settings)
}

// publishRemedies makes settings in which an action heals checks.
func (w *world) publishRemedies(o org, action string, checks ...string) {
	w.t.Helper()
	remedy := jobspec.Script{Action: jobspec.Action{Name: action}}
	for _, check := range checks {
		remedy.Heals = append(remedy.Heals, jobspec.Heal{Check: check, Attempts: 3})
	}
	w.publishSettings(o, jobspec.SettingsLifetime, jobspec.Settings{OrgID: o.id, InstallID: o.install, Schedule: []jobspec.Scheduled{}, Remedies: []jobspec.Script{remedy}})
}

func (w *world) publishSettings(o org, good time.Duration, settings jobspec.Settings) {
	w.t.Helper()
	payload, err := json.Marshal(settings)
	if err != nil {
		w.t.Fatal(err)
	}
	envelope, err := json.Marshal(capsule.Envelope{PayloadType: capsule.SettingsType, Payload: base64.StdEncoding.EncodeToString(payload)})
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`insert into settings_versions (org_id, install_id, version, digest, envelope, expires_at)
		select $1, $2, coalesce(max(version), 0) + 1, 'sha256:x', $3, now() + $4::interval from settings_versions where install_id = $2`,
		o.id, o.install, envelope, good.String())
}

// agent makes an enrolled runner of this kind with an open session.
func (w *world) agent(o org, kind string) *agent {
	w.t.Helper()
	a := w.machine(o, w.url)
	a.enrol(w.enrolment(o, w.runner(o, kind), false))
	a.start()
	return a
}

// at is the same runner, in the same session, calling another replica.
func (a *agent) at(url string) *agent {
	a.w.t.Helper()
	other := *a
	var err error
	other.ClientWithResponses, err = runnerapi.NewClientWithResponses(url, runnerapi.WithHTTPClient(a.transport.Client()))
	if err != nil {
		a.w.t.Fatal(err)
	}
	return &other
}

func (a *agent) public() ed25519.PublicKey { return a.key.Public().(ed25519.PublicKey) }

func (a *agent) enrolment(text string) runnerapi.Enrolment {
	return runnerapi.Enrolment{
		Secret: text, PublicKey: capsule.EncodePublicKey(a.public()),
		SealRecipient: recipient, Version: "0.1.0", Facts: runnerapi.Facts{"hostname": "test"},
	}
}

// enrol must succeed; the agent signs as the runner from then on.
func (a *agent) enrol(text string) {
	a.w.t.Helper()
	resp, err := a.EnrolWithResponse(a.w.t.Context(), a.enrolment(text))
	must(a.w.t, resp, err, http.StatusOK)
	a.id = resp.JSON200.RunnerID
	a.transport.SetRunner(a.id)
}

// start opens a session that names these attempts as running.
func (a *agent) start(running ...runnerapi.Attempt) *runnerapi.Session {
	a.w.t.Helper()
	resp, err := a.OpenSessionWithResponse(a.w.t.Context(), a.sessionRequest(running...))
	must(a.w.t, resp, err, http.StatusOK)
	a.transport.SetSession(resp.JSON200.Token)
	return resp.JSON200
}

func (a *agent) sessionRequest(running ...runnerapi.Attempt) runnerapi.SessionRequest {
	if running == nil {
		running = []runnerapi.Attempt{}
	}
	return runnerapi.SessionRequest{
		RunnerID: a.id, Version: "0.1.0", Slots: 4, Trust: runnerapi.TrustDevelopment, Switch: runnerapi.SwitchRun,
		Facts: runnerapi.Facts{}, Running: running,
	}
}

// claim must succeed, and answers what was leased.
func (a *agent) claim(claimID string, slots, wait int) []runnerapi.Assignment {
	a.w.t.Helper()
	resp, err := a.ClaimJobsWithResponse(a.w.t.Context(), runnerapi.ClaimRequest{ClaimID: claimID, Slots: slots, WaitSeconds: wait, Switch: runnerapi.SwitchRun})
	must(a.w.t, resp, err, http.StatusOK)
	return resp.JSON200.Jobs
}

// lease queues a job and claims it.
func (a *agent) lease(j job) runnerapi.Assignment {
	a.w.t.Helper()
	jobID := a.queue(j)
	jobs := a.claim("claim-"+jobID[4:], 1, 10)
	if len(jobs) != 1 || jobs[0].JobID != jobID {
		a.w.t.Fatalf("claimed %+v, want job %s", jobs, jobID)
	}
	return jobs[0]
}

// job is what differs between jobs of tests.
type job struct {
	operation jobspec.Operation // plan when empty
	fence     int64             // an apply when not 0
	build     string
}

// queue writes a job for the agent as ctl-api does, and wakes.
func (a *agent) queue(j job) (jobID string) {
	a.w.t.Helper()
	jobID = id.New(id.Job)
	spec := jobspec.Spec{
		Version: jobspec.Version, JobID: jobID, OrgID: a.o.id, InstallID: a.o.install, Kind: jobspec.KindTerraformModule,
		Operation: j.operation, TimeoutSeconds: 60, Resource: &jobspec.Resource{ID: a.o.resource, Kind: "component", Name: "api"},
	}
	if spec.Operation == "" {
		spec.Operation = jobspec.OperationPlan
	}
	var fence *int64
	if j.fence != 0 {
		spec.Operation, fence = jobspec.OperationApply, &j.fence
		a.w.exec(`update resources set fence = greatest(fence, $2) where id = $1`, a.o.resource, j.fence)
	}
	var install, resource, build *string
	if j.build != "" {
		spec.Operation, build = jobspec.OperationBuild, &j.build
	} else {
		install, resource = &a.o.install, &a.o.resource
	}
	body, err := json.Marshal(spec)
	if err != nil {
		a.w.t.Fatal(err)
	}
	a.w.exec(`insert into runner_jobs (id, org_id, runner_id, install_id, resource_id, build_id, kind, operation, mutates, spec, signed_order, fence, timeout_seconds, trace)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, 60, '{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}')`,
		jobID, a.o.id, a.id, install, resource, build, spec.Kind, spec.Operation, fence != nil, body, someOrder, fence)
	a.w.notify("berth_jobs", a.id)
	return jobID
}

// someOrder is the order of every job here: runner-api passes it on and believes
// nothing of it. Its spaces and escapes are not those that encoding/json writes.
const someOrder = `{ "payloadType" : "t<", "payload":"cA==",  "signatures":[{"keyid":"k","sig":"cw=="}] }`

// jobState is what the row says.
func (w *world) jobState(jobID string) string {
	w.t.Helper()
	return one[string](w, `select state || '/' || attempt from runner_jobs where id = $1`, jobID)
}

// answer is what all responses of the generated client have.
type answer interface {
	StatusCode() int
	GetBody() []byte
}

// must fails the test when a call did not answer with this status.
func must(t testing.TB, resp answer, err error, status int) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode() != status {
		t.Fatalf("answered %d, want %d: %s", resp.StatusCode(), status, resp.GetBody())
	}
}

// refused fails the test unless the answer is a problem with this status and
// code.
func refused(t testing.TB, resp answer, err error, status int, code string) {
	t.Helper()
	must(t, resp, err, status)
	var problem struct {
		Code string `json:"code"`
	}
	if err := json.Unmarshal(resp.GetBody(), &problem); err != nil || problem.Code != code {
		t.Fatalf("code %q (%v), want %q: %s", problem.Code, err, code, resp.GetBody())
	}
}
