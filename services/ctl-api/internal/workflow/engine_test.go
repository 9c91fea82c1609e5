package workflow_test

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/attribute"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/appconfig/check"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/seal"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/database"
	"github.com/berth-dev/berth/services/ctl-api/internal/flow"
	"github.com/berth-dev/berth/services/ctl-api/internal/keys"
	"github.com/berth-dev/berth/services/ctl-api/internal/workflow"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/internal/fault"
	"github.com/berth-dev/berth/services/internal/metrictest"
	"github.com/berth-dev/berth/services/internal/model"
	"github.com/berth-dev/berth/services/internal/pgtest"
	"github.com/berth-dev/berth/services/internal/store"
)

// rig is an install of examples/hello on a real database. The runner's half of
// the story is played by writing what runner-api writes.
type rig struct {
	ada     auth.Principal // an admin
	t       testing.TB
	admin   *pgxpool.Pool
	ctl     *database.Store
	engine  *workflow.Engine
	org     string
	install string
	release string
	runner  string
	seal    *seal.Identity
	// reviews: the test answers for the acceptance of releases; else nothing of a
	// release is new.
	reviews bool
	machine ed25519.PrivateKey
	// advancing is the time that Advance has taken.
	advancing time.Duration
}

// noLater drops wake-ups for later: the test calls Advance itself.
type noLater struct{}

func (noLater) WakeWorkflowAt(context.Context, *database.Tx, string, time.Time) error { return nil }
func (noLater) WakeInstallAt(context.Context, *database.Tx, string, time.Time) error  { return nil }

