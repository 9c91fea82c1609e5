package api_test

import (
	"bytes"
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

// readsVariables is hello with an api that reads two variables and an action that
// reads whichever it computes.
func readsVariables() map[string]string {
	return map[string]string{
		"components/api.toml": "name = \"api\"\ntype = \"terraform_module\"\nterraform_version = \"1.11.4\"\n" +
			"[berth]\nlocal_source = \"src/api\"\n[vars]\n" +
			"text = \"{{ .nuon.inputs.inputs.greeting }} {{ .nuon.app.variables.region }}\"\n" +
			"token = \"{{ .berth.app.variables.token }}\"\n",
		"actions/look.toml": "name = \"look\"\ntimeout = \"30s\"\n[labels]\ntype = \"health-check\"\n[[triggers]]\ntype = \"manual\"\n" +
			"[[steps]]\nname = \"look\"\ninline_contents = \"echo {{ range .nuon.app.variables }}x{{ end }}\"\n",
	}
}

func (c caller) setVariable(name string, req ctlapi.AppVariableRequest) *ctlapi.AppVariable {
	c.d.t.Helper()
	got, err := c.SetAppVariableWithResponse(c.d.t.Context(), "hello", name, nil, req)
	must(c.d.t, got, err, http.StatusOK)
	return got.JSON200
}

// variables shows every variable of hello in a line.
func (c caller) variables() []string {
	c.d.t.Helper()
	got, err := c.ListAppVariablesWithResponse(c.d.t.Context(), "hello", nil)
	must(c.d.t, got, err, http.StatusOK)
	var all []string
	for _, v := range got.JSON200.Items {
		all = append(all, shownVariable(v))
	}
	return all
}

func shownVariable(v ctlapi.AppVariable) string {
	line := fmt.Sprintf("%s v%d by %s", v.Name, v.Version, v.UpdatedBy)
	if v.Sensitive {
		line += " sensitive"
	}
	if v.Value != nil {
		line += " = " + *v.Value
	}
	for _, r := range v.ReadBy {
		line += " " + string(r.Kind) + "/" + r.Name
	}
	return line
}

func TestAppVariables(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := hello()
	for name, text := range readsVariables() {
		folder = with(folder, name, text)
	}
	c.released("hello", folder)
	made, err := c.CreateInstallWithResponse(t.Context(), nil, acme())
	must(t, made, err, http.StatusCreated)

	token := c.setVariable("token", ctlapi.AppVariableRequest{Value: canary})
	if got, want := shownVariable(*token), "token v1 by admin sensitive component/api action/look"; got != want {
		t.Errorf("set answered %q, want %q", got, want)
	}
	c.setVariable("region", ctlapi.AppVariableRequest{Value: "eu-central", Sensitive: new(false)})
	c.setVariable("Unread_1", ctlapi.AppVariableRequest{Value: "", Sensitive: new(false)})
	audits := d.count(`select count(*) from chain_records`)
	for _, req := range []ctlapi.AppVariableRequest{{Value: canary}, {Value: canary, Sensitive: new(true)}} {
		if again := c.setVariable("token", req); again.Version != 1 { // the same value changes nothing
			t.Errorf("set to the same value is version %d", again.Version)
		}
	}
	if n := d.count(`select count(*) from chain_records`); n != audits {
		t.Error("a change that changes nothing is in the chain")
	}
	want := []string{
		"Unread_1 v3 by admin action/look",
		"region v2 by admin component/api action/look",
		"token v1 by admin sensitive component/api action/look",
	}
	if diff := cmp.Diff(want, c.variables()); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
	paged, err := c.ListAppVariablesWithResponse(t.Context(), "hello", &ctlapi.ListAppVariablesParams{Limit: new(1), After: new("Unread_1")})
	must(t, paged, err, http.StatusOK)
	if p := paged.JSON200; len(p.Items) != 1 || p.Items[0].Name != "region" || p.Next != "region" {
		t.Errorf("second page: %s", paged.Body)
	}
	for name, want := range map[string]string{
		"region":   "region v2 by admin = eu-central component/api action/look",
		"Unread_1": "Unread_1 v3 by admin =  action/look",
		"token":    "token v1 by admin sensitive component/api action/look",
	} {
		got, err := c.GetAppVariableWithResponse(t.Context(), "hello", name)
		must(t, got, err, http.StatusOK)
		if shown := shownVariable(*got.JSON200); shown != want {
			t.Errorf("get %s answered %q, want %q", name, shown, want)
		}
	}

	// What becomes plain or sensitive does so at once, in the row too.
	c.setVariable("region", ctlapi.AppVariableRequest{Value: "eu-central"})
	if n := d.count(`select count(*) from app_variables where name = 'region' and value is null and sealed is not null`); n != 1 {
		t.Error("a variable that became sensitive is still stored in clear")
	}
	gone, err := c.DeleteAppVariableWithResponse(t.Context(), "hello", "region", nil)
	must(t, gone, err, http.StatusOK)
	if got, want := shownVariable(*gone.JSON200), "region v5 by admin sensitive component/api action/look"; got != want {
		t.Errorf("delete answered %q, want %q", got, want)
	}
	again, err := c.DeleteAppVariableWithResponse(t.Context(), "hello", "region", nil)
	problemOf(t, again, err, http.StatusNotFound, "not_found")
	missing, err := c.GetAppVariableWithResponse(t.Context(), "hello", "region")
	problemOf(t, missing, err, http.StatusNotFound, "not_found")

	if n := d.count(`select count(*) from river_ctl.river_job where kind = 'install_advance' and args->>'install_id' = $1`, made.JSON201.ID); n < 5 {
		t.Errorf("the install was woken %d times, want once for each of 5 changes", n)
	}
	var chain bytes.Buffer
	rows, err := d.db.Admin().Query(t.Context(), `select convert_from(body, 'utf8') from chain_records order by seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatal(err)
		}
		chain.WriteString(line + "\n")
	}
	for _, what := range []string{
		"set sensitive variable token of app hello: version 1", "set plain variable region of app hello: version 2",
		"delete variable region of app hello: version 5",
	} {
		if !strings.Contains(chain.String(), what) {
			t.Errorf("the chain does not say %q", what)
		}
	}
	d.nowhere(canary)
}

// nowhere looks for a secret in every row of every table.
func (d *door) nowhere(secret string) {
	d.t.Helper()
	rows, err := d.db.Admin().Query(d.t.Context(), `select format('%I.%I', n.nspname, c.relname) from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where c.relkind in ('r', 'm') and n.nspname in ('berth', 'river_ctl', 'river_builder')`)
	if err != nil {
		d.t.Fatal(err)
	}
	var tables []string
	for rows.Next() {
		var table string
		if err := rows.Scan(&table); err != nil {
			d.t.Fatal(err)
		}
		tables = append(tables, table)
	}
	if len(tables) < 40 {
		d.t.Errorf("only %d tables: %v", len(tables), tables)
	}
	for _, table := range tables {
		n := d.count(`select count(*) from `+table+` x where x::text like '%' || $1 || '%'
			or x::text like '%' || encode(convert_to($1, 'utf8'), 'hex') || '%'`, secret) // bytea is shown in hex
		if n != 0 {
			d.t.Errorf("%q is in %d rows of %s", secret, n, table)
		}
	}
}

func TestAppVariablesRefuse(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	long := strings.Repeat("é", 32<<10) + canary // fewer letters than bytes
	tests := []struct {
		name, app, variable, body string
		status                    int
		code                      string
	}{
		{"no such app", "other", "x", `{"value":"` + canary + `"}`, 404, "not_found"},
		{"a dash, which a template does not reach", "hello", "a-b", `{"value":"` + canary + `"}`, 422, "variable_invalid"},
		{"a dot", "hello", "a.b", `{"value":"` + canary + `"}`, 422, "variable_invalid"},
		{"a digit first", "hello", "1a", `{"value":"` + canary + `"}`, 422, "variable_invalid"},
		{"a letter beyond ASCII", "hello", "%C3%A4", `{"value":"` + canary + `"}`, 422, "variable_invalid"},
		{"a line break at the end", "hello", "a%0A", `{"value":"` + canary + `"}`, 422, "variable_invalid"},
		{"too long a name", "hello", strings.Repeat("a", 129), `{"value":"` + canary + `"}`, 422, "invalid"},
		{"too many letters", "hello", "x", `{"value":"` + strings.Repeat("a", 65<<10) + canary + `"}`, 422, "invalid"},
		{"too many bytes", "hello", "x", `{"value":"` + long + `"}`, 422, "variable_invalid"},
		{"a zero byte", "hello", "x", `{"value":"\u0000` + canary + `"}`, 422, "not_text"},
		{"no value", "hello", "x", `{"sensitive":true}`, 422, "invalid"},
		{"not a text", "hello", "x", `{"value":["` + canary + `"]}`, 422, "invalid"},
		{"something else next to it", "hello", "x", `{"value":"x","` + "secret" + `":"` + canary + `"}`, 422, "invalid"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, _, body := c.raw(http.MethodPut, "/apps/"+tt.app+"/variables/"+tt.variable, tt.body)
			var p ctlapi.Problem
			if err := json.Unmarshal(body, &p); err != nil || status != tt.status || p.Code != tt.code {
				t.Errorf("answered %d %q, want %d %q: %s", status, p.Code, tt.status, tt.code, body)
			}
			if bytes.Contains(body, []byte(canary)) {
				t.Errorf("the error shows the value: %s", body)
			}
		})
	}
	if n := d.count(`select count(*) from app_variables`); n != 0 {
		t.Errorf("refused requests left %d rows", n)
	}

	full := strings.Repeat("a", 64<<10) // the longest is taken, and a few of them
	for i := range 7 {
		c.setVariable(fmt.Sprintf("v%d", i), ctlapi.AppVariableRequest{Value: full})
	}
	over, err := c.SetAppVariableWithResponse(t.Context(), "hello", "v8", nil, ctlapi.AppVariableRequest{Value: full})
	p := problemOf(t, over, err, http.StatusConflict, "too_many_variables")
	if p.Remedy == nil {
		t.Errorf("no remedy: %s", over.Body)
	}
	c.setVariable("v6", ctlapi.AppVariableRequest{Value: full}) // what is there may be set all the same
}

// Changes of one app's variables go one after the other: of several that say the
// same at once the first makes the change, and the others find it.
func TestAppVariablesAtOnce(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			got, err := c.SetAppVariableWithResponse(t.Context(), "hello", "token", nil, ctlapi.AppVariableRequest{Value: canary})
			if err == nil && (got.JSON200 == nil || got.JSON200.Version != 1) {
				err = fmt.Errorf("answered %d: %s", got.StatusCode(), got.Body)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if n := d.count(`select count(*) from chain_records where convert_from(body, 'utf8') like '%variable token%'`); n != 1 {
		t.Errorf("%d changes are in the chain, want 1", n)
	}
}

// A stored secret is worth something under its own name only: somebody who can
// write rows cannot have it shown or used as another.
func TestAppVariablesAreBoundToTheirName(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	c.setVariable("token", ctlapi.AppVariableRequest{Value: canary})
	c.setVariable("motd", ctlapi.AppVariableRequest{Value: "anything"})
	if _, err := d.db.Admin().Exec(t.Context(), `update app_variables set sealed = (select sealed from app_variables where name = 'token') where name = 'motd'`); err != nil {
		t.Fatal(err)
	}
	status, _, body := c.raw(http.MethodPut, "/apps/hello/variables/motd", `{"value":"`+canary+`"}`)
	if status != http.StatusInternalServerError || bytes.Contains(body, []byte(canary)) {
		t.Errorf("answered %d: %s", status, body)
	}
}

func TestDeletedAppKeepsNoVariables(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	c.setVariable("token", ctlapi.AppVariableRequest{Value: canary})
	silent, err := c.DeleteAppWithResponse(t.Context(), "hello", nil)
	refused := problemOf(t, silent, err, http.StatusUnprocessableEntity, "not_confirmed")
	if goes := []string{(*refused.Errors)[0].Message, (*refused.Errors)[1].Message}; !slices.Equal(goes, []string{"configs up to 1", "variable token"}) {
		t.Errorf("what goes: %q", goes)
	}
	if n := d.count(`select count(*) from app_variables`); n != 1 {
		t.Fatalf("%d variables are left of an app whose deletion nobody confirmed, want 1", n)
	}
	got, err := c.DeleteAppWithResponse(t.Context(), "hello", &ctlapi.DeleteAppParams{Confirm: new("hello")})
	must(t, got, err, http.StatusNoContent)
	if n := d.count(`select count(*) from app_variables`); n != 0 {
		t.Errorf("%d variables are left of a deleted app", n)
	}
}

// Who is limited to one app sets the variables of that app alone, and who only
// reads sees no secret.
func TestAppVariablesOfLimitedMembers(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	c.sync("hello", hello())
	c.sync("other", hello())
	c.setVariable("token", ctlapi.AppVariableRequest{Value: canary})
	operator := c.member(ctlapi.MemberRequest{Name: "oda", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleOperator, App: new("other")})
	mine, err := operator.SetAppVariableWithResponse(t.Context(), "other", "token", nil, ctlapi.AppVariableRequest{Value: "x"})
	must(t, mine, err, http.StatusOK)
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		status, _, body := operator.raw(method, "/apps/hello/variables/token", `{"value":"x"}`)
		if status != http.StatusNotFound {
			t.Errorf("%s of a variable of another app answered %d: %s", method, status, body)
		}
	}
	viewer := c.member(ctlapi.MemberRequest{Name: "vic", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleViewer})
	for _, path := range []string{"/apps/hello/variables", "/apps/hello/variables/token"} {
		status, _, body := viewer.raw(http.MethodGet, path, "")
		if status != http.StatusOK || bytes.Contains(body, []byte(canary)) {
			t.Errorf("GET %s answered a viewer %d: %s", path, status, body)
		}
	}
	made, err := c.CreateCustomerWithResponse(t.Context(), nil, ctlapi.CustomerRequest{Name: "acme"})
	must(t, made, err, http.StatusCreated)
	customer := c.member(ctlapi.MemberRequest{Name: "cus", Kind: ctlapi.MemberRequestKindUser, Role: ctlapi.MemberRequestRoleCustomer, Customer: new("acme")})
	for _, path := range []string{"/apps/hello/variables", "/apps/hello/variables/token"} {
		if status, _, body := customer.raw(http.MethodGet, path, ""); status != http.StatusForbidden {
			t.Errorf("GET %s answered a customer %d, want 403: %s", path, status, body)
		}
	}
}

func TestSyncWarnsOfMissingVariables(t *testing.T) {
	t.Parallel()
	d := newDoor(t)
	c := d.org("initech")
	folder := hello()
	for name, text := range readsVariables() {
		folder = with(folder, name, text)
	}
	warnings := func(r *ctlapi.SyncResult) []string {
		all := []string{}
		for _, w := range r.Warnings {
			if strings.Contains(w.Message, "variable") {
				all = append(all, fmt.Sprintf("%s:%d %s: %s: %s", *w.File, *w.Line, w.Code, w.Message, *w.Remedy))
			}
		}
		return all
	}
	want := []string{
		`components/api.toml:7 reference: app variable "region" is not set: berth apps variables set hello region`,
		`components/api.toml:8 reference: app variable "token" is not set: berth apps variables set hello token`,
	}
	plan := func() *ctlapi.SyncResult {
		req := c.upload(folder)
		got, err := c.SyncAppWithResponse(t.Context(), "hello", &ctlapi.SyncAppParams{DryRun: new(true)}, req)
		must(t, got, err, http.StatusOK)
		return got.JSON200
	}
	if diff := cmp.Diff(want, warnings(plan())); diff != "" { // there is no app yet
		t.Errorf("warnings of the plan (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, warnings(c.sync("hello", folder))); diff != "" {
		t.Errorf("warnings of the sync (-want +got):\n%s", diff)
	}
	c.setVariable("region", ctlapi.AppVariableRequest{Value: "eu"})
	if diff := cmp.Diff(want[1:], warnings(plan())); diff != "" {
		t.Errorf("warnings with one set (-want +got):\n%s", diff)
	}
	c.setVariable("token", ctlapi.AppVariableRequest{Value: "t"})
	if diff := cmp.Diff([]string{}, warnings(c.sync("hello", folder))); diff != "" {
		t.Errorf("warnings with all set (-want +got):\n%s", diff)
	}
}
