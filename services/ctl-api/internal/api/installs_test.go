package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/pkg/ctlapi"
	"github.com/berth-dev/berth/services/ctl-api/internal/stacks"
)

// canary is a sensitive input that must be seen nowhere.
const canary = "canary-8f2e61c4"

func acme() ctlapi.InstallRequest {
	return ctlapi.InstallRequest{
		Name: "acme", App: "hello", Customer: "acme", CreateCustomer: true,
		Inputs: &ctlapi.InputValues{"greeting": "Hello", "api_key": canary},
	}
}

// Each thing that a person looks for first: the newest release, what was set and
// not deployed, how the last workflow ended, the customer's switch.
func TestStatus(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := d.db.Admin().Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	look := func() ctlapi.InstallStatus {
		t.Helper()
		list, err := c.ListStatusWithResponse(t.Context(), nil)
		must(t, list, err, http.StatusOK)
		one, err := c.GetInstallStatusWithResponse(t.Context(), "acme")
		must(t, one, err, http.StatusOK)
		if diff := cmp.Diff(*one.JSON200, list.JSON200.Items[0]); diff != "" || len(list.JSON200.Items) != 1 {
			t.Errorf("one and the list differ: %s", diff)
		}
		return *one.JSON200
	}
	if s := look(); s.Standing != ctlapi.InstallStatusStandingNotProvisioned || s.NewestRelease == nil || s.NewestRelease.Number != 1 || len(s.Pending) != 0 || s.Last != nil || s.Runner != nil {
		t.Errorf("a new install: %+v", s)
	}

	started, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindProvision})
	must(t, started, err, http.StatusAccepted)
	if s := look(); s.Standing != ctlapi.InstallStatusStandingProvisioning || s.Workflow == nil || s.Workflow.ID != started.JSON202.ID {
		t.Errorf("while its provision is queued: %+v", s)
	}
	exec(`update workflows set state = 'failed', finished_at = now(), error = 'step component/api failed'`)
	exec(`update installs set state = 'provisioning'`)
	exec(`update steps set state = 'failed', error = 'no such bucket' where name = 'component/api'`)
	exec(`update runners set state = 'active', last_seen_at = now(), switch = 'pause', switch_reason = 'change freeze', switch_since = now()`)
	s := look()
	if s.Standing != ctlapi.InstallStatusStandingProvisionFailed || s.Last == nil || *s.Last.Step != "component/api" || *s.Last.Error != "no such bucket" || s.Last.Superseded || s.Workflow != nil {
		t.Errorf("after its provision failed: %+v", s)
	}
	if r := s.Runner; r == nil || !r.Online || r.Switch != ctlapi.RunnerSwitchPause || *r.SwitchReason != "change freeze" || r.SwitchSince == nil {
		t.Errorf("its runner: %+v", r)
	}
	why, err := c.WhyInstallWithResponse(t.Context(), "acme")
	must(t, why, err, http.StatusOK)
	if body := string(why.Body); !strings.Contains(body, "no such bucket") || !strings.Contains(body, "switch is at pause since") || !strings.Contains(body, "change freeze") {
		t.Errorf("why: %s", body)
	}

	exec(`update workflows set state = 'succeeded', error = null`)
	exec(`update steps set state = 'succeeded', error = null`)
	exec(`update installs set state = 'live', release_id = (select id from releases), toggles_version = 1`)
	set, err := c.SetInputsWithResponse(t.Context(), "acme", nil, ctlapi.InputsUpdate{Values: &ctlapi.InputValues{"greeting": "Ahoy"}})
	must(t, set, err, http.StatusOK)
	c.released("hello", with(hello(), "src/web/main.tf", "# newer\n"))
	if s := look(); s.Standing != ctlapi.InstallStatusStandingLive || s.NewestRelease.Number != 2 || !slices.Equal(s.Pending, []ctlapi.InstallStatusPending{"release", "inputs", "toggles"}) {
		t.Errorf("live, with everything pending: %+v", s)
	}

	// The answer to a second workflow names the first.
	first, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy})
	must(t, first, err, http.StatusAccepted)
	if len(first.JSON202.Others) != 0 {
		t.Errorf("the first deploy meets %+v", first.JSON202.Others)
	}
	second, err := c.CreateWorkflowWithResponse(t.Context(), "acme", nil, ctlapi.WorkflowRequest{Kind: ctlapi.WorkflowKindDeploy, Components: []string{"web"}})
	must(t, second, err, http.StatusAccepted)
	want := []ctlapi.OtherWorkflow{{
		ID: first.JSON202.ID, Kind: ctlapi.WorkflowKindDeploy, State: ctlapi.WorkflowStateQueued, CreatedBy: "admin", CreatedAt: first.JSON202.CreatedAt,
		Meeting: ctlapi.OtherWorkflowMeetingSupersedes, Resources: []string{"web"},
	}}
	if diff := cmp.Diff(want, second.JSON202.Others); diff != "" {
		t.Errorf("the second deploy meets (-want +got):\n%s", diff)
	}
}