// newRig makes it; change may make another app of the example.
func newRig(t testing.TB, change ...func(*appconfig.App)) *rig {
	t.Helper()
	ctx := t.Context()
	pg := pgtest.New(t)
	master, err := seal.LoadOrCreateMasterKey(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	ring := keys.New(master)
	r := &rig{t: t, admin: pg.Admin(), ctl: database.New(pg.AsRole(store.RoleCtl))}
	r.engine = &workflow.Engine{Store: r.ctl, Waker: noLater{}, Keys: ring, Log: slog.New(slog.DiscardHandler)}
	made, err := access.CreateOrg(ctx, r.ctl, ring, access.OrgSpec{Name: "vendor", Admin: "admin", Roles: []auth.Role{auth.RoleAdmin}, Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	r.org = made.Org.OrgID
	r.ada = r.member("ada", auth.RoleAdmin)
	if r.seal, err = seal.GenerateIdentity(); err != nil {
		t.Fatal(err)
	}
	r.seed(change...)
	return r
}

func publicOf(key ed25519.PrivateKey) string {
	public, _ := key.Public().(ed25519.PublicKey)
	return capsule.EncodePublicKey(public)
}

// exec arranges rows as the superuser.
func (r *rig) exec(sql string, args ...any) {
	r.t.Helper()
	if _, err := r.admin.Exec(r.t.Context(), sql, args...); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
}

// value reads one text value as the superuser.
func (r *rig) value(sql string, args ...any) string {
	r.t.Helper()
	var v *string
	if err := r.admin.QueryRow(r.t.Context(), sql, args...).Scan(&v); err != nil {
		r.t.Fatalf("%s: %v", sql, err)
	}
	if v == nil {
		return ""
	}
	return *v
}

// seed makes what a sync, its builds and the creation of an install leave.
func (r *rig) seed(change ...func(*appconfig.App)) {
	r.t.Helper()
	app, diags := check.Folder(os.DirFS("../../../../examples/hello"), appconfig.LoadOptions{})
	if place.HasErrors(diags) {
		r.t.Fatalf("examples/hello: %v", diags)
	}
	for _, fn := range change {
		fn(app)
	}
	body, err := json.Marshal(app)
	if err != nil {
		r.t.Fatal(err)
	}
	appID, configID, customer := id.New(id.App), id.New(id.Config), id.New(id.Customer)
	r.release, r.install, r.runner = id.New(id.Release), id.New(id.Install), id.New(id.Runner)
	blob := capsule.DigestBytes(nil)
	r.exec(`insert into apps (id, org_id, name) values ($1, $2, 'hello')`, appID, r.org)
	r.exec(`insert into blobs (org_id, digest, size_bytes, body) values ($1, $2, 0, '')`, r.org, blob)
	r.exec(`insert into configs (id, org_id, app_id, number, digest, bundle_digest, body, created_by) values ($1, $2, $3, 1, 'd', $4, $5, 'test')`, configID, r.org, appID, blob, body)
	r.exec(`insert into releases (id, org_id, app_id, number, config_id, made_by, digest) values ($1, $2, $3, 1, $4, 'sync', 'd')`, r.release, r.org, appID, configID)
	r.exec(`insert into customers (id, org_id, name) values ($1, $2, 'acme')`, customer, r.org)
	r.exec(`insert into installs (id, org_id, customer_id, app_id, name, stack_kind, inputs_version, created_by) values ($1, $2, $3, $4, 'acme', 'local', 1, 'test')`, r.install, r.org, customer, appID)
	r.exec(`insert into install_inputs (org_id, install_id, version, values, sealed, created_by) values ($1, $2, 1, '{"greeting":"Ahoy","person":"sailor"}', $3, 'test')`, r.org, r.install, r.sealedInputs(1))
	item := func(kind, name, typ string, spec any) {
		raw, err := json.Marshal(spec)
		if err != nil {
			r.t.Fatal(err)
		}
		cmpID, revID, bldID := id.New(id.Component), id.New(id.Revision), id.New(id.Build)
		r.exec(`insert into components (id, org_id, app_id, kind, name) values ($1, $2, $3, $4, $5)`, cmpID, r.org, appID, kind, name)
		r.exec(`insert into component_revisions (id, org_id, component_id, type, build_digest, deploy_digest, spec) values ($1, $2, $3, $4, 'b', 'd', $5)`, revID, r.org, cmpID, typ, raw)
		r.exec(`insert into builds (id, org_id, app_id, component_id, revision_id, build_digest, source, state, artifact_repository, artifact_digest, requested_by)
		        values ($1, $2, $3, $4, $5, 'b', '{}', 'succeeded', 'repo', 'sha256:art', 'test')`, bldID, r.org, appID, cmpID, revID)
		r.exec(`insert into release_items (org_id, release_id, component_id, revision_id, build_id, artifact_repository, artifact_digest) values ($1, $2, $3, $4, $5, 'repo', 'sha256:art')`, r.org, r.release, cmpID, revID, bldID)
	}
	item("sandbox", "sandbox", "terraform", app.Sandbox)
	for i := range app.Components {
		item("component", app.Components[i].Name, string(app.Components[i].Type), app.Components[i])
	}
	r.exec(`insert into stack_versions (id, org_id, install_id, version, kind, state, phone_home_hash, outputs, expires_at) values ($1, $2, $3, 1, 'local', 'pending', $4, '{}', now() + interval '1 day')`, id.New("stk"), r.org, r.install, []byte(r.install))
	r.exec(`insert into runners (id, org_id, install_id, kind, name) values ($1, $2, $3, 'install', 'acme')`, r.runner, r.org, r.install)
}

// sealedInputs are the sensitive inputs as a version of them is stored.
func (r *rig) sealedInputs(version int32) []byte {
	r.t.Helper()
	sealed, err := r.engine.Keys.Seal(keys.InputsAtRest(r.org, r.install, version), []byte(`{"passphrase":"a canary that nobody may see"}`))
	if err != nil {
		r.t.Fatal(err)
	}
	return sealed
}

// arrive is the stack phoning home and the runner enrolling.
func (r *rig) arrive() {
	r.exec(`update stack_versions set state = 'active', outputs = '{"install_dir": "/data"}' where install_id = $1`, r.install)
	if r.machine == nil {
		var err error
		if _, r.machine, err = capsule.GenerateKey(); err != nil {
			r.t.Fatal(err)
		}
	}
	r.exec(`update runners set state = 'active', epoch = 1, seal_recipient = $2, public_key = $3, last_seen_at = now() where id = $1`,
		r.runner, r.seal.Recipient(), publicOf(r.machine))
}

func (r *rig) start(req workflow.Request) string {
	r.t.Helper()
	var workflowID string
	req.InstallID, req.Actor = r.install, "ada"
	r.tx(func(ctx context.Context, tx *database.Tx) (err error) {
		workflowID, err = workflow.Start(ctx, tx, req)
		return err
	})
	r.advance(workflowID)
	return workflowID
}

func (r *rig) tx(fn func(ctx context.Context, tx *database.Tx) error) {
	r.t.Helper()
	if err := r.ctl.Tx(r.t.Context(), r.org, fn); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) advance(workflowID string) {
	r.t.Helper()
	began := time.Now()
	if err := r.engine.Advance(r.t.Context(), workflowID); err != nil {
		r.t.Fatalf("Advance: %v", err)
	}
	r.advancing += time.Since(began)
	if r.reviews {
		return
	}
	for _, step := range []string{"release", "scripts"} {
		open := r.value(`select count(*)::text from runner_jobs j join steps s on s.id = j.step_id where j.workflow_id = $1 and s.name = $2 and j.state = 'queued'`, workflowID, step)
		if open == "1" {
			r.planned(workflowID, step, "")
		}
	}
}

// steps shows each step of a workflow with its state and that of its change.
func (r *rig) steps(workflowID string) map[string]string {
	r.t.Helper()
	rows, err := r.admin.Query(r.t.Context(), `select s.name, s.state || coalesce(' ' || c.state, '') from steps s left join changes c on c.id = s.change_id where s.workflow_id = $1`, workflowID)
	if err != nil {
		r.t.Fatal(err)
	}
	defer rows.Close()
	got := map[string]string{}
	for rows.Next() {
		var name, state string
		if err := rows.Scan(&name, &state); err != nil {
			r.t.Fatal(err)
		}
		got[name] = state
	}
	if err := rows.Err(); err != nil {
		r.t.Fatal(err)
	}
	return got
}

// openJob is the queued job of a step.
func (r *rig) openJob(workflowID, step string) (jobID string, spec jobspec.Spec) {
	r.t.Helper()
	var raw []byte
	err := r.admin.QueryRow(r.t.Context(), `select j.id, j.spec from runner_jobs j join steps s on s.id = j.step_id
		where j.workflow_id = $1 and s.name = $2 and j.state = 'queued'`, workflowID, step).Scan(&jobID, &raw)
	if err != nil {
		r.t.Fatalf("open job of step %s: %v (steps: %v)", step, err, r.steps(workflowID))
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		r.t.Fatal(err)
	}
	return jobID, spec
}

// planned answers the plan job of a step. what makes the effect: the same what
// on the same resource is the same effect.
func (r *rig) planned(workflowID, step, what string) {
	r.t.Helper()
	jobID, spec := r.openJob(workflowID, step)
	if spec.Operation != jobspec.OperationPlan {
		r.t.Fatalf("step %s is at %s, not at a plan", step, spec.Operation)
	}
	effect := capsule.Effect{OrgID: r.org, InstallID: r.install, ChangeKind: "deploy", Component: step, PlanDigest: what}
	r.report(workflowID, jobID, "succeeded", map[string]any{
		"outcome": "succeeded", "no_change": what == "",
		"plan": map[string]any{"effect": effect, "effect_digest": effect.Digest(), "pinned": "sha256:pin", "plan_bytes_digest": "sha256:pin",
			"summary": jobspec.PlanSummary{NoChange: what == "", Create: 1}},
	})
}

// applied answers the apply job of a step.
func (r *rig) applied(workflowID, step string, outcome jobspec.Outcome, outputs jobspec.Outputs) {
	r.t.Helper()
	jobID, spec := r.openJob(workflowID, step)
	if spec.Operation == jobspec.OperationPlan {
		r.t.Fatalf("step %s is at its plan", step)
	}
	state := map[jobspec.Outcome]string{jobspec.OutcomeSucceeded: "succeeded", jobspec.OutcomeRefused: "refused"}[outcome]
	if state == "" {
		state = "failed"
	}
	r.report(workflowID, jobID, state, jobspec.Result{JobID: jobID, Outcome: outcome, Outputs: outputs})
}

func (r *rig) report(workflowID, jobID, state string, result any) {
	r.t.Helper()
	raw, err := json.Marshal(result)
	if err != nil {
		r.t.Fatal(err)
	}
	r.exec(`update runner_jobs set state = $2, result = $3, finished_at = now() where id = $1`, jobID, state, raw)
	r.advance(workflowID)
}

func (r *rig) output(name, value string) jobspec.Outputs {
	return jobspec.Outputs{name: {Value: json.RawMessage(fmt.Sprintf("%q", value))}}
}

// provision brings the install up.
func (r *rig) provision() string {
	r.t.Helper()
	r.arrive()
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	r.planned(w, "sandbox", "sb")
	r.applied(w, "sandbox", jobspec.OutcomeSucceeded, r.output("data_dir", "/data/hello"))
	for _, c := range []string{"component/greeting", "component/key"} {
		r.planned(w, c, c)
		r.applied(w, c, jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	}
	r.planned(w, "component/card", "card")
	r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	return w
}

// What a provision left unfinished, a deploy finishes; the install's state follows.
func TestAGoodDeployAfterAFailedProvision(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	r.planned(w, "sandbox", "sb")
	r.applied(w, "sandbox", jobspec.OutcomeSucceeded, r.output("data_dir", "/data/hello"))
	r.planned(w, "component/key", "key")
	r.applied(w, "component/key", jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	r.planned(w, "component/greeting", "greeting")
	r.applied(w, "component/greeting", jobspec.OutcomeFailed, nil)
	install := `select state || ' ' || (select state from workflows where id = $1) from installs`
	if got := r.value(install, w); got != "provisioning failed" {
		t.Fatalf("after the provision, install and workflow are %q", got)
	}

	alone := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}, ApproveAll: true})
	r.planned(alone, "component/greeting", "greeting")
	r.applied(alone, "component/greeting", jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	r.applied(alone, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(install, alone); got != "provisioning succeeded" {
		t.Errorf("with a component missing, install and workflow are %q", got)
	}

	all := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	r.planned(all, "component/greeting", "")
	r.planned(all, "component/key", "")
	r.planned(all, "component/card", "card")
	r.applied(all, "component/card", jobspec.OutcomeSucceeded, nil)
	r.applied(all, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(install, all); got != "live succeeded" {
		t.Errorf("after the deploy, install and workflow are %q, want live succeeded", got)
	}
	if got := r.value(`select string_agg(name || ' ' || verdict, ', ') from checks`); got != "files_intact healthy" {
		t.Errorf("checks: %q", got)
	}
}

func TestProvisionGoesFromRowsAlone(t *testing.T) {
	t.Parallel()
	metrictest.Start()
	r := newRig(t)
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	if got := r.value(`select wait_reason || ' ' || wait_on from workflows where id = $1`, w); got != "stack customer" {
		t.Fatalf("workflow waits for %q, want the stack", got)
	}
	r.arrive()
	r.advance(w)

	r.planned(w, "sandbox", "sb")
	if got := r.value(`select state || ' ' || fence::text from resources where kind = 'sandbox'`); got != "changing 1" {
		t.Errorf("sandbox is %q while it is applied, want changing with fence 1", got)
	}
	r.applied(w, "sandbox", jobspec.OutcomeSucceeded, r.output("data_dir", "/data/hello"))

	// Both are planned at the same time; the dependent is not.
	r.openJob(w, "component/greeting")
	r.openJob(w, "component/key")
	want := map[string]string{
		"stack": "succeeded", "runner": "succeeded", "release": "succeeded no_change", "sandbox": "succeeded applied", "component/greeting": "running preparing",
		"component/key": "running preparing", "component/card": "pending", "check/files_intact": "pending",
	}
	if diff := cmp.Diff(want, r.steps(w)); diff != "" {
		t.Errorf("steps differ (-want +got):\n%s", diff)
	}
	for _, c := range []string{"component/greeting", "component/key"} {
		r.planned(w, c, c)
		r.applied(w, c, jobspec.OutcomeSucceeded, r.output("text", "Ahoy"))
	}

	// The dependent's templates read what came out.
	_, spec := r.openJob(w, "component/card")
	var tree struct {
		Components map[string]struct {
			Outputs map[string]string `json:"outputs"`
		} `json:"components"`
		Inputs struct {
			Inputs map[string]any `json:"inputs"`
		} `json:"inputs"`
	}
	if err := json.Unmarshal(spec.State, &tree); err != nil {
		t.Fatal(err)
	}
	if got := tree.Components["greeting"].Outputs["text"]; got != "Ahoy" {
		t.Errorf("state has greeting.text %q, want Ahoy", got)
	}
	opened, err := seal.OpenLeaves(r.seal.Opener(), tree.Inputs.Inputs, func(path []string) (seal.Purpose, bool) {
		return interpolate.InputPurpose(r.org, r.install, path[0]), true
	})
	if err != nil {
		t.Fatalf("open inputs with the install's key: %v", err)
	}
	if got := opened.(map[string]any)["passphrase"]; got != "a canary that nobody may see" {
		t.Errorf("the install opens passphrase as %v", got)
	}

	r.planned(w, "component/card", "card")
	r.applied(w, "component/card", jobspec.OutcomeSucceeded, nil)
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select state from workflows where id = $1`, w); got != "succeeded" {
		t.Errorf("workflow is %s, want succeeded; steps: %v", got, r.steps(w))
	}
	if got := r.value(`select state || ' ' || release_id from installs where id = $1`, r.install); got != "live "+r.release {
		t.Errorf("install is %q, want live on its release", got)
	}
	if got := r.value(`select verdict from checks where name = 'files_intact'`); got != "healthy" {
		t.Errorf("the check is %q when the workflow has ended, want healthy", got)
	}
	if got := r.value(`select string_agg(distinct state, ',') from action_runs`); got != "succeeded" {
		t.Errorf("action runs are %q, want succeeded", got)
	}
	if n := metrictest.Value(t, "workflow.duration", attribute.String("kind", "provision"), attribute.String("outcome", "succeeded")); n < 1 {
		t.Error("the workflow is not counted")
	}
	// Nothing that was stored anywhere has the canary in clear.
	if got := r.value(`select count(*)::text from runner_jobs where spec::text like '%canary%'`); got != "0" {
		t.Errorf("%s job specs hold the sensitive input in clear", got)
	}
	if got := r.value(`select count(*)::text || ' ' || max(seq)::text from workflow_events where workflow_id = $1`, w); got != func() string {
		n := r.value(`select event_seq::text from workflows where id = $1`, w)
		return n + " " + n
	}() {
		t.Errorf("events (count, last) are %q, which has a gap", got)
	}
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	digest := func(c string) string { return r.value(`select effect_digest from changes where id = $1`, c) }
	decide := func(a workflow.Answer) error {
		a.By = r.ada
		return r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error { return workflow.Decide(ctx, tx, a) })
	}
	propose := func() (w, change string) {
		w = r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}})
		r.planned(w, "component/greeting", "new text")
		return w, r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, w)
	}

	w, c := propose()
	if got := r.value(`select wait_reason || ' ' || wait_on from workflows where id = $1`, w); got != "decision "+c {
		t.Errorf("workflow waits for %q, want a decision on %s", got, c)
	}
	if err := decide(workflow.Answer{ChangeID: c, Answer: model.Approve, EffectDigest: "sha256:other"}); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("approving another effect: %v, want a conflict", err)
	}
	fence := r.value(`select fence::text from resources where name = 'greeting'`)
	if err := decide(workflow.Answer{ChangeID: c, Answer: model.Deny, EffectDigest: digest(c), Note: "not today"}); err != nil {
		t.Fatalf("deny: %v", err)
	}
	r.advance(w)
	if got := r.steps(w)["component/greeting"]; got != "failed denied" {
		t.Errorf("step is %q after the denial", got)
	}
	if got := r.value(`select concat_ws(' ', state, ended, 'by', ended_by, '-', error) from workflows where id = $1`, w); got != "failed denied by ada - component/greeting was not done: denied by ada: not today" {
		t.Errorf("the workflow is %q after the denial", got)
	}
	if got := r.value(`select state || ' ' || fence::text from resources where name = 'greeting'`); got != "live "+fence {
		t.Errorf("resource is %q after the denial, want live and the fence as before", got)
	}
	if err := decide(workflow.Answer{ChangeID: c, Answer: model.Approve, EffectDigest: digest(c)}); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("deciding twice: %v, want a conflict", err)
	}

	w, c = propose()
	if err := decide(workflow.Answer{ChangeID: c, Answer: model.Approve, EffectDigest: digest(c)}); err != nil {
		t.Fatalf("approve: %v", err)
	}
	r.advance(w)
	r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, nil)
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select state from workflows where id = $1`, w); got != "succeeded" {
		t.Errorf("workflow is %s after the approval, want succeeded", got)
	}

	// A newer proposal takes the place of an older one.
	older, olderChange := propose()
	newerWorkflow, newer := propose()
	r.advance(older)
	if got := r.steps(older)["component/greeting"]; got != "failed superseded" {
		t.Errorf("the older step is %q, want superseded", got)
	}
	if got := r.value(`select error from changes where id = $1`, olderChange); got != "superseded by "+newer+" of the newer deploy "+newerWorkflow+", which ada requested" {
		t.Errorf("the older change says %q", got)
	}
	err := decide(workflow.Answer{ChangeID: olderChange, Answer: model.Approve, EffectDigest: digest(olderChange)})
	if !errors.Is(err, fault.ErrConflict) || !strings.Contains(err.Error(), "superseded by "+newer) || !strings.Contains(err.Error(), "which ada requested") {
		t.Errorf("approving what was superseded: %v, want the newer change and who asked for it", err)
	}
}

// How long a change waits is what its install says when it is proposed; then it is
// denied by nobody, and nobody can approve it any more.
func TestAChangeExpiresWhenItsInstallSays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	r.exec(`update installs set approval_hours = 3`)
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}})
	r.planned(w, "component/greeting", "new text")
	c := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, w)
	if got := r.value(`select round(extract(epoch from wait_deadline - proposed_at) / 60)::text from changes where id = $1`, c); got != "180" {
		t.Errorf("the change waits %s minutes, want 180", got)
	}
	r.exec(`update installs set approval_hours = 1`)
	r.advance(w)
	if got := r.value(`select state || ' ' || round(extract(epoch from wait_deadline - proposed_at) / 60)::text from changes where id = $1`, c); got != "proposed 180" {
		t.Errorf("after the setting changed the change is %q, want its deadline kept", got)
	}
	r.exec(`update changes set wait_deadline = now() - interval '1 second' where id = $1`, c)
	r.advance(w)
	if got := r.value(`select concat_ws(' ', state, ended, error) from workflows where id = $1`, w); got != "failed expired component/greeting was not done: nobody decided in time" {
		t.Errorf("the workflow is %q after the deadline", got)
	}
	err := r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
		return workflow.Decide(ctx, tx, workflow.Answer{ChangeID: c, Answer: model.Approve, EffectDigest: r.value(`select effect_digest from changes where id = $1`, c), By: r.ada})
	})
	if !errors.Is(err, fault.ErrConflict) {
		t.Errorf("approving what expired: %v, want a conflict", err)
	}
}

