package auth

import "slices"

// Permission is what an operation asks of its caller: exactly one.
type Permission string

// The permissions.
const (
	Public         Permission = "public" // no credential; the body proves itself
	Self           Permission = "self"   // anybody who is known
	OrgsCreate     Permission = "orgs:create"
	OrgRead        Permission = "org:read"
	MembersWrite   Permission = "members:write"
	TokensWrite    Permission = "tokens:write" // of other accounts; one's own are Self
	CustomersWrite Permission = "customers:write"
	AppsRead       Permission = "apps:read"
	AppsWrite      Permission = "apps:write"
	InstallsRead   Permission = "installs:read"
	InstallsWrite  Permission = "installs:write"
	WorkflowsWrite Permission = "workflows:write"
	ChangesDecide  Permission = "changes:decide"
	PoliciesWrite  Permission = "policies:write" // who has to approve changes
	FreezesLift    Permission = "freezes:lift"   // to remove or override one
	PoliciesLift   Permission = "policies:lift"  // to let a change pass that policies deny
	RunnersRead    Permission = "runners:read"
	RunnersWrite   Permission = "runners:write"
	WebhooksRead   Permission = "webhooks:read" // their addresses may be secrets
	WebhooksWrite  Permission = "webhooks:write"
	LogsRead       Permission = "logs:read"
	LogsWrite      Permission = "logs:write"
	JobsWork       Permission = "jobs:work"
)

// Role is what a grant makes of an account.
type Role string

// The roles that grants give, from the most to the least, and those that a
// kind of credential has by itself.
const (
	RolePlatform Role = "platform" // makes orgs, nothing else
	RoleAdmin    Role = "admin"    // everything in the org
	RoleOperator Role = "operator" // everything but members, other people's tokens, approval policies, and lifting freezes and denials
	RoleViewer   Role = "viewer"   // reads
	RoleCustomer Role = "customer" // reads and decides, within one customer
	RoleRunner   Role = "runner"   // works its own jobs
	RoleLog      Role = "log"      // appends to its own stream
)

var (
	reads    = []Permission{Self, OrgRead, AppsRead, InstallsRead, RunnersRead, LogsRead}
	operates = append(slices.Clone(reads), CustomersWrite, AppsWrite, InstallsWrite, WorkflowsWrite, ChangesDecide, RunnersWrite, WebhooksRead, WebhooksWrite)

	allowed = map[Role][]Permission{
		RolePlatform: {Self, OrgsCreate},
		RoleAdmin:    append(slices.Clone(operates), MembersWrite, TokensWrite, PoliciesWrite, FreezesLift, PoliciesLift),
		RoleOperator: operates,
		RoleViewer:   reads,
		RoleCustomer: {Self, InstallsRead, LogsRead, ChangesDecide},
		RoleRunner:   {Self, JobsWork},
		RoleLog:      {Self, LogsWrite},
	}

	roleOfKind = map[Kind]Role{KindRunner: RoleRunner, KindLog: RoleLog, KindSystem: RoleAdmin}
)

// Allows reports whether the role includes the permission.
func (r Role) Allows(p Permission) bool { return slices.Contains(allowed[r], p) }