func TestCreateInstall(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.released("hello", hello())
	req := acme()
	req.Provision = true
	made, err := c.CreateInstallWithResponse(t.Context(), nil, req)
	must(t, made, err, http.StatusCreated)
	in := made.JSON201
	if in.WorkflowID == nil || in.Customer.Name != "acme" || in.Stack != ctlapi.StackKindLocal || in.InputsVersion != 1 || in.Health != ctlapi.HealthVerdictUnknown {
		t.Errorf("install: %s", made.Body)
	}
	resources, err := c.ListResourcesWithResponse(t.Context(), "acme")
	must(t, resources, err, http.StatusOK)
	var names []string
	for _, r := range resources.JSON200.Items {
		names = append(names, string(r.Kind)+" "+r.Name+" "+string(r.State))
	}
	if diff := cmp.Diff([]string{"stack stack absent", "sandbox sandbox absent", "component api absent", "component web absent"}, names); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	stack, err := c.GetStackWithResponse(t.Context(), "acme")
	must(t, stack, err, http.StatusOK)
	if s := stack.JSON200; s.State != ctlapi.StackStatePending || s.Wait == nil || s.Runner.State != ctlapi.RunnerStatePending || s.Runner.Online {
		t.Errorf("stack: %s", stack.Body)
	}

	twice, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	problemOf(t, twice, err, http.StatusConflict, "already_exists")
	if n := d.count(`select count(*) from installs`); n != 1 {
		t.Errorf("%d installs, want 1", n)
	}
}

func TestCreateInstallRefuses(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	empty, err := c.CreateAppWithResponse(t.Context(), nil, ctlapi.AppRequest{Name: "empty"})
	must(t, empty, err, http.StatusCreated)
	c.sync("hello", hello())
	tests := []struct {
		name   string
		change func(*ctlapi.InstallRequest)
		status int
		code   string
	}{
		{"an unknown app", func(r *ctlapi.InstallRequest) { r.App = "nothing" }, 404, "not_found"},
		{"an app that was never synced", func(r *ctlapi.InstallRequest) { r.App = "empty" }, 409, "no_config"},
		{"provisioning without a release", func(r *ctlapi.InstallRequest) { r.Provision = true }, 404, "no_release"},
		{"a customer that nobody asked to add", func(r *ctlapi.InstallRequest) { r.CreateCustomer = false }, 404, "customer_not_found"},
		{"a stack that is not there yet", func(r *ctlapi.InstallRequest) { r.Stack = new(ctlapi.StackKindAws) }, 422, "stack_unsupported"},
		{"inputs that do not fit", func(r *ctlapi.InstallRequest) { r.Inputs = &ctlapi.InputValues{"port": "many", "nothing": "1"} }, 422, "inputs_invalid"},
		{"a name that is none", func(r *ctlapi.InstallRequest) { r.Name = "Acme Corp" }, 422, "invalid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := acme()
			tt.change(&req)
			got, err := c.CreateInstallWithResponse(t.Context(), nil, req)
			problemOf(t, got, err, tt.status, tt.code)
		})
	}
	if n := d.count(`select (select count(*) from installs) + (select count(*) from customers) + (select count(*) from runners)`); n != 0 {
		t.Errorf("refused requests left %d rows", n)
	}
}

