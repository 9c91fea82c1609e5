package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/capsule"
	"github.com/berth-dev/berth/pkg/chain"
	"github.com/berth-dev/berth/pkg/httpsig"
	"github.com/berth-dev/berth/pkg/id"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/runnerapi"
	"github.com/berth-dev/berth/services/internal/auth"
	"github.com/berth-dev/berth/services/runner-api/internal/gate"
)

// victim is what a stranger tries to reach.
type victim struct {
	*agent
	apply runnerapi.Assignment
	plan  runnerapi.Assignment
}

// attempts are one request per route of a session that would do something, if
// it were the victim's own.
func attempts(v victim) map[string]struct {
	method, path string
	body         any
} {
	type request = struct {
		method, path string
		body         any
	}
	effect := capsule.Effect{OrgID: v.o.id, InstallID: v.o.install, ResourceID: v.o.resource, ChangeKind: "deploy"}
	state := "/states/" + v.o.resource
	records, _ := v.lines(chain.Head{}, "one", "two")
	attempt := runnerapi.Attempt{JobID: v.apply.JobID, Attempt: 1}
	return map[string]request{
		"PutPlan": {http.MethodPut, "/jobs/" + v.plan.JobID + "/plan", runnerapi.Plan{Attempt: 1, Effect: effect, EffectDigest: effect.Digest()}},
		"PutResult": {http.MethodPut, "/jobs/" + v.apply.JobID + "/result", runnerapi.ResultReport{
			Attempt: 1, Fence: v.apply.Fence, Result: jobspec.Result{JobID: v.apply.JobID, Attempt: 1, Outcome: jobspec.OutcomeFailed},
		}},
		"GetState": {http.MethodGet, state + "?attempt=1&job_id=" + v.apply.JobID, nil},
		"PutState": {http.MethodPut, state, runnerapi.StateWrite{
			JobID: v.apply.JobID, Attempt: 1, Fence: 1, LockID: "L", Serial: 9, Lineage: "lineage", Digest: digest("e"), Body: []byte("x"),
		}},
		"GetStateLock":        {http.MethodGet, state + "/lock", nil},
		"LockState":           {http.MethodPost, state + "/lock", runnerapi.LockRequest{JobID: v.apply.JobID, Attempt: 1, Fence: 1, LockID: "M", Info: map[string]any{}}},
		"UnlockState":         {http.MethodDelete, state + "/lock", runnerapi.UnlockRequest{JobID: v.apply.JobID, Attempt: 1, LockID: "L"}},
		"RenewLeases":         {http.MethodPost, "/leases/renew", runnerapi.RenewRequest{Leases: []runnerapi.Attempt{attempt}}},
		"ClaimJobs":           {http.MethodPost, "/jobs/claim", runnerapi.ClaimRequest{ClaimID: "claim-" + v.apply.JobID[4:], Slots: 8, Switch: runnerapi.SwitchRun}},
		"GetSettings":         {http.MethodGet, "/settings", nil},
		"PutRun":              {http.MethodPut, "/runs/" + id.New(id.ActionRun), jobspec.Run{Action: "health", State: "failed"}},
		"PutRemediation":      {http.MethodPut, "/remediations/" + id.New(id.Remediation), remediation(1, jobspec.RemediationRunning)},
		"PutSamples":          {http.MethodPut, "/samples", jobspec.Samples{Samples: []jobspec.Sample{{At: tick, Metrics: []jobspec.Metric{gauge("runner_cpu_used", 1)}}}}},
		"PutSecrets":          {http.MethodPut, "/secrets", heldSecrets(7)},
		"PutRoles":            {http.MethodPut, "/roles", heldRoles(id.New(id.RoleSwitch))},
		"PutConsents":         {http.MethodPut, "/consents", runnerapi.ConsentsReport{Consents: []runnerapi.Consent{{ChangeID: id.New(id.Change), EffectDigest: effect.Digest(), State: runnerapi.ConsentStateGiven}}}},
		"CreateRegistryToken": {http.MethodPost, "/registry-token", runnerapi.RegistryTokenRequest{Actions: []runnerapi.RegistryAction{"pull"}}},
		"AppendChain":         {http.MethodPost, "/chain", runnerapi.ChainAppend{Records: records}},
		"GetChainHead":        {http.MethodGet, "/chain/head", nil},
		"GetChain":            {http.MethodGet, "/chain?after=0", nil},
		"ListSealed":          {http.MethodGet, "/sealed", nil},
		"GetSealed":           {http.MethodGet, "/sealed/" + v.o.resource, nil},
		"PutSealed":           {http.MethodPut, "/sealed/" + v.o.resource, runnerapi.SealedWrite{OutputsBefore: jobspec.Outputs{}, Outputs: jobspec.Outputs{}}},
	}
}