// Of decisions at the same moment exactly one counts.
func TestAttackDecisionsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}})
	r.planned(w, "component/greeting", "new text")
	c := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, w)
	digest := r.value(`select effect_digest from changes where id = $1`, c)
	const people = 6
	results := make(chan error, people)
	for i := range people {
		answer := model.Approve
		if i%2 == 0 {
			answer = model.Deny
		}
		go func() {
			results <- r.ctl.Tx(t.Context(), r.org, func(ctx context.Context, tx *database.Tx) error {
				return workflow.Decide(ctx, tx, workflow.Answer{ChangeID: c, Answer: answer, EffectDigest: digest, By: r.ada})
			})
		}()
	}
	won := 0
	for range people {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, fault.ErrConflict):
			t.Errorf("a decision that came too late: %v, want a conflict", err)
		}
	}
	kept := r.value(`select string_agg(d.answer || ' ' || c.state, ', ') from decisions d join changes c on c.id = d.change_id where c.id = $1`, c)
	if won != 1 || kept != "approve approved" && kept != "deny denied" {
		t.Errorf("%d decisions counted, and the change has %q", won, kept)
	}
}

// Which of two changes continues is decided by when people asked for them, not by
// when their plans came.
func TestThePlanOfAnOlderRequestGivesWay(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	deploy := workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}}
	state := func(w string) string { return r.steps(w)["component/greeting"] }

	older, newer := r.start(deploy), r.start(deploy)
	r.planned(newer, "component/greeting", "text 3")
	r.planned(older, "component/greeting", "text 2")
	if state(older) != "failed superseded" || state(newer) != "waiting proposed" {
		t.Errorf("older %s, newer %s; want the older one superseded", state(older), state(newer))
	}
	var others []workflow.Other
	third := r.start(deploy)
	r.tx(func(ctx context.Context, tx *database.Tx) (err error) {
		others, err = workflow.Others(ctx, tx, third)
		return err
	})
	if len(others) != 1 || others[0].Workflow.ID != newer || others[0].Meeting != flow.MeetSupersedes || !slices.Equal(others[0].Resources, []string{"greeting"}) {
		t.Errorf("the third meets %+v, want that it supersedes the greeting of %s", others, newer)
	}

	// Who retries a step asks for it again.
	step := r.value(`select id from steps where workflow_id = $1 and name = 'component/greeting'`, older)
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		_, err := workflow.Retry(ctx, tx, step, "bob")
		return err
	})
	r.advance(older)
	r.planned(older, "component/greeting", "text 2")
	r.planned(third, "component/greeting", "text 4")
	r.advance(newer)
	if state(older) != "waiting proposed" || state(newer) != "failed superseded" || state(third) != "failed superseded" {
		t.Errorf("after the retry: older %s, newer %s, third %s; want the retried one proposed", state(older), state(newer), state(third))
	}

	// An empty plan that came late does not say that the older release is live.
	c := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, older)
	late := r.start(deploy)
	last := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}, ApproveAll: true})
	r.planned(last, "component/greeting", "text 5")
	r.advance(older)
	r.applied(last, "component/greeting", jobspec.OutcomeSucceeded, nil)
	r.planned(late, "component/greeting", "")
	if got := r.value(`select state from changes where id = $1`, c); state(late) != "failed superseded" || got != "superseded" {
		t.Errorf("late %s, the retried change %s; want both superseded", state(late), got)
	}
}

