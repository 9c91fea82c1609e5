package appconfig

import "slices"

// ComponentType says which engine deploys a component.
type ComponentType string

// The component types of this version; the other names are recognised, see
// componentTypes.
const (
	TypeContainerImage     ComponentType = "container_image"
	TypeTerraformModule    ComponentType = "terraform_module"
	TypeHelmChart          ComponentType = "helm_chart"
	TypeKubernetesManifest ComponentType = "kubernetes_manifest"

	// typeExternalImage is another name of TypeContainerImage.
	typeExternalImage ComponentType = "external_image"
)

// componentTypes knows every component type. A type without a block is
// recognised but not supported yet. The rank orders components that do not
// depend on each other.
var componentTypes = map[ComponentType]struct {
	rank  int
	block func(*Component) any
}{
	TypeContainerImage:     {rank: 0, block: func(c *Component) any { c.ContainerImage = &ContainerImage{}; return c.ContainerImage }},
	typeExternalImage:      {rank: 0, block: func(c *Component) any { c.ContainerImage = &ContainerImage{}; return c.ContainerImage }},
	"docker_build":         {rank: 1},
	TypeTerraformModule:    {rank: 2, block: func(c *Component) any { c.TerraformModule = &TerraformModule{}; return c.TerraformModule }},
	TypeHelmChart:          {rank: 3, block: func(c *Component) any { c.HelmChart = &HelmChart{}; return c.HelmChart }},
	TypeKubernetesManifest: {rank: 4, block: func(c *Component) any { c.KubernetesManifest = &KubernetesManifest{}; return c.KubernetesManifest }},
	"pulumi":               {rank: 4},
	"job":                  {rank: 4},
}

func componentTypeNames() []string {
	var names []string
	for name := range componentTypes {
		names = append(names, string(name))
	}
	slices.Sort(names)
	return names
}

// Component is one file under components/: a part of the app that is built
// once and deployed to each install.
//
// A field tagged build is part of what the build makes; changing it builds
// anew. A field tagged deploy only changes how the built artifact is deployed.
//
//	build   type, public_repo, connected_repo, berth.local_source, terraform_version,
//	        helm_repo, manifest, kustomize, public, aws_ecr
//	deploy  everything else
//
// build_timeout is on the deploy side on purpose: more patience does not make
// another artifact.
type Component struct {
	At Place `toml:"-" json:"at" digest:"-"`

	Type ComponentType `toml:"type" json:"type" digest:"build" rule:"required"`
	Name string        `toml:"name" json:"name" digest:"deploy" rule:"required"`
	// VarName is another name for the component in templates.
	VarName        string            `toml:"var_name" json:"var_name,omitempty" digest:"deploy"`
	Dependencies   []string          `toml:"dependencies" json:"dependencies,omitempty" digest:"deploy"`
	Labels         map[string]string `toml:"labels" json:"labels,omitempty" digest:"deploy"`
	DriftSchedule  string            `toml:"drift_schedule" json:"drift_schedule,omitempty" digest:"deploy" template:"true"`
	MaxAutoRetries int               `toml:"max_auto_retries" json:"max_auto_retries,omitempty" digest:"deploy"`
	DeployTimeout  Duration          `toml:"deploy_timeout" alias:"timeout" json:"deploy_timeout,omitzero" digest:"deploy"`
	BuildTimeout   Duration          `toml:"build_timeout" json:"build_timeout,omitzero" digest:"deploy"`
	SkipNoops      bool              `toml:"skip_noops" json:"skip_noops,omitempty" digest:"deploy"`
	Toggleable     bool              `toml:"toggleable" json:"toggleable,omitempty" digest:"deploy"`
	DefaultEnabled *bool             `toml:"default_enabled" json:"default_enabled,omitempty" digest:"deploy"`
	OperationRoles []OperationRole   `toml:"operation_roles" json:"operation_roles,omitempty" digest:"deploy"`
	PublicRepo     *Repo             `toml:"public_repo" json:"public_repo,omitempty" digest:"build"`
	ConnectedRepo  *Repo             `toml:"connected_repo" json:"connected_repo,omitempty" digest:"build"`
	Berth          *SourceExtension  `toml:"berth" json:"berth,omitempty" digest:"build"`

	// The keys of the component's own type; the others are nil.
	TerraformModule    *TerraformModule    `toml:"-" json:"terraform_module,omitempty" digest:"inside"`
	HelmChart          *HelmChart          `toml:"-" json:"helm_chart,omitempty" digest:"inside"`
	KubernetesManifest *KubernetesManifest `toml:"-" json:"kubernetes_manifest,omitempty" digest:"inside"`
	ContainerImage     *ContainerImage     `toml:"-" json:"container_image,omitempty" digest:"inside"`
}

// BuildDigest is what the component's build depends on: its build keys and the
// digest (or commit) of its resolved source. Two components with the same build
// digest can share an artifact, whatever they are called.
func (c *Component) BuildDigest(sourceDigest string) string {
	return digestOf("component.build", c, includeTagged("build"), sourceDigest)
}

// DeployDigest covers every key that is not part of the build.
func (c *Component) DeployDigest() string {
	return digestOf("component.deploy", c, includeTagged("deploy"))
}

// Source says where the component's files stand; false when none is given.
func (c *Component) Source() (Source, bool) {
	src, ok := sourceOf(c.PublicRepo, c.ConnectedRepo, c.Berth)
	switch {
	case c.KubernetesManifest != nil && c.KubernetesManifest.Manifest != nil:
		src, ok = Source{Kind: SourceText, File: manifestFile, Text: c.KubernetesManifest.Manifest.Contents}, true
	case c.ContainerImage != nil && c.ContainerImage.Public != nil:
		src, ok = Source{Kind: SourceImage, Repo: c.ContainerImage.Public.ImageURL, Ref: c.ContainerImage.Public.Tag}, true
	}
	src.Block, src.Name = BlockComponent, c.Name
	return src, ok
}

// EnabledByDefault tells whether an install that says nothing gets the
// component. Only a toggleable component can be off.
func (c *Component) EnabledByDefault() bool {
	return !c.Toggleable || c.DefaultEnabled == nil || *c.DefaultEnabled
}

func (c *Component) check(ch *checker) {
	ch.name(c.At, "component", c.Name)
	ch.cron(c.At.key("drift_schedule"), c.DriftSchedule)
	ch.operations(c.At, c.OperationRoles, "deploy", "teardown")
	ch.notNegative(c.At.key("max_auto_retries"), c.MaxAutoRetries)
	ch.positive(c.At.key("deploy_timeout"), c.DeployTimeout)
	ch.positive(c.At.key("build_timeout"), c.BuildTimeout)
	if c.DefaultEnabled != nil && !c.Toggleable {
		ch.add(Warning, CodeValue, c.At.key("default_enabled"),
			"default_enabled does nothing, because component %q is not toggleable", c.Name)
	}
	for i, dep := range c.Dependencies {
		if slices.Contains(c.Dependencies[:i], dep) {
			ch.add(Error, CodeDuplicate, c.At.key("dependencies").item(i), "component %q depends on %q twice", c.Name, dep)
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
	}
}
