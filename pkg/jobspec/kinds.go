package jobspec

import (
	"slices"
	"strings"
)

// Kind says what a job works on, and with it which engine does.
type Kind string

// All kinds. Each has a row in Kinds.
const (
	KindTerraformModule    Kind = "terraform_module"
	KindHelmChart          Kind = "helm_chart"
	KindKubernetesManifest Kind = "kubernetes_manifest"
	KindContainerImage     Kind = "container_image"
	KindPulumi             Kind = "pulumi"
	KindAction             Kind = "action"
	// KindRelease compares the scripts of a release with those that the runner
	// accepted before (plan), and accepts them (apply). With Destroy it accepts none
	// any more.
	KindRelease Kind = "release"
	// KindRehearsal is the sandbox, a Terraform module, or what goes to a cluster that
	// is not there, of an install that is a rehearsal. It is a kind of its own so that a runner which does not know
	// rehearsals refuses the job instead of applying the module.
	KindRehearsal Kind = "rehearsal"
	// KindDockerBuild is an image that a build makes of a Dockerfile. From its plan on
	// it is what KindContainerImage is.
	KindDockerBuild Kind = "docker_build"
	// KindProbes looks at the objects of several components at once. A runner starts it by
	// its own schedule; no order can ask for it.
	KindProbes Kind = "probes"
	// KindScripts is a directory of a repository that steps of actions run in. It is
	// built, and brought to the actions that name it.
	KindScripts Kind = "scripts"
	// KindPlugin is a component whose type is a plugin's: the plugin is the artifact.
	KindPlugin Kind = "plugin"
	// KindSecretSync copies secrets that the customer keeps into the install's cluster.
	KindSecretSync Kind = "secret_sync"
	// KindRunnerUpdate has the runner run another version of itself.
	KindRunnerUpdate Kind = "runner_update"
)

// Kinds says what there is to know of each kind. Control plane, agent and engine
// decide by it; docs/contributing/component-type.md says how to add a row.
var Kinds = map[Kind]KindInfo{
	KindTerraformModule: {
		Component: true, Operations: []Operation{OperationBuild, OperationPlan, OperationApply, OperationDrift},
		Artifact: ArtifactFolder, HasState: true,
		given: func(s Spec) bool { return s.TerraformModule != nil },
	},
	KindHelmChart: {
		Component: true, Operations: []Operation{OperationBuild, OperationPlan, OperationApply, OperationRun, OperationDrift},
		Artifact: ArtifactFolder, OnCluster: true,
		given: func(s Spec) bool { return s.HelmChart != nil },
	},
	KindKubernetesManifest: {
		Component: true, Operations: []Operation{OperationBuild, OperationPlan, OperationApply, OperationRun, OperationDrift},
		Artifact: ArtifactFolder, Template: "manifest.yaml", OnCluster: true,
		given: func(s Spec) bool { return s.KubernetesManifest != nil },
	},
	KindContainerImage: { // its plan has the agent keep the image; nothing is left to apply
		Component: true, Operations: []Operation{OperationBuild, OperationPlan},
		Artifact: ArtifactImage,
		given:    func(s Spec) bool { return s.ContainerImage != nil },
	},
	KindPulumi: {
		Component: true, Operations: []Operation{OperationBuild, OperationPlan, OperationApply},
		Artifact: ArtifactFolder, HasState: true,
		given: func(s Spec) bool { return s.Pulumi != nil },
	},
	KindDockerBuild: { // the same, once it is built
		Component: true, Operations: []Operation{OperationBuild, OperationPlan},
		Artifact: ArtifactImage,
		given:    func(s Spec) bool { return s.DockerBuild != nil },
	},
	KindPlugin: {
		Component: true, Operations: []Operation{OperationBuild, OperationPlan, OperationApply},
		Artifact: ArtifactFolder,
		given:    func(s Spec) bool { return s.Plugin != nil },
	},
	KindAction: {
		Operations: []Operation{OperationPlan, OperationApply, OperationRun, OperationTick},
		given:      func(s Spec) bool { return s.Action != nil && len(s.Action.Steps) > 0 },
	},
	KindRehearsal: {
		Resource: true, Operations: []Operation{OperationPlan, OperationApply}, HasState: true,
		given: func(s Spec) bool { return s.TerraformModule != nil && s.Rehearsal != nil },
	},
	KindSecretSync: {
		Resource: true, Operations: []Operation{OperationPlan, OperationApply}, OnCluster: true, NoArtifact: true,
		given: func(s Spec) bool { return s.SecretSync != nil },
	},
	KindRelease: {
		Operations: []Operation{OperationPlan, OperationApply}, ByAgent: true,
		given: func(s Spec) bool { return s.Release != nil },
	},
	KindRunnerUpdate: {
		Operations: []Operation{OperationPlan, OperationApply}, ByAgent: true,
		given: func(s Spec) bool { return s.RunnerUpdate != nil },
	},
	KindProbes: {
		Operations: []Operation{OperationRun}, OnCluster: true,
		given: func(s Spec) bool { return len(s.Probes) > 0 },
	},
	KindScripts: {
		Operations: []Operation{OperationBuild}, Artifact: ArtifactFolder,
		given: func(Spec) bool { return false },
	},
}