// A rollback that finds all as it wants it has still been asked for: what an
// earlier deploy proposed would go forward again.
func TestAnEmptyPlanReplacesAnOlderProposal(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	deploy := workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}}
	older, newer := r.start(deploy), r.start(deploy)
	r.planned(older, "component/greeting", "text 2")
	r.planned(newer, "component/greeting", "")
	r.advance(older)
	if o, n := r.steps(older)["component/greeting"], r.steps(newer)["component/greeting"]; o != "failed superseded" || n != "succeeded no_change" {
		t.Errorf("older %s, newer %s; want the older one superseded by the empty plan", o, n)
	}
}

func TestUncertainIsInspectedAndKeepsItsApproval(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	w := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}})
	r.planned(w, "component/greeting", "text 2")
	c := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, w)
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		return workflow.Decide(ctx, tx, workflow.Answer{ChangeID: c, Answer: model.Approve, EffectDigest: r.value(`select effect_digest from changes where id = $1`, c), By: r.ada})
	})
	r.advance(w)
	r.applied(w, "component/greeting", jobspec.OutcomeUncertain, nil)
	if got := r.value(`select state from changes where id = $1`, c); got != "uncertain" {
		t.Errorf("change is %s, want uncertain", got)
	}
	if got := r.value(`select state || coalesce(locked_by, '') from resources where name = 'greeting'`); got != "unknown" {
		t.Errorf("resource is %q, want unknown and free", got)
	}
	// The same effect: no second decision by a person.
	r.planned(w, "component/greeting", "text 2")
	second := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, w)
	if got := r.value(`select state || ' ' || replaces from changes where id = $1`, second); got != "executing "+c {
		t.Errorf("the change after the inspection is %q, want executing in place of the first", got)
	}
	if got := r.value(`select rule from decisions where change_id = $1`, second); got != "kept" {
		t.Errorf("it was approved by rule %q, want kept", got)
	}
	if got := r.value(`select fence::text from changes where id = $1`, second); got != "3" {
		t.Errorf("the second grant has fence %s, want 3: provision, first, second", got)
	}
	// Uncertain again, and this time the plan differs: the approval is void and
	// the field is named.
	r.applied(w, "component/greeting", jobspec.OutcomeUncertain, nil)
	r.planned(w, "component/greeting", "text 3")
	third := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, w)
	if got := r.value(`select state || ' ' || (differs->0->>'field') from changes where id = $1`, third); got != "proposed plan_digest" {
		t.Errorf("the third change is %q, want proposed because of plan_digest", got)
	}
	// An empty plan says that the effect had happened.
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		return workflow.Decide(ctx, tx, workflow.Answer{ChangeID: third, Answer: model.Approve, EffectDigest: r.value(`select effect_digest from changes where id = $1`, third), By: r.ada})
	})
	r.advance(w)
	r.applied(w, "component/greeting", jobspec.OutcomeUncertain, nil)
	if got := r.steps(w)["component/greeting"]; got != "failed uncertain" {
		t.Fatalf("after three uncertain outcomes the step is %q, want failed", got)
	}
	r.tx(func(ctx context.Context, tx *database.Tx) error {
		_, err := workflow.Retry(ctx, tx, r.value(`select id from steps where workflow_id = $1 and name = 'component/greeting'`, w), "ada")
		return err
	})
	r.advance(w)
	r.planned(w, "component/greeting", "")
	r.applied(w, "check/files_intact", jobspec.OutcomeSucceeded, nil)
	if got := r.value(`select state from workflows where id = $1`, w); got != "succeeded" {
		t.Errorf("workflow is %s after the retry, want succeeded; steps %v", got, r.steps(w))
	}
}