func TestInputs(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)

	shown := func(in *ctlapi.Inputs) map[string]string {
		all := map[string]string{}
		for _, it := range in.Items {
			text := string(it.From)
			if it.Value != nil {
				text += " " + *it.Value
			}
			all[it.Name] = text
		}
		return all
	}
	got, err := c.GetInputsWithResponse(t.Context(), "acme")
	must(t, got, err, http.StatusOK)
	if diff := cmp.Diff(map[string]string{"greeting": "set Hello", "api_key": "set", "port": "none"}, shown(got.JSON200)); diff != "" {
		t.Errorf("inputs (-want +got):\n%s", diff)
	}
	update := ctlapi.InputsUpdate{Values: &ctlapi.InputValues{"port": "8080"}, Unset: []string{"greeting"}}
	dry, err := c.SetInputsWithResponse(t.Context(), "acme", &ctlapi.SetInputsParams{DryRun: new(true)}, update)
	must(t, dry, err, http.StatusOK)
	want := map[string]string{"greeting": "default Ahoy", "api_key": "set", "port": "set 8080"}
	if diff := cmp.Diff(want, shown(dry.JSON200)); diff != "" {
		t.Errorf("dry run (-want +got):\n%s", diff)
	}
	for range 2 { // the second time nothing changes, so there is no new version
		set, err := c.SetInputsWithResponse(t.Context(), "acme", nil, update)
		must(t, set, err, http.StatusOK)
		if diff := cmp.Diff(want, shown(set.JSON200)); diff != "" || set.JSON200.Version != 2 {
			t.Errorf("set, version %d (-want +got):\n%s", set.JSON200.Version, diff)
		}
	}
	bad, err := c.SetInputsWithResponse(t.Context(), "acme", nil, ctlapi.InputsUpdate{Values: &ctlapi.InputValues{"port": "many"}})
	problemOf(t, bad, err, http.StatusUnprocessableEntity, "inputs_invalid")

	// Neither the sensitive input nor a secret of the runner is in any row.
	for _, table := range []string{"install_inputs", "stack_versions", "enrolments", "runners", "chain_records", "idempotency_keys", "river_ctl.river_job"} {
		for _, text := range []string{canary, "ben_", "bph_"} {
			n := d.count(`select count(*) from `+table+` x where strpos(x::text, $1) > 0
				or strpos(x::text, encode(convert_to($1, 'utf8'), 'hex')) > 0`, text) // bytea is shown in hex
			if n != 0 {
				t.Errorf("%q is in %d rows of %s", text, n, table)
			}
		}
	}
}

func TestUpdateInstall(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	got, err := c.GetInstallWithResponse(t.Context(), made.JSON201.ID)
	must(t, got, err, http.StatusOK)
	tag := got.HTTPResponse.Header.Get("ETag")

	changed, err := c.UpdateInstallWithResponse(t.Context(), "acme", &ctlapi.UpdateInstallParams{IfMatch: &tag}, ctlapi.InstallUpdate{Labels: &ctlapi.Labels{"ring": "canary"}})
	must(t, changed, err, http.StatusOK)
	if diff := cmp.Diff(ctlapi.Labels{"ring": "canary"}, changed.JSON200.Labels); diff != "" || changed.JSON200.ApprovalOption != ctlapi.ApprovalOptionPrompt {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	late, err := c.UpdateInstallWithResponse(t.Context(), "acme", &ctlapi.UpdateInstallParams{IfMatch: &tag}, ctlapi.InstallUpdate{ApprovalOption: new(ctlapi.ApprovalOptionApproveAll)})
	problemOf(t, late, err, http.StatusPreconditionFailed, "precondition_failed")

	for label, want := range map[string]int{"ring=canary": 1, "ring=stable": 0} {
		list, err := c.ListInstallsWithResponse(t.Context(), &ctlapi.ListInstallsParams{Label: &ctlapi.Label{label}})
		must(t, list, err, http.StatusOK)
		if n := len(list.JSON200.Items); n != want {
			t.Errorf("%d installs with label %s, want %d", n, label, want)
		}
	}
	for hours, want := range map[int]int{72: 200, -1: 422, 8761: 422} {
		got, err := c.UpdateInstallWithResponse(t.Context(), "acme", &ctlapi.UpdateInstallParams{}, ctlapi.InstallUpdate{ApprovalHours: &hours})
		if err == nil && got.StatusCode() != want || err != nil && want == 200 || err != nil && !strings.Contains(err.Error(), "approval_hours") {
			t.Errorf("%d hours: %v, want %d", hours, err, want)
		}
	}
	kept, err := c.UpdateInstallWithResponse(t.Context(), "acme", &ctlapi.UpdateInstallParams{}, ctlapi.InstallUpdate{Labels: &ctlapi.Labels{"ring": "next"}})
	if err != nil || kept.JSON200 == nil || kept.JSON200.ApprovalHours != 72 {
		t.Errorf("a change of labels answers %+v, %v; want the 72 hours kept", kept, err)
	}
}

func TestInstallsByHealthAndRelease(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	older := c.released("hello", hello()).Release.ID
	for _, name := range []string{"old", "new", "none"} {
		made, err := c.CreateInstallWithResponse(t.Context(), nil, ctlapi.InstallRequest{Name: name, App: "hello", Customer: "acme", CreateCustomer: true, Inputs: acme().Inputs})
		must(t, made, err, http.StatusCreated)
	}
	changed := hello()
	changed["components/web.toml"].Data = append(changed["components/web.toml"].Data, "\n[labels]\ntier = \"gold\"\n"...)
	newer := c.released("hello", changed).Release.ID
	for name, release := range map[string]string{"old": older, "new": newer} {
		if _, err := d.db.Admin().Exec(t.Context(), `update installs set release_id = $2 where name = $1`, name, release); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		which ctlapi.ListInstallsParams
		want  []string
	}{
		{ctlapi.ListInstallsParams{Behind: new(true)}, []string{"old"}},
		{ctlapi.ListInstallsParams{Behind: new(false)}, []string{"new"}},
		{ctlapi.ListInstallsParams{Health: new(ctlapi.HealthVerdictUnknown)}, []string{"new", "none", "old"}},
		{ctlapi.ListInstallsParams{Health: new(ctlapi.HealthVerdictUnhealthy)}, nil},
	} {
		got, err := c.ListInstallsWithResponse(t.Context(), &tc.which)
		must(t, got, err, http.StatusOK)
		var names []string
		for _, i := range got.JSON200.Items {
			names = append(names, i.Name)
		}
		if diff := cmp.Diff(tc.want, names); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.which, diff)
		}
	}
}

