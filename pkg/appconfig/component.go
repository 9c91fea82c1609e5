package appconfig

import (
	"slices"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig/digest"
	"github.com/berth-dev/berth/pkg/appconfig/place"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// ComponentType says which engine deploys a component.
type ComponentType string

// The component types of the language. Any other name is that of a plugin.
const (
	TypeContainerImage     ComponentType = "container_image"
	TypeDockerBuild        ComponentType = "docker_build"
	TypeTerraformModule    ComponentType = "terraform_module"
	TypeHelmChart          ComponentType = "helm_chart"
	TypeKubernetesManifest ComponentType = "kubernetes_manifest"
	TypePulumi             ComponentType = "pulumi"
	TypeJob                ComponentType = "job"

	// typeExternalImage is another name of TypeContainerImage.
	TypeExternalImage ComponentType = "external_image"
)

// componentTypes has a row for each component type, older names too.
var componentTypes = []componentType{
	{name: TypeTerraformModule, rank: 2, document: "terraform", block: func(c *Component) any { c.TerraformModule = &TerraformModule{}; return c.TerraformModule }},
	{name: TypeHelmChart, rank: 3, document: "helm", block: func(c *Component) any { c.HelmChart = &HelmChart{}; return c.HelmChart }},
	{name: TypeKubernetesManifest, rank: pluginRank, document: "kubernetes-manifest", block: func(c *Component) any { c.KubernetesManifest = &KubernetesManifest{}; return c.KubernetesManifest }},
	{name: TypeContainerImage, rank: 0, document: "container-image", block: func(c *Component) any { c.ContainerImage = &ContainerImage{}; return c.ContainerImage }},
	{name: TypeExternalImage, rank: 0, document: "container-image", block: func(c *Component) any { c.ContainerImage = &ContainerImage{}; return c.ContainerImage }},
	{name: TypeDockerBuild, rank: 1, document: "docker-build", block: func(c *Component) any { c.DockerBuild = &DockerBuild{}; return c.DockerBuild }},
	{name: TypePulumi, rank: pluginRank, document: "pulumi", block: func(c *Component) any { c.Pulumi = &Pulumi{}; return c.Pulumi }},
	{name: TypeJob, rank: pluginRank, document: "job", block: func(c *Component) any { c.Job = &Job{}; return c.Job }},
}

// componentType is a component type of the language.
type componentType struct {
	name ComponentType
	rank int // orders components that do not depend on each other
	// document is the name of its schema; types of the same one have the same keys.
	document string
	// block gives a component the keys of the type.
	block func(*Component) any
}

// pluginRank is the rank of everything without one of its own.
const pluginRank = 4

func (t ComponentType) row() (row componentType, known bool) {
	i := slices.IndexFunc(componentTypes, func(row componentType) bool { return row.name == t })
	if i < 0 {
		return componentType{rank: pluginRank}, false
	}
	return componentTypes[i], true
}

// Rank orders component types that do not depend on each other: lower ones first.
func (t ComponentType) Rank() int {
	row, _ := t.row()
	return row.rank
}

// IsKnown tells whether the type is one of the language.
func (t ComponentType) IsKnown() bool {
	_, known := t.row()
	return known
}

// Document is the name of the schema of components of the type, "" for a
// plugin's.
func (t ComponentType) Document() string {
	row, _ := t.row()
	return row.document
}

// ComponentTypes lists the types of the language, older names after the newer.
func ComponentTypes() []ComponentType {
	var list []ComponentType
	for _, row := range componentTypes {
		list = append(list, row.name)
	}
	return list
}

// ComponentTypeNames lists the types of the language, sorted, older names too.
func ComponentTypeNames() []string {
	var names []string
	for _, name := range ComponentTypes() {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// Component is one file under components/: a part of the app that is built
// once and deployed to each install.
//
// A field tagged build is part of what the build makes; changing it causes a
// new build. A field tagged deploy only changes how the built artifact is
// deployed: build_timeout too, since more patience does not make another
// artifact.
type Component struct {
	At place.Place `toml:"-" json:"at" digest:"-"`

	// What deploys it: "terraform_module", "helm_chart", "kubernetes_manifest", "container_image" (also written "external_image"), "docker_build", "pulumi", "job", or the name of a plugin.
	Type ComponentType `toml:"type" json:"type" digest:"build" rule:"required"`
	// Unique in the app.
	Name string `toml:"name" json:"name" digest:"deploy" rule:"required"`
	// Another name for it in templates.
	VarName string `toml:"var_name" json:"var_name,omitempty" digest:"deploy"`
	// Components to deploy first, in addition to those that templates read.
	Dependencies []string `toml:"dependencies" json:"dependencies,omitempty" digest:"deploy"`
	// Labels.
	Labels map[string]string `toml:"labels" json:"labels,omitempty" digest:"deploy"`
	// When to look for drift, without changing anything; a cron of five fields, in UTC, 5 minutes apart at least. Without one, charts and manifests are looked at each hour, Terraform modules every 6 hours.
	DriftSchedule string `toml:"drift_schedule" json:"drift_schedule,omitempty" digest:"deploy" template:"true"`
	// How many times it is planned and applied again after a failure that may pass.
	MaxAutoRetries int `toml:"max_auto_retries" json:"max_auto_retries,omitempty" digest:"deploy" default:"0"`
	// How long one deploy may take.
	DeployTimeout place.Duration `toml:"deploy_timeout" alias:"timeout" json:"deploy_timeout,omitzero" digest:"deploy"`
	// How long one build may take.
	BuildTimeout place.Duration `toml:"build_timeout" json:"build_timeout,omitzero" digest:"deploy"`
	// Skips the apply when the plan is empty. Berth always does, whatever it says.
	SkipNoops bool `toml:"skip_noops" json:"skip_noops,omitempty" digest:"deploy" default:"false"`
	// Lets each install switch it off.
	Toggleable bool `toml:"toggleable" json:"toggleable,omitempty" digest:"deploy" default:"false"`
	// Whether installs get it by default; only for a toggleable component.
	DefaultEnabled *bool `toml:"default_enabled" json:"default_enabled,omitempty" digest:"deploy" default:"true"`
	// The cluster that it is deployed to, of kubernetes_contexts.toml; "sandbox" is the sandbox's own. It comes after the component that makes that cluster.
	KubernetesContext string `toml:"kubernetes_context" json:"kubernetes_context,omitempty" digest:"deploy" default:"sandbox"`
	// How its health is checked.
	Health *ComponentHealth `toml:"health" json:"health,omitempty" digest:"deploy"`
	// An older place for `health`, below the component's own name.
	Overrides map[string]ComponentOverride `toml:"components" json:"-" digest:"-"`
	// Identities for "deploy" and "teardown".
	OperationRoles []OperationRole `toml:"operation_roles" json:"operation_roles,omitempty" digest:"deploy"`
	// A repository that everybody can read; a type that needs a source takes one.
	PublicRepo *Repo `toml:"public_repo" json:"public_repo,omitempty" digest:"build"`
	// A repository that the org's own connection reads.
	ConnectedRepo *Repo `toml:"connected_repo" json:"connected_repo,omitempty" digest:"build"`
	// A source in the app folder.
	Berth *BlockExtension `toml:"berth" json:"berth,omitempty" digest:"mixed"`
	// Another file whose keys are merged in.
	SourceFile string `toml:"source" json:"source,omitempty" digest:"build"`

	// The keys of the component's own type; the others are nil.
	TerraformModule    *TerraformModule    `toml:"-" json:"terraform_module,omitempty" digest:"inside"`
	HelmChart          *HelmChart          `toml:"-" json:"helm_chart,omitempty" digest:"inside"`
	KubernetesManifest *KubernetesManifest `toml:"-" json:"kubernetes_manifest,omitempty" digest:"inside"`
	ContainerImage     *ContainerImage     `toml:"-" json:"container_image,omitempty" digest:"inside"`
	DockerBuild        *DockerBuild        `toml:"-" json:"docker_build,omitempty" digest:"inside"`
	Pulumi             *Pulumi             `toml:"-" json:"pulumi,omitempty" digest:"inside"`
	Job                *Job                `toml:"-" json:"job,omitempty" digest:"inside"`

	// Plugin holds the keys of a component of a plugin's type, which only the
	// plugin knows: strings, booleans, whole numbers, lists and maps of them.
	Plugin map[string]any `toml:"-" json:"plugin,omitempty" digest:"deploy" template:"true"`
}

// BuildDigest is what the component's build depends on: its build keys and the
// digest (or commit) of its resolved source. Two components with the same build
// digest can share an artifact, whatever they are called.
func (c *Component) BuildDigest(sourceDigest string) string {
	return digest.Of("component.build", c, digest.Tagged("build"), sourceDigest)
}

// DeployDigest covers every key that is not part of the build.
func (c *Component) DeployDigest() string {
	return digest.Of("component.deploy", c, digest.Tagged("deploy"))
}

// Source says where the component's files stand; false when none is given.
func (c *Component) Source() (Source, bool) {
	src, ok := sourceOf(c.PublicRepo, c.ConnectedRepo, c.Berth)
	switch {
	case c.KubernetesManifest != nil && c.KubernetesManifest.Manifest != nil:
		src, ok = Source{Kind: SourceText, File: manifestFile, Text: c.KubernetesManifest.Manifest.Contents}, true
	case c.ContainerImage != nil && c.ContainerImage.Public != nil:
		src, ok = c.ContainerImage.Public.source(), true
	case c.ContainerImage != nil && c.ContainerImage.ECR != nil:
		src, ok = c.ContainerImage.ECR.source(), true
	case c.HelmChart != nil && c.HelmChart.HelmRepo != nil:
		repo := c.HelmChart.HelmRepo
		src, ok = Source{Kind: SourceChart, Repo: repo.RepoURL, Ref: repo.Version, Directory: repo.Chart}, true
	case c.Job != nil:
		src, ok = Source{Kind: SourceImage, Repo: c.Job.ImageURL, Ref: c.Job.Tag}, true
	}
	src.Block, src.Name = BlockComponent, c.Name
	return src, ok
}

// EnabledByDefault tells whether an install that says nothing gets the
// component. Only a toggleable component can be off.
func (c *Component) EnabledByDefault() bool {
	return !c.Toggleable || c.DefaultEnabled == nil || *c.DefaultEnabled
}

// EnabledIn tells whether an install with these toggles gets the component. What
// they say of one that is not toggleable counts for nothing.
func (c *Component) EnabledIn(toggles map[string]bool) bool {
	if on, said := toggles[c.Name]; said && c.Toggleable {
		return on
	}
	return c.EnabledByDefault()
}

func (c *Component) check(ch *checker) {
	ch.name(c.At, "component", c.Name)
	ch.drift(looks{c.At, c.DriftSchedule, c.Berth, everyOf(jobspec.Kind(c.Type))})
	ch.operations(c.At, c.OperationRoles, "deploy", "teardown")
	ch.notNegative(c.At.Below("max_auto_retries"), c.MaxAutoRetries)
	ch.positive(c.At.Below("deploy_timeout"), c.DeployTimeout)
	ch.positive(c.At.Below("build_timeout"), c.BuildTimeout)
	if c.Berth != nil {
		ch.guardrails(c.At.Below("berth.guardrails"), c.Berth.Guardrails)
		ch.noPlugin(c.At, c.Berth, c.Plugin != nil)
		ch.noTool(c.At, c.Berth, c.Type == TypeTerraformModule)
		ch.checkProbe(c.At, c.Berth, c.HasProbe())
		ch.imageKey(c.At.Below("berth.image_key"), c.Berth.ImageKey, c.ContainerImage != nil)
	}
	if named, ok := c.Overrides[c.Name]; ok && c.Health == nil {
		c.Health = named.Health
		ch.Origin.Alias(c.At.Below("health"), c.At.Below("components").Below(c.Name).Below("health"))
	}
	c.Overrides = nil
	if c.Health != nil {
		c.Health.check(ch, c.At.Below("health"))
		c.checkProbes(ch)
	}
	if c.DefaultEnabled != nil && !c.Toggleable {
		ch.Add(place.Warning, place.CodeValue, c.At.Below("default_enabled"),
			"default_enabled does nothing, because component %q is not toggleable", c.Name)
	}
	for i, dep := range c.Dependencies {
		if slices.Contains(c.Dependencies[:i], dep) {
			ch.Add(place.Error, place.CodeDuplicate, c.At.Below("dependencies").Item(i), "component %q depends on %q twice", c.Name, dep)
		}
	}
	switch {
	case c.TerraformModule != nil:
		c.TerraformModule.check(ch, c)
	case c.HelmChart != nil:
		c.HelmChart.check(ch, c)
	case c.KubernetesManifest != nil:
		c.KubernetesManifest.check(ch, c)
	case c.ContainerImage != nil:
		c.ContainerImage.check(ch, c)
	case c.DockerBuild != nil:
		c.DockerBuild.check(ch, c)
	case c.Pulumi != nil:
		ch.source(c.At, c.SourceFile, c.sources())
	case c.Plugin != nil:
		c.checkPlugin(ch)
	}
}

// ComponentHealth is the health table of a component.
type ComponentHealth struct {
	// Probes of the deployed component: tables of free keys, such as type and target.
	Probes []map[string]string `toml:"probes" json:"probes,omitempty" template:"true"`
	// Fails a deploy after which the component is not healthy.
	BlockDeploy bool `toml:"block_deploy" json:"block_deploy,omitempty" default:"false"`
	// How long it must stay healthy after a deploy.
	StabilizationWindow place.Duration `toml:"stabilization_window" json:"stabilization_window,omitzero"`
	// Names of the checks that must pass.
	RequiredChecks []string `toml:"required_checks" json:"required_checks,omitempty"`
}

// ComponentOverride is the older place of a component's health.
type ComponentOverride struct {
	// How its health is checked.
	Health *ComponentHealth `toml:"health" json:"health,omitempty"`
}

// MaxStabilization is the longest stabilization_window: a deploy that is not done after a
// day is none.
const MaxStabilization = 24 * time.Hour

func (h *ComponentHealth) check(c *checker, at place.Place) {
	c.positive(at.Below("stabilization_window"), h.StabilizationWindow)
	if h.StabilizationWindow.Std() > MaxStabilization {
		c.Add(place.Error, place.CodeValue, at.Below("stabilization_window"), "stabilization_window is %s; the longest is %s", h.StabilizationWindow, MaxStabilization)
	}
	if h.BlockDeploy {
		return
	}
	for _, key := range []string{"stabilization_window", "required_checks"} {
		if c.isWritten(at.Below(key)) {
			c.Add(place.Warning, place.CodeExclusive, at.Below(key), "%s does nothing without block_deploy", key)
		}
	}
}
