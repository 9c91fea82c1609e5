package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
)

// declare syncs installs of hello; it must work.
func (c caller) declare(params *ctlapi.SyncInstallsParams, installs ...ctlapi.DeclaredInstall) *ctlapi.InstallsResult {
	c.d.t.Helper()
	got, err := c.SyncInstallsWithResponse(c.d.t.Context(), "hello", params, ctlapi.InstallsRequest{Installs: installs})
	must(c.d.t, got, err, http.StatusOK)
	if bytes.Contains(got.Body, []byte(canary)) {
		c.d.t.Errorf("the answer shows a sensitive input: %s", got.Body)
	}
	return got.JSON200
}

// decided sums a result up, a line an install: "acme update inputs.port=8080 → deploy".
func decided(r *ctlapi.InstallsResult) []string {
	var lines []string
	for _, it := range r.Items {
		line := it.Name + " " + string(it.Action)
		for _, ch := range it.Changes {
			line += " " + ch.Field
			if ch.New != nil {
				line += "=" + *ch.New
			}
		}
		if it.Next != nil {
			line += " → " + string(*it.Next)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestSyncInstalls(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	byHand := acme()
	byHand.Name, byHand.Customer = "by-hand", "someone"
	made, err := c.CreateInstallWithResponse(t.Context(), nil, byHand)
	must(t, made, err, http.StatusCreated)

	one := ctlapi.DeclaredInstall{
		Name: "acme", Customer: new("acme-corp"), Labels: &ctlapi.Labels{"ring": "canary"},
		Inputs: &ctlapi.InputValues{"greeting": "Hello", "api_key": canary},
	}
	two := ctlapi.DeclaredInstall{Name: "globex", ApprovalOption: new(ctlapi.ApprovalOptionApproveAll)}
	want := []string{
		"acme create customer=acme-corp stack=local approval_option=prompt labels.ring=canary inputs.api_key inputs.greeting=Hello → provision",
		"by-hand not_declared",
		"globex create customer=globex stack=local approval_option=approve_all → provision",
	}
	me, err := c.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
	org := me.JSON200.Org.ID
	before := d.fingerprint(org)
	dry := c.declare(&ctlapi.SyncInstallsParams{DryRun: new(true)}, two, one)
	if diff := cmp.Diff(want, decided(dry)); diff != "" || !dry.DryRun {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	if after := d.fingerprint(org); after != before {
		t.Error("a dry run changed rows")
	}

	done := c.declare(&ctlapi.SyncInstallsParams{IfMatch: &dry.Version}, two, one)
	if diff := cmp.Diff(want, decided(done)); diff != "" || done.Version != dry.Version || done.DryRun {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	install, err := c.GetInstallWithResponse(t.Context(), "acme")
	must(t, install, err, http.StatusOK)
	if in := install.JSON200; in.Customer.Name != "acme-corp" || in.Labels["ring"] != "canary" || in.InputsVersion != 1 || in.WorkflowID != nil || in.CreatedBy != "admin" {
		t.Errorf("install: %s", install.Body)
	}
	for sql, want := range map[string]int{
		`select count(*) from resources where install_id = (select id from installs where name = 'acme')`: 4,
		`select count(*) from runners`:                                                3,
		`select count(*) from customers`:                                              3,
		`select count(*) from river_ctl.river_job where kind = 'stack_handover'`:      3,
		`select count(*) from install_inputs x where x::text like '%` + canary + `%'`: 0,
		`select count(*) from workflows`:                                              0,
	} {
		if n := d.count(sql); n != want {
			t.Errorf("%s: %d, want %d", sql, n, want)
		}
	}

	// The same again changes nothing, and is recorded nowhere.
	records := d.count(`select count(*) from chain_records`)
	want = []string{"acme unchanged → provision", "by-hand not_declared", "globex unchanged → provision"}
	for range 2 {
		if diff := cmp.Diff(want, decided(c.declare(nil, one, two))); diff != "" {
			t.Errorf("again (-want +got):\n%s", diff)
		}
	}
	if n := d.count(`select count(*) from chain_records`); n != records {
		t.Errorf("a sync that changed nothing left %d records", n-records)
	}

	// The repeat of a request whose answer was lost does no harm; somebody who
	// agreed to a plan that is no longer true is asked again.
	c.declare(&ctlapi.SyncInstallsParams{IfMatch: &dry.Version}, two, one)
	other := ctlapi.DeclaredInstall{Name: "globex", Labels: &ctlapi.Labels{"ring": "stable"}}
	stale, err := c.SyncInstallsWithResponse(t.Context(), "hello", &ctlapi.SyncInstallsParams{IfMatch: &dry.Version}, ctlapi.InstallsRequest{Installs: []ctlapi.DeclaredInstall{other}})
	problemOf(t, stale, err, http.StatusPreconditionFailed, "precondition_failed")

	// A workflow takes the inputs, so that only newer ones want a deploy.
	started, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindProvision})
	must(t, started, err, http.StatusAccepted)
	want[0] = "acme unchanged"
	if diff := cmp.Diff(want, decided(c.declare(nil, one, two))); diff != "" {
		t.Errorf("provisioning (-want +got):\n%s", diff)
	}
	one.Inputs = &ctlapi.InputValues{"port": "8080"}
	want[0] = "acme update inputs.port=8080 → deploy"
	changed := c.declare(nil, one, two)
	if diff := cmp.Diff(want, decided(changed)); diff != "" {
		t.Errorf("one input (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"api_key", "greeting"}, changed.Items[0].Kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if n := d.count(`select inputs_version from installs where name = 'acme'`); n != 2 {
		t.Errorf("inputs version %d, want 2", n)
	}
	want[0] = "acme unchanged → deploy"
	if diff := cmp.Diff(want, decided(c.declare(nil, one, two))); diff != "" {
		t.Errorf("not deployed yet (-want +got):\n%s", diff)
	}

	if n := d.count(`select count(*) from chain_records`); n != records+2 { // the workflow, and one input
		t.Errorf("%d records more, want 2", n-records)
	}
}

// One that is wrong keeps all from being made, and each fault has its place.
func TestSyncInstallsIsAllOrNothing(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	c.sync("other", hello())
	taken := acme()
	taken.App = "other"
	made, err := c.CreateInstallWithResponse(t.Context(), nil, taken)
	must(t, made, err, http.StatusCreated)
	me, err := c.GetMeWithResponse(t.Context())
	must(t, me, err, http.StatusOK)
	before := d.fingerprint(me.JSON200.Org.ID)
	put := func(middle ctlapi.DeclaredInstall) *ctlapi.SyncInstallsResponse {
		got, err := c.SyncInstallsWithResponse(t.Context(), "hello", nil, ctlapi.InstallsRequest{Installs: []ctlapi.DeclaredInstall{{Name: "first"}, middle, {Name: "last"}}})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	tests := []struct {
		name    string
		middle  ctlapi.DeclaredInstall
		status  int
		code    string
		pointer string
	}{
		{"an input that does not fit", ctlapi.DeclaredInstall{Name: "middle", Inputs: &ctlapi.InputValues{"port": canary}}, 422, "installs_invalid", "/installs/1/inputs/port"},
		{"an input that is not there", ctlapi.DeclaredInstall{Name: "middle", Inputs: &ctlapi.InputValues{"prot": "1"}}, 422, "installs_invalid", "/installs/1/inputs/prot"},
		{"one name twice", ctlapi.DeclaredInstall{Name: "first"}, 422, "installs_invalid", "/installs/1/name"},
		{"an install of another app", ctlapi.DeclaredInstall{Name: "acme"}, 422, "installs_invalid", "/installs/1/name"},
		{"a stack that is not there yet", ctlapi.DeclaredInstall{Name: "middle", Stack: new(ctlapi.StackKindAws)}, 422, "stack_unsupported", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := put(tt.middle)
			p := problemOf(t, got, nil, tt.status, tt.code)
			if tt.pointer != "" && (p.Errors == nil || len(*p.Errors) != 1 || *(*p.Errors)[0].Pointer != tt.pointer) {
				t.Errorf("want one fault at %s: %s", tt.pointer, got.Body)
			}
			if bytes.Contains(got.Body, []byte(canary)) {
				t.Errorf("the refusal repeats the value: %s", got.Body)
			}
		})
	}
	unknown, err := c.SyncInstallsWithResponse(t.Context(), "nothing", nil, ctlapi.InstallsRequest{Installs: []ctlapi.DeclaredInstall{}})
	problemOf(t, unknown, err, http.StatusNotFound, "not_found")

	// One that only the database refuses, when the first is made already.
	for _, sql := range []string{
		`create function berth.refuse() returns trigger language plpgsql as $$ begin raise exception 'refused by the test'; end $$`,
		`create trigger refuse before insert on berth.installs for each row when (new.name = 'middle') execute function berth.refuse()`,
	} {
		if _, err := d.db.Admin().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if got := put(ctlapi.DeclaredInstall{Name: "middle"}); got.StatusCode() != http.StatusInternalServerError {
		t.Errorf("answered %d: %s", got.StatusCode(), got.Body)
	}
	if after := d.fingerprint(me.JSON200.Org.ID); after != before {
		t.Error("refused syncs changed rows")
	}
	if _, err := d.db.Admin().Exec(t.Context(), `drop trigger refuse on berth.installs`); err != nil {
		t.Fatal(err)
	}
	must(t, put(ctlapi.DeclaredInstall{Name: "middle"}), nil, http.StatusOK)
}

// Many at once: each install is made once, each content is one version, and all
// end at what one of them declared.
func TestSyncInstallsAtOnce(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	const callers, installs = 6, 3
	body := func(greeting string) (list []ctlapi.DeclaredInstall) {
		for i := range installs {
			list = append(list, ctlapi.DeclaredInstall{Name: fmt.Sprintf("fleet-%d", i), Customer: new("fleet"), Inputs: &ctlapi.InputValues{"greeting": greeting}})
		}
		return list
	}
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() {
			list := body(fmt.Sprintf("hello %d", i%2))
			if i%2 == 1 { // in another order
				list[0], list[installs-1] = list[installs-1], list[0]
			}
			got, err := c.SyncInstallsWithResponse(t.Context(), "hello", nil, ctlapi.InstallsRequest{Installs: list})
			if err != nil || got.StatusCode() != http.StatusOK {
				t.Errorf("sync: %v %s", err, got.Body)
			}
		})
		group.Go(func() { // others change the same rows meanwhile
			_, err := c.UpdateInstallWithResponse(t.Context(), "fleet-0", nil, ctlapi.InstallUpdate{Labels: &ctlapi.Labels{"n": fmt.Sprint(i)}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := d.count(`select count(*) from installs`); n != installs {
		t.Errorf("%d installs, want %d", n, installs)
	}
	if n := d.count(`select count(*) from customers`); n != 1 {
		t.Errorf("%d customers, want 1", n)
	}
	n := d.count(`select count(distinct n.values->>'greeting') from installs i join install_inputs n on n.install_id = i.id and n.version = i.inputs_version`)
	if n != 1 {
		t.Errorf("the installs stand at %d different greetings, want that of one sync", n)
	}
	n = d.count(`select count(*) from install_inputs a join install_inputs b on b.install_id = a.install_id and b.version = a.version + 1 where a.values = b.values`)
	if n != 0 {
		t.Errorf("%d versions of inputs are those before them", n)
	}
	if last := strings.Join(decided(c.declare(nil, body("hello 1")...)), "; "); strings.Contains(last, "create") {
		t.Errorf("afterwards: %s", last)
	}
}

// It makes installs and customers, so a grant that is limited is worth nothing.
func TestSyncInstallsAsksForTheOrg(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	user := ctlapi.MemberRequestKindUser
	for _, tt := range []struct {
		name   string
		member ctlapi.MemberRequest
		want   int
	}{
		{"an operator", ctlapi.MemberRequest{Name: "olga", Kind: user, Role: ctlapi.MemberRequestRoleOperator}, 200},
		{"a viewer", ctlapi.MemberRequest{Name: "vic", Kind: user, Role: ctlapi.MemberRequestRoleViewer}, 403},
		{"an operator of one install", ctlapi.MemberRequest{Name: "lena", Kind: user, Role: ctlapi.MemberRequestRoleOperator, Install: new("acme")}, 403},
		{"an operator of the app", ctlapi.MemberRequest{Name: "anna", Kind: user, Role: ctlapi.MemberRequestRoleOperator, App: new("hello")}, 403},
		{"a customer", ctlapi.MemberRequest{Name: "carl", Kind: user, Role: ctlapi.MemberRequestRoleCustomer, Customer: new("acme")}, 403},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.member(tt.member).SyncInstallsWithResponse(t.Context(), "hello", nil, ctlapi.InstallsRequest{Installs: []ctlapi.DeclaredInstall{{Name: "acme", Labels: &ctlapi.Labels{"a": "b"}}}})
			must(t, got, err, tt.want)
		})
	}
}
