package orders

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/jobspec"
)

// DefaultTimeout bounds a plan or an apply that the app says nothing about.
const DefaultTimeout = time.Hour

// Revision is a sandbox or a component as a release has it, and what an install
// says itself.
type Revision struct {
	Sandbox bool
	// Spec is the block of the app folder: an appconfig.Sandbox or an
	// appconfig.Component, as JSON.
	Spec json.RawMessage
	// Override of another type than the component's counts for nothing.
	Override appconfig.InstallComponent
	// Commit is what its source was resolved to: builds.source_commit.
	Commit string
	// SignedBy is the public key of the machine that built the artifact, "" for none.
	SignedBy string
	// App is that of the release.
	App *appconfig.App
}

// component is what the orders of a type are made from.
type component struct {
	*appconfig.Component
	override appconfig.InstallComponent
	commit   string
	app      *appconfig.App
}

// types has one row for each type of component that this version deploys.
var types = map[jobspec.Kind]struct {
	// work is what the engine works from; deployable is false for a form of the type
	// that this version has no engine for.
	work func(component) (w jobspec.Work, deployable bool)
	// probe removes what a probe has no use for; nil keeps everything.
	probe func(*jobspec.Work)
}{
	jobspec.KindTerraformModule:    {work: terraformModule, probe: probeModule},
	jobspec.KindHelmChart:          {work: helmChart, probe: probeChart},
	jobspec.KindKubernetesManifest: {work: kubernetesManifest},
	jobspec.KindContainerImage:     {work: containerImage},
	jobspec.KindPulumi:             {work: pulumi},
	jobspec.KindDockerBuild:        {work: dockerBuild},
	jobspec.KindPlugin:             {work: pluginOf},
}

// Fill completes the spec of a plan with what the engine of the revision's type
// works from, and returns how long the engine may take. It fails on a type that
// this version has no engine for.
func (r Revision) Fill(spec *jobspec.Spec) (time.Duration, error) {
	if r.Sandbox {
		spec.Policies = policiesFor(r.App, about{sandbox: true})
		return DefaultTimeout, sandbox(spec, r.Spec)
	}
	c := component{Component: &appconfig.Component{}, override: r.Override, commit: r.Commit, app: r.App}
	if err := json.Unmarshal(r.Spec, c.Component); err != nil {
		return 0, fmt.Errorf("read component revision: %w", err)
	}
	spec.File, spec.Kind = c.At.File, jobspec.OfComponent(string(c.Type))
	spec.Policies = policiesFor(r.App, about{kind: spec.Kind, component: c.Name})
	spec.ImageKeys = r.imageKeys(c)
	deployable := false
	if t, known := types[spec.Kind]; known {
		spec.Work, deployable = t.work(c)
	}
	if !deployable {
		return 0, fmt.Errorf("component %q of type %s has no engine in this version", c.Name, c.Type)
	}
	if c.DeployTimeout.Std() > 0 {
		return c.DeployTimeout.Std(), nil
	}
	return DefaultTimeout, nil
}
