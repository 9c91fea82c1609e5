package jobspec

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Version is the version of this contract that Spec.Version carries.
const Version = 1

// Kind says which engine works on a job.
type Kind string

// The kinds that the built-in engines know.
const (
	KindTerraformModule    Kind = "terraform_module"
	KindHelmChart          Kind = "helm_chart"
	KindKubernetesManifest Kind = "kubernetes_manifest"
	KindContainerImage     Kind = "container_image"
	KindAction             Kind = "action"
	// KindRelease is no work for an engine: the agent itself compares the scripts
	// of a release with those that it accepted before (plan), and accepts them
	// (apply). With Destroy it accepts none any more.
	KindRelease Kind = "release"
)

// OnCluster says whether jobs of the kind need a Kubernetes cluster.
func (k Kind) OnCluster() bool { return k == KindHelmChart || k == KindKubernetesManifest }

// Operation says what the engine does.
type Operation string

// The operations. A teardown is a plan and an apply with Destroy set.
const (
	OperationBuild Operation = "build" // make an artifact of a source
	OperationPlan  Operation = "plan"  // say what an apply would do; mutates nothing
	OperationApply Operation = "apply" // do what in/pinned holds
	OperationRun   Operation = "run"   // run a read-only action, or look whether objects are ready
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
	// Resource is what plan and apply are about. Absent for actions and builds.
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
	// Exactly one of these is set, by Kind.
	TerraformModule    *TerraformModule    `json:"terraform_module,omitempty"`
	HelmChart          *HelmChart          `json:"helm_chart,omitempty"`
	KubernetesManifest *KubernetesManifest `json:"kubernetes_manifest,omitempty"`
	ContainerImage     *ContainerImage     `json:"container_image,omitempty"`
	Action             *Action             `json:"action,omitempty"`
	Release            *Release            `json:"release,omitempty"`
	// Source is set for builds.
	Source *Source `json:"source,omitempty"`
	// State is what templates read: the value of `.nuon` (package interpolate).
	State        json.RawMessage `json:"state,omitempty"`
	StateVersion int             `json:"state_version,omitempty"`
	// InputsVersion is the version of the install's inputs in State.
	InputsVersion  int `json:"inputs_version,omitempty"`
	TimeoutSeconds int `json:"timeout_seconds"`
	// File is the file of the app folder that defines the sandbox or the component
	// that the job works on. It is for errors, as are the names of other files
	// below.
	File string `json:"file,omitempty"`
}

// Resource names a row of an install.
type Resource struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // sandbox or component
	Name string `json:"name"`
}

// Artifact names an artifact of the org's registry, by digest.
type Artifact struct {
	Repository string `json:"repository"` // "<org_id>/<app>/<component>"
	Digest     string `json:"digest"`     // "sha256:…", of the manifest
}

// TerraformModule is what the Terraform engine needs. Values of Vars are
// strings, booleans, numbers, lists or tables as in the app folder; strings may
// be templates.
type TerraformModule struct {
	// TerraformVersion is an exact version or a semver range; empty takes any.
	TerraformVersion string            `json:"terraform_version,omitempty"`
	Vars             map[string]any    `json:"vars,omitempty"`
	EnvVars          map[string]string `json:"env_vars,omitempty"`
	VarFiles         []string          `json:"var_files,omitempty"` // contents, templates
	// VarFileNames says where each of VarFiles stands in the app folder, "" for
	// one that stands in File.
	VarFileNames []string `json:"var_file_names,omitempty"`
	// InstallVars are variables as HCL or JSON, a template: the install's own, which
	// win over all others. The module must declare them.
	InstallVars string `json:"install_vars,omitempty"`
}

// HelmChart is what the Helm engine needs. The chart itself is the artifact,
// its dependencies inside.
type HelmChart struct {
	// ReleaseName is chart_name of the app folder.
	ReleaseName string `json:"release_name"`
	// Namespace is a template; empty means the id of the install.
	Namespace string `json:"namespace,omitempty"`
	// CreateNamespace makes the namespace when it is not there.
	CreateNamespace bool `json:"create_namespace,omitempty"`
	// StorageDriver is where Helm keeps its releases: "configmap" or "secret".
	StorageDriver string `json:"storage_driver"`
	// Values are paths as `helm --set` takes them, with templates as values.
	Values map[string]string `json:"values,omitempty"`
	// ValuesFiles are contents, templates; later ones win, Values over all.
	ValuesFiles []string `json:"values_files,omitempty"`
	// ValuesFileNames says where each of them stands in the app folder, "" for one
	// that stands in File.
	ValuesFileNames []string `json:"values_file_names,omitempty"`
	// InstallValues are values as YAML, a template: the install's own, which win
	// over all others.
	InstallValues string `json:"install_values,omitempty"`
	// TakeOwnership adopts objects that are there and belong to no release.
	TakeOwnership bool `json:"take_ownership,omitempty"`
}

// KubernetesManifest is what the manifest engine needs. The artifact holds
// manifest.yaml, a template of one or more objects.
type KubernetesManifest struct {
	// Namespace is a template; it is the one of objects that name none.
	Namespace string `json:"namespace"`
	// CreateNamespace makes the namespace when it is not there.
	CreateNamespace bool `json:"create_namespace,omitempty"`
	// ManifestName is the file of the app folder that the manifest stands in, ""
	// when it stands in File.
	ManifestName string `json:"manifest_name,omitempty"`
}

// ContainerImage is what is known about an image in addition to its artifact.
type ContainerImage struct {
	// Tag is the one that the build resolved, for people.
	Tag string `json:"tag,omitempty"`
}