func TestOneChangePerResourceExecutes(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	first := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}, ApproveAll: true})
	second := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"greeting"}, ApproveAll: true})
	other := r.start(workflow.Request{Kind: flow.KindDeploy, Components: []string{"key"}, ApproveAll: true})
	r.planned(first, "component/greeting", "a")
	r.planned(second, "component/greeting", "b")
	r.planned(other, "component/key", "c")
	holder := r.value(`select change_id from steps where workflow_id = $1 and name = 'component/greeting'`, first)
	if got := r.value(`select wait_reason || ' ' || wait_on from steps where workflow_id = $1 and name = 'component/greeting'`, second); got != "lock "+holder {
		t.Errorf("the second waits for %q, want the lock of %s", got, holder)
	}
	if got := r.steps(other)["component/key"]; got != "running executing" {
		t.Errorf("another resource is %q, want executing next to it", got)
	}
	r.applied(first, "component/greeting", jobspec.OutcomeSucceeded, nil)
	r.advance(second) // woken by the end of the first
	if got := r.steps(second)["component/greeting"]; got != "running executing" {
		t.Errorf("the second is %q after the first ended, want executing", got)
	}
}

func TestTwoAdvancesAtOnceMakeOneOfEverything(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.arrive()
	w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
	jobID, _ := r.openJob(w, "sandbox")
	effect := capsule.Effect{OrgID: r.org, PlanDigest: "x"}
	raw, err := json.Marshal(map[string]any{"outcome": "succeeded", "plan": map[string]any{"effect": effect, "effect_digest": effect.Digest(), "summary": jobspec.PlanSummary{}, "pinned": "sha256:p"}})
	if err != nil {
		t.Fatal(err)
	}
	r.exec(`update runner_jobs set state = 'succeeded', result = $2 where id = $1`, jobID, raw)
	errs := make(chan error)
	for range 8 {
		go func() { errs <- r.engine.Advance(t.Context(), w) }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if got := r.value(`select count(*)::text from runner_jobs where operation = 'apply'`); got != "1" {
		t.Errorf("%s apply jobs, want 1", got)
	}
	if got := r.value(`select fence::text from resources where kind = 'sandbox'`); got != "1" {
		t.Errorf("fence is %s, want 1", got)
	}
}

func TestDeprovisionRemovesWhatWasMade(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	w := r.start(workflow.Request{Kind: flow.KindDeprovision, ApproveAll: true, Confirm: "acme"})
	for _, step := range []string{"component/card", "component/greeting", "component/key", "sandbox"} {
		_, spec := r.openJob(w, step)
		if !spec.Destroy {
			t.Errorf("the plan of %s does not destroy", step)
		}
		r.planned(w, step, "gone "+step)
		r.applied(w, step, jobspec.OutcomeSucceeded, nil)
	}
	if got := r.value(`select state from installs where id = $1`, r.install); got != "deprovisioned" {
		t.Errorf("install is %s, want deprovisioned; steps %v", got, r.steps(w))
	}
	if got := r.value(`select string_agg(distinct state, ',') from resources where kind <> 'stack'`); got != "absent" {
		t.Errorf("resources are %s, want absent", got)
	}
}

// What failed half way may have left something, although it was never live: a
// deprovision removes it with the release that it failed with, once.
func TestDeprovisionRemovesWhatFailedOnce(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		ends  []jobspec.Outcome // of the applies of the greeting
		state string            // of the greeting then
		there bool
	}{
		{"it failed", []jobspec.Outcome{jobspec.OutcomeFailed}, "failed", true},
		{"nobody knows", []jobspec.Outcome{jobspec.OutcomeUncertain}, "unknown", true},
		{"it failed, and then the plan was too old", []jobspec.Outcome{jobspec.OutcomeFailed, jobspec.OutcomeStale}, "failed", true},
		{"it failed, and then the runner would not", []jobspec.Outcome{jobspec.OutcomeFailed, jobspec.OutcomeRefused}, "failed", true},
		{"the runner would not", []jobspec.Outcome{jobspec.OutcomeRefused}, "absent", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.arrive()
			for i, outcome := range tt.ends {
				w := r.start(workflow.Request{Kind: flow.KindProvision, ApproveAll: true})
				r.planned(w, "sandbox", []string{"sb", ""}[i])
				if i == 0 {
					r.applied(w, "sandbox", jobspec.OutcomeSucceeded, r.output("data_dir", "/data/hello"))
				}
				r.planned(w, "component/greeting", "greeting")
				r.applied(w, "component/greeting", outcome, nil)
				r.exec(`update workflows set state = 'cancelled', finished_at = now() where id = $1`, w)
			}
			if got := r.value(`select state || coalesce(live_release_id, '') from resources where name = 'greeting'`); got != tt.state {
				t.Errorf("the greeting is %q, want %s", got, tt.state)
			}
			for i, there := range []bool{tt.there, false} {
				w := r.start(workflow.Request{Kind: flow.KindDeprovision, ApproveAll: true, Confirm: "acme"})
				_, planned := r.steps(w)["component/greeting"]
				if planned != there {
					t.Fatalf("deprovision %d: steps %v, the greeting among them: want %t", i+1, r.steps(w), there)
				}
				if _, key := r.steps(w)["component/key"]; key {
					t.Error("the key was never ordered, and is removed")
				}
				if there {
					if _, spec := r.openJob(w, "component/greeting"); !spec.Destroy || spec.Artifact == nil {
						t.Errorf("the plan of the greeting destroys: %t, with %v", spec.Destroy, spec.Artifact)
					}
					r.planned(w, "component/greeting", "gone")
					r.applied(w, "component/greeting", jobspec.OutcomeSucceeded, nil)
				}
				if i == 0 {
					r.planned(w, "sandbox", "gone sandbox")
					r.applied(w, "sandbox", jobspec.OutcomeSucceeded, nil)
				}
			}
			if got := r.value(`select string_agg(distinct state, ',') from resources where kind <> 'stack'`); got != "absent" {
				t.Errorf("resources are %s, want absent", got)
			}
			if got := r.value(`select state from installs where id = $1`, r.install); got != "deprovisioned" {
				t.Errorf("install is %s, want deprovisioned", got)
			}
		})
	}
}

