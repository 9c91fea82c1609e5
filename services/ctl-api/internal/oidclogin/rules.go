package oidclogin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-dev/berth/services/internal/auth"
)

// anyGroup stands for everybody whom the provider knows.
const anyGroup = "*"

// ranked are the roles that a group can give, from the most to the least.
var ranked = []auth.Role{auth.RoleAdmin, auth.RoleOperator, auth.RoleViewer}

// Rules say who gets which role.
type Rules struct {
	// Roles by group.
	Roles map[string]auth.Role
	// FirstAdmin is the address of who becomes admin while nobody else whom the provider
	// vouches for is one.
	FirstAdmin string
}

// ParseRoles reads "platform-admins=admin,devs=operator,*=viewer".
func ParseRoles(text string) (map[string]auth.Role, error) {
	roles := map[string]auth.Role{}
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		at := strings.LastIndex(entry, "=")
		if at <= 0 {
			return nil, fmt.Errorf("%q is not GROUP=ROLE", entry)
		}
		group, role := strings.TrimSpace(entry[:at]), auth.Role(strings.TrimSpace(entry[at+1:]))
		if !slices.Contains(ranked, role) {
			return nil, fmt.Errorf("%q is not a role that a group can give: admin, operator or viewer", role)
		}
		if _, twice := roles[group]; twice {
			return nil, fmt.Errorf("the group %q is there twice", group)
		}
		roles[group] = role
	}
	return roles, nil
}

// Person is what the provider says of somebody, verified.
type Person struct {
	Issuer, Subject string
	// Email is empty unless the provider has verified it.
	Email  string
	Name   string // preferred_username
	Groups []string
}

// RoleOf is the highest role that the groups of a person give; "" for none.
func (r Rules) RoleOf(p Person, otherAdmins int) auth.Role {
	if r.FirstAdmin != "" && p.Email != "" && strings.EqualFold(p.Email, r.FirstAdmin) && otherAdmins == 0 {
		return auth.RoleAdmin
	}
	for _, role := range ranked {
		for _, group := range append([]string{anyGroup}, p.Groups...) {
			if r.Roles[group] == role {
				return role
			}
		}
	}
	return ""
}

// Groups are those that give a role, in order, for the page that refuses somebody.
func (r Rules) Groups() []string { return slices.Sorted(maps.Keys(r.Roles)) }

// maxName is how long the name of an account may be.
const maxName = 128

// AccountName is what a person's account is called: by address, else by user name.
func (p Person) AccountName() string {
	for _, name := range []string{p.Email, p.Name, p.Subject} {
		name = strings.Map(func(r rune) rune {
			if r <= ' ' || r == 0x7f {
				return -1
			}
			return r
		}, strings.ToValidUTF8(name, ""))
		if name != "" {
			return strings.ToValidUTF8(name[:min(len(name), maxName-8)], "")
		}
	}
	return "somebody"
}
