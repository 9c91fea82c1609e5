package appconfig

import (
	"slices"
	"strings"

	"github.com/berth-dev/berth/pkg/appconfig/place"
)

// RoleType says what a role is for.
type RoleType string

const (
	RoleProvision   RoleType = "provision"   // makes and changes the install's base
	RoleMaintenance RoleType = "maintenance" // deploys and runs actions
	RoleDeprovision RoleType = "deprovision" // takes everything down
	RoleCustom      RoleType = "custom"      // named by operations and actions
	RoleBreakGlass  RoleType = "break_glass" // off until the customer switches it on
)

// PermissionsFile is permissions.toml: one table per role.
type PermissionsFile struct {
	// The role that makes and changes the install's base.
	Provision *Role `toml:"provision_role" json:"provision_role,omitempty"`
	// The role that deploys and runs actions.
	Maintenance *Role `toml:"maintenance_role" json:"maintenance_role,omitempty"`
	// The role that takes everything down.
	Deprovision *Role `toml:"deprovision_role" json:"deprovision_role,omitempty"`
	// Policies that roles name.
	NamedPolicies []RolePolicy `toml:"named_policies" json:"named_policies,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// BreakGlassFile is break_glass.toml: roles that only the customer can switch on.
type BreakGlassFile struct {
	// The roles.
	Roles []Role `toml:"role" json:"role,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// Role is an identity in the customer's account: a table of permissions.toml, a
// [[role]] of break_glass.toml, or one file below permissions/ or break_glass/.
type Role struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// What it is for. A file below permissions/ needs it; elsewhere the table says it.
	Type RoleType `toml:"type" json:"type" enum:"provision,maintenance,deprovision,custom,break_glass"`
	// The role's name in the account.
	Name string `toml:"name" json:"name" rule:"required" template:"true"`
	// Its name for people; `name` by default.
	DisplayName string `toml:"display_name" json:"display_name,omitempty" template:"true"`
	// What it may do, in a sentence.
	Description string `toml:"description" json:"description" rule:"required" template:"true"`
	// A policy document that bounds it; no bound when it is left out or empty.
	PermissionsBoundary *place.Text `toml:"permissions_boundary" json:"permissions_boundary,omitempty" template:"true"`
	// The cloud; the runner's by default.
	CloudPlatform string `toml:"cloud_platform" json:"cloud_platform,omitempty" enum:"aws,gcp,azure"`
	// What it may do.
	Policies []RolePolicy `toml:"policies" json:"policies,omitempty"`
	// Policies that are defined apart and attached by their names.
	NamedPolicies []NamedPolicy `toml:"named_policies" json:"named_policies,omitempty"`
	// Whether the stack makes the role unless the customer says otherwise; by default it does, but for a break-glass role.
	EnabledInStack *bool `toml:"enabled_in_stack" json:"enabled_in_stack,omitempty"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty"`
}

// NamedPolicy names a policy that is defined apart from the role.
type NamedPolicy struct {
	// The policy's name.
	Name string `toml:"name" json:"name" rule:"required" template:"true"`
}

// RolePolicy is one thing that a role may do, in the words of one cloud.
type RolePolicy struct {
	// AWS: a policy that AWS manages.
	ManagedPolicyName string `toml:"managed_policy_name" json:"managed_policy_name,omitempty" template:"true"`
	// The name of an inline policy.
	Name string `toml:"name" json:"name,omitempty" template:"true"`
	// AWS: an inline policy document, as text or a file.
	Contents *place.Text `toml:"contents" json:"contents,omitempty" template:"true"`
	// GCP: a predefined role.
	GCPPredefinedRole string `toml:"gcp_predefined_role" json:"gcp_predefined_role,omitempty" template:"true"`
	// GCP: permissions of a role of its own.
	GCPPermissions []string `toml:"gcp_permissions" json:"gcp_permissions,omitempty" template:"true"`
	// Azure: built-in roles.
	AzureBuiltInRoles []string `toml:"azure_built_in_roles" json:"azure_built_in_roles,omitempty" template:"true"`
	// Azure: actions of a role definition of its own.
	AzureActions []string `toml:"azure_actions" json:"azure_actions,omitempty" template:"true"`
}

// Platforms lists the clouds whose words the policy uses, and the keys.
func (p *RolePolicy) Platforms() (clouds, keys []string) {
	add := func(given bool, cloud, key string) {
		if !given {
			return
		}
		keys = append(keys, key)
		if !slices.Contains(clouds, cloud) {
			clouds = append(clouds, cloud)
		}
	}
	add(p.ManagedPolicyName != "", "aws", "managed_policy_name")
	add(p.Contents != nil, "aws", "contents")
	add(p.GCPPredefinedRole != "", "gcp", "gcp_predefined_role")
	add(len(p.GCPPermissions) > 0, "gcp", "gcp_permissions")
	add(len(p.AzureBuiltInRoles) > 0, "azure", "azure_built_in_roles")
	add(len(p.AzureActions) > 0, "azure", "azure_actions")
	return clouds, keys
}

func (r *Role) check(c *checker) {
	if len(r.Policies)+len(r.NamedPolicies) == 0 && r.SourceFile == "" && !c.Misspelt(r.At, "policies", "named_policies") {
		c.Diags = append(c.Diags, c.At(place.Warning, place.CodeMissing, r.At, "role %q has no policies, so it allows nothing", r.Name).
			WithRemedy("add [[policies]]"))
	}
	for i := range r.Policies {
		r.Policies[i].check(c, r, r.At.Below("policies").Item(i))
	}
}

func (p *RolePolicy) check(c *checker, r *Role, at place.Place) {
	clouds, keys := p.Platforms()
	switch {
	case len(keys) == 0:
		c.Diags = append(c.Diags, c.At(place.Warning, place.CodeMissing, at, "the policy of role %q allows nothing", r.Name).
			WithRemedy("give managed_policy_name, or name and contents, or the keys of another cloud"))
	case len(clouds) > 1 || p.ManagedPolicyName != "" && p.Contents != nil:
		c.Add(place.Error, place.CodeExclusive, at.Below(keys[1]), "one policy of role %q has %s; write one policy for each", r.Name, strings.Join(keys, " and "))
	case p.Contents != nil && p.Name == "" && !c.Misspelt(at, "name"):
		c.Add(place.Error, place.CodeMissing, at, "the policy of role %q has contents, so it needs a name", r.Name)
	}
}
