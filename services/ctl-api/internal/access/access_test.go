package access_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
	"github.com/berth-dev/berth/services/internal/auth"
)

// Every operation of the contract has a row, and every row an operation, whose
// path has the object that it is bound to.
func TestRoutesFitTheContract(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	if err := access.Permissions().Check(spec); err != nil {
		t.Error(err)
	}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			route := access.Routes[op.OperationID]
			if p := route.Where.ParamOf(); p != "" && !strings.Contains(path, "{"+p+"}") {
				t.Errorf("%s is bound to %q, which is not in its path %s", op.OperationID, p, path)
			}
			if reads := strings.HasSuffix(string(route.Permission), ":read"); reads != (method == "GET") && route.Permission != auth.Self {
				t.Errorf("%s is a %s and asks for %s", op.OperationID, method, route.Permission)
			}
		}
	}
}

func TestScopeOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		grants []auth.Grant
		permit auth.Permission
		want   access.Scope
	}{
		{name: "nobody may anything", permit: auth.Self},
		{name: "a viewer reads everywhere", grants: []auth.Grant{{Role: auth.RoleViewer}}, permit: auth.InstallsRead, want: access.Scope{Everywhere: true}},
		{name: "a viewer changes nothing", grants: []auth.Grant{{Role: auth.RoleViewer}}, permit: auth.InstallsWrite},
		{
			name:   "a customer decides within the customer",
			grants: []auth.Grant{{Role: auth.RoleCustomer, CustomerID: "cus_1"}}, permit: auth.ChangesDecide,
			want: access.Scope{Customers: []string{"cus_1"}},
		},
		{
			name: "scopes add up, and those of other roles do not count",
			grants: []auth.Grant{
				{Role: auth.RoleOperator, AppID: "app_1"}, {Role: auth.RoleOperator, InstallID: "ins_1"}, {Role: auth.RoleViewer, AppID: "app_2"},
			},
			permit: auth.InstallsWrite,
			want:   access.Scope{Apps: []string{"app_1"}, Installs: []string{"ins_1"}},
		},
		{
			name:   "everywhere beats a scope",
			grants: []auth.Grant{{Role: auth.RoleOperator, AppID: "app_1"}, {Role: auth.RoleAdmin}}, permit: auth.InstallsWrite,
			want: access.Scope{Everywhere: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := access.ScopeOf(auth.Principal{Kind: auth.KindUser, Grants: tt.grants}, tt.permit)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("ScopeOf (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScopeIncludes(t *testing.T) {
	t.Parallel()
	at := access.Location{CustomerID: "cus_1", AppID: "app_1", InstallID: "ins_1"}
	tests := []struct {
		name  string
		scope access.Scope
		at    access.Location
		want  bool
	}{
		{name: "nowhere", at: at},
		{name: "everywhere", scope: access.Scope{Everywhere: true}, at: at, want: true},
		{name: "by customer", scope: access.Scope{Customers: []string{"cus_1"}}, at: at, want: true},
		{name: "by app", scope: access.Scope{Apps: []string{"app_1"}}, at: at, want: true},
		{name: "by install", scope: access.Scope{Installs: []string{"ins_1"}}, at: at, want: true},
		{name: "elsewhere", scope: access.Scope{Customers: []string{"cus_2"}, Apps: []string{"app_2"}, Installs: []string{"ins_2"}}, at: at},
		{name: "an empty id is nowhere", scope: access.Scope{Customers: []string{""}}, at: access.Location{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := tt.scope.Includes(tt.at); got != tt.want {
				t.Errorf("Includes = %v, want %v", got, tt.want)
			}
		})
	}
}
