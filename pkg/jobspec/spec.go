package jobspec

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/berth-dev/berth/pkg/policy"
)

// Version is the version of this contract that Spec.Version carries.
const Version = 1

// Operation says what the engine does.
type Operation string

// The operations. A teardown is a plan and an apply with Destroy set.
const (
	OperationBuild Operation = "build" // make an artifact of a source
	OperationPlan  Operation = "plan"  // say what an apply would do; mutates nothing
	OperationApply Operation = "apply" // do what in/pinned holds
	OperationRun   Operation = "run"   // run a read-only action, or look whether objects are ready
	// OperationTick runs an action at a tick of its schedule. It may change something.
	// A runner starts it by itself; no order can ask for it.
	OperationTick Operation = "tick"
	// OperationDrift looks how what is live differs from what was deployed, and changes
	// nothing. A runner starts it by itself; no order can ask for it.
	OperationDrift Operation = "drift"
)

// Spec is what a runner is asked to do. Strings in it may be templates, which
// the engine renders with State; leaves of State may be sealed to the install
// ({"$sealed": …}, package seal), which the agent opens.
type Spec struct {
	Version   int       `json:"version"`
	JobID     string    `json:"job_id"`
	OrgID     string    `json:"org_id"`
	InstallID string    `json:"install_id,omitempty"` // empty for builds
	Kind      Kind      `json:"kind"`
	Operation Operation `json:"operation"`
	// Destroy makes plan and apply remove the resource.
	Destroy bool `json:"destroy,omitempty"`
	// ChangeID is set for plan and apply; BuildID for build.
	ChangeID string `json:"change_id,omitempty"`
	BuildID  string `json:"build_id,omitempty"`
	// Resource is what plan and apply are about. Absent for actions and builds; of an
	// ad-hoc script it is what nobody else changes while it runs.
	Resource *Resource `json:"resource,omitempty"`
	// Artifact is pulled into the install's own registry before a plan.
	Artifact *Artifact `json:"artifact,omitempty"`
	// Pinned names what the plan kept, for apply: the digest of the sealed blob
	// in the install's own registry.
	Pinned string `json:"pinned,omitempty"`
	// Continues is set for a plan that follows a change of uncertain outcome: the
	// id of that change. The agent gives what it pinned as in/previous/, if it
	// still has it.
	Continues string `json:"continues,omitempty"`
	// Fence is the one that an apply was granted. The agent sets it in job.json;
	// it is 0 in plans, and in what the control plane writes.
	Fence int64 `json:"fence,omitempty"`
	// DigestKey makes the digests of sensitive values in what plans and looks for drift
	// show. The agent sets it in job.json, whatever an order says.
	DigestKey DigestKey `json:"digest_key,omitempty"`
	// Exactly one is set, by Kind: a part of Work, Action, Release, SecretSync or
	// RunnerUpdate. A rehearsal has Rehearsal as well as the module in Work.
	Work
	Rehearsal  *Rehearsal  `json:"rehearsal,omitempty"`
	Action     *Action     `json:"action,omitempty"`
	Release    *Release    `json:"release,omitempty"`
	SecretSync *SecretSync `json:"secret_sync,omitempty"`

	RunnerUpdate *RunnerUpdate `json:"runner_update,omitempty"`
	// Probes are looked at together, by one engine; all are on the same cluster.
	Probes []Probe `json:"probes,omitempty"`
	// Drift is set for OperationDrift.
	Drift *DriftLook `json:"drift,omitempty"`
	// Source is set for builds.
	Source *Source `json:"source,omitempty"`
	// State is what templates read: the value of `.nuon` (package interpolate).
	State        json.RawMessage `json:"state,omitempty"`
	StateVersion int             `json:"state_version,omitempty"`
	// InputsVersion is the version of the install's inputs in State.
	InputsVersion  int `json:"inputs_version,omitempty"`
	TimeoutSeconds int `json:"timeout_seconds"`
	// Policies are the vendor's rules that a plan or a build is held against, only those
	// that look at what the job is about. For a plan their texts may be templates.
	Policies []policy.Rules `json:"policies,omitempty"`
	// ImageKeys are the public keys that the vendor's policies take signatures of an image
	// from, in PEM, or for the machine that built it as package capsule writes keys. They
	// count for no rule of the customer's.
	ImageKeys []string `json:"image_keys,omitempty"`
	// File is the file of the app folder that defines the sandbox or the component
	// that the job works on. It is for errors, as are the names of other files
	// below.
	File string `json:"file,omitempty"`
}