// heldRoles is a report of one role.
func heldRoles(switchID string) runnerapi.RolesReport {
	return runnerapi.RolesReport{
		Roles:    []runnerapi.RoleState{{Name: "repair", Known: true, Written: "repair", Kind: "break_glass", SwitchID: &switchID}},
		Switches: []runnerapi.RoleSwitch{{ID: switchID, Role: "repair", Name: "repair", On: true, At: time.Now(), By: "ada"}},
	}
}

// heldSecrets is a report of one secret.
func heldSecrets(version int) runnerapi.SecretsReport {
	return runnerapi.SecretsReport{Secrets: []runnerapi.SecretState{
		{Name: "db_password", Version: version, Set: true, Digest: "hmac-sha256:5f1c", SetBy: "customer", SetAt: time.Now()},
	}}
}

// send makes a raw request through the agent's transport.
func (a *agent) send(method, path string, content any) (status int, answer string) {
	a.w.t.Helper()
	var body io.Reader
	if content != nil {
		text, err := json.Marshal(content)
		if err != nil {
			a.w.t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(a.w.t.Context(), method, a.w.url+path, body)
	if err != nil {
		a.w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.transport.Client().Do(req)
	if err != nil {
		a.w.t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		a.w.t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		a.w.t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// newVictim has a job of each kind under way, a lock, a state, settings and a
// chain.
func (w *world) newVictim() victim {
	w.t.Helper()
	a := w.agent(w.org(), "install")
	v := victim{agent: a, apply: a.lease(job{fence: 1}), plan: a.lease(job{})}
	must(w.t, a.lock(v.apply, "L", 1), nil, http.StatusOK)
	must(w.t, a.putState(v.apply, "L", 1, 1, "a"), nil, http.StatusOK)
	a.addSettings(1)
	records, _ := a.lines(chain.Head{}, "one")
	must(w.t, a.append(records), nil, http.StatusOK)
	if status, answer := a.send(http.MethodPut, "/secrets", heldSecrets(1)); status != http.StatusNoContent {
		w.t.Fatalf("report of secrets: %d %s", status, answer)
	}
	if status, answer := a.send(http.MethodPut, "/roles", heldRoles(id.New(id.RoleSwitch))); status != http.StatusNoContent {
		w.t.Fatalf("report of roles: %d %s", status, answer)
	}
	return v
}

// footprint is all that the victim's rows say.
func (v victim) footprint() string {
	v.w.t.Helper()
	return one[string](v.w, `select jsonb_pretty(jsonb_build_object(
		'jobs', (select jsonb_agg(to_jsonb(j) order by id) from runner_jobs j where org_id = $1),
		'leases', (select jsonb_agg(to_jsonb(l) order by id) from leases l where org_id = $1),
		'states', (select jsonb_agg(to_jsonb(s) order by id) from tf_states s where org_id = $1),
		'locks', (select jsonb_agg(to_jsonb(k)) from tf_locks k where org_id = $1),
		'secrets', (select jsonb_agg(to_jsonb(s) order by name) from install_secrets s where org_id = $1),
		'roles', (select jsonb_agg(to_jsonb(s)) from install_roles s where org_id = $1),
		'role switches', (select jsonb_agg(to_jsonb(s) order by n) from role_switches s where org_id = $1),
		'runs', (select jsonb_agg(to_jsonb(r)) from action_runs r where org_id = $1),
		'streams', (select jsonb_agg(to_jsonb(s) order by id) from log_streams s where org_id = $1),
		'alarms', (select jsonb_agg(to_jsonb(a) order by id) from alarms a where org_id = $1),
		'tokens', (select count(*) from log_tokens t where org_id = $1),
		'registry', (select count(*) from registry_tokens t where org_id = $1),
		'chain', (select jsonb_agg(to_jsonb(h)) from chain_heads h where org_id = $1)))`, v.o.id)
}

func TestOthersDoNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.newVictim()
	before := v.footprint()
	chainHash := one[string](w, `select encode(hash, 'hex') from chain_heads where chain = $1`, v.o.install)
	strangers := map[string]*agent{
		"a runner of another org":    w.agent(w.org(), "install"),
		"the org's own Build Runner": w.agent(v.o, "build"),
	}
	// What names something of the victim is 404; what names nothing is about
	// the stranger itself.
	statuses := map[string]int{
		"PutPlan": 404, "PutResult": 404, "GetState": 404, "PutState": 404, "LockState": 404, "UnlockState": 404, "GetSealed": 404, "PutSealed": 404,
		"RenewLeases": 200, "ClaimJobs": 200, "CreateRegistryToken": 200,
	}
	for name, stranger := range strangers {
		for operation, request := range attempts(v) {
			status, answer := stranger.send(request.method, request.path, request.body)
			if want, ok := statuses[operation]; ok && status != want {
				t.Errorf("%s: %s answered %d, want %d: %s", name, operation, status, want, answer)
			}
			for _, known := range []string{v.apply.StreamID, "sealed", `"ok"`, `"version"`, chainHash} {
				if strings.Contains(answer, known) {
					t.Errorf("%s: %s reveals %s: %s", name, operation, known, answer)
				}
			}
		}
	}
	// The Build Runner's own registry token is a row of the same org.
	w.exec(`delete from registry_tokens where runner_id <> $1`, v.id)
	if diff := cmp.Diff(before, v.footprint()); diff != "" {
		t.Errorf("strangers have changed the victim (-before +after):\n%s", diff)
	}
}

func TestEveryRouteNeedsItsProof(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.newVictim()
	requests := attempts(v)
	for operation, route := range gate.Routes {
		if _, ok := requests[operation]; !ok && route.Proof == gate.LiveSession {
			t.Errorf("route %s is not tried here", operation)
		}
	}
	unsigned := func(method, path string, content any, token string) int {
		t.Helper()
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
		return resp.StatusCode
	}
	token := v.start(runnerapi.Attempt{JobID: v.apply.JobID, Attempt: 1}, runnerapi.Attempt{JobID: v.plan.JobID, Attempt: 1}).Token
	before := v.footprint()
	keyless := w.machine(v.o, w.url)
	keyless.transport.SetRunner(v.id)
	keyless.transport.SetSession(token)
	user, _ := auth.NewSecret(auth.TokenPrefix)
	logs, _ := auth.NewSecret(auth.LogPrefix)
	for operation, request := range requests {
		for name, status := range map[string]int{
			"with the token, unsigned": unsigned(request.method, request.path, request.body, token),
			"with a user's token":      unsigned(request.method, request.path, request.body, user),
			"with a log token":         unsigned(request.method, request.path, request.body, logs),
		} {
			if status != http.StatusUnauthorized {
				t.Errorf("%s %s: answered %d, want 401", operation, name, status)
			}
		}
		if status, answer := keyless.send(request.method, request.path, request.body); status != http.StatusUnauthorized {
			t.Errorf("%s signed by another key: answered %d, want 401: %s", operation, status, answer)
		}
	}
	if diff := cmp.Diff(before, v.footprint()); diff != "" {
		t.Errorf("somebody without a proof has changed something (-before +after):\n%s", diff)
	}
}

func TestARequestIsGoodOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.agent(w.org(), "install")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/chain/head", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.start().Token)
	if err := (httpsig.Signer{KeyID: a.id, Key: a.key}).Sign(req, nil, time.Now()); err != nil {
		t.Fatal(err)
	}
	first, err := http.DefaultTransport.RoundTrip(req.Clone(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Body.Close(); err != nil {
		t.Error(err)
	}
	again, err := http.DefaultTransport.RoundTrip(req.Clone(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(again.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Body.Close(); err != nil {
		t.Error(err)
	}
	if first.StatusCode != http.StatusOK || again.StatusCode != http.StatusUnauthorized || !strings.Contains(string(text), "signature_replayed") {
		t.Errorf("answered %d, then %d %s; want 200, then 401 signature_replayed", first.StatusCode, again.StatusCode, text)
	}
}
