package access_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-dev/berth/services/ctl-api/internal/access"
	"github.com/berth-dev/berth/services/ctl-api/internal/apigen"
)

// Every route of the contract has a row, and every row a route.
func TestRoutesMatchTheContract(t *testing.T) {
	t.Parallel()
	spec, err := apigen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for path, item := range spec.Paths.Map() {
		for method := range item.Operations() {
			want = append(want, method+" "+path)
		}
	}
	for _, r := range access.Routes {
		got = append(got, r.Method+" "+r.Path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("routes of openapi/ctl-api.yaml and of the table differ (-contract +table):\n%s", diff)
	}
}

// A route that is bound to an object has that object in its path.
func TestRoutesNameTheirObject(t *testing.T) {
	t.Parallel()
	for _, r := range access.Routes {
		if p := r.Where.ParamOf(); p != "" && !regexp.MustCompile(`\{`+p+`\}`).MatchString(r.Path) {
			t.Errorf("%s %s is bound to %q, which is not in its path", r.Method, r.Path, p)
		}
		if r.Method != "GET" && r.Permission == access.PermitRead {
			t.Errorf("%s %s changes something and asks only for read", r.Method, r.Path)
		}
	}
}

func TestScopeOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		grants []access.Grant
		permit access.Permission
		want   access.Scope
	}{
		{name: "nobody may anything", permit: access.PermitSelf},
		{name: "a viewer reads everywhere", grants: []access.Grant{{Role: access.RoleViewer}}, permit: access.PermitRead, want: access.Scope{Everywhere: true}},
		{name: "a viewer operates nowhere", grants: []access.Grant{{Role: access.RoleViewer}}, permit: access.PermitOperate},
		{name: "an operator does not administer", grants: []access.Grant{{Role: access.RoleOperator}}, permit: access.PermitAdminister},
		{name: "an admin does not make orgs", grants: []access.Grant{{Role: access.RoleAdmin}}, permit: access.PermitPlatform},
		{name: "platform alone does not even read", grants: []access.Grant{{Role: access.RolePlatform}}, permit: access.PermitRead},
		{
			name:   "a customer decides within the customer",
			grants: []access.Grant{{Role: access.RoleCustomer, CustomerID: "cus_1"}}, permit: access.PermitDecide,
			want: access.Scope{Customers: []string{"cus_1"}},
		},
		{
			name: "scopes add up, and those of other roles do not count",
			grants: []access.Grant{
				{Role: access.RoleOperator, AppID: "app_1"}, {Role: access.RoleOperator, InstallID: "ins_1"}, {Role: access.RoleViewer, AppID: "app_2"},
			},
			permit: access.PermitOperate,
			want:   access.Scope{Apps: []string{"app_1"}, Installs: []string{"ins_1"}},
		},
		{
			name:   "everywhere beats a scope",
			grants: []access.Grant{{Role: access.RoleOperator, AppID: "app_1"}, {Role: access.RoleAdmin}}, permit: access.PermitOperate,
			want: access.Scope{Everywhere: true},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, access.ScopeOf(tt.grants, tt.permit)); diff != "" {
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
		{name: "an empty id is not in an empty scope entry", scope: access.Scope{Customers: []string{""}}, at: access.Location{}},
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

func TestNewSecret(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^brt_[0-9A-Za-z]{43}$`)
	seen := map[string]bool{}
	for range 100 {
		secret, hash := access.NewSecret(access.TokenPrefix)
		if !form.MatchString(secret) || seen[secret] {
			t.Fatalf("secret %q is malformed or repeats", secret)
		}
		seen[secret] = true
		if diff := cmp.Diff(access.HashSecret(secret), hash); diff != "" || len(hash) != 32 {
			t.Fatalf("hash differs from HashSecret, or is not 32 bytes: %s", diff)
		}
	}
}