// Resource names a row of an install.
type Resource struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // sandbox, component or secrets
	Name string `json:"name"`
	// Reversal is what the app says that going back costs, empty for nothing. It counts
	// where it is worse than what the plan tells.
	Reversal ReversalClass `json:"reversal,omitempty"`
}

// Artifact names an artifact of the org's registry, by digest.
type Artifact struct {
	Repository string `json:"repository"` // "<org_id>/<app>/<component>"
	Digest     string `json:"digest"`     // "sha256:…", of the manifest
}

// Action is a script or several, run one after the other.
type Action struct {
	Name  string       `json:"name"`
	Steps []ActionStep `json:"steps"`
	// Image is the one that the steps run in, a template that gives a name with a
	// digest (package stepimage); "" where the engine itself runs.
	Image string `json:"image,omitempty"`
	// ImageDigest is what the release has of the component that Image names, "" for any
	// other image. A read-only action runs in no other.
	ImageDigest string `json:"image_digest,omitempty"`
	// Tools are the programs that the steps need (package steptool).
	Tools []string `json:"tools,omitempty"`
	// Inputs are given at run time and reach the scripts as environment.
	Inputs map[string]string `json:"inputs,omitempty"`
	// ReadOnly marks a check: it may run without a decision.
	ReadOnly bool `json:"read_only,omitempty"`
	// AdHoc marks a script that is part of no release: it is shown and decided on each
	// time, and no runner accepts it for good.
	AdHoc bool `json:"ad_hoc,omitempty"`
	// BreakGlassRole is the role of the app that the customer must have switched on, as
	// the app writes it; "" for none.
	BreakGlassRole string `json:"break_glass_role,omitempty"`
	// SwitchedOff is the id of the switch (package customerrole) by which that role went
	// off: a run that was started by it needs the role to be off. "" for any other run.
	SwitchedOff string `json:"switched_off,omitempty"`
	// Cluster is the one of the scripts' kubeconfig; nil for the sandbox's own.
	Cluster *Cluster `json:"cluster,omitempty"`
	// File is the file of the app folder that defines the action, for errors.
	File string `json:"file,omitempty"`
}

// PinnedAction is what the plan of an action pins, below pinned/: the rendered
// scripts and their image. The agent reads the image.
const PinnedAction = "action.json"

// ActionStep is one script. InlineContents or Command is set.
type ActionStep struct {
	Name           string            `json:"name"`
	InlineContents string            `json:"inline_contents,omitempty"`
	ScriptName     string            `json:"script_name,omitempty"` // the file of inline_contents
	Command        string            `json:"command,omitempty"`
	EnvVars        map[string]string `json:"env_vars,omitempty"`
	// NoKubeConfig keeps the cluster's credentials from the script.
	NoKubeConfig bool `json:"no_kube_config,omitempty"`
	// Artifact is the directory of a repository that Command runs in, as the release
	// pins it; nil for a step without a repository.
	Artifact *Artifact `json:"artifact,omitempty"`
}

// Folder is where the directory of a's scripts is below in/ of a job.
func (a Artifact) Folder() string { return "scripts/" + strings.TrimPrefix(a.Digest, "sha256:") }

// Source is what a build is made from: an archive in the org's registry, which
// the agent unpacks to in/source, a git commit, which the engine fetches itself,
// or an image, which the engine copies.
type Source struct {
	Kind    string    `json:"kind"` // "archive", "git", "image" or SourceCopied
	Archive *Artifact `json:"archive,omitempty"`
	// Repo, Ref, Commit and Directory of an archive, which is the directory alone,
	// say where it comes from, for errors; without a Repo from the app folder.
	Repo      string `json:"repo,omitempty"`
	Ref       string `json:"ref,omitempty"`    // as written by the vendor
	Commit    string `json:"commit,omitempty"` // 40 hex digits, resolved by builder
	Directory string `json:"directory,omitempty"`
	// Image and ImageDigest are of an image: "host/name" and what builder found
	// behind Ref, its tag.
	Image       string `json:"image,omitempty"`
	ImageDigest string `json:"image_digest,omitempty"`
	// ImageKey is a public key in PEM that must have signed the image, "" for none.
	ImageKey string `json:"image_key,omitempty"`
	// Copied is of SourceCopied: the image as it is in the org's registry, at Push.
	Copied *BuiltArtifact `json:"copied,omitempty"`
	// Chart is of an archive that holds one file, ChartFile: a packed chart of the
	// chart repository Repo, of which Ref is the range as written.
	Chart *Chart `json:"chart,omitempty"`
	// Kustomize says how to make a manifest of the source; nil for none.
	Kustomize *Kustomize `json:"kustomize,omitempty"`
	// Docker says how to build an image of the source; nil for none.
	Docker *Docker `json:"docker,omitempty"`
	// Cache is the repository of the org's registry that keeps what builds of the
	// image leave for each other; "" for none.
	Cache string `json:"cache,omitempty"`
	// Tool is what a Terraform module is for, ToolOpenTofu or another: it decides which
	// files are read.
	Tool string `json:"tool,omitempty"`
	// Pulumi says how a program is built of the source; nil for no wishes.
	Pulumi *PulumiBuild `json:"pulumi,omitempty"`
	// Modules are what an earlier build of the same source fetched, so that this one can
	// tell what moved; nil for none.
	Modules []Module `json:"modules,omitempty"`
	// Push is where the agent pushes out/artifact to.
	Push string `json:"push"` // repository
}