func TestCancelStopsWhereItIsSafe(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.provision()
	w := r.start(workflow.Request{Kind: flow.KindDeploy, ApproveAll: true})
	r.planned(w, "component/greeting", "a") // executing now
	r.exec(`update runner_jobs set state = 'leased' where workflow_id = $1 and operation = 'apply'`, w)
	r.tx(func(ctx context.Context, tx *database.Tx) error { return workflow.Cancel(ctx, tx, w, "ada") })
	r.advance(w)
	if got := r.value(`select count(*)::text from runner_jobs where workflow_id = $1 and operation = 'apply' and cancel_requested_at is not null`, w); got != "1" {
		t.Errorf("%s applies were asked to stop, want 1", got)
	}
	if got := r.value(`select state from workflows where id = $1`, w); got != "running" {
		t.Errorf("workflow is %s while its apply runs, want running", got)
	}
	r.exec(`update runner_jobs set state = 'queued' where workflow_id = $1 and operation = 'apply'`, w)
	r.applied(w, "component/greeting", jobspec.OutcomeCancelled, nil)
	if got := r.value(`select state from workflows where id = $1`, w); got != "cancelled" {
		t.Errorf("workflow is %s, want cancelled; steps %v", got, r.steps(w))
	}
	if got := r.value(`select coalesce(string_agg(name, ','), '') from resources where locked_by is not null`); got != "" {
		t.Errorf("still locked: %s", got)
	}
}
