package appconfig

// Sandbox is sandbox.toml: the base infrastructure that components stand on.
//
// The digest tag of each field says whether a change of it needs a new build or
// only a new deploy; see [Component].
type Sandbox struct {
	At Place `toml:"-" json:"at" digest:"-"`

	Type             string            `toml:"type" json:"type" digest:"build"` // "terraform" when left out
	TerraformVersion string            `toml:"terraform_version" json:"terraform_version" digest:"build" rule:"required"`
	PublicRepo       *Repo             `toml:"public_repo" json:"public_repo,omitempty" digest:"build"`
	ConnectedRepo    *Repo             `toml:"connected_repo" json:"connected_repo,omitempty" digest:"build"`
	Berth            *SourceExtension  `toml:"berth" json:"berth,omitempty" digest:"build"`
	Vars             map[string]string `toml:"vars" json:"vars,omitempty" digest:"deploy" template:"true"`
	EnvVars          map[string]string `toml:"env_vars" json:"env_vars,omitempty" digest:"deploy" template:"true"`
	VarFiles         []VarFile         `toml:"var_file" json:"var_file,omitempty" digest:"deploy"`
	DriftSchedule    string            `toml:"drift_schedule" json:"drift_schedule,omitempty" digest:"deploy" template:"true"`
	SkipNoops        bool              `toml:"skip_noops" json:"skip_noops,omitempty" digest:"deploy"`
	OperationRoles   []OperationRole   `toml:"operation_roles" json:"operation_roles,omitempty" digest:"deploy"`
}

// SandboxTypeTerraform is the one sandbox engine of this version.
const SandboxTypeTerraform = "terraform"

// OperationRole names the identity for one operation.
type OperationRole struct {
	Operation string `toml:"operation" json:"operation" rule:"required"`
	Role      string `toml:"role" json:"role" rule:"required" template:"true"`
}

// BuildDigest is what the sandbox's build depends on: the keys tagged build,
// and the digest (or commit) of its resolved source.
func (s *Sandbox) BuildDigest(sourceDigest string) string {
	return digestOf("sandbox.build", s, includeTagged("build"), sourceDigest)
}

// DeployDigest covers every key that is not part of the build.
func (s *Sandbox) DeployDigest() string {
	return digestOf("sandbox.deploy", s, includeTagged("deploy"))
}

// Source says where the sandbox's Terraform stands; false when none is given.
func (s *Sandbox) Source() (Source, bool) {
	src, ok := sourceOf(s.PublicRepo, s.ConnectedRepo, s.Berth)
	src.Block = BlockSandbox
	return src, ok
}

func (s *Sandbox) check(c *checker) {
	if s.Type == "" {
		s.Type = SandboxTypeTerraform
	}
	c.oneOf(s.At.key("type"), s.Type, SandboxTypeTerraform)
	c.source(s.At, s.PublicRepo, s.ConnectedRepo, s.Berth)
	c.terraformVersion(s.At.key("terraform_version"), s.TerraformVersion)
	c.cron(s.At.key("drift_schedule"), s.DriftSchedule)
	c.operations(s.At, s.OperationRoles, "provision", "reprovision", "deprovision")
}