// Action is a script or several, run one after the other.
type Action struct {
	Name  string       `json:"name"`
	Steps []ActionStep `json:"steps"`
	// Inputs are given at run time and reach the scripts as environment.
	Inputs map[string]string `json:"inputs,omitempty"`
	// ReadOnly marks a check: it may run without a decision.
	ReadOnly bool `json:"read_only,omitempty"`
	// File is the file of the app folder that defines the action, for errors.
	File string `json:"file,omitempty"`
}

// ActionStep is one script. InlineContents or Command is set.
type ActionStep struct {
	Name           string            `json:"name"`
	InlineContents string            `json:"inline_contents,omitempty"`
	ScriptName     string            `json:"script_name,omitempty"` // the file of inline_contents
	Command        string            `json:"command,omitempty"`
	EnvVars        map[string]string `json:"env_vars,omitempty"`
	// NoKubeConfig keeps the cluster's credentials from the script.
	NoKubeConfig bool `json:"no_kube_config,omitempty"`
}

// Source is what a build is made from: an archive in the org's registry, which
// the agent unpacks to in/source, a git commit, which the engine fetches itself,
// or an image, which the engine copies.
type Source struct {
	Kind      string    `json:"kind"` // "archive", "git" or "image"
	Archive   *Artifact `json:"archive,omitempty"`
	Repo      string    `json:"repo,omitempty"`
	Ref       string    `json:"ref,omitempty"`    // as written by the vendor
	Commit    string    `json:"commit,omitempty"` // 40 hex digits, resolved by builder
	Directory string    `json:"directory,omitempty"`
	// Image and ImageDigest are of an image: "host/name" and what builder found
	// behind Ref, its tag.
	Image       string `json:"image,omitempty"`
	ImageDigest string `json:"image_digest,omitempty"`
	// Push is where the agent pushes out/artifact to.
	Push string `json:"push"` // repository
}

// Timeout is how long the engine may take.
func (s Spec) Timeout() time.Duration { return time.Duration(s.TimeoutSeconds) * time.Second }

// Mutates says whether the job may change something in the customer's account,
// so that it needs a fence, a capsule and records in the chain.
func (s Spec) Mutates() bool { return s.Operation == OperationApply }

// Validate reports everything that makes s unfit to be worked on.
func (s Spec) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if s.Version != Version {
		fail("version is %d, this runner knows %d", s.Version, Version)
	}
	if s.JobID == "" || s.OrgID == "" {
		fail("job_id and org_id are required")
	}
	if s.TimeoutSeconds <= 0 {
		fail("timeout_seconds must be positive")
	}
	switch s.Kind {
	case KindTerraformModule:
		if s.TerraformModule == nil && s.Operation != OperationBuild {
			fail("kind %s needs terraform_module", s.Kind)
		}
	case KindHelmChart:
		if s.HelmChart == nil && s.Operation != OperationBuild {
			fail("kind %s needs helm_chart", s.Kind)
		}
	case KindKubernetesManifest:
		if s.KubernetesManifest == nil && s.Operation != OperationBuild {
			fail("kind %s needs kubernetes_manifest", s.Kind)
		}
	case KindContainerImage:
		if s.ContainerImage == nil && s.Operation != OperationBuild {
			fail("kind %s needs container_image", s.Kind)
		}
	case KindAction:
		if s.Action == nil || len(s.Action.Steps) == 0 {
			fail("kind %s needs action with steps", s.Kind)
		}
	case KindRelease:
		s.validateRelease(fail)
	default:
		fail("kind %q is not known", s.Kind)
	}
	if s.overridden() && (s.Resource == nil || s.Resource.Kind != "component") {
		fail("install_vars and install_values are only for a component of an install")
	}
	switch s.Operation {
	case OperationBuild:
		if s.Source == nil || s.Source.Push == "" || s.BuildID == "" {
			fail("a build needs build_id, source and where to push")
		}
	case OperationPlan, OperationApply:
		if s.ChangeID == "" || s.InstallID == "" {
			fail("operation %s needs change_id and install_id", s.Operation)
		}
		if s.Kind != KindAction && s.Kind != KindRelease && (s.Resource == nil || s.Artifact == nil) {
			fail("operation %s needs resource and artifact", s.Operation)
		}
		if s.Operation == OperationApply && s.Pinned == "" {
			fail("an apply needs what its plan pinned")
		}
	case OperationRun:
		switch {
		case s.Kind.OnCluster() && s.Resource == nil:
			fail("a probe needs the resource that it looks at")
		case !s.Kind.OnCluster() && (s.Kind != KindAction || !s.Action.readOnly()):
			fail("only a read-only action runs without a plan")
		}
	default:
		fail("operation %q is not known", s.Operation)
	}
	return errors.Join(errs...)
}

// validateRelease checks what is special about accepting a release.
func (s Spec) validateRelease(fail func(string, ...any)) {
	switch {
	case s.Release == nil:
		fail("kind %s needs release", s.Kind)
	case s.Destroy && len(s.Release.Scripts) > 0:
		fail("what forgets all scripts brings none")
	case !s.Destroy && s.Release.ID == "":
		fail("kind %s needs the id of the release", s.Kind)
	}
	if s.Operation != OperationPlan && s.Operation != OperationApply {
		fail("a release is planned and applied, nothing else")
	}
}

// overridden says whether the install says something of its own.
func (s Spec) overridden() bool {
	return s.TerraformModule != nil && s.TerraformModule.InstallVars != "" || s.HelmChart != nil && s.HelmChart.InstallValues != ""
}

func (a *Action) readOnly() bool { return a != nil && a.ReadOnly }
