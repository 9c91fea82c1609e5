package orders

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/berth-dev/berth/pkg/appconfig"
	"github.com/berth-dev/berth/pkg/interpolate"
	"github.com/berth-dev/berth/pkg/jobspec"
	"github.com/berth-dev/berth/pkg/policy"
)

// about is what a plan is of: the sandbox, a component or an action.
type about struct {
	sandbox   bool
	kind      jobspec.Kind
	component string // or the action's name
}

// looksAt says which kinds of jobs bring documents that a policy of a type looks at.
var looksAt = map[policy.Type][]jobspec.Kind{
	policy.TypeContainerImage:     {jobspec.KindContainerImage, jobspec.KindDockerBuild},
	policy.TypeHelmChart:          {jobspec.KindHelmChart},
	policy.TypeHelmJob:            {jobspec.KindHelmChart},
	policy.TypeKubernetesManifest: {jobspec.KindKubernetesManifest},
	policy.TypeKubernetesCluster:  {jobspec.KindHelmChart, jobspec.KindKubernetesManifest},
	policy.TypeTerraformModule:    {jobspec.KindTerraformModule},
	policy.TypeTerraformJob:       {jobspec.KindTerraformModule},
	policy.TypeActionJob:          {jobspec.KindAction},
}

// ActionPolicies are the policies of an app that look at the scripts of an action.
func ActionPolicies(app *appconfig.App, action string) []policy.Rules {
	return policiesFor(app, about{kind: jobspec.KindAction, component: action})
}

// BuildPolicies are the policies of an app that look at the image that a build of a component
// makes or copies. Those that are templates are held against its plans alone: what they read
// is of an install.
func BuildPolicies(app *appconfig.App, c *appconfig.Component) []policy.Rules {
	found := slices.DeleteFunc(policiesFor(app, about{kind: jobspec.OfComponent(string(c.Type)), component: c.Name}), func(r policy.Rules) bool {
		references, err := interpolate.References(r.Text)
		return r.Type != policy.TypeContainerImage || err != nil || len(references) > 0
	})
	for i := range found {
		found[i].Components = nil // they are for this one
	}
	return found
}

// policiesFor are the policies of an app that look at what a plan is of. An order carries
// no others.
func policiesFor(app *appconfig.App, of about) []policy.Rules {
	if app == nil {
		return nil
	}
	var out []policy.Rules
	names := PolicyNames(app)
	for i, p := range app.Policies {
		if looks(p, of) {
			out = append(out, policy.Rules{
				Name: names[i], Language: policy.Language(p.Engine), Text: p.Contents.Contents, File: p.At.File, Type: policy.Type(p.Type), Components: p.Components,
			})
		}
	}
	return out
}

// PolicyNames names each policy of an app. Verdicts are told apart by these names, so no
// two are the same.
func PolicyNames(app *appconfig.App) []string {
	names, used := make([]string, len(app.Policies)), map[string]bool{}
	for i, p := range app.Policies {
		names[i] = cmp.Or(p.Name, fmt.Sprintf("policy %d", i+1))
		if used[names[i]] {
			names[i] = fmt.Sprintf("%s (%d)", names[i], i+1)
		}
		used[names[i]] = true
	}
	return names
}

func looks(p appconfig.Policy, of about) bool {
	t := policy.Type(p.Type)
	if of.sandbox {
		return t == policy.TypeSandbox && (len(p.Components) == 0 || slices.Contains(p.Components, appconfig.AllComponents))
	}
	named := len(p.Components) == 0 || slices.Contains(p.Components, appconfig.AllComponents) || slices.Contains(p.Components, of.component)
	return named && slices.Contains(looksAt[t], of.kind)
}
