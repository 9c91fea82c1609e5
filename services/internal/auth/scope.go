package auth

import "slices"

// Scope is where in the org somebody may do something.
type Scope struct {
	Everywhere bool
	Customers  []string
	Apps       []string
	Installs   []string
}

// Empty says that it reaches nothing.
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

// Scope says where the principal has a permission.
func (p Principal) Scope(permission Permission) Scope { return scopeOf(p.GrantsOf(permission)) }

// Includes says whether the grant reaches what stands at l.
func (g Grant) Includes(l Location) bool { return scopeOf([]Grant{g}).Includes(l) }

func scopeOf(grants []Grant) Scope {
	var s Scope
	for _, g := range grants {
		switch {
		case g.Everywhere():
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