// OfComponent is the kind of the jobs of a component type: one of ours, or that of
// plugins.
func OfComponent(componentType string) Kind {
	if kind := Kind(componentType); Kinds[kind].Component {
		return kind
	}
	return KindPlugin
}

// KindInfo is what there is to know of a kind. That of a kind that is not in
// Kinds is zero: nothing can be done with it.
type KindInfo struct {
	// Component: the kind is a type of component, under the same name. Its plan and
	// its apply are about a resource, and get the artifact of its build.
	Component bool
	// Resource: the kind is no type of component, and its plan and its apply are
	// about a resource all the same.
	Resource bool
	// NoArtifact: what the kind is about comes with the order, so that nothing is built for it.
	NoArtifact bool
	// Operations are what can be done with the kind. A runner refuses all others.
	Operations []Operation
	// Artifact is what a build leaves; "" where nothing is built.
	Artifact ArtifactForm
	// Template is the file of the artifact that is a template, "" when none is: the
	// agent opens the sealed values that it names.
	Template string
	// OnCluster: plan, apply and run need a Kubernetes cluster.
	OnCluster bool
	// HasState: the engine keeps a state with the control plane (by the protocol of
	// Terraform's HTTP backend), whose lineage and serial are part of the effect.
	HasState bool
	// ByAgent: the agent does the work itself, no engine is started.
	ByAgent bool

	// given says whether a spec has what the kind works from.
	given func(Spec) bool
}

// KeepsState says whether the job's resource has a state with the control plane:
// by its kind, because a plugin was granted one, or because a release of Helm is, or
// was, kept there.
func (s Spec) KeepsState() bool {
	return Kinds[s.Kind].HasState || s.KeepsPluginState() || s.KeepsReleases()
}

// KeepsReleases says whether the job works with release records that the control plane
// keeps. A probe does not.
func (s Spec) KeepsReleases() bool {
	if s.Kind != KindHelmChart || s.HelmChart == nil || s.Operation != OperationPlan && s.Operation != OperationApply {
		return false
	}
	return s.HelmChart.StorageDriver == StorageNuon || s.HelmChart.RecordsHeld
}

// KeepsPluginState says whether the job runs a plugin that was granted a state.
func (s Spec) KeepsPluginState() bool {
	return s.Kind == KindPlugin && s.Plugin != nil && s.Plugin.State && s.Resource != nil && s.Operation != OperationBuild
}

// Has says whether an operation can be done with the kind.
func (k KindInfo) Has(o Operation) bool { return slices.Contains(k.Operations, o) }

// Probe says whether runners check on their own schedule that live components of
// the kind are ready. The check is the kind's OperationRun.
func (k KindInfo) Probe() bool { return k.Component && k.Has(OperationRun) }

// Drifts says whether runners look on their own schedule how live components of the kind
// differ from what was deployed.
func (k KindInfo) Drifts() bool { return k.Has(OperationDrift) }

// ArtifactForm says what an artifact is to the agent.
type ArtifactForm string

// All forms of artifacts.
const (
	ArtifactFolder ArtifactForm = "folder" // packed from out/artifact, unpacked to in/artifact
	ArtifactImage  ArtifactForm = "image"  // an image as it is, kept for kubelets
)

// Work is what the engine of a component works from. At most one is set, by
// Kind; its name in JSON is that of the kind.
type Work struct {
	TerraformModule    *TerraformModule    `json:"terraform_module,omitempty"`
	HelmChart          *HelmChart          `json:"helm_chart,omitempty"`
	KubernetesManifest *KubernetesManifest `json:"kubernetes_manifest,omitempty"`
	ContainerImage     *ContainerImage     `json:"container_image,omitempty"`
	Pulumi             *Pulumi             `json:"pulumi,omitempty"`
	DockerBuild        *DockerBuild        `json:"docker_build,omitempty"`
	Plugin             *Plugin             `json:"plugin,omitempty"`
}

// Rehearsal is what the engine needs to rehearse a sandbox or a component. The
// stand-in is a Terraform module whatever it stands in for.
type Rehearsal struct {
	// StandIn never uses the module: it is that of a sandbox. Otherwise the module
	// is planned and applied as it is when none of its providers is a cloud.
	StandIn bool `json:"stand_in,omitempty"`
	// Why, when it is set, is why nothing of it can be planned: only the stand-in is.
	Why string `json:"why,omitempty"`
	// Chart or Manifest is rendered and checked for an install without a cluster. It
	// is the plan; only the stand-in is applied.
	Chart    *HelmChart          `json:"chart,omitempty"`
	Manifest *KubernetesManifest `json:"manifest,omitempty"`
	// Outputs are what the module would give, by name. They are no templates.
	Outputs map[string]any `json:"outputs,omitempty"`
	// MadeUp are the names of the outputs that are made up in part or whole.
	MadeUp []string `json:"made_up,omitempty"`
}

