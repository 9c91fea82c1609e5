package auth_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/internal/auth"
)

func TestScope(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		grants []auth.Grant
		permit auth.Permission
		want   auth.Scope
	}{
		{name: "nobody may anything", permit: auth.Self},
		{name: "a viewer reads everywhere", grants: []auth.Grant{{Role: auth.RoleViewer}}, permit: auth.InstallsRead, want: auth.Scope{Everywhere: true}},
		{name: "a viewer changes nothing", grants: []auth.Grant{{Role: auth.RoleViewer}}, permit: auth.InstallsWrite},
		{
			name:   "a customer decides within the customer",
			grants: []auth.Grant{{Role: auth.RoleCustomer, CustomerID: "cus_1"}}, permit: auth.ChangesDecide,
			want: auth.Scope{Customers: []string{"cus_1"}},
		},
		{
			name: "scopes add up, and those of other roles do not count",
			grants: []auth.Grant{
				{Role: auth.RoleOperator, AppID: "app_1"}, {Role: auth.RoleOperator, InstallID: "ins_1"}, {Role: auth.RoleViewer, AppID: "app_2"},
			},
			permit: auth.InstallsWrite,
			want:   auth.Scope{Apps: []string{"app_1"}, Installs: []string{"ins_1"}},
		},
		{
			name:   "everywhere beats a scope",
			grants: []auth.Grant{{Role: auth.RoleOperator, AppID: "app_1"}, {Role: auth.RoleAdmin}}, permit: auth.InstallsWrite,
			want: auth.Scope{Everywhere: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := auth.Principal{Kind: auth.KindUser, Grants: tt.grants}.Scope(tt.permit)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Scope (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScopeIncludes(t *testing.T) {
	t.Parallel()
	at := auth.Location{CustomerID: "cus_1", AppID: "app_1", InstallID: "ins_1"}
	tests := []struct {
		name  string
		scope auth.Scope
		at    auth.Location
		want  bool
	}{
		{name: "nowhere", at: at},
		{name: "everywhere", scope: auth.Scope{Everywhere: true}, at: at, want: true},
		{name: "by customer", scope: auth.Scope{Customers: []string{"cus_1"}}, at: at, want: true},
		{name: "by app", scope: auth.Scope{Apps: []string{"app_1"}}, at: at, want: true},
		{name: "by install", scope: auth.Scope{Installs: []string{"ins_1"}}, at: at, want: true},
		{name: "elsewhere", scope: auth.Scope{Customers: []string{"cus_2"}, Apps: []string{"app_2"}, Installs: []string{"ins_2"}}, at: at},
		{name: "an empty id is nowhere", scope: auth.Scope{Customers: []string{""}}, at: auth.Location{}},
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
