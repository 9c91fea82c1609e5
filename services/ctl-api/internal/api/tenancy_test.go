package api_test

import (
	"bytes"
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/ctl-api/internal/why"
)

// tenant is an org with one object of every kind.
type tenant struct {
	caller
	Org, Member, Token, Customer, App, Config, Build, Release, Install, Resource string
	Workflow, Step, Change, Run, Runner, Alarm, Digest, Variable, Webhook, Bulk  string
	Freeze, AppFreeze, RunnerVersion, Metric, Alert, Mute, Incident, Session     string
}

func (d *door) tenant(name string) tenant {
	d.t.Helper()
	ctx, t := d.t.Context(), d.t
	o := tenant{caller: d.org(name)}
	o.released("app-"+name, hello())
	made, err := o.CreateInstallWithResponse(ctx, nil, ctlapi.InstallRequest{
		Name: "install-" + name, App: "app-" + name, Customer: "customer-" + name, CreateCustomer: true,
		Inputs: &ctlapi.InputValues{"api_key": "secret-of-" + name}, Provision: true,
	})
	must(t, made, err, http.StatusCreated)
	one := func(sql string) (id string) {
		if err := d.db.Admin().QueryRow(ctx, sql, name).Scan(&id); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return id
	}
	of := ` where org_id = (select org_id from orgs where name = $1) order by 1 limit 1`
	o.Org, o.Member = one(`select org_id from orgs`+of), one(`select id from accounts`+of)
	// A token and a member that may go: the test revokes and removes them.
	bob := o.member(ctlapi.MemberRequest{Name: "bob-" + name, Kind: ctlapi.MemberRequestKindService, Role: ctlapi.MemberRequestRoleViewer})
	me, err := bob.GetMeWithResponse(ctx)
	must(t, me, err, http.StatusOK)
	o.Member, o.Token = me.JSON200.Account.ID, me.JSON200.TokenID
	o.Session = d.browser(bob.token).me().TokenID
	o.Customer, o.App, o.Config = one(`select id from customers`+of), one(`select id from apps`+of), one(`select id from configs`+of)
	o.Build, o.Release, o.Install = one(`select id from builds`+of), one(`select id from releases`+of), one(`select id from installs`+of)
	o.Workflow, o.Step, o.Runner = one(`select id from workflows`+of), one(`select id from steps`+of), one(`select id from runners`+of)
	o.Resource = one(`select id from resources where kind = 'component' and org_id = (select org_id from orgs where name = $1) order by 1 limit 1`)
	o.Digest = "sha256:" + strings.Repeat("ab", 32)
	// What the engine and the runner would make.
	o.Change, o.Run = "chg_of_"+name, "arn_of_"+name
	insert := func(sql string, args ...any) {
		if _, err := d.db.Admin().Exec(ctx, sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	insert(`insert into changes (id, org_id, install_id, workflow_id, step_id, resource_id, kind, state, inputs_version, state_version,
			effect_digest, effect, plan, wait_reason, wait_on, wait_deadline)
		values ($1, $2, $3, $4, $5, $6, 'deploy', 'proposed', 1, 1, $7, '{}',
			'{"no_change":false,"create":1,"update":0,"replace":0,"delete":0}', 'decision', 'an approver', now() + interval '1 day')`,
		o.Change, o.Org, o.Install, o.Workflow, o.Step, o.Resource, o.Digest)
	insert(`insert into policy_reports (org_id, install_id, change_id, side, policy, engine, answer, passed, failed, warned, errored, skipped, unknown)
		values ($1, $2, $3, 'vendor', 'policy of ' || $4, 'e', 'allow', 1, 0, 0, 0, 0, 0)`, o.Org, o.Install, o.Change, name)
	hook, err := o.CreateWebhookWithResponse(ctx, nil, ctlapi.WebhookRequest{Name: "hook-of-" + name, URL: "https://hooks.example.com/" + name})
	must(t, hook, err, http.StatusCreated)
	o.Webhook = hook.JSON201.ID
	o.Alarm = "alm_of_" + name
	insert(`insert into alarms (id, org_id, runner_id, kind, subject) values ($1, $2, $3, 'chain_behind', 'subject of ' || $4)`, o.Alarm, o.Org, o.Runner, name)
	o.Alert, o.Mute, o.Incident = "alt_of_"+name, "mut_of_"+name, "inc_of_"+name
	insert(`insert into incidents (id, org_id, kind, cause, about, installs) values ($1, $2, 'unhealthy', 'c', 'about ' || $3, 1)`, o.Incident, o.Org, name)
	insert(`insert into alerts (id, org_id, install_id, kind, subject, state, text, since, opened_at, tell_at, told_at, incident_id)
		values ($1, $2, $3, 'unhealthy', 'check of ' || $4, 'open', 'x', now(), now(), now(), now(), $5)`, o.Alert, o.Org, o.Install, name, o.Incident)
	insert(`insert into alert_mutes (id, org_id, install_id, reason, created_by, until) values ($1, $2, $3, 'reason of ' || $4, 'x', now() + interval '1 day')`, o.Mute, o.Org, o.Install, name)
	insert(`insert into action_runs (id, org_id, install_id, action, trigger, key, created_by) values ($1, $2, $3, 'look', 'manual', $1, 'x')`,
		o.Run, o.Org, o.Install)
	o.Metric = "ser_of_" + name
	insert(`insert into metric_series (id, org_id, install_id, action, name, labels_key, kind, last_value, last_at, last_run)
		values ($1, $2, $3, 'look', 'rows', 'k', 'gauge', 1, now(), $4)`, o.Metric, o.Org, o.Install, o.Run)
	insert(`insert into metric_points (org_id, series, at, value, run_id) select org_id, number, last_at, 1, last_run from metric_series where id = $1`, o.Metric)
	set, err := o.SetAppVariableWithResponse(ctx, o.App, "variable_of_"+name, nil, ctlapi.AppVariableRequest{Value: "variable-secret-of-" + name})
	must(t, set, err, http.StatusOK)
	o.Variable = set.JSON200.Name
	insert(`insert into runner_jobs (id, org_id, runner_id, install_id, resource_id, kind, operation, mutates, state, spec, fence, timeout_seconds)
		values ($1, $2, $3, $4, $5, 'terraform_module', 'apply', true, 'failed', '{}', 1, 60)`, "job_of_"+name, o.Org, o.Runner, o.Install, o.Resource)
	insert(`insert into tf_states (id, org_id, resource_id, serial, lineage, body, digest, job_id, attempt, fence)
		values ($1, $2, $3, 1, 'lineage', 'sealed', $4, $5, 1, 1)`, "tfs_of_"+name, o.Org, o.Resource, o.Digest, "job_of_"+name)
	o.Freeze, o.AppFreeze = "frz_of_"+name, "frz_of_app_"+name
	freeze := `insert into freezes (id, org_id, install_id, app_id, reason, starts_at, ends_at, created_by) values ($1, $2, $3, $4, 'later', '2090-01-01', '2090-02-01', 'x')`
	insert(freeze, o.Freeze, o.Org, o.Install, nil)
	insert(freeze, o.AppFreeze, o.Org, nil, o.App)
	o.Bulk = "blk_of_" + name
	insert(`insert into bulk_operations (id, org_id, operation, request, version, created_by) values ($1, $2, 'deploy', '{}', 'v', 'x')`, o.Bulk, o.Org)
	insert(`insert into bulk_items (org_id, bulk_id, install_id, idx, outcome, workflow_id) values ($1, $2, $3, 1, 'started', $4)`, o.Org, o.Bulk, o.Install, o.Workflow)
	o.RunnerVersion = "1.5.0-" + name
	insert(`insert into runner_versions (org_id, version, platform, repository, digest, size_bytes, list, signed_by, created_by)
		values ($1, $2, 'linux_amd64', 'r', $3, 1, '{}', '{}', 'x')`, o.Org, o.RunnerVersion, o.Digest)
	insert(`insert into state_versions (org_id, install_id, version, inputs_version, tree, cause) values ($1, $2, 1, 1, '{}', 'test')`, o.Org, o.Install)
	return o
}

// visit is how a route is asked for somebody else's object. query and body are
// templates over the tenant whose objects they name. A route without anything
// of another's in path, query or body is visited too: its answer must not show
// anything of the other.
type visit struct {
	query string
	body  string
	// owner is what the owner gets when that is not a success: the object is
	// found, and then something else is in the way. It is never 404.
	owner int
	// stranger is what a stranger gets when that is not 404.
	stranger int
	// nobody is what one without a credential gets when that is not 401.
	nobody int
}

const freezeBody = `{"reason":"x","starts_at":"2090-01-01T00:00:00Z","ends_at":"2090-02-01T00:00:00Z"}`

// visits has a row for every operation; a new one without a row fails the test.
var visits = map[string]visit{
	"GetMe":      {stranger: 200},
	"ListTokens": {stranger: 200}, "CreateToken": {body: `{"name":"x","member":"{{.Member}}"}`}, "RevokeToken": {},
	"GetLoginMethods": {stranger: 200, nobody: 200}, "CreateLoginLink": {stranger: 201}, "CreateBrowserSession": {body: `{"link":"bwl_wrong"}`, stranger: 401, owner: 401},
	"ListBrowserSessions": {stranger: 200}, "EndBrowserSession": {},
	"CreateRegistryToken": {body: `{"app":"{{.App}}"}`},
	"ListOrgs":            {stranger: 200}, "CreateOrg": {body: `{"name":"umbrella","admin":"x"}`, stranger: 409, owner: 409},
	"ListMembers": {stranger: 200}, "CreateMember": {body: `{"name":"x","kind":"user","role":"viewer","install":"{{.Install}}"}`}, "RemoveMember": {},
	"ListCustomers": {stranger: 200}, "CreateCustomer": {body: `{"name":"new"}`, stranger: 201}, "GetCustomer": {},
	"ListKeys": {stranger: 200}, "ListChainRecords": {},

	"PutBlob": {stranger: 422, owner: 422}, "FindMissingBlobs": {body: `{"digests":["{{.Digest}}"]}`, stranger: 200},
	"ListApps": {stranger: 200}, "CreateApp": {body: `{"name":"new"}`, stranger: 201}, "GetApp": {},
	"UpdateApp": {body: `{"description":"x"}`}, "DeleteApp": {owner: 409},
	"ListConfigs": {}, "SyncApp": {body: `{"bundle_digest":"{{.Digest}}"}`, stranger: 422, owner: 422}, "GetConfig": {},
	"DiffConfigs": {query: "to=1"}, "DiffReleases": {query: "to={{.Release}}"},
	"ListBuilds": {query: "app={{.App}}"}, "CreateBuilds": {body: `{"app":"{{.App}}"}`}, "GetBuild": {}, "CancelBuild": {},
	"ListAppVariables": {}, "GetAppVariable": {}, "SetAppVariable": {body: `{"value":"stolen"}`}, "DeleteAppVariable": {},
	"ListReleases": {}, "CreateRelease": {body: `{"builds":["{{.Build}}"]}`}, "GetRelease": {}, "GetReleaseContents": {},
	"AddReleaseRevocation": {body: `{"payloadType":"application/vnd.berth.release-revocation.v1+json","payload":"e30=","signatures":[{"keyid":"k","sig":"c2ln"}]}`, owner: 422},
	"AddReleaseStatement":  {body: `{"payloadType":"application/vnd.berth.release.v1+json","payload":"e30=","signatures":[{"keyid":"k","sig":"c2ln"}]}`, owner: 422},

	"ListInstalls":     {query: "app={{.App}}"},
	"ListAllResources": {query: "install={{.Install}}"}, "GetInstallGraph": {owner: 409}, "GetInstallReadme": {owner: 409}, "GetConfigGraph": {}, "GetPlanTree": {}, "GetCapsule": {owner: 404}, "ListRunnerJobs": {},
	"CreateBulk": {body: `{"operation":"deploy","filter":{"installs":["{{.Install}}"]}}`, owner: 422}, "ListBulks": {stranger: 200}, "GetBulk": {},
	"CreateInstall":    {body: `{"name":"new","app":"{{.App}}","customer":"{{.Customer}}"}`},
	"SyncInstalls":     {body: `{"installs":[{"name":"declared","customer":"{{.Customer}}"}]}`},
	"ListStatus":       {query: "app={{.App}}"},
	"GetInstallStatus": {},
	"GetInstall":       {}, "UpdateInstall": {body: `{"labels":{"a":"b"}}`}, "ForgetInstall": {owner: 409},
	"GetInputs": {}, "SetInputs": {body: `{"values":{"greeting":"x"}}`}, "ListResources": {}, "GetResource": {}, "GetState": {},
	"ListStateVersions": {}, "DiffState": {query: "from=1"}, "GetSnapshot": {}, "DiffSnapshots": {query: "from=2020-01-01T00:00:00Z", owner: 409},
	"ListTimeline": {}, "GetBeforeFailure": {},
	"GetStack": {}, "CreateStackVersion": {body: `{}`, owner: 409}, "CreateEnrolment": {body: `{}`}, "GetHealth": {}, "GetHealthHistory": {}, "ListHealthHistory": {query: "app={{.App}}&install={{.Install}}"}, "ListRemediations": {}, "GetDrift": {}, "AskForDrift": {body: `{}`}, "ListDrift": {query: "install={{.Install}}"}, "WhyInstall": {},
	"ListMetrics": {query: "recent=2"}, "GetMetric": {}, "ListMetricPoints": {query: "step=60"},
	"ListInstallSecrets": {}, "ListInstallRoles": {}, "ListTerraformStates": {}, "GetTerraformState": {}, "ListTerraformStateHistory": {}, "UnlockTerraformState": {},

	"CreateWorkflow": {body: `{"kind":"deploy"}`},
	"ListWorkflows":  {query: "install={{.Install}}"}, "GetWorkflow": {}, "CancelWorkflow": {}, "ApproveAll": {body: `{}`},
	"StreamWorkflowEvents": {}, "WhyWorkflow": {}, "WhyObject": {}, "GetStep": {}, "RetryStep": {owner: 409}, "RetryWorkflow": {owner: 409}, "SkipStep": {owner: 409},
	"ListAppPolicies":   {},
	"ListPolicyReports": {query: "install={{.Install}}"},
	"ListChanges":       {query: "install={{.Install}}"}, "GetChange": {}, "GetPlan": {},
	"Decide":      {body: `{"answer":"deny","effect_digest":"{{.Digest}}"}`},
	"ListActions": {}, "RunAction": {body: `{}`}, "ListActionRuns": {query: "install={{.Install}}"}, "GetActionRun": {},

	"GetAppApprovalPolicy": {}, "PutAppApprovalPolicy": {body: `{"approvals":1}`}, "GetInstallApprovalPolicy": {}, "PutInstallApprovalPolicy": {body: `{"approvals":1}`},
	"ListAppFreezes": {}, "AddAppFreeze": {body: freezeBody}, "RemoveAppFreeze": {}, "ListInstallFreezes": {}, "AddInstallFreeze": {body: freezeBody}, "RemoveInstallFreeze": {},
	"OverridePolicies": {body: `{"effect_digest":"{{.Digest}}","reason":"x"}`, owner: 409},
	"OverrideFreeze":   {body: `{"reason":"x"}`, owner: 409}, "PauseInstall": {body: `{"reason":"x"}`}, "ResumeInstall": {},
	"DecideInstall": {body: `{"changes":[{"change_id":"{{.Change}}","effect_digest":"{{.Digest}}"}]}`},

	"ListRunnerVersions": {stranger: 200}, "CreateRunnerVersionUpload": {stranger: 201}, "RemoveRunnerVersion": {},
	"AddRunnerVersion": {body: `{"platform":"linux_amd64","digest":"{{.Digest}}","size_bytes":1,"list":"{}"}`, stranger: 422, owner: 422},
	"ListRunners":      {query: "install={{.Install}}"}, "GetRunner": {}, "RevokeRunner": {},
	"ListEvents": {query: "install={{.Install}}"}, "ListWebhooks": {stranger: 200}, "CreateWebhook": {body: `{"name":"hook","url":"https://hooks.example.com/x","installs":["{{.Install}}"]}`},
	"GetWebhook": {}, "UpdateWebhook": {body: `{"rotate_secret":true}`}, "ListWebhookDeliveries": {}, "TestWebhook": {}, "ReplayWebhook": {body: `{"dead":true}`}, "DeleteWebhook": {},
	"ListAlerts": {query: "install={{.Install}}"}, "GetAlert": {}, "AcknowledgeAlert": {body: `{"note":"at it"}`},
	"ListAlertMutes": {stranger: 200}, "CreateAlertMute": {body: `{"alert":"{{.Alert}}","until":"` + time.Now().Add(time.Hour).Format(time.RFC3339) + `","reason":"x"}`}, "DeleteAlertMute": {},
	"ListIncidents": {stranger: 200}, "GetIncident": {},
	"ListAlarms": {query: "install={{.Install}}"}, "AcknowledgeAlarm": {body: `{"reason":"looked"}`},
}

// last are visited by the owner after all others, because they take away.
var last = []string{"RemoveRunnerVersion", "DeleteAppVariable", "DeleteWebhook", "ApproveAll", "CancelWorkflow", "RevokeRunner", "EndBrowserSession", "RevokeToken", "RemoveMember"}

var pathParam = regexp.MustCompile(`\{(\w+)\}`)

// request fills in a route with the objects of a tenant.
func request(t *testing.T, path string, v visit, o tenant) (target, body string) {
	t.Helper()
	fill := func(text string) string {
		var out bytes.Buffer
		if err := template.Must(template.New("").Parse(text)).Execute(&out, o); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	params := map[string]string{
		"token": o.Token, "session": o.Session, "member": o.Member, "customer": o.Customer, "chain": o.Install, "digest": o.Digest, "app": o.App, "config": o.Config,
		"build": o.Build, "release": o.Release, "install": o.Install, "resource": o.Resource, "workflow": o.Workflow, "step": o.Step,
		"change": o.Change, "variable": o.Variable, "action": "look", "run": o.Run, "runner": o.Runner, "runner_version": o.RunnerVersion, "alarm": o.Alarm, "webhook": o.Webhook, "bulk": o.Bulk,
		"alert": o.Alert, "mute": o.Mute, "incident": o.Incident, "object": o.Step, "freeze": o.Freeze, "metric": o.Metric,
	}
	if strings.HasPrefix(path, "/apps/") {
		params["freeze"] = o.AppFreeze
	}
	target = pathParam.ReplaceAllStringFunc(path, func(p string) string {
		id := params[strings.Trim(p, "{}")]
		if id == "" {
			t.Fatalf("%s: the test knows no %s", path, p)
		}
		return id
	})
	if v.query != "" {
		target += "?" + fill(v.query)
	}
	return target, fill(v.body)
}

// operation is one route of the contract.
type operation struct{ id, method, path string }

func operationsOf(t *testing.T) []operation {
	t.Helper()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	var all []operation
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			all = append(all, operation{op.OperationID, method, path})
		}
	}
	slices.SortFunc(all, func(a, b operation) int {
		return 1000*(slices.Index(last, a.id)-slices.Index(last, b.id)) + strings.Compare(a.path+a.method, b.path+b.method)
	})
	return all
}

// Every route, with the token of one org and the objects of another: refused,
// and nothing is told. The same requests by the owner show that the objects are
// there to be found.
func TestTenancy(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	tenancy(d, d.tenant("initech"), d.tenant("umbrella"))
}

// The same for browsers, whose sessions are of one org and of the other.
func TestTenancyOfBrowsers(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	stranger, owner := d.tenant("initech"), d.tenant("umbrella")
	stranger.caller, owner.caller = d.browser(stranger.token), d.browser(owner.token)
	tenancy(d, stranger, owner)
}

func tenancy(d *door, stranger, owner tenant) {
	t := d.t.(*testing.T) //nolint:forcetypeassert // not a benchmark
	traces := []string{"umbrella", "variable-secret-of-umbrella", owner.Org, owner.Install, owner.App, owner.Customer, owner.Workflow, owner.Runner, owner.Member, owner.Token, owner.Session, owner.Release}
	ops := operationsOf(t)
	if len(ops) != len(visits) || len(ops) != len(access.Routes) {
		t.Fatalf("%d operations, %d visits, %d rows in the table of routes", len(ops), len(visits), len(access.Routes))
	}
	before := d.fingerprint(owner.Org)
	for _, op := range ops {
		v, ok := visits[op.id]
		if !ok {
			t.Errorf("%s has no row in visits", op.id)
			continue
		}
		target, body := request(t, op.path, v, owner)
		header := []string{"Content-Type", "application/json", "Sec-Fetch-Site", "same-origin"}
		if op.id == "PutBlob" {
			header[1], body = "application/octet-stream", "not these bytes"
		}
		want := v.stranger
		if want == 0 {
			want = http.StatusNotFound
		}
		status, _, answer := stranger.raw(op.method, target, body, header...)
		if status != want {
			t.Errorf("%s (%s %s) answered a stranger %d, want %d: %s", op.id, op.method, op.path, status, want, answer)
		}
		sent := target + body
		for _, trace := range traces {
			if bytes.Contains(answer, []byte(trace)) && !strings.Contains(sent, trace) {
				t.Errorf("%s shows a stranger %q: %s", op.id, trace, answer)
			}
		}
		status, _, answer = d.as("").raw(op.method, target, body, header...)
		if want := cmp.Or(v.nobody, http.StatusUnauthorized); status != want {
			t.Errorf("%s answered nobody %d, want %d: %s", op.id, status, want, answer)
		}
	}
	if after := d.fingerprint(owner.Org); after != before {
		t.Errorf("a stranger changed rows of another org: %s, was %s", after, before)
	}
	for _, op := range ops {
		v := visits[op.id]
		target, body := request(t, op.path, v, owner)
		header := []string{"Content-Type", "application/json", "Sec-Fetch-Site", "same-origin"}
		if op.id == "PutBlob" {
			header[1], body = "application/octet-stream", "not these bytes"
		}
		status, _, answer := owner.raw(op.method, target, body, header...)
		if v.owner != 0 && status != v.owner || v.owner == 0 && status/100 != 2 {
			t.Errorf("%s (%s %s) answered the owner %d: %s", op.id, op.method, op.path, status, answer)
		}
	}
}

// Who only reads changes nothing, on every route.
func TestViewerOnlyReads(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	o := d.tenant("initech")
	viewer := o.member(ctlapi.MemberRequest{Name: "vic", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleViewer})
	before := d.fingerprint(o.Org)
	for _, op := range operationsOf(t) {
		if op.method == http.MethodGet || op.id == "CreateLoginLink" || op.id == "CreateBrowserSession" { // these log in
			continue
		}
		v := visits[op.id]
		target, body := request(t, op.path, v, o)
		header := []string{"Content-Type", "application/json"}
		if op.id == "PutBlob" {
			header[1], body = "application/octet-stream", "not these bytes"
		}
		want := http.StatusForbidden
		if op.id == "RevokeToken" || op.id == "EndBrowserSession" { // tokens of others are not there for them
			want = http.StatusNotFound
		}
		if status, _, answer := viewer.raw(op.method, target, body, header...); status != want {
			t.Errorf("%s answered a viewer %d, want %d: %s", op.id, status, want, answer)
		}
	}
	if after := d.fingerprint(o.Org); after != before {
		t.Errorf("a viewer changed rows: %s, was %s", after, before)
	}
}

// Everything that can be explained, by its id: to its org and to who is limited to its
// install, and to nobody else, neither of another org nor of another install.
func TestWhyIsConfined(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	stranger, owner := d.tenant("initech"), d.tenant("umbrella")
	made, err := owner.CreateInstallWithResponse(t.Context(), nil, ctlapi.InstallRequest{
		Name: "other", App: "app-umbrella", Customer: "customer-other", CreateCustomer: true, Inputs: &ctlapi.InputValues{"api_key": "x"},
	})
	must(t, made, err, http.StatusCreated)
	limited := func(name, install string) caller {
		return owner.member(ctlapi.MemberRequest{Name: name, Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleViewer, Install: &install})
	}
	inside, outside := limited("ina", owner.Install), limited("otto", made.JSON201.ID)
	if _, err := d.db.Admin().Exec(t.Context(), `insert into runner_jobs (id, org_id, runner_id, install_id, kind, operation, state, spec, timeout_seconds)
		select 'job_queued', org_id, id, install_id, 'script', 'run', 'queued', '{}', 60 from runners where id = $1`, owner.Runner); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{owner.Install, "install-umbrella", owner.Workflow, owner.Step, owner.Change, owner.Run, "job_queued", "job_of_umbrella"} {
		for who, as := range map[string]struct {
			caller
			want int
		}{
			"the owner": {owner.caller, 200}, "who is limited to it": {inside, 200},
			"who is limited to another install": {outside, 404}, "another org": {stranger.caller, 404},
		} {
			status, _, answer := as.raw(http.MethodGet, "/why/"+id, "")
			if status != as.want {
				t.Errorf("why %s answered %s %d, want %d: %s", id, who, status, as.want, answer)
			}
			if status == 404 && (bytes.Contains(answer, []byte(owner.Org)) || bytes.Contains(answer, []byte("acme"))) {
				t.Errorf("why %s tells %s: %s", id, who, answer)
			}
		}
	}
	for _, id := range []string{"wfl_none", "stp_none", "chg_none", "job_none", "arn_none", "none", "job_' or true --"} {
		if status, _, answer := owner.raw(http.MethodGet, "/why/"+strings.ReplaceAll(id, " ", "%20"), ""); status != 404 {
			t.Errorf("why %s answered %d, want 404: %s", id, status, answer)
		}
	}
	// A job of a build has no install: who sees installs only is not told.
	if _, err := d.db.Admin().Exec(t.Context(), `with r as (insert into runners (id, org_id, kind, name, state) values ('rnr_build', $1, 'build', 'builds', 'active') returning id, org_id)
		insert into runner_jobs (id, org_id, runner_id, kind, operation, state, spec, timeout_seconds) select 'job_build', org_id, id, 'script', 'build', 'queued', '{}', 60 from r`, owner.Org); err != nil {
		t.Fatal(err)
	}
	if status, _, answer := owner.raw(http.MethodGet, "/why/job_build", ""); status != 200 {
		t.Errorf("why of a build's job answered the owner %d: %s", status, answer)
	}
	if status, _, answer := inside.raw(http.MethodGet, "/why/job_build", ""); status != 404 {
		t.Errorf("why of a build's job answered who is limited to an install %d: %s", status, answer)
	}
}

// The codes of package why are those of the contract.
func TestWhyCodesAreTheContracts(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	has := func(schema string, values ...string) {
		var listed []string
		for _, v := range spec.Components.Schemas[schema].Value.Enum {
			listed = append(listed, v.(string)) //nolint:forcetypeassert // the contract's enums are strings
		}
		if !slices.Equal(slices.Sorted(slices.Values(listed)), slices.Sorted(slices.Values(values))) {
			t.Errorf("%s is %v in the contract, %v in package why", schema, listed, values)
		}
	}
	has("WhyCode", words(why.Codes)...)
	has("WhyWho", words(why.Whos)...)
	has("WhyWaker", words(why.Wakers)...)
}

func words[T ~string](all []T) (out []string) {
	for _, v := range all {
		out = append(out, string(v))
	}
	return out
}

// fingerprint is one digest over all rows of an org, except for the time at
// which its tokens were last used.
func (d *door) fingerprint(org string) string {
	d.t.Helper()
	rows, err := d.db.Admin().Query(d.t.Context(), `select table_name::text from information_schema.columns where table_schema = 'berth' and column_name = 'org_id' order by 1`)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	var parts []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			d.t.Fatal(err)
		}
		parts = append(parts, `(select coalesce(md5(string_agg((to_jsonb(x) - 'last_used_at')::text, ',' order by x::text)), '-') from berth.`+table+` x where x.org_id = $1)`)
	}
	var digest string
	if err := d.db.Admin().QueryRow(d.t.Context(), `select md5(`+strings.Join(parts, ` || `)+`)`, org).Scan(&digest); err != nil {
		d.t.Fatal(err)
	}
	return digest
}