// TerraformModule is what the Terraform engine needs. Values of Vars are
// strings, booleans, numbers, lists or tables as in the app folder; strings may
// be templates.
type TerraformModule struct {
	// Tool is ToolTerraform or ToolOpenTofu: the module gets that one and never the
	// other. Empty takes the one that the runner's operator named.
	Tool string `json:"tool,omitempty"`
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
	// StorageDriver is where Helm keeps its releases: "configmap", "secret", or
	// StorageNuon.
	StorageDriver string `json:"storage_driver"`
	// RecordsHeld says that the control plane holds releases of the component,
	// whatever StorageDriver says now.
	RecordsHeld bool `json:"records_held,omitempty"`
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
	// CRDs says what is done with the CRDs of the chart's crds/: "" makes those that
	// are not there at the install, as Helm does, CRDsUpgrade and CRDsSkip are others.
	CRDs string `json:"crds,omitempty"`
	// MaxHistory is how many revisions of the release are kept; 0 means 10.
	MaxHistory int `json:"max_history,omitempty"`
	// Cluster is where it is deployed; nil for the sandbox's own.
	Cluster *Cluster `json:"cluster,omitempty"`
	// Atomic puts back what an upgrade changed when it fails.
	Atomic bool `json:"atomic,omitempty"`
}

// StorageNuon is the storage driver with which the control plane keeps the releases,
// sealed.
const StorageNuon = "nuon"

// What is done with CRDs of a chart's crds/ other than what Helm does.
const (
	CRDsUpgrade = "upgrade" // they become what the chart says, at each deploy
	CRDsSkip    = "skip"    // they are somebody else's
)

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
	// Cluster is where it is deployed; nil for the sandbox's own.
	Cluster *Cluster `json:"cluster,omitempty"`
}

// Pulumi is what the Pulumi engine needs. The program is the artifact.
type Pulumi struct {
	// Runtime is the language that the app folder names, "" for the one of the
	// program's Pulumi.yaml.
	Runtime string `json:"runtime,omitempty"`
	// Config is configuration of the program, "namespace:key" to value; a key without
	// a namespace is in that of the project. Values are templates.
	Config map[string]string `json:"config,omitempty"`
	// Secrets are the keys of Config whose values are secret. The agent sets them in
	// job.json: those whose templates read sealed values.
	Secrets []string `json:"secrets,omitempty"`
	// EnvVars are the environment of the program and its providers; templates.
	EnvVars map[string]string `json:"env_vars,omitempty"`
}

// ContainerImage is what is known about an image in addition to its artifact.
type ContainerImage struct {
	// Image is the name that the app gives it, "host/path", for the customer's rules.
	Image string `json:"image,omitempty"`
	// Tag is the one that the build resolved, for people.
	Tag string `json:"tag,omitempty"`
}

// DockerBuild is what is known about a built image in addition to its artifact.
type DockerBuild struct {
	// Commit is what it was built from, "" for an uploaded directory.
	Commit string `json:"commit,omitempty"`
}

// shortName is how many digits of a commit or a digest make a tag.
const shortName = 12

// ImageTag is the tag of the image that a plan is about. That of a built one is the
// beginning of its commit, or of its digest where there is none.
func (s Spec) ImageTag() string {
	switch {
	case s.ContainerImage != nil:
		return s.ContainerImage.Tag
	case s.DockerBuild != nil && len(s.DockerBuild.Commit) >= shortName:
		return s.DockerBuild.Commit[:shortName]
	case s.DockerBuild != nil && s.Artifact != nil:
		_, hex, _ := strings.Cut(s.Artifact.Digest, ":")
		return hex[:min(len(hex), shortName)]
	}
	return ""
}

// Plugin is what a plugin works from, and what it may do. All but Config is part
// of what a customer accepts before it runs.
type Plugin struct {
	// Type is the component's type, which the plugin's manifest must name too.
	Type string `json:"type"`
	// Signer is the public key that must have signed the plugin, in base64.
	Signer string `json:"signer"`
	// What follows is what the app grants it, see plugin.Permissions.
	Network    bool     `json:"network,omitempty"`
	Hosts      []string `json:"hosts,omitempty"`
	InstallDir bool     `json:"install_dir,omitempty"`
	Paths      []string `json:"paths,omitempty"`
	Roles      []string `json:"roles,omitempty"`
	State      bool     `json:"state,omitempty"`
	// Config are the component's own keys; strings in it may be templates.
	Config map[string]any `json:"config,omitempty"`
}

// Accepted is p without what differs from deploy to deploy: what a runner accepts.
func (p Plugin) Accepted() Plugin {
	p.Config = nil
	return p
}
