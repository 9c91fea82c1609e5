package appconfig

import (
	"github.com/berth-dev/berth/pkg/appconfig/digest"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// Sandbox is sandbox.toml: the base infrastructure that components build on.
//
// The digest tag of each field says whether a change of it needs a new build or
// only a new deploy; see [Component].
type Sandbox struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// The engine.
	Type string `toml:"type" json:"type" digest:"build" enum:"terraform,pulumi" default:"terraform"`
	// An exact version such as "1.11.4"; Berth also takes a range such as ">= 1.5.0, < 2.0.0". A sandbox of Terraform needs it.
	TerraformVersion string `toml:"terraform_version" json:"terraform_version" digest:"build"`
	// The language of a Pulumi program. It must be the one that its Pulumi.yaml names, which counts where this is not given.
	Runtime string `toml:"runtime" json:"runtime,omitempty" digest:"build"`
	// A repository that everybody can read; one source must be given.
	PublicRepo *Repo `toml:"public_repo" json:"public_repo,omitempty" digest:"build"`
	// A repository that the org's own connection reads.
	ConnectedRepo *Repo `toml:"connected_repo" json:"connected_repo,omitempty" digest:"build"`
	// A source in the app folder.
	Berth *BlockExtension `toml:"berth" json:"berth,omitempty" digest:"mixed"`
	// Variables of Terraform.
	Vars map[string]string `toml:"vars" json:"vars,omitempty" digest:"deploy" template:"true"`
	// Environment of the engine.
	EnvVars map[string]string `toml:"env_vars" json:"env_vars,omitempty" digest:"deploy" template:"true"`
	// Files of variables, each relative to the app folder; later files win.
	VarFiles []VarFile `toml:"var_file" json:"var_file,omitempty" digest:"deploy"`
	// Configuration of Pulumi, "namespace:key" to value; a key without a namespace is in that of the project.
	PulumiConfig map[string]string `toml:"pulumi_config" json:"pulumi_config,omitempty" digest:"deploy" template:"true"`
	// When to look for drift, with a plan that nobody applies; a cron of five fields, in UTC, 5 minutes apart at least. Every 6 hours without one.
	DriftSchedule string `toml:"drift_schedule" json:"drift_schedule,omitempty" digest:"deploy" template:"true"`
	// Skips the apply when the plan is empty. Berth always does, whatever it says.
	SkipNoops bool `toml:"skip_noops" json:"skip_noops,omitempty" digest:"deploy" default:"false"`
	// Identities for "provision", "reprovision" and "deprovision".
	OperationRoles []OperationRole `toml:"operation_roles" json:"operation_roles,omitempty" digest:"deploy"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty" digest:"build"`
}

// The engines of sandboxes.
const (
	SandboxTypeTerraform = "terraform"
	SandboxTypePulumi    = "pulumi"
)

// OperationRole names the identity for one operation.
type OperationRole struct {
	// The operation; which ones there are depends on the block.
	Operation string `toml:"operation" json:"operation" rule:"required"`
	// The role that the operation runs under.
	Role string `toml:"role" json:"role" rule:"required" template:"true"`
}

// BuildDigest is what the sandbox's build depends on: the keys tagged build,
// and the digest (or commit) of its resolved source.
func (s *Sandbox) BuildDigest(sourceDigest string) string {
	return digest.Of("sandbox.build", s, digest.Tagged("build"), sourceDigest)
}

// DeployDigest covers every key that is not part of the build.
func (s *Sandbox) DeployDigest() string {
	return digest.Of("sandbox.deploy", s, digest.Tagged("deploy"))
}

// Source says where the sandbox's Terraform stands; false when none is given.
func (s *Sandbox) Source() (Source, bool) {
	src, ok := sourceOf(s.PublicRepo, s.ConnectedRepo, s.Berth)
	src.Block = BlockSandbox
	return src, ok
}

// driftEvery is everyOf the sandbox.
func (s *Sandbox) driftEvery() string {
	if s.Type == SandboxTypePulumi {
		return everyOf(jobspec.KindPulumi)
	}
	return everyOf(jobspec.KindTerraformModule)
}

func (s *Sandbox) check(c *checker) {
	if s.Type == "" {
		s.Type = SandboxTypeTerraform
	}
	if s.Type == SandboxTypeTerraform && s.TerraformVersion == "" && s.SourceFile == "" && !c.Misspelt(s.At, "terraform_version", "type") {
		c.Diags = append(c.Diags, c.At(place.Error, place.CodeMissing, s.At, "terraform_version is missing").WithRemedy("for example terraform_version = %q", ">= 1.5.0, < 2.0.0"))
	}
	if s.Type == SandboxTypeTerraform && len(s.PulumiConfig) > 0 {
		c.Diags = append(c.Diags, c.At(place.Note, place.CodeValue, s.At.Below("pulumi_config"), "pulumi_config has no effect on a sandbox of type %q: it is for one of type %q", s.Type, SandboxTypePulumi).
			WithRemedy("write its values into vars, or set the type"))
	}
	c.source(s.At, s.SourceFile, s.sources())
	c.terraformVersion(s.At.Below("terraform_version"), s.TerraformVersion)
	c.drift(looks{s.At, s.DriftSchedule, s.Berth, s.driftEvery()})
	c.operations(s.At, s.OperationRoles, "provision", "reprovision", "deprovision")
	if s.Berth != nil {
		c.guardrails(s.At.Below("berth.guardrails"), s.Berth.Guardrails)
		c.noPlugin(s.At, s.Berth, false)
		c.noTool(s.At, s.Berth, s.Type == SandboxTypeTerraform)
		c.checkProbe(s.At, s.Berth, false)
		c.imageKey(s.At.Below("berth.image_key"), s.Berth.ImageKey, false)
	}
}
