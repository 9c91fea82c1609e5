package access

import "slices"

// Role is what a grant makes of an account.
type Role string

// The roles, from the most to the least.
const (
	RolePlatform Role = "platform" // makes orgs, nothing else
	RoleAdmin    Role = "admin"    // everything in the org
	RoleOperator Role = "operator" // everything but members and other people's tokens
	RoleViewer   Role = "viewer"   // reads
	RoleCustomer Role = "customer" // reads and decides, within one customer
)

// Permission is what a route asks for.
type Permission string

// The permissions. A route asks for exactly one.
const (
	PermitSelf       Permission = "self"       // anybody with a good token
	PermitRead       Permission = "read"       // see
	PermitDecide     Permission = "decide"     // approve and deny changes
	PermitOperate    Permission = "operate"    // change apps and installs, start workflows
	PermitAdminister Permission = "administer" // members, grants, tokens of others
	PermitPlatform   Permission = "platform"   // make orgs
)

var allows = map[Role][]Permission{
	RolePlatform: {PermitSelf, PermitPlatform},
	RoleAdmin:    {PermitSelf, PermitRead, PermitDecide, PermitOperate, PermitAdminister},
	RoleOperator: {PermitSelf, PermitRead, PermitDecide, PermitOperate},
	RoleViewer:   {PermitSelf, PermitRead},
	RoleCustomer: {PermitSelf, PermitRead, PermitDecide},
}

// Allows says whether the role includes the permission.
func (r Role) Allows(p Permission) bool { return slices.Contains(allows[r], p) }

// Grant is a role, everywhere in the org or only within one customer, app or
// install: at most one of the three is set.
type Grant struct {
	Role       Role
	CustomerID string
	AppID      string
	InstallID  string
}

func (g Grant) everywhere() bool { return g.CustomerID == "" && g.AppID == "" && g.InstallID == "" }

// Scope is where in the org somebody may do something.
type Scope struct {
	Everywhere bool
	Customers  []string
	Apps       []string
	Installs   []string
}

// Empty: nowhere.
func (s Scope) Empty() bool {
	return !s.Everywhere && len(s.Customers)+len(s.Apps)+len(s.Installs) == 0
}

// Location is where an object stands; fields that do not apply are empty.
type Location struct {
	CustomerID string
	AppID      string
	InstallID  string
}

// Includes says whether what stands at l is within the scope.
func (s Scope) Includes(l Location) bool {
	in := func(ids []string, id string) bool { return id != "" && slices.Contains(ids, id) }
	return s.Everywhere || in(s.Customers, l.CustomerID) || in(s.Apps, l.AppID) || in(s.Installs, l.InstallID)
}

// ScopeOf says where the grants give the permission.
func ScopeOf(grants []Grant, p Permission) Scope {
	var s Scope
	for _, g := range grants {
		switch {
		case !g.Role.Allows(p):
		case g.everywhere():
			return Scope{Everywhere: true}
		case g.CustomerID != "":
			s.Customers = append(s.Customers, g.CustomerID)
		case g.AppID != "":
			s.Apps = append(s.Apps, g.AppID)
		default:
			s.Installs = append(s.Installs, g.InstallID)
		}
	}
	return s
}