func TestForgetInstall(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	set := func(state string) {
		if _, err := d.db.Admin().Exec(t.Context(), `update installs set state = $1`, state); err != nil {
			t.Fatal(err)
		}
	}
	set("live")
	confirmed := &ctlapi.ForgetInstallParams{Confirm: new("acme")}
	early, err := c.ForgetInstallWithResponse(t.Context(), "acme", confirmed)
	problemOf(t, early, err, http.StatusConflict, "not_deprovisioned")
	used, err := c.DeleteAppWithResponse(t.Context(), "hello", &ctlapi.DeleteAppParams{Confirm: new("hello")})
	problemOf(t, used, err, http.StatusConflict, "app_in_use")

	set("deprovisioned")
	for _, confirm := range []*string{nil, new(""), new("hello"), new("ACME")} {
		silent, err := c.ForgetInstallWithResponse(t.Context(), "acme", &ctlapi.ForgetInstallParams{Confirm: confirm})
		problemOf(t, silent, err, http.StatusUnprocessableEntity, "not_confirmed")
	}
	gone, err := c.ForgetInstallWithResponse(t.Context(), made.JSON201.ID, confirmed) // by id, the name confirms it
	must(t, gone, err, http.StatusNoContent)
	byName, err := c.GetInstallWithResponse(t.Context(), "acme")
	problemOf(t, byName, err, http.StatusNotFound, "not_found")
	byID, err := c.GetInstallWithResponse(t.Context(), made.JSON201.ID)
	must(t, byID, err, http.StatusOK)
	if byID.JSON200.State != ctlapi.InstallStateForgotten {
		t.Errorf("state is %s, want forgotten", byID.JSON200.State)
	}
	if n := d.count(`select count(*) from runners where state <> 'revoked'`); n != 0 {
		t.Errorf("%d runners are not revoked", n)
	}
	if n := d.count(`select count(*) from river_ctl.river_job where kind = 'stack_removal'`); n != 1 {
		t.Errorf("%d orders to stop the runner, want 1", n)
	}
	again, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, again, err, http.StatusCreated) // the name is free
}

func TestEnrolments(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	first, err := c.CreateEnrolmentWithResponse(t.Context(), "acme", nil, ctlapi.EnrolmentRequest{})
	must(t, first, err, http.StatusCreated)
	if !strings.HasPrefix(first.JSON201.Secret, "ben_") {
		t.Errorf("secret: %s", first.Body)
	}
	if n := d.count(`select count(*) from enrolments where state = 'open'`); n != 1 {
		t.Errorf("%d open enrolments, want just the newest", n)
	}
	if _, err := d.db.Admin().Exec(t.Context(), `update runners set public_key = 'k', state = 'active'`); err != nil {
		t.Fatal(err)
	}
	taken, err := c.CreateEnrolmentWithResponse(t.Context(), "acme", nil, ctlapi.EnrolmentRequest{})
	problemOf(t, taken, err, http.StatusConflict, "already_enrolled")
	consent, err := c.CreateEnrolmentWithResponse(t.Context(), "acme", nil, ctlapi.EnrolmentRequest{Replaces: true})
	must(t, consent, err, http.StatusCreated)
	if !consent.JSON201.Replaces {
		t.Errorf("enrolment: %s", consent.Body)
	}
}