// SourceCopied is the kind of a source that is in the org's registry already, since builder
// has the key that opens it: an image of somebody else's, which is only held against policies.
const SourceCopied = "copied"

// JudgesOnly says whether a build makes nothing: its image was copied, and is to be held
// against policies.
func (s Spec) JudgesOnly() bool {
	return s.Operation == OperationBuild && s.Source != nil && s.Source.Kind == SourceCopied
}

// Module is a Terraform module that a build fetched from elsewhere and packed.
type Module struct {
	// Source and Wanted are as written where it is called: an address, and the versions
	// of a registry that will do.
	Source string `json:"source"`
	Wanted string `json:"wanted,omitempty"`
	// Version is a registry's.
	Version string `json:"version,omitempty"`
	// From is the address that was fetched, without a query; Commit of a git repository,
	// or Digest of an archive ("sha256:…") say what was there.
	From   string `json:"from"`
	Commit string `json:"commit,omitempty"`
	Digest string `json:"digest,omitempty"`
	// Moves: tomorrow the same words may lead to something else.
	Moves bool `json:"moves,omitempty"`
	// Before is the commit or digest that an earlier build of the same source found, when
	// it was another one.
	Before string `json:"before,omitempty"`
}

// Content is what exactly was fetched.
func (m Module) Content() string { return m.Commit + m.Digest }

// ChartFile is the file of a packed chart in the archive of a source.
const ChartFile = "chart.tgz"

// Chart is the exact chart of a repository that a build is made from.
type Chart struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Digest  string `json:"digest"` // of the packed chart, "sha256:…"
	// Before is the digest that the same version had in an earlier build of the
	// component, when that was another one.
	Before string `json:"before,omitempty"`
}

// Kustomize is what kustomize is asked for; its fields are those of the format.
type Kustomize struct {
	Path       string   `json:"path"`
	Patches    []string `json:"patches,omitempty"`
	EnableHelm bool     `json:"enable_helm,omitempty"`
	// LoadRestrictor is "rootOnly" or "none"; "" is the first.
	LoadRestrictor string `json:"load_restrictor,omitempty"`
}

// PulumiBuild is what a build of a program of Pulumi is asked for.
type PulumiBuild struct {
	// NpmScripts lets the packages of npm run their install scripts.
	NpmScripts bool `json:"npm_scripts,omitempty"`
}

// Docker is what BuildKit is asked for; its fields are those of the format. Paths
// are below the directory of the source.
type Docker struct {
	Dockerfile string            `json:"dockerfile"`
	Context    string            `json:"context,omitempty"`
	Target     string            `json:"target,omitempty"`
	Args       map[string]string `json:"args,omitempty"`
	EnvVars    map[string]string `json:"env_vars,omitempty"`
	Platforms  []string          `json:"platforms,omitempty"`
	// Network is NetworkNone for RUN steps without one; "" gives them what BuildKit has.
	Network string `json:"network,omitempty"`
	// Secrets are names. The agent puts their values into in/build/secrets.
	Secrets []string `json:"secrets,omitempty"`
}

// NetworkNone is the network of RUN steps that have none.
const NetworkNone = "none"

// Timeout is how long the engine may take.
func (s Spec) Timeout() time.Duration { return time.Duration(s.TimeoutSeconds) * time.Second }

// Mutates says whether the job may change something in the customer's account,
// so that it needs records in the chain and, unless it is the runner's own tick, a
// fence and a capsule.
func (s Spec) Mutates() bool { return s.Operation == OperationApply || s.Operation == OperationTick }