// The supervisor gets everything it needs, over its socket; a call that failed
// is made again with the same secrets; afterwards they are gone.
func TestHandover(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	var stackID string
	if err := d.db.Admin().QueryRow(t.Context(), `select args->>'stack_version_id' from river_ctl.river_job where kind = 'stack_handover'`).Scan(&stackID); err != nil {
		t.Fatal(err)
	}

	socket := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	var bodies [][]byte
	answers := []int{http.StatusInternalServerError, http.StatusAccepted}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		paths, bodies = append(paths, r.Method+" "+r.URL.Path), append(bodies, body.Bytes())
		w.WriteHeader(answers[len(bodies)-1])
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })

	supervisor := stacks.NewSupervisor(socket)
	handover := func() error { return d.stacks.Handover(context.Background(), d.store, supervisor, stackID) }
	if err := handover(); err == nil || strings.Contains(err.Error(), "ben_") {
		t.Fatalf("a refused handover: %v", err)
	}
	if err := handover(); err != nil {
		t.Fatal(err)
	}
	if err := handover(); err != nil { // nothing left to hand over
		t.Fatal(err)
	}
	if len(bodies) != 2 || !bytes.Equal(bodies[0], bodies[1]) || !strings.HasPrefix(paths[0], "PUT /runners/rnr_") {
		t.Fatalf("calls: %v", paths)
	}
	var order struct {
		Kind, Name      string
		InstallID       string `json:"install_id"`
		EnrolmentSecret string `json:"enrolment_secret"`
		PhoneHomeSecret string `json:"phone_home_secret"`
		RunnerAPIURL    string `json:"runner_api_url"`
		LogURL          string `json:"log_url"`
		DispatchKeys    []struct {
			KeyID     string `json:"key_id"`
			PublicKey string `json:"public_key"`
		} `json:"dispatch_keys"`
	}
	if err := json.Unmarshal(bodies[1], &order); err != nil {
		t.Fatal(err)
	}
	keys, err := c.ListKeysWithResponse(t.Context(), &ctlapi.ListKeysParams{Purpose: new(ctlapi.KeyPurposeDispatch)})
	must(t, keys, err, http.StatusOK)
	if order.Kind != "install" || order.InstallID != made.JSON201.ID || !strings.HasPrefix(order.EnrolmentSecret, "ben_") || !strings.HasPrefix(order.PhoneHomeSecret, "bph_") ||
		order.RunnerAPIURL == "" || order.LogURL == "" || len(order.DispatchKeys) != 1 || order.DispatchKeys[0].PublicKey != keys.JSON200.Items[0].PublicKey {
		t.Errorf("order: %+v", order)
	}
	if n := d.count(`select count(*) from stack_versions where body <> '{}'`); n != 0 {
		t.Errorf("the secrets are still kept")
	}
}

// The install's page and the sync tell the same of what has no effect yet.
func TestInstallTellsWhatHasNoEffectYet(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := with(hello(), "actions/seed.toml", "name = \"seed\"\nrole = \"maintenance\"\ndescription = \"Seeds.\"\n[[inputs]]\nname = \"AGE\"\ndescription = \"Years.\"\n"+
		"[[triggers]]\ntype = \"manual\"\n[[steps]]\nname = \"s\"\ncommand = \"true\"\n")
	synced := c.released("hello", folder)
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)
	if _, err := d.db.Admin().Exec(t.Context(), `update installs set release_id = $1`, synced.Release.ID); err != nil {
		t.Fatal(err)
	}
	shown, err := c.GetInstallWithResponse(t.Context(), "acme")
	must(t, shown, err, http.StatusOK)
	if shown.JSON200.Unsupported == nil {
		t.Fatalf("install: %s", shown.Body)
	}
	var atSync []ctlapi.Warning
	for _, w := range synced.Warnings {
		if w.Code == "unsupported" {
			atSync = append(atSync, w)
		}
	}
	if diff := cmp.Diff(atSync, *shown.JSON200.Unsupported); diff != "" {
		t.Errorf("told (-sync +install):\n%s", diff)
	}
	var files []string
	for _, w := range atSync {
		files = append(files, *w.File)
	}
	if diff := cmp.Diff([]string{"actions/seed.toml", "inputs.toml", "stack.toml"}, files); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	actions, err := c.ListActionsWithResponse(t.Context(), "acme")
	must(t, actions, err, http.StatusOK)
	if a := actions.JSON200.Items[1]; a.Description != "Seeds." || a.Inputs[0].Description != "Years." {
		t.Errorf("action: %s", actions.Body)
	}
}
